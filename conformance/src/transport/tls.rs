//! TLS, and the certificates that are trusted.

use std::fmt::Write as _;
use std::io;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use sha2::{Digest as _, Sha256};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::EndpointError;

/// The certificates that are trusted.
#[derive(Clone, Debug)]
pub(super) enum Trust {
    /// Those of the system's certificate authorities.
    System,
    /// Those of these authorities only.
    Authorities(Arc<RootCertStore>),
    /// One certificate, by its SHA-256.
    Fingerprint([u8; 32]),
}

/// Reads certificate authorities from a PEM file.
pub(super) fn authorities(path: &Path) -> Result<Arc<RootCertStore>, EndpointError> {
    let failed = |reason: String| EndpointError::Option {
        what: format!("the certificate authorities in {}", path.display()),
        reason,
    };
    let text = std::fs::read(path).map_err(|error| failed(error.to_string()))?;
    let mut store = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&text) {
        let certificate = certificate.map_err(|error| failed(error.to_string()))?;
        let added = store.add(certificate);
        added.map_err(|error| failed(error.to_string()))?;
    }
    match store.is_empty() {
        true => Err(failed("the file has no certificate in PEM form".to_owned())),
        false => Ok(Arc::new(store)),
    }
}

/// Parses a SHA-256 fingerprint.
pub(super) fn fingerprint(text: &str) -> Result<[u8; 32], EndpointError> {
    let digits = text.trim();
    let digits = digits.strip_prefix("sha256:").unwrap_or(digits);
    let digits: Option<Vec<u8>> = digits
        .chars()
        .filter(|c| *c != ':')
        .map(|c| c.to_digit(16).and_then(|digit| u8::try_from(digit).ok()))
        .collect();
    let pairs = digits.iter().flat_map(|digits| digits.chunks(2));
    let bytes: Vec<u8> = pairs
        .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit))
        .collect();
    let has_pairs = digits.is_some_and(|digits| digits.len() == 64);
    let bytes = bytes.try_into().ok().filter(|_| has_pairs);
    bytes.ok_or_else(|| EndpointError::Option {
        what: format!("the fingerprint `{text}`"),
        reason: "expected a SHA-256 of 64 hexadecimal digits".to_owned(),
    })
}

/// Performs the handshake on a socket, and offers `protocols` by ALPN.
pub(super) async fn connect(
    trust: &Trust,
    protocols: &[&str],
    host: &str,
    socket: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let config = config(trust, protocols).map_err(io::Error::other)?;
    TlsConnector::from(Arc::new(config))
        .connect(name, socket)
        .await
}

fn config(trust: &Trust, protocols: &[&str]) -> Result<ClientConfig, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::System => Arc::new(rustls_platform_verifier::Verifier::new(provider.clone())?),
        Trust::Authorities(roots) => {
            let builder =
                WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone());
            builder
                .build()
                .map_err(|error| Error::General(error.to_string()))?
        }
        Trust::Fingerprint(sha256) => Arc::new(Pinned {
            sha256: *sha256,
            provider: provider.clone(),
        }),
    };
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let mut config = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier)
        .with_no_client_auth();
    let protocols = protocols.iter().map(|name| name.as_bytes().to_vec());
    config.alpn_protocols = protocols.collect();
    Ok(config)
}

/// Accepts one certificate. The server still proves that it has the private key.
#[derive(Debug)]
struct Pinned {
    sha256: [u8; 32],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found: [u8; 32] = Sha256::digest(certificate).into();
        if found == self.sha256 {
            return Ok(ServerCertVerified::assertion());
        }
        let mut reason = "the server's certificate has the fingerprint ".to_owned();
        for byte in found {
            // Writing to a string cannot fail.
            let _ = write!(reason, "{byte:02x}");
        }
        reason += ", which differs from the expected one";
        Err(Error::General(reason))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let algorithms = &self.provider.signature_verification_algorithms;
        algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_has_64_digits() {
        let plain = "aB".repeat(32);
        let colons = ["ab"; 32].join(":");
        for text in [&plain, &colons, &format!("sha256:{plain}\n")] {
            assert_eq!(fingerprint(text).unwrap(), [0xab; 32], "{text}");
        }
        for text in ["", "ab", &"xy".repeat(32), &"a".repeat(63), &"é".repeat(64)] {
            assert!(fingerprint(text).is_err(), "{text}");
        }
    }
}
