//! Chimera's ACP client: what it sends, and what it gathers from the notifications of a message.

use acp_server::Server;
use acp_server_dialects::chimera::Chimera;
use serde_json::{Value, json};

use crate::client::Client;
use crate::script::Script;

/// What Chimera's client makes of a message.
#[derive(Debug, Default)]
struct Response {
    text: String,
    thoughts: Vec<Value>,
    /// Id, title, kind, output, whether it failed.
    tool_calls: Vec<[Value; 5]>,
    cost: f64,
    input_tokens: Value,
    output_tokens: Value,
    result: Value,
}

impl Response {
    fn take(&mut self, notification: &Value) {
        let params = &notification["params"];
        match notification["method"].as_str().unwrap() {
            "agent/messageChunk" => self.text += params["text"].as_str().unwrap(),
            "agent/thoughtChunk" => self.thoughts.push(params["text"].clone()),
            "agent/toolCallStart" => {
                let [id, title, kind] =
                    ["tool_call_id", "title", "tool_kind"].map(|name| params[name].clone());
                self.tool_calls
                    .push([id, title, kind, Value::Null, Value::Null]);
            }
            "agent/toolCallComplete" => {
                let mut calls = self.tool_calls.iter_mut();
                let call = calls
                    .find(|call| call[0] == params["tool_call_id"])
                    .unwrap();
                (call[3], call[4]) = (params["output"].clone(), params["is_error"].clone());
            }
            "agent/usageUpdate" => {
                // An absent member leaves what was there before; null would be taken.
                let members = params.as_object().unwrap();
                assert!(members.values().all(|value| !value.is_null()), "{params}");
                self.cost = members
                    .get("total_cost")
                    .map_or(self.cost, |cost| cost.as_f64().unwrap());
                self.input_tokens = params["input_tokens"].clone();
                self.output_tokens = params["output_tokens"].clone();
            }
            other => panic!("unknown notification {other}"),
        }
    }
}

async fn create(client: &mut Client) -> Value {
    let (created, _) = client
        .result("session/create", json!({ "working_dir": "." }))
        .await;
    created["session_id"].clone()
}

async fn started() -> (Client, Value) {
    let mut client = Client::of(Chimera::new(Server::new(Script)));
    let session = create(&mut client).await;
    (client, session)
}

async fn send(client: &mut Client, session: &Value, text: &str) -> Response {
    let params = json!({ "session_id": session, "message": text });
    let (result, notifications) = client.result("session/sendMessage", params).await;
    let mut response = Response {
        result,
        ..Response::default()
    };
    for notification in &notifications {
        assert_eq!(&notification["params"]["session_id"], session);
        response.take(notification);
    }
    response
}

#[tokio::test]
async fn a_message_has_text_and_thoughts() {
    let (mut client, session) = started().await;
    let response = send(&mut client, &session, "say Hel|lo").await;
    assert_eq!(response.text, "Hello");
    let expected = json!({ "session_id": session, "text": "Hello", "stop_reason": "end_turn" });
    assert_eq!(response.result, expected);
    let response = send(&mut client, &session, "think").await;
    assert_eq!(
        (response.text.as_str(), &response.thoughts[..]),
        ("Yes.", &[json!("Hm.")][..])
    );
}

#[tokio::test]
async fn a_tool_call_starts_and_completes() {
    let (mut client, session) = started().await;
    for (text, output, is_error) in [
        ("tool works", "a b", false),
        ("tool fails", "no such command", true),
    ] {
        let response = send(&mut client, &session, text).await;
        let [_, title, kind, said, failed] = &response.tool_calls[0];
        assert_eq!((title, kind), (&json!("List files"), &json!("execute")));
        assert_eq!((said, failed), (&json!(output), &json!(is_error)));
        assert_eq!(response.text, "Before. After.");
    }
}

#[tokio::test]
async fn usage_is_that_of_the_message() {
    let (mut client, session) = started().await;
    let response = send(&mut client, &session, "usage").await;
    assert_eq!(response.cost, 0.5);
    assert_eq!(
        (&response.input_tokens, &response.output_tokens),
        (&json!(10), &json!(5))
    );
    // The agent has reported the same total: nothing was added.
    let response = send(&mut client, &session, "usage").await;
    assert_eq!((response.cost, &response.input_tokens), (0.0, &json!(10)));
    let response = send(&mut client, &session, "say A").await;
    assert_eq!(response.input_tokens, Value::Null);
}

#[tokio::test]
async fn a_fork_has_the_history_and_goes_on_by_itself() {
    let (mut client, session) = started().await;
    send(&mut client, &session, "say A").await;
    let (forked, _) = client
        .result("session/fork", json!({ "session_id": session }))
        .await;
    let copy = forked["session_id"].clone();
    assert_ne!(copy, session);
    assert_eq!(
        send(&mut client, &copy, "history").await.text,
        "say A, history"
    );
    assert_eq!(
        send(&mut client, &session, "history").await.text,
        "say A, history"
    );
}

/// The client has no way to be asked.
#[tokio::test]
async fn a_permission_is_rejected() {
    let (mut client, session) = started().await;
    let response = send(&mut client, &session, "ask allow_once reject_once").await;
    assert_eq!(response.text, "Chosen: reject_once.");
    assert_eq!(response.tool_calls[0][4], true);
    let response = send(&mut client, &session, "ask allow_always").await;
    assert_eq!(response.result["stop_reason"], "cancelled");
}

#[tokio::test]
async fn failures_are_errors_and_the_stream_stays_alive() {
    let (mut client, session) = started().await;
    let unknown = json!({ "session_id": "nope", "message": "x" });
    assert_eq!(
        client.error("session/sendMessage", unknown.clone()).await["code"],
        -32002
    );
    assert_eq!(client.error("session/fork", unknown).await["code"], -32002);
    let failing = json!({ "session_id": session, "message": "fail" });
    assert_eq!(
        client.error("session/sendMessage", failing).await["message"],
        "no model answers"
    );
    assert_eq!(
        client.error("session/message", json!({})).await["code"],
        -32601
    );
    assert_eq!(send(&mut client, &session, "say On").await.text, "On");
}
