//! Calls at `/rpc` for sessions of another node.

use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::connect_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;

use acp_sdk::HandlerResult;
use acp_sdk::v1::{AuthMethod, AuthMethodAgent, StopReason};
use acp_server::{AgentInfo, Handler, Turn};
use tokio::net::TcpStream;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::shared::{MASTER, Node, SharedStore, say};

async fn call(node: &Node, method: &str, params: Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params });
    let (status, answer) = node.rest("POST", "/rpc", &body.to_string()).await;
    assert_eq!(status, 200, "{answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["id"], 7, "{answer}");
    answer
}

async fn socket(node: &Node) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
    let url = format!("ws://{}/rpc", node.address());
    let mut request = url.into_client_request().unwrap();
    let bearer = format!("Bearer {MASTER}").parse().unwrap();
    request.headers_mut().insert("authorization", bearer);
    connect_async(request).await.unwrap().0
}

/// Ends its turns at once, for clients that have logged in.
struct Locked;

impl Handler for Locked {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    fn info(&self) -> AgentInfo {
        let method = AuthMethod::Agent(AuthMethodAgent::new("key", "A key"));
        AgentInfo::new("locked", "1")
            .auth_method(method)
            .require_auth()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_login_holds_for_calls_that_are_made_at_another_node() {
    let shared = Arc::<SharedStore>::default();
    let first = Node::of(Locked, &shared).await;
    let second = Node::of(Locked, &shared).await;
    let mut id = Value::Null;
    for node in [&first, &second] {
        let mut socket = socket(node).await;
        let mut call = async |method: &str, params: Value| {
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
            let call = Message::Text(call.to_string().into());
            socket.send(call).await.unwrap();
            loop {
                if let Message::Text(text) = socket.next().await.unwrap().unwrap() {
                    return serde_json::from_str::<Value>(&text).unwrap();
                }
            }
        };
        let prompt = json!([{ "type": "text", "text": "hello" }]);
        let new = json!({ "cwd": "/work", "mcpServers": [] });
        // The session is the first node's.
        if !id.is_null() {
            let prompt = json!({ "sessionId": id, "prompt": prompt });
            let refused = call("session_prompt", prompt).await;
            assert_eq!(refused["error"]["code"], -32000, "{refused}");
        }
        let login = call("authenticate", json!({ "methodId": "key" })).await;
        assert!(login["error"].is_null(), "{login}");
        if id.is_null() {
            id = call("session_new", new).await["result"]["sessionId"].clone();
        }
        let prompt = json!({ "sessionId": id, "prompt": prompt });
        let answer = call("session_prompt", prompt).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_are_answered_alike_at_every_node() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let created = call(
        &first,
        "session_new",
        json!({ "cwd": "/work", "mcpServers": [] }),
    )
    .await;
    let id = &created["result"]["sessionId"];
    let prompt = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": "hello" }] });
    for node in [&first, &second] {
        let answer = call(node, "session_prompt", prompt.clone()).await;
        assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    }
    // A question, which is answered by its name.
    let ask = json!({ "sessionId": id, "prompt": [{ "type": "text", "text": "permission" }] });
    let started = call(&second, "session_prompt_start", ask).await;
    let mut after = started["result"]["lastEventId"].as_u64().unwrap();
    let question = loop {
        let poll = json!({ "sessionId": id, "after": after, "waitMs": 30_000 });
        let polled = call(&second, "session_events", poll).await;
        after = polled["result"]["lastEventId"].as_u64().unwrap();
        let events = polled["result"]["events"].as_array().unwrap();
        if let Some(asked) = events.iter().find(|event| !event["requestId"].is_null()) {
            break asked["requestId"].clone();
        }
    };
    let outcome = json!({ "outcome": "cancelled" });
    let respond = json!({ "requestId": question, "outcome": outcome });
    let answered = call(&second, "permission_respond", respond).await;
    assert_eq!(answered["result"], json!({}), "{answered}");

    let refused = [
        call(&first, "session_prompt", json!({ "sessionId": id })).await,
        call(&second, "session_prompt", json!({ "sessionId": id })).await,
    ];
    assert_eq!(refused[0]["error"]["code"], -32602);
    assert_eq!(refused[0], refused[1]);

    first.kill().await;
    let answer = call(&second, "session_prompt", prompt).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_has_the_events_of_a_session_of_another_node() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    say(&session, "before").await;

    let mut socket = socket(&second).await;
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 1, "method": "session_subscribe",
        "params": { "sessionId": session.id() },
    });
    let sent = socket.send(Message::Text(subscribe.to_string().into()));
    sent.await.unwrap();
    let mut numbers = Vec::new();
    let mut said = String::new();
    let mut asked = false;
    while !said.contains("after") || !said.contains("turn_ended") {
        let message = socket.next().await.unwrap().unwrap();
        let Message::Text(text) = message else {
            continue;
        };
        let message: Value = serde_json::from_str(&text).unwrap();
        assert!(message["error"].is_null(), "{message}");
        let event = &message["params"]["result"];
        if let Some(number) = event["eventId"].as_u64() {
            numbers.push(number);
            said.push_str(&event.to_string());
        }
        if !std::mem::replace(&mut asked, true) {
            // It goes on with what happens later.
            say(&session, "after").await;
        }
    }
    let expected: Vec<_> = (1..=numbers.len() as u64).collect();
    assert_eq!(numbers, expected, "each once and in order");
}
