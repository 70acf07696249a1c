//! TLS: handshakes, client certificates, and certificates that change.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp_server_remote::{ListenSettings, Secured, Tls, TlsFiles};
use axum::routing::get;
use axum::{Extension, Router};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::raw::{Listener, PATIENCE, exchange, to_end};

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";

/// Issues certificates for `localhost`.
struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Self(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Returns a certificate and its key in PEM.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }
}

fn write(folder: &Path, (certificate, key): &(String, String)) -> TlsFiles {
    let files = TlsFiles {
        certificate: folder.join("cert.pem"),
        key: folder.join("key.pem"),
        client_ca: None,
    };
    fs::write(&files.certificate, certificate).unwrap();
    fs::write(&files.key, key).unwrap();
    files
}

/// A listener with TLS, and its warnings.
async fn start(
    tls: Tls,
    change: impl FnOnce(&mut ListenSettings),
) -> (Listener, mpsc::UnboundedReceiver<String>) {
    let (send, warnings) = mpsc::unbounded_channel();
    let mut settings = ListenSettings::default();
    settings.tls = Some(tls);
    settings.on_warning = Arc::new(move |warning| {
        let _ = send.send(warning.to_owned());
    });
    change(&mut settings);
    let secured = |secured: Option<Extension<Secured>>| async move {
        if secured.is_some() {
            "secured"
        } else {
            "plain"
        }
    };
    let router = Router::new().route("/", get(secured));
    (Listener::start(router, settings).await, warnings)
}

/// Trusts an authority; sends a certificate if there is one.
fn client(authority: &Authority, own: Option<&(String, String)>, alpn: &[&str]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    let der = CertificateDer::from_pem_slice(authority.0.pem().as_bytes()).unwrap();
    roots.add(der).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match own {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => {
            let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
            config
                .with_client_auth_cert(vec![certificate], key)
                .unwrap()
        }
    };
    config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
    TlsConnector::from(Arc::new(config))
}

async fn connect(
    listener: &Listener,
    client: &TlsConnector,
) -> std::io::Result<TlsStream<TcpStream>> {
    let name = ServerName::try_from("localhost").unwrap();
    client.connect(name, listener.connect().await).await
}

fn certificate_of(stream: &TlsStream<TcpStream>) -> Vec<u8> {
    stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
}

#[tokio::test]
async fn both_versions_of_http_are_offered_over_tls() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    let tls = Tls::load(write(folder.path(), &authority.issue())).unwrap();
    let (listener, _warnings) = start(tls, |_| {}).await;
    for (offered, chosen) in [
        (&["h2", "http/1.1"][..], Some("h2")),
        (&["http/1.1"], Some("http/1.1")),
        (&[], None),
    ] {
        let stream = connect(&listener, &client(&authority, None, offered))
            .await
            .unwrap();
        let protocol = stream.get_ref().1.alpn_protocol();
        assert_eq!(protocol, chosen.map(str::as_bytes));
        if chosen != Some("h2") {
            let answer = exchange(stream, REQUEST).await;
            assert_eq!((answer.status, &*answer.body), (200, "secured"));
            continue;
        }
        let io = hyper_util::rt::TokioIo::new(stream);
        let executor = hyper_util::rt::TokioExecutor::new();
        let handshake = hyper::client::conn::http2::handshake(executor, io);
        let (mut sender, connection) = handshake.await.unwrap();
        tokio::spawn(connection);
        let request = hyper::Request::get("https://localhost/").body(axum::body::Body::empty());
        let response = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(
            (response.status(), response.version()),
            (200.try_into().unwrap(), hyper::Version::HTTP_2)
        );
    }
}

#[tokio::test]
async fn half_a_handshake_and_plain_http_end() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    let tls = Tls::load(write(folder.path(), &authority.issue())).unwrap();
    let short = Duration::from_millis(200);
    let (listener, _warnings) = start(tls, |settings| settings.handshake_timeout = short).await;
    for begin in ["", "\u{16}\u{3}\u{1}"] {
        let mut stream = listener.connect().await;
        stream.write_all(begin.as_bytes()).await.unwrap();
        assert_eq!(to_end(stream).await, "");
    }
    let mut plain = listener.connect().await;
    plain.write_all(REQUEST.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    let read = tokio::io::AsyncReadExt::read_to_end(&mut plain, &mut answer);
    let _ = timeout(PATIENCE, read).await.unwrap();
    assert!(!answer.starts_with(b"HTTP"), "{answer:?}");
}

