//! Clients with a read-only token change nothing: they do not count as clients of a session, and
//! open none.

use acp_reference_agent::Reference;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::store::MemoryStore;
use acp_server::{Limits, OnDisconnect, Policies, Received, Server};
use acp_server_remote::{EndpointSettings, Token, Tokens};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

use crate::http::{Client, Host};
use crate::websocket::Socket;

struct Fixture {
    owner: Host,
    reader: Host,
}

impl Fixture {
    async fn of(server: Server) -> Self {
        let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&reader);
        let host = Host::protected(server, tokens).await;
        Self {
            owner: host.with_token(&master),
            reader: host.with_token(&reader),
        }
    }
}

fn place(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

/// Attaches a client over WebSocket.
async fn attached(host: &Host, session: &str) -> Socket {
    let mut socket = Socket::connect(host).await;
    let (_, answer) = socket.call("session/load", place(session)).await;
    assert!(answer["error"].is_null(), "{answer}");
    socket
}

#[tokio::test]
async fn a_reader_does_not_keep_a_session_open_that_its_last_client_closes() {
    let all = Fixture::of(Server::new(Reference)).await;
    let mut owner = Socket::connect(&all.owner).await;
    let session = owner.new_session().await;
    let _reader = attached(&all.reader, &session).await;
    let close = json!({ "sessionId": session });
    let (_, answer) = owner.call("session/close", close).await;
    assert!(answer["error"].is_null(), "{answer}");
    let id = session.as_str().into();
    assert!(all.owner.server.open_session(&id).is_none());
}

#[tokio::test]
async fn a_reader_does_not_keep_a_turn_running_whose_client_has_gone() {
    let after = Duration::ZERO;
    let mut policies = Policies::default();
    policies.on_disconnect = Some(OnDisconnect::Cancel { after });
    let server = Server::builder(Reference).policies(policies).build();
    let all = Fixture::of(server).await;
    let mut owner = Socket::connect(&all.owner).await;
    let session = owner.new_session().await;
    let _reader = attached(&all.reader, &session).await;
    owner
        .send("session/prompt", prompt(&session, "permission"))
        .await;
    while owner.receive().await.unwrap()["method"] != "session/request_permission" {}
    drop(owner);
    let server = &all.owner.server;
    let handle = server.open_session(&session.as_str().into()).unwrap();
    let mut events = handle.subscribe(0);
    let ended = async {
        loop {
            if let Received::Event(event) = events.next().await.unwrap()
                && let EventBody::Turn(TurnEvent::TurnEnded { .. }) = event.body
            {
                return;
            }
        }
    };
    let ended = tokio::time::timeout(Duration::from_secs(20), ended).await;
    assert!(ended.is_ok(), "the turn still waits for an answer");
}

#[tokio::test]
async fn readers_take_no_place_of_a_client() {
    let mut limits = Limits::default();
    limits.clients_per_session = 2;
    let server = Server::builder(Reference).limits(limits).build();
    let all = Fixture::of(server).await;
    let mut owner = Socket::connect(&all.owner).await;
    let session = owner.new_session().await;
    let _first = attached(&all.reader, &session).await;
    let _second = attached(&all.reader, &session).await;
    let _owners_other = attached(&all.owner, &session).await;
    // Both kinds have a limit.
    for host in [&all.reader, &all.owner] {
        let mut third = Socket::connect(host).await;
        let (_, refused) = third.call("session/load", place(&session)).await;
        let message = refused["error"]["message"].as_str().unwrap();
        assert!(message.contains("which is the limit"), "{refused}");
    }
}

#[tokio::test]
async fn an_idle_session_leaves_memory_although_a_reader_is_attached() {
    let mut limits = Limits::default();
    limits.idle_timeout = Duration::from_millis(1);
    let server = Server::builder(Reference).limits(limits).build();
    let all = Fixture::of(server).await;
    let mut owner = Socket::connect(&all.owner).await;
    let session = owner.new_session().await;
    let _reader = attached(&all.reader, &session).await;
    let server = &all.owner.server;
    let handle = server.open_session(&session.as_str().into()).unwrap();
    drop(owner);
    let closed = tokio::time::timeout(Duration::from_secs(20), handle.closed()).await;
    assert!(closed.is_ok(), "the reader keeps the session in memory");
}

/// A server whose store has a session that is in no memory.
async fn stored() -> (Fixture, String) {
    let store = Arc::new(MemoryStore::new());
    let first = Server::builder(Reference).store(store.clone()).build();
    let session = first.create_session("/").await.unwrap();
    let id = session.id().as_str().to_owned();
    first.shutdown().await;
    let second = Server::builder(Reference).store(store).build();
    (Fixture::of(second).await, id)
}

fn refused(answer: &Value) {
    let message = answer["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("not open"), "{answer}");
}

#[tokio::test]
async fn a_reader_opens_no_session_at_acp() {
    let (all, session) = stored().await;
    let mut socket = Socket::connect(&all.reader).await;
    for (method, params) in [
        ("session/load", place(&session)),
        ("session/resume", place(&session)),
        ("_acp-sdk/session/resume", json!({ "sessionId": session })),
    ] {
        let (_, answer) = socket.call(method, params).await;
        refused(&answer);
    }
    let client = Client::connect(&all.reader).await;
    let mut stream = client.stream(None, None).await;
    client.send("session/load", place(&session)).await;
    refused(&stream.event().await.unwrap().data);
    assert!(all.owner.server.open_sessions().is_empty());
    // Once a client has opened it, readers see it.
    let _owner = attached(&all.owner, &session).await;
    let _reader = attached(&all.reader, &session).await;
}

#[cfg(feature = "rpc")]
#[tokio::test]
async fn a_reader_opens_no_session_at_rpc() {
    let (all, session) = stored().await;
    let reader = all.reader.at("/rpc");
    for (method, params) in [
        ("session_load", place(&session)),
        ("session_state", json!({ "sessionId": session })),
        ("session_events", json!({ "sessionId": session })),
    ] {
        let body = crate::http::request(1, method, params);
        refused(&reader.post(&[], &body).await.json());
    }
    let mut socket = Socket::open(&reader).await;
    let params = json!({ "sessionId": session });
    let (_, answer) = socket.call("session_subscribe", params).await;
    refused(&answer);
    assert!(all.owner.server.open_sessions().is_empty());
}

#[tokio::test]
async fn a_reader_opens_no_session_over_rest() {
    let (all, session) = stored().await;
    let server = all.owner.server.clone();
    let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
    let tokens = Tokens::new(&master).with_read_only(&reader);
    let settings = EndpointSettings::default();
    let routes = acp_server_remote::rest(server.clone(), &settings, tokens.clone());
    let host = Host::protecting(server.clone(), routes, tokens).await;
    let get = async |path: String| {
        let host = host.with_token(&reader).at(path.leak());
        host.request("GET", &[], "").await.status
    };
    for kind in ["session", "sessions"] {
        assert_eq!(get(format!("/{kind}/{session}/events")).await, 409);
    }
    for kind in ["commands", "providers"] {
        assert_eq!(get(format!("/{kind}?session_id={session}")).await, 409);
    }
    // What is in the store is read without opening the session.
    assert_eq!(get(format!("/sessions/{session}/transcript")).await, 200);
    assert!(server.open_sessions().is_empty());
}
