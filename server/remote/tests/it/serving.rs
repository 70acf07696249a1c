//! A whole server from one function: access, all endpoints, and the end.

use std::sync::Arc;

use acp_reference_agent::Reference;
use acp_sdk::v1::{SessionUpdate, StopReason};
use acp_server::event::{Event, EventBody};
use acp_server::store::{MemoryStore, Store as _, StoreErrorKind};
use acp_server::{Received, Server, Session};
use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens, serve};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::raw::{Answer, PATIENCE, exchange};

async fn get(address: std::net::SocketAddr, path: &str, header: &str) -> Answer {
    let request =
        format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{header}\r\n");
    exchange(TcpStream::connect(address).await.unwrap(), &request).await
}

/// Waits until the agent has said something.
async fn has_begun(session: &Session) {
    let mut events = session.subscribe(0);
    loop {
        let received = timeout(PATIENCE, events.next()).await.unwrap().unwrap();
        if let Received::Event(Event {
            body: EventBody::Update(SessionUpdate::AgentMessageChunk(_)),
            ..
        }) = received
        {
            return;
        }
    }
}

#[tokio::test]
async fn one_function_serves_all_endpoints_and_ends_turns_in_order() {
    let (token, server) = (Token::random().unwrap(), Reference::server().build());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    let mut settings = ServeSettings::new(access);
    let (sender, mut requests) = tokio::sync::mpsc::unbounded_channel();
    settings.on_request = Some(std::sync::Arc::new(move |request| {
        sender.send(request.to_string()).unwrap();
    }));
    let stop = settings.stop.clone();
    let served = tokio::spawn(serve(server.clone(), listener, settings));

    let bearer = format!("Authorization: Bearer {}\r\n", token.secret());
    for path in ["/sessions", "/metrics", "/openapi.json", "/acp"] {
        assert_eq!(get(address, path, "").await.status, 401, "{path}");
        assert_ne!(get(address, path, &bearer).await.status, 401, "{path}");
    }
    for path in ["/healthz", "/"] {
        assert_eq!(get(address, path, "").await.status, 200, "{path}");
    }
    let metrics = get(address, "/metrics", &bearer).await.body;
    assert!(metrics.contains(r#"status="4xx""#), "{metrics}");
    assert!(
        requests
            .recv()
            .await
            .unwrap()
            .starts_with("GET /sessions 401")
    );

    let session = server.create_session("/w").await.unwrap();
    let turn = session.prompt(vec!["slow".into()]).unwrap();
    has_begun(&session).await;
    stop.cancel();
    timeout(PATIENCE, served).await.unwrap().unwrap();
    assert_eq!(turn.stop_reason().await.unwrap(), StopReason::Cancelled);
    assert!(TcpStream::connect(address).await.is_err());
    assert!(
        server.create_session("/w").await.is_err(),
        "it is shut down"
    );
}

/// Sends a request on a connection that stays open; returns the answer without its body.
async fn send(connection: &mut TcpStream, request: &str, token: &Token) -> String {
    let (line, body) = request.split_once('|').unwrap_or((request, ""));
    let request = format!(
        "{line} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        token.secret(),
        body.len()
    );
    connection.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        let byte = timeout(PATIENCE, connection.read_u8()).await;
        answer.push(byte.unwrap().unwrap());
    }
    String::from_utf8(answer).unwrap().to_ascii_lowercase()
}

/// A rolling restart: clients and balancers learn when to come back, and other nodes may go on with what is
/// idle.
#[tokio::test]
async fn a_server_that_ends_tells_clients_to_come_back_and_releases_idle_sessions() {
    let store = Arc::new(MemoryStore::new());
    let server = Server::builder(Reference).store(store.clone()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = Token::random().unwrap();
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    let mut settings = ServeSettings::new(access);
    settings.drain = PATIENCE;
    let stop = settings.stop.clone();
    let served = tokio::spawn(serve(server.clone(), listener, settings));
    let mut request = format!("ws://{address}/acp").into_client_request().unwrap();
    let bearer = format!("Bearer {}", token.secret()).parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    let (mut socket, _) = connect_async(request).await.unwrap();
    let initialize =
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    socket.send(initialize.into()).await.unwrap();
    socket.next().await.unwrap().unwrap();

    let idle = server.create_session("/w").await.unwrap();
    let busy = server.create_session("/w").await.unwrap();
    let turn = busy.prompt(vec!["slow".into()]).unwrap();
    has_begun(&busy).await;
    stop.cancel();
    idle.closed().await;
    // It is released a moment later.
    let free = async {
        while store.acquire_unused(idle.id()).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, free).await.unwrap();
    for path in [
        "GET /readyz".to_owned(),
        format!(
            "POST /sessions/{}/turns|{{\"prompt\":\"hello\"}}",
            busy.id()
        ),
        "POST /sessions|{\"prompt\":\"hello\"}".to_owned(),
        "POST /acp|".to_owned() + initialize,
    ] {
        let mut connection = TcpStream::connect(address).await.unwrap();
        let answer = send(&mut connection, &path, &token).await;
        assert!(answer.starts_with("http/1.1 503 "), "{path}: {answer}");
        assert!(answer.contains("retry-after: "), "{path}: {answer}");
    }

    turn.cancel();
    let closed = loop {
        match timeout(PATIENCE, socket.next()).await.unwrap().unwrap() {
            Ok(Message::Close(frame)) => break frame.unwrap(),
            other => drop(other.unwrap()),
        }
    };
    assert_eq!(closed.code, CloseCode::Restart, "{closed}");
    timeout(PATIENCE, served).await.unwrap().unwrap();
}

/// What restarts a process and what sends it work are different questions.
#[tokio::test]
async fn a_server_is_not_ready_without_its_store_and_when_it_is_about_to_end() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let server = Server::builder(Reference).store(store.clone()).build();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let token = Token::random().unwrap();
    let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    let serving = tokio::spawn(serve(server.clone(), listener, ServeSettings::new(access)));
    assert_eq!(get(address, "/readyz", "").await.status, 200);

    let fault = Fault::Fail(StoreErrorKind::Unavailable);
    store.inject_next(Operation::Find, 1, When::Before, fault);
    let answer = get(address, "/readyz", "").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("the store fails"), "{}", answer.body);
    assert_eq!(get(address, "/healthz", "").await.status, 200);
    assert_eq!(get(address, "/readyz", "").await.status, 200);

    server.drain().await;
    let answer = get(address, "/readyz", "").await;
    assert_eq!(answer.status, 503);
    assert!(answer.body.contains("about to end"), "{}", answer.body);
    serving.abort();
}