#[tokio::test]
async fn a_new_certificate_is_loaded_and_a_bad_one_is_not() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    let first = authority.issue();
    let files = write(folder.path(), &first);
    let tls = Tls::load(files.clone()).unwrap();
    let every = Duration::from_millis(100);
    let (listener, mut warnings) =
        start(tls.clone(), |settings| settings.reload_interval = every).await;
    let client = client(&authority, None, &[]);
    let shown = async || certificate_of(&connect(&listener, &client).await.unwrap());
    let old = shown().await;
    // Serves on when its certificate is replaced.
    let early = connect(&listener, &client).await.unwrap();

    let warning = async |warnings: &mut mpsc::UnboundedReceiver<String>| {
        timeout(PATIENCE, warnings.recv()).await.unwrap().unwrap()
    };
    fs::write(&files.key, "no key").unwrap();
    let text = warning(&mut warnings).await;
    assert!(
        text.contains("kept the earlier") && text.contains("key.pem"),
        "{text}"
    );
    assert_eq!(shown().await, old);

    // Of two files, one is always written first.
    let second = authority.issue();
    fs::write(&files.certificate, &second.0).unwrap();
    assert!(warning(&mut warnings).await.contains("kept the earlier"));
    fs::write(&files.key, &first.1).unwrap();
    assert!(
        warning(&mut warnings).await.contains("kept the earlier"),
        "another key"
    );
    assert_eq!(shown().await, old);
    fs::write(&files.key, &second.1).unwrap();
    assert!(warning(&mut warnings).await.contains("loaded the new"));
    let new = shown().await;
    assert_ne!(new, old);
    assert_eq!(exchange(early, REQUEST).await.status, 200);

    // At once, as after SIGHUP.
    write(folder.path(), &authority.issue());
    tls.reload().unwrap();
    assert_ne!(shown().await, new);
    fs::remove_file(&files.certificate).unwrap();
    let error = tls.reload().unwrap_err().to_string();
    assert!(error.contains("cert.pem"), "{error}");
}

#[tokio::test]
async fn client_certificates_are_required_with_a_list_of_issuers() {
    let (folder, authority, other) = (TempDir::new().unwrap(), Authority::new(), Authority::new());
    let mut files = write(folder.path(), &authority.issue());
    let issuers = folder.path().join("clients.pem");
    fs::write(&issuers, other.0.pem()).unwrap();
    files.client_ca = Some(issuers);
    let (listener, _warnings) = start(Tls::load(files).unwrap(), |_| {}).await;

    let known = client(&authority, Some(&other.issue()), &[]);
    let stream = connect(&listener, &known).await.unwrap();
    assert_eq!(exchange(stream, REQUEST).await.status, 200);
    for own in [None, Some(authority.issue())] {
        let unknown = client(&authority, own.as_ref(), &[]);
        // With TLS 1.3 the client learns it after its own part of the handshake.
        if let Ok(mut stream) = connect(&listener, &unknown).await {
            let _ = stream.write_all(REQUEST.as_bytes()).await;
            assert_eq!(to_end(stream).await, "", "{:?}", own.is_some());
        }
    }
}

#[test]
fn unusable_files_are_named() {
    let (folder, authority) = (TempDir::new().unwrap(), Authority::new());
    let files = write(folder.path(), &authority.issue());
    let error = |files: &TlsFiles| Tls::load(files.clone()).unwrap_err().to_string();

    let missing = TlsFiles {
        key: "/nonexistent".into(),
        ..files.clone()
    };
    assert!(error(&missing).contains("/nonexistent"));
    let swapped = TlsFiles {
        certificate: files.key.clone(),
        ..files.clone()
    };
    assert!(error(&swapped).contains("expected a certificate as PEM in"));
    let swapped = TlsFiles {
        key: files.certificate.clone(),
        ..files.clone()
    };
    assert!(error(&swapped).contains("expected a private key as PEM in"));
    let foreign = authority.issue();
    fs::write(&files.key, foreign.1).unwrap();
    assert!(error(&files).contains("cert.pem"), "{}", error(&files));
}
