//! Named tokens of a file, over real sockets.

use acp_reference_agent::Reference;
use acp_server::{Access, Server};
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, ServeSettings, Token, TokenFile, Tokens, router, serve,
};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;

use crate::http::{Client, Host, request};

struct Fixture {
    file: TokenFile,
    tokens: Tokens,
    master: Token,
    _folder: TempDir,
}

impl Fixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("tokens.json"));
        let master = Token::random().unwrap();
        let tokens = Tokens::new(&master).with_file(file.clone()).unwrap();
        Self {
            file,
            tokens,
            master,
            _folder: folder,
        }
    }

    fn add(&self, name: &str, access: Access) -> Token {
        self.file.add(name, access, None).unwrap()
    }
}

#[tokio::test]
async fn a_revoked_token_ends_what_it_opened_without_another_request() {
    let all = Fixture::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = Server::new(Reference);
    let host = Host {
        address: listener.local_addr().unwrap(),
        server: server.clone(),
        token: None,
        path: "/acp",
    };
    let access = AccessControl::new(Hosts::loopback(), all.tokens.clone());
    let _serving = tokio::spawn(serve(server.clone(), listener, ServeSettings::new(access)));
    // It is added while the server runs.
    let guest = host.with_token(&all.add("ci", Access::Full));
    let client = Client::connect(&guest).await;
    let mut stream = client.stream(None, None).await;
    let session = server.create_session("/").await.unwrap();
    let path = format!("/session/{}/events", session.id()).leak();
    let mut events = guest.at(path).request("GET", &[], "").await;
    assert_eq!(events.status, 200);

    all.file.revoke("ci").unwrap();
    assert_eq!(stream.event().await, None);
    while events.event().await.is_some() {}
    let list = request(7, "session/list", json!({}));
    assert_eq!(guest.post(&[], &list).await.status, 401);
}

#[tokio::test]
async fn a_named_full_token_has_a_share_and_leaves_the_master_one() {
    let all = Fixture::new();
    let mut settings = EndpointSettings::default();
    settings.connections = 4;
    let server = Server::new(Reference);
    let routes = router(server.clone(), &settings);
    let host = Host::protecting(server, routes, all.tokens.clone()).await;
    let hello = request(0, "initialize", json!({ "protocolVersion": 1 }));
    let [first, second] = ["a", "b"].map(|name| host.with_token(&all.add(name, Access::Full)));
    let master = host.with_token(&all.master);
    for (who, host, status) in [
        ("a", &first, 200),
        ("a", &first, 200),
        ("a", &first, 503),
        ("b", &second, 200),
        ("b", &second, 503),
        ("the master", &master, 200),
    ] {
        assert_eq!(host.post(&[], &hello).await.status, status, "{who}");
    }
}

#[tokio::test]
async fn a_connection_is_found_by_the_name_that_opened_it_only() {
    let all = Fixture::new();
    let host = Host::protected(Server::new(Reference), all.tokens.clone()).await;
    let [first, second] = ["a", "b"].map(|name| host.with_token(&all.add(name, Access::Full)));
    let client = Client::connect(&first).await;
    let headers = [("acp-connection-id", client.id.as_str())];
    let list = request(7, "session/list", json!({}));
    assert_eq!(first.post(&headers, &list).await.status, 202);
    for other in [second, host.with_token(&all.master)] {
        assert_eq!(other.post(&headers, &list).await.status, 404);
    }
}
