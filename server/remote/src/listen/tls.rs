//! Certificate and key, which can be replaced while the server runs.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::SystemTime;

use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

/// The maximum bytes of a PEM file.
const FILE_BYTES: u64 = 1 << 20;

/// The files of a TLS server, in PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
    /// Issuers of client certificates; `None`: clients need no certificate.
    pub client_ca: Option<PathBuf>,
}

/// The configuration of a TLS server. Clones are handles to the same one.
///
/// Offers HTTP/2 and HTTP/1.1. A new certificate applies to new connections.
#[derive(Clone)]
pub struct Tls(Arc<TlsInner>);

struct TlsInner {
    files: TlsFiles,
    config: RwLock<Arc<ServerConfig>>,
    /// The files when they were read last, readable or not.
    stamps: Mutex<Stamps>,
}

/// Why certificate and key cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TlsError {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file is not PEM, or has nothing of what it should have.
    #[error("expected {expected} as PEM in {}: {source}", path.display())]
    Pem {
        /// The file.
        path: PathBuf,
        /// What it should have.
        expected: &'static str,
        /// Why.
        source: rustls::pki_types::pem::Error,
    },
    /// The certificate, the key or the issuers do not fit.
    #[error("cannot use {}: {reason}", path.display())]
    Unusable {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl Tls {
    /// Loads certificate, key and issuers.
    ///
    /// # Errors
    ///
    /// When a file cannot be read, is not PEM, or the key is not that of the certificate.
    pub fn load(files: TlsFiles) -> Result<Self, TlsError> {
        let stamps = Stamps::of(&files);
        let config = RwLock::new(Arc::new(read(&files)?));
        let stamps = Mutex::new(stamps);
        Ok(Self(Arc::new(TlsInner {
            files,
            config,
            stamps,
        })))
    }

    /// Loads the files again, for the connections to come.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load); then the earlier certificate stays.
    pub fn reload(&self) -> Result<(), TlsError> {
        // Taken before reading: a file that changes meanwhile is read again.
        let stamps = Stamps::of(&self.0.files);
        *self.0.stamps.lock().unwrap_or_else(PoisonError::into_inner) = stamps;
        let config = Arc::new(read(&self.0.files)?);
        *self
            .0
            .config
            .write()
            .unwrap_or_else(PoisonError::into_inner) = config;
        Ok(())
    }

    /// Loads the files again if one has changed since the last try. Returns whether it has.
    pub(super) fn reload_if_changed(&self) -> Result<bool, TlsError> {
        let stamps = self.0.stamps.lock();
        let known = stamps.unwrap_or_else(PoisonError::into_inner).clone();
        if known == Stamps::of(&self.0.files) {
            return Ok(false);
        }
        self.reload().map(|()| true)
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        let config = self.0.config.read();
        config.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("files", &self.0.files)
            .finish_non_exhaustive()
    }
}

/// What changes with a file: its time, its size, and the file that a link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Stamps(Vec<Option<(Option<SystemTime>, u64, u64)>>);

impl Stamps {
    fn of(files: &TlsFiles) -> Self {
        let stamp = |path: &PathBuf| {
            let metadata = fs::metadata(path).ok()?;
            #[cfg(unix)]
            let inode = std::os::unix::fs::MetadataExt::ino(&metadata);
            #[cfg(not(unix))]
            let inode = 0;
            Some((metadata.modified().ok(), metadata.len(), inode))
        };
        let paths = [
            Some(&files.certificate),
            Some(&files.key),
            files.client_ca.as_ref(),
        ];
        Self(paths.into_iter().flatten().map(stamp).collect())
    }
}

fn read(files: &TlsFiles) -> Result<ServerConfig, TlsError> {
    let chain = certificates(&files.certificate)?;
    let key = PrivateKeyDer::from_pem_slice(&contents(&files.key)?);
    let key = key.map_err(|source| TlsError::Pem {
        path: files.key.clone(),
        expected: "a private key",
        source,
    })?;
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, error))?;
    let config = match &files.client_ca {
        None => config.with_no_client_auth(),
        Some(path) => {
            let roots = Arc::new(issuers(path)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider).build();
            config.with_client_cert_verifier(verifier.map_err(|error| unusable(path, error))?)
        }
    };
    let config = config.with_single_cert(chain, key);
    let mut config = config.map_err(|error| unusable(&files.certificate, error))?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = contents(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    let found = found.and_then(|found| match found.is_empty() {
        true => Err(rustls::pki_types::pem::Error::NoItemsFound),
        false => Ok(found),
    });
    found.map_err(|source| TlsError::Pem {
        path: path.to_owned(),
        expected: "a certificate",
        source,
    })
}

fn issuers(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = roots.add(certificate);
        added.map_err(|error| unusable(path, error))?;
    }
    Ok(roots)
}

fn contents(path: &Path) -> Result<Vec<u8>, TlsError> {
    let mut text = Vec::new();
    let read = File::open(path).and_then(|file| file.take(FILE_BYTES).read_to_end(&mut text));
    match read {
        Ok(_) => Ok(text),
        Err(source) => Err(TlsError::Read {
            path: path.to_owned(),
            source,
        }),
    }
}

fn unusable(path: &Path, error: impl fmt::Display) -> TlsError {
    let reason = error.to_string();
    TlsError::Unusable {
        path: path.to_owned(),
        reason,
    }
}
