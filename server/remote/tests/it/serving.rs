//! A whole server from one function: access, all endpoints, and the end.

use std::sync::Arc;

use acp_reference_agent::Reference;
use acp_sdk::v1::{SessionUpdate, StopReason};
use acp_server::event::{Event, EventBody};
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server::{Received, Server, Session};
use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens, serve};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

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
