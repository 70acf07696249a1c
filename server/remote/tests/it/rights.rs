//! What tokens permit at `/acp`.

use acp_reference_agent::Reference;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::{Received, Server};
use acp_server_remote::{EndpointSettings, Token, Tokens};
use serde_json::{Value, json};

use crate::http::{Client, Host, request};
use crate::websocket::Socket;

struct Fixture {
    tokens: Tokens,
    reader: Token,
    /// As the owner of the master token uses it.
    host: Host,
}

impl Fixture {
    async fn new() -> Self {
        let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&reader);
        let host = Host::protected(Server::new(Reference), tokens.clone()).await;
        let host = host.with_token(&master);
        Self {
            tokens,
            reader,
            host,
        }
    }

    /// Returns what the owner of a session's token uses.
    fn guest(&self, session: &str) -> Host {
        let token = self.tokens.issue(&session.into()).unwrap();
        self.host.with_token(&token)
    }

    fn reader(&self) -> Host {
        self.host.with_token(&self.reader)
    }
}

fn place(session: &str) -> Value {
    json!({ "sessionId": session, "cwd": "/", "mcpServers": [] })
}

fn prompt(session: &str, text: &str) -> Value {
    json!({ "sessionId": session, "prompt": [{ "type": "text", "text": text }] })
}

async fn refused(socket: &mut Socket, method: &str, params: Value) {
    let (_, answer) = socket.call(method, params).await;
    let error = &answer["error"];
    assert_eq!(error["code"], -32600, "{method}: {answer}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("does not permit"), "{answer}");
}

#[tokio::test]
async fn a_session_token_opens_its_session_alone() {
    let all = Fixture::new().await;
    let mut owner = Socket::connect(&all.host).await;
    let (own, other) = (owner.new_session().await, owner.new_session().await);
    let mut guest = Socket::connect(&all.guest(&own)).await;

    let (_, list) = guest.call("session/list", json!({})).await;
    let list = list["result"]["sessions"].as_array().unwrap();
    assert_eq!(list.len(), 1);
    assert_eq!(list[0]["sessionId"], own);
    let (_, none) = guest.call("session/list", json!({ "cwd": "/else" })).await;
    assert_eq!(none["result"]["sessions"], json!([]));

    for (method, params) in [
        ("session/new", json!({ "cwd": "/", "mcpServers": [] })),
        ("session/load", place(&other)),
        ("session/resume", place(&other)),
        ("_acp-sdk/session/resume", json!({ "sessionId": other })),
        ("_acp-sdk/session/state", json!({ "sessionId": other })),
        ("session/prompt", prompt(&other, "hello")),
        ("session/delete", json!({ "sessionId": other })),
        ("session/fork", json!({ "sessionId": own })),
    ] {
        refused(&mut guest, method, params).await;
    }
    let (_, loaded) = guest.call("session/load", place(&own)).await;
    assert!(loaded["error"].is_null(), "{loaded}");
    let (_, answer) = guest.call("session/prompt", prompt(&own, "hello")).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_reader_sees_everything_and_is_asked_nothing() {
    let all = Fixture::new().await;
    let mut owner = Socket::connect(&all.host).await;
    let session = owner.new_session().await;
    owner
        .call("session/prompt", prompt(&session, "hello"))
        .await;
    let mut reader = Socket::connect(&all.reader()).await;
    let (replayed, answer) = reader.call("session/load", place(&session)).await;
    assert!(answer["error"].is_null(), "{answer}");
    assert!(replayed.len() >= 2, "{replayed:?}");

    for (method, params) in [
        ("session/new", json!({ "cwd": "/", "mcpServers": [] })),
        ("session/prompt", prompt(&session, "hello")),
        ("session/close", json!({ "sessionId": session })),
        ("session/delete", json!({ "sessionId": session })),
        (
            "session/set_mode",
            json!({ "sessionId": session, "modeId": "ask" }),
        ),
    ] {
        refused(&mut reader, method, params).await;
    }

    // The client that prompted goes; the reader is attached, and yet nobody is asked until
    // somebody comes who may answer.
    owner
        .send("session/prompt", prompt(&session, "permission"))
        .await;
    loop {
        let message = owner.receive().await.unwrap();
        if message["method"] == "session/request_permission" {
            break;
        }
    }
    drop(owner);
    let handle = all
        .host
        .server
        .session(&session.as_str().into())
        .await
        .unwrap();
    let mut second = Socket::connect(&all.host).await;
    let id = second.send("session/load", place(&session)).await;
    let asked = loop {
        let message = second.receive().await.unwrap();
        assert!(
            message["id"] != id || message["error"].is_null(),
            "{message}"
        );
        if message["method"] == "session/request_permission" {
            break message;
        }
    };
    let option = &asked["params"]["options"][0]["optionId"];
    let outcome = json!({ "outcome": "selected", "optionId": option });
    let reply = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "outcome": outcome } });
    let mut events = handle.subscribe(handle.last_event());
    second.text(reply.to_string()).await;
    loop {
        let event = match events.next().await.unwrap() {
            Received::Event(event) => event,
            gap => panic!("{gap:?}"),
        };
        if let EventBody::Turn(TurnEvent::TurnEnded { .. }) = event.body {
            break;
        }
    }
    let (before, state) = reader
        .call("_acp-sdk/session/state", json!({ "sessionId": session }))
        .await;
    assert!(state["result"]["questions"] == json!([]), "{state}");
    let asked = before.iter().find(|message| !message["id"].is_null());
    assert_eq!(asked, None);
}

