//! Tokens and certificates.

use std::time::Duration;

use acp_client::remote::{RemoteAgent, RemoteError, Token};
use acp_client::{Client, Error};
use acp_conformance::target::{Endpoint, Target};
use acp_server_remote::{Tls, TlsFiles, Tokens};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use sha2::{Digest as _, Sha256};

use crate::host::{Host, SCHEMES, within};

async fn failure(agent: RemoteAgent) -> RemoteError {
    match within(Client::builder().connect_remote(agent)).await {
        Err(Error::Remote(error)) => error,
        other => panic!("expected a failure of the connection, got {other:?}"),
    }
}

#[tokio::test]
async fn a_server_with_a_token_needs_it() {
    let tokens = Tokens::new(&"the-right-token-of-this-server".parse().unwrap());
    let host = Host::with(tokens, None).await;
    for scheme in SCHEMES {
        for token in [None, Some("another-token-than-this-server")] {
            let token = token.map(|token| Token::new(token).unwrap());
            let error = failure(host.agent(scheme).token(token)).await;
            assert_eq!(error.status(), Some(401), "{error}");
            assert!(
                error
                    .to_string()
                    .ends_with("missing or wrong: pass the server's token"),
                "{error}"
            );
        }
        let token = Token::new("the-right-token-of-this-server").unwrap();
        let agent = host.agent(scheme).token(token);
        let client = within(Client::builder().connect_remote(agent))
            .await
            .unwrap();
        client.new_session(std::env::temp_dir()).await.unwrap();
    }
}

#[tokio::test]
async fn what_is_no_endpoint_is_refused() {
    let host = Host::start().await;
    let url = |scheme: &str| host.url(scheme).replace("/acp", "/other");
    for scheme in SCHEMES {
        let error = failure(RemoteAgent::new(url(scheme)).unwrap()).await;
        assert_eq!(error.status(), Some(404), "{error}");
    }
    let port = {
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        free.local_addr().unwrap().port()
    };
    for scheme in SCHEMES {
        let url = format!("{scheme}://127.0.0.1:{port}/acp");
        let error = failure(RemoteAgent::new(url).unwrap()).await;
        assert!(matches!(error, RemoteError::Connect { .. }), "{error}");
        assert!(error.to_string().contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_is_not_awaited_for_ever() {
    let silent = tokio::net::TcpListener::bind(("127.0.0.1", 0))
        .await
        .unwrap();
    let port = silent.local_addr().unwrap().port();
    for scheme in SCHEMES {
        let agent = RemoteAgent::new(format!("{scheme}://127.0.0.1:{port}/acp")).unwrap();
        let error = failure(agent.response_timeout(Duration::from_millis(50))).await;
        assert!(error.to_string().contains("no response within"), "{error}");
    }
}

/// A server with a certificate for `localhost`, its authority's file and its fingerprint.
async fn with_tls(dir: &std::path::Path) -> (Host, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &authority).unwrap();
    let files = TlsFiles {
        certificate: dir.join("cert.pem"),
        key: dir.join("key.pem"),
        client_ca: None,
    };
    std::fs::write(&files.certificate, certificate.pem()).unwrap();
    std::fs::write(&files.key, key.serialize_pem()).unwrap();
    std::fs::write(dir.join("ca.pem"), authority.pem()).unwrap();
    let digest = Sha256::digest(certificate.der());
    let fingerprint: Vec<_> = digest.iter().map(|byte| format!("{byte:02X}")).collect();
    let host = Host::with(Tokens::open(), Some(Tls::load(files).unwrap())).await;
    (host, fingerprint.join(":"))
}

#[tokio::test]
async fn a_certificate_is_trusted_by_its_authority_or_its_fingerprint_only() {
    let dir = tempfile::tempdir().unwrap();
    let (host, fingerprint) = with_tls(dir.path()).await;
    for scheme in ["https", "wss"] {
        let agent = host.agent(scheme);
        let error = failure(agent.clone()).await;
        assert!(matches!(error, RemoteError::Connect { .. }), "{error}");
        let other = fingerprint.replace(&fingerprint[..2], "00");
        let error = failure(agent.clone().fingerprint(&other).unwrap()).await;
        let shown = fingerprint.replace(':', "").to_lowercase();
        assert!(error.to_string().contains(&shown), "{error}");
        for trusted in [
            agent.clone().ca_file(dir.path().join("ca.pem")).unwrap(),
            agent.fingerprint(&fingerprint).unwrap(),
        ] {
            let client = within(Client::builder().connect_remote(trusted))
                .await
                .unwrap();
            let session = client.new_session(std::env::temp_dir()).await.unwrap();
            let turn = session.prompt("stream 100").await.unwrap();
            within(turn.outcome()).await.unwrap();
            client.shutdown().await;
        }
    }
    // The suite's own client, which must not block the server.
    let connect = async |endpoint: Endpoint| {
        let connecting = move || Target::url(endpoint).start().map(drop);
        tokio::task::spawn_blocking(connecting).await.unwrap()
    };
    let suite = || Endpoint::new(&host.url("wss")).unwrap();
    let untrusted = connect(suite()).await.unwrap_err().to_string();
    assert!(untrusted.contains("certificate"), "{untrusted}");
    let other = fingerprint.replace(&fingerprint[..2], "00");
    let error = connect(suite().fingerprint(&other).unwrap()).await;
    let shown = fingerprint.replace(':', "").to_lowercase();
    let error = error.unwrap_err().to_string();
    assert!(error.contains(&shown), "{error}");
    connect(suite().fingerprint(&fingerprint).unwrap())
        .await
        .unwrap();
    connect(suite().ca_file(dir.path().join("ca.pem")).unwrap())
        .await
        .unwrap();
    let error = host
        .agent("https")
        .ca_file(dir.path().join("key.pem"))
        .unwrap_err();
    assert!(error.to_string().contains("no certificate"), "{error}");
}
