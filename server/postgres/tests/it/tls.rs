//! TLS to the database.

use acp_server::store::{SessionRecord, Store as _, StoreErrorKind};
use acp_server_postgres::PostgresOptions;

use crate::server::Server;

#[tokio::test]
async fn certificates_are_verified() {
    let names = ["127.0.0.1".to_owned()];
    let server = rcgen::generate_simple_self_signed(names).unwrap();
    let other = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (certificate, key) = (server.cert.pem(), server.signing_key.serialize_pem());
    let Some((_server, port)) = Server::start_with_tls([&certificate, &key]) else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("server.pem"), certificate).unwrap();
    std::fs::write(path("other.pem"), other.cert.pem()).unwrap();
    std::fs::write(path("empty.pem"), "").unwrap();

    let url = format!("postgres://acp@127.0.0.1:{port}/postgres?sslmode=require");
    let options = PostgresOptions::new().schema("tls");
    let trusting = options.clone().root_certificates(path("server.pem"));
    let store = trusting.open(&url).await.unwrap();
    store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    for distrusting in [
        options.clone(),
        options.clone().root_certificates(path("other.pem")),
    ] {
        let error = distrusting.open(&url).await.unwrap_err();
        assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
        assert!(error.to_string().contains("certificate"), "{error}");
    }
    for unusable in ["empty.pem", "missing.pem"] {
        let options = options.clone().root_certificates(path(unusable));
        let error = options.open(&url).await.unwrap_err().to_string();
        assert!(error.contains(unusable), "{error}");
    }
}
