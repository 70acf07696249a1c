//! TLS to the database, by rustls.

use std::path::Path;
use std::sync::Arc;

use acp_server::store::{StoreError, StoreErrorKind};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Returns what connects with TLS where `sslmode` asks for it.
pub(crate) fn connector(roots: Option<&Path>) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone());
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(failed)?;
    let config = match roots {
        Some(path) => builder
            .with_root_certificates(read(path)?)
            .with_no_client_auth(),
        None => {
            let verifier = rustls_platform_verifier::Verifier::new(provider).map_err(failed)?;
            let builder = builder.dangerous();
            let builder = builder.with_custom_certificate_verifier(Arc::new(verifier));
            builder.with_no_client_auth()
        }
    };
    Ok(MakeRustlsConnect::new(config))
}

fn read(path: &Path) -> Result<RootCertStore, StoreError> {
    let unreadable = |reason: String| {
        let message = format!(
            "cannot read certificates from {}: {reason}. Name a PEM file",
            path.display()
        );
        StoreError::new(StoreErrorKind::Conflict, message)
    };
    let certificates = CertificateDer::pem_file_iter(path);
    let certificates = certificates.map_err(|error| unreadable(error.to_string()))?;
    let mut roots = RootCertStore::empty();
    for certificate in certificates {
        let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
        let added = roots.add(certificate);
        added.map_err(|error| unreadable(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(unreadable("it has none".to_owned()));
    }
    Ok(roots)
}

fn failed(error: rustls::Error) -> StoreError {
    let message = format!("cannot set up TLS for the PostgreSQL store: {error}");
    StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
}
