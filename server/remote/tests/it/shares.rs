//! No token takes what the others need.

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{
    BodyBudget, EndpointSettings, Token, Tokens, rest, router, rpc, ticket_route,
};
use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::http::{Host, Open, request};

/// Of each kind, of which half is for one token and a quarter is left for the master.
const PLACES: usize = 4;

struct Fixture {
    owner: Host,
    reader: Host,
}

impl Fixture {
    async fn new() -> Self {
        Self::with(BodyBudget::default()).await
    }

    async fn with(bodies: BodyBudget) -> Self {
        let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&reader);
        let mut settings = EndpointSettings::default();
        settings.connections = PLACES;
        settings.event_streams = PLACES;
        settings.bodies = bodies;
        let server = Server::new(Reference);
        let routes = router(server.clone(), &settings)
            .merge(rest(server.clone(), &settings, tokens.clone()))
            .merge(rpc(server.clone(), &settings))
            .merge(ticket_route(tokens.clone()));
        let host = Host::protecting(server, routes, tokens).await;
        Self {
            owner: host.with_token(&master),
            reader: host.with_token(&reader),
        }
    }

    /// Checks that the reader takes two of the places, and the owner the other two.
    async fn shared(&self, path: &str, open: impl AsyncFn(Host) -> Open) {
        let path: &'static str = path.to_owned().leak();
        let mut held = Vec::new();
        let mut statuses = Vec::new();
        for host in [
            &self.reader,
            &self.reader,
            &self.reader,
            &self.owner,
            &self.owner,
            &self.owner,
        ] {
            let opened = open(host.at(path)).await;
            statuses.push(opened.status);
            held.push(opened);
        }
        let good = statuses[0];
        assert!(good < 400, "{path}: {statuses:?}");
        assert_eq!(statuses, [good, good, 503, good, good, 503], "{path}");
    }
}

async fn upgraded(host: Host) -> Open {
    upgraded_to(host, "13").await
}

async fn upgraded_to(host: Host, version: &str) -> Open {
    let headers = [
        ("connection", "upgrade"),
        ("upgrade", "websocket"),
        ("sec-websocket-version", version),
        ("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    host.request("GET", &headers, "").await
}

#[tokio::test]
async fn a_reader_takes_half_of_the_connections() {
    let all = Fixture::new().await;
    let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let hello = request(0, "initialize", hello);
    all.shared("/acp", async |host| {
        let json = [("content-type", "application/json")];
        host.request("POST", &json, &hello).await
    })
    .await;
}

#[tokio::test]
async fn a_reader_takes_half_of_the_websockets() {
    Fixture::new().await.shared("/acp", upgraded).await;
    Fixture::new().await.shared("/rpc", upgraded).await;
}

#[tokio::test]
async fn a_websocket_of_another_version_is_refused_with_the_one_that_is_understood() {
    let all = Fixture::new().await;
    let refused = upgraded_to(all.owner.at("/acp"), "12").await;
    assert_eq!(refused.status, 400);
    let version = ("sec-websocket-version".to_owned(), "13".to_owned());
    assert!(refused.headers.contains(&version), "{:?}", refused.headers);
}

#[tokio::test]
async fn a_reader_takes_half_of_the_event_streams() {
    let all = Fixture::new().await;
    let session = all.owner.server.create_session("/").await.unwrap();
    let path = format!("/session/{}/events", session.id());
    all.shared(&path, async |host| host.request("GET", &[], "").await)
        .await;
}

#[tokio::test]
async fn a_reader_takes_half_of_the_tickets() {
    let all = Fixture::new().await;
    let (reader, owner) = (all.reader.at("/ticket"), all.owner.at("/ticket"));
    let mut taken = 0;
    while reader.post(&[], "").await.status == 201 {
        taken += 1;
        assert!(taken <= 512);
    }
    assert_eq!(taken, 512);
    for _ in 0..512 {
        assert_eq!(owner.post(&[], "").await.status, 201);
    }
    assert_eq!(owner.post(&[], "").await.status, 503);
}

/// Sends four of six bytes.
async fn begun(host: Host) -> TcpStream {
    let secret = host.token.as_ref().unwrap().secret().to_owned();
    let mut socket = TcpStream::connect(host.address).await.unwrap();
    let head = format!(
        "POST /acp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {secret}\r\n\
         content-type: application/json\r\ncontent-length: 6\r\n\r\n[1,2"
    );
    socket.write_all(head.as_bytes()).await.unwrap();
    socket
}

#[tokio::test]
async fn a_reader_takes_half_of_the_bytes_of_bodies() {
    let all = Fixture::with(BodyBudget::new(8)).await;
    let _slow = begun(all.reader.clone()).await;
    let json = [("content-type", "application/json")];
    // The bytes of the first one arrive whenever they do.
    let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(20);
    while all.reader.request("POST", &json, "[1]").await.status != 503 {
        assert!(
            tokio::time::Instant::now() < deadline,
            "the reader has more than half"
        );
    }
    assert_eq!(all.owner.request("POST", &json, "[12]").await.status, 400);
}
