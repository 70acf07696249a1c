//! Trust in TLS certificates of servers.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore,
    SignatureScheme,
};
use sha2::{Digest as _, Sha256};

use super::RemoteError;

/// The certificates that are trusted.
#[derive(Debug, Clone)]
pub(super) enum Trust {
    /// Certificates of the system's certificate authorities.
    System,
    /// Certificates of these authorities only.
    Authorities(Arc<RootCertStore>),
    /// One certificate, identified by its SHA-256.
    Fingerprint([u8; 32]),
}

/// Reads certificate authorities from a PEM file.
pub(super) fn authorities(path: &Path) -> Result<Arc<RootCertStore>, RemoteError> {
    let failed = |reason: String| RemoteError::Option {
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
    if store.is_empty() {
        return Err(failed("the file has no certificate in PEM form".to_owned()));
    }
    Ok(Arc::new(store))
}

/// Parses a SHA-256 fingerprint.
pub(super) fn fingerprint(text: &str) -> Result<[u8; 32], RemoteError> {
    let failed = || RemoteError::Option {
        what: format!("the fingerprint `{text}`"),
        reason: "expected a SHA-256 of 64 hexadecimal digits".to_owned(),
    };
    let text = text.trim();
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    let digits: Vec<char> = digits.chars().filter(|c| *c != ':').collect();
    let mut bytes = [0; 32];
    if digits.len() != 2 * bytes.len() {
        return Err(failed());
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let pair: String = pair.iter().collect();
        *byte = u8::from_str_radix(&pair, 16).map_err(|_| failed())?;
    }
    Ok(bytes)
}

/// Returns the TLS configuration for the trusted certificates.
pub(super) fn config(trust: &Trust, protocols: &[&str]) -> Result<ClientConfig, RemoteError> {
    let failed = |error: &dyn std::fmt::Display| RemoteError::Option {
        what: "TLS".to_owned(),
        reason: error.to_string(),
    };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier: Arc<dyn ServerCertVerifier> = match trust {
        Trust::System => {
            let verifier = rustls_platform_verifier::Verifier::new(provider.clone());
            Arc::new(verifier.map_err(|error| failed(&error))?)
        }
        Trust::Authorities(roots) => {
            let builder =
                WebPkiServerVerifier::builder_with_provider(roots.clone(), provider.clone());
            builder.build().map_err(|error| failed(&error))?
        }
        Trust::Fingerprint(sha256) => Arc::new(Pinned::new(*sha256, &provider)),
    };
    let builder = ClientConfig::builder_with_provider(provider);
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let builder = builder
        .dangerous()
        .with_custom_certificate_verifier(verifier);
    let mut config = builder.with_no_client_auth();
    config.alpn_protocols = protocols
        .iter()
        .map(|name| name.as_bytes().to_vec())
        .collect();
    Ok(config)
}

/// Accepts one certificate. The server still proves that it has the private key.
#[derive(Debug)]
struct Pinned {
    sha256: [u8; 32],
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(sha256: [u8; 32], provider: &CryptoProvider) -> Self {
        let algorithms = provider.signature_verification_algorithms;
        Self { sha256, algorithms }
    }
}

/// The error for a certificate with another fingerprint.
#[derive(Debug, thiserror::Error)]
#[error("the server's certificate has the fingerprint {0}, which differs from the expected one")]
struct OtherCertificate(String);

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
        let mut text = String::new();
        for byte in found {
            // Writing to a string cannot fail.
            let _ = write!(text, "{byte:02x}");
        }
        let error = OtherError(Arc::new(OtherCertificate(text)));
        Err(Error::InvalidCertificate(CertificateError::Other(error)))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_with_and_without_colons() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(fingerprint(&plain).unwrap(), [0xab; 32]);
        assert_eq!(fingerprint(&colons).unwrap(), [0xab; 32]);
        assert_eq!(
            fingerprint(&format!("sha256:{plain}\n")).unwrap(),
            [0xab; 32]
        );
        for text in [
            "",
            "ab",
            &"xy".repeat(32),
            &"ab".repeat(33),
            &"é".repeat(64),
        ] {
            assert!(fingerprint(text).is_err(), "{text}");
        }
    }
}