#[tokio::test]
async fn a_connection_is_found_by_those_alone_who_have_the_same_rights() {
    let all = Fixture::new().await;
    let owner = Client::connect(&all.host).await;
    let mut stream = owner.stream(None, None).await;
    let session = owner.new_session(&mut stream).await;
    let list = request(7, "session/list", json!({}));
    for stranger in [all.reader(), all.guest(&session)] {
        let headers = [("acp-connection-id", owner.id.as_str())];
        assert_eq!(stranger.post(&headers, &list).await.status, 404);
        assert_eq!(stranger.request("GET", &headers, "").await.status, 404);
        assert_eq!(stranger.request("DELETE", &headers, "").await.status, 404);
    }
    owner.send("session/list", json!({})).await;
    assert!(stream.event().await.unwrap().data["result"].is_object());
}

#[tokio::test]
async fn what_a_token_opened_ends_with_it() {
    let all = Fixture::new().await;
    let mut owner = Socket::connect(&all.host).await;
    let session = owner.new_session().await;
    let guest = all.guest(&session);
    let client = Client::connect(&guest).await;
    let mut stream = client.stream(None, None).await;
    let mut socket = Socket::connect(&guest).await;
    all.tokens.issue(&session.as_str().into()).unwrap();
    assert_eq!(stream.event().await, None);
    assert_eq!(socket.receive().await, None);
    let headers = [("acp-connection-id", client.id.as_str())];
    let list = request(7, "session/list", json!({}));
    assert_eq!(guest.post(&headers, &list).await.status, 401);
    // The session goes on.
    let (_, answer) = owner
        .call("session/prompt", prompt(&session, "hello"))
        .await;
    assert_eq!(answer["result"]["stopReason"], "end_turn");
}

#[tokio::test]
async fn a_token_ends_with_its_session_whichever_way_that_is_deleted() {
    let (master, server) = (Token::random().unwrap(), Server::new(Reference));
    let tokens = Tokens::new(&master);
    // Which knows the tokens of sessions.
    let _rest =
        acp_server_remote::rest(server.clone(), &EndpointSettings::default(), tokens.clone());
    let host = Host::protected(server.clone(), tokens.clone()).await;
    let mut owner = Socket::connect(&host.with_token(&master)).await;
    let session = owner.new_session().await;
    let token = tokens.issue(&session.as_str().into()).unwrap();
    assert!(tokens.access(token.secret()).is_some());
    let (_, deleted) = owner
        .call("session/delete", json!({ "sessionId": session }))
        .await;
    assert!(deleted["error"].is_null(), "{deleted}");
    assert!(tokens.access(token.secret()).is_none());

    let session = server.create_session("/w").await.unwrap();
    let token = tokens.issue(session.id()).unwrap();
    assert!(server.delete_session(session.id()).await.unwrap());
    assert!(tokens.access(token.secret()).is_none());
}
