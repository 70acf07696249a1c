//! The JSON-RPC methods of Otter's HTTP server, rule by rule of its text; see `docs/dialects.md`.

use acp_server::event::EventBody;
use acp_server::internal::clock;
use acp_server::{Received, Server};
use acp_server_dialects::otter_http_acp::OtterHttpAcp;
use serde_json::{Value, json};

use crate::client::Client;
use crate::otter::keeping;
use crate::script::Script;

async fn started_at(server: &Server) -> (Client, Value) {
    let mut client = Client::of(OtterHttpAcp::new(server.clone()));
    let (created, _) = client.result("session/new", json!({ "cwd": "/w" })).await;
    assert_eq!(
        (&created["cwd"], &created["status"]),
        (&json!("/w"), &json!("idle"))
    );
    (client, created["session_id"].clone())
}

async fn started() -> (Client, Value) {
    started_at(&Server::new(Script)).await
}

fn prompt(session: &Value, text: &str) -> Value {
    json!({ "session_id": session, "prompt": text })
}

/// Returns the result of a turn, and its notifications.
async fn turn(client: &mut Client, session: &Value, text: &str) -> (Value, Vec<Value>) {
    client.result("session/turn", prompt(session, text)).await
}

/// Returns method and type of notifications.
fn kinds(notifications: &[Value]) -> Vec<(&str, &str)> {
    let names = notifications.iter().map(|sent| {
        let [method, name] = [&sent["method"], &sent["params"]["type"]];
        (method.as_str().unwrap(), name.as_str().unwrap())
    });
    names.collect()
}

#[tokio::test]
async fn the_handshake_has_the_form_of_acp() {
    let mut client = Client::of(OtterHttpAcp::new(Server::new(Script)));
    for params in [
        json!({ "protocolVersion": 1, "clientCapabilities": {} }),
        json!({}),
    ] {
        let (result, _) = client.result("initialize", params).await;
        let expected = json!({
            "protocolVersion": 1,
            "agentInfo": { "name": "script", "version": "1" },
            "agentCapabilities": { "loadSession": false },
        });
        assert_eq!(result, expected);
    }
}

#[tokio::test]
async fn a_turn_is_answered_after_its_notifications() {
    let (mut client, session) = started().await;
    let (result, notifications) = turn(&mut client, &session, "say Hel|lo").await;
    let expected = json!({
        "session_id": session,
        "status": "completed",
        "success": true,
        "stop_reason": "end_turn",
        "output": "Hello",
    });
    assert_eq!(result, expected);
    let expected = [
        ("textDelta", "text_delta"),
        ("textDelta", "text_delta"),
        ("turnEnd", "agent_result"),
    ];
    assert_eq!(kinds(&notifications), expected);
    let text = |at: usize| &notifications[at]["params"]["metadata"]["content"]["text"];
    assert_eq!((text(0), text(1)), (&json!("Hel"), &json!("lo")));
    // Reasoning has no notification.
    let (_, notifications) = turn(&mut client, &session, "think").await;
    assert_eq!(kinds(&notifications), &expected[1..]);
}

#[tokio::test]
async fn a_payload_is_the_event_of_the_log() {
    let server = Server::new(Script);
    let (mut client, session) = started_at(&server).await;
    let (_, mut payloads) = turn(&mut client, &session, "tool works").await;
    let id = session.as_str().unwrap().into();
    let mut history = server.open_session(&id).unwrap().history();
    while let Some(Received::Event(event)) = history.next().await.unwrap() {
        let id = format!("evt-{}", event.number);
        let metadata = match &event.body {
            EventBody::Update(update) => json!(update),
            EventBody::Turn(turn) => json!(turn),
            EventBody::Unknown(json) => json!(json),
        };
        let ts = event.time.map(clock::text_of);
        payloads.retain(|payload| {
            let params = &payload["params"];
            let is_here = params["id"] == id;
            if is_here {
                assert_eq!(params["session_id"], session);
                assert_eq!(params["metadata"], metadata);
                assert_eq!(params["ts"], json!(ts));
            }
            !is_here
        });
    }
    assert!(payloads.is_empty(), "{payloads:?}");
}

#[tokio::test]
async fn a_tool_call_and_its_result_are_notifications() {
    let (mut client, session) = started().await;
    for (text, status) in [("tool works", "completed"), ("tool fails", "failed")] {
        let (_, notifications) = turn(&mut client, &session, text).await;
        let expected = [
            ("textDelta", "text_delta"),
            ("toolCall", "tool_call"),
            ("toolResult", "tool_result"),
            ("textDelta", "text_delta"),
            ("turnEnd", "agent_result"),
        ];
        assert_eq!(kinds(&notifications), expected);
        let [call, result] = [1, 2].map(|at: usize| &notifications[at]["params"]["metadata"]);
        assert_eq!(call["title"], "List files");
        assert_eq!(result["status"], status);
        assert_eq!(call["toolCallId"], result["toolCallId"]);
    }
}

#[tokio::test]
async fn a_failed_turn_ends_with_error_and_the_stream_stays_alive() {
    let (mut client, session) = started().await;
    let (answer, notifications) = client.call("session/turn", prompt(&session, "fail")).await;
    assert_eq!(answer["error"]["message"], "no model answers");
    assert_eq!(kinds(&notifications), [("error", "error")]);
    let unknown = prompt(&json!("nope"), "say A");
    assert_eq!(
        client.error("session/turn", unknown.clone()).await["code"],
        -32002
    );
    assert_eq!(client.error("session/get", unknown).await["code"], -32002);
    assert_eq!(
        client.error("session/message", json!({})).await["code"],
        -32601
    );
    assert_eq!(
        client.error("session/turn", json!({})).await["code"],
        -32602
    );
    let (result, _) = turn(&mut client, &session, "say On").await;
    assert_eq!(result["output"], "On");
}

#[tokio::test]
async fn a_cancelled_turn_ends_with_cancelled() {
    let (mut client, session) = started().await;
    let held = client
        .send("session/turn", prompt(&session, "hold A"))
        .await;
    assert_eq!(client.next().await["method"], "textDelta");
    let (list, _) = client.result("session/list", json!({})).await;
    assert_eq!(list["sessions"][0]["status"], "running");
    let cancel = client
        .send("session/cancel", json!({ "session_id": session }))
        .await;
    let (mut notifications, mut answers) = (Vec::new(), Vec::new());
    while answers.len() < 2 {
        let message = client.next().await;
        match message["id"].as_u64() {
            Some(id) => answers.push((id, message["result"].clone())),
            None => notifications.push(message),
        }
    }
    answers.sort_by_key(|(id, _)| *id);
    let expected = json!({
        "session_id": session,
        "status": "cancelled",
        "success": false,
        "stop_reason": "cancelled",
        "output": "A",
    });
    let cancelled = json!({ "session_id": session, "cancelled": true });
    assert_eq!(answers, [(held, expected), (cancel, cancelled)]);
    assert_eq!(kinds(&notifications), [("turnEnd", "cancelled")]);
}

#[tokio::test]
async fn sessions_are_listed_and_read() {
    let server = Server::new(Script);
    let (mut client, session) = started_at(&server).await;
    let (_, first) = turn(&mut client, &session, "tool works").await;
    let (_, second) = turn(&mut client, &session, "ask allow_once reject_once").await;
    let (got, _) = client
        .result("session/get", json!({ "session_id": session }))
        .await;
    let sent = first.iter().chain(&second);
    let sent: Vec<_> = sent.map(|sent| sent["params"].clone()).collect();
    assert_eq!(got["events"], json!(sent));
    assert_eq!(got["truncated"], false);
    for _ in 0..20 {
        client.result("session/new", json!({})).await;
    }
    let limited = [
        (json!({}), 20),
        (json!({ "limit": 1 }), 1),
        (json!({ "limit": 5_000 }), 21),
    ];
    for (params, expected) in limited {
        let (list, _) = client.result("session/list", params).await;
        let sessions = list["sessions"].as_array().unwrap();
        assert_eq!(sessions.len(), expected);
        let here = sessions.iter().find(|entry| entry["session_id"] == session);
        assert!(
            here.is_none_or(|entry| *entry == got["summary"]),
            "{here:?}"
        );
    }
    assert_eq!(got["summary"]["cwd"], "/w");
    assert_eq!(got["summary"]["status"], "idle");
    // A stored session is read as it is, and opened by a turn only.
    let id = session.as_str().unwrap().into();
    server.close_session(&id).await.unwrap();
    let (stored, _) = client
        .result("session/get", json!({ "session_id": session }))
        .await;
    assert_eq!(stored, got);
    assert!(server.open_session(&id).is_none());
    let (_, third) = turn(&mut client, &session, "say A").await;
    assert_eq!(kinds(&third)[1], ("turnEnd", "agent_result"));
}

#[tokio::test]
async fn the_latest_events_are_read() {
    let (mut client, session) = started().await;
    let get = json!({ "session_id": session });
    turn(&mut client, &session, "count 1023").await;
    let (got, _) = client.result("session/get", get.clone()).await;
    assert_eq!(got["events"].as_array().unwrap().len(), 1_024);
    assert_eq!(got["truncated"], false);
    let (_, sent) = turn(&mut client, &session, "").await;
    let (got, _) = client.result("session/get", get.clone()).await;
    let events = got["events"].as_array().unwrap();
    assert_eq!(events.len(), 1_024);
    assert_eq!(events.last(), Some(&sent[0]["params"]));
    assert_eq!(events[0]["metadata"]["content"]["text"], "2 ");
    assert_eq!(got["truncated"], true);
    // Three texts of 2 MiB, in chunks of 32 KiB, are more than 4 MiB.
    let text = "x".repeat(2 << 20);
    for _ in 0..3 {
        turn(&mut client, &session, &format!("say {text}")).await;
    }
    let (got, _) = client.result("session/get", get).await;
    let events = got["events"].as_array().unwrap().iter();
    let bytes: usize = events
        .map(|event| event["metadata"].to_string().len())
        .sum();
    assert!(
        (4 << 20) - (64 << 10) < bytes && bytes <= 4 << 20,
        "{bytes}"
    );
}

#[tokio::test]
async fn events_that_were_removed_are_named() {
    let (mut client, session) = started_at(&keeping(6)).await;
    for text in ["say A|B|C", "say D"] {
        turn(&mut client, &session, text).await;
    }
    let get = json!({ "session_id": session });
    let (got, _) = client.result("session/get", get).await;
    assert_eq!(got["truncated"], true);
    let events = got["events"].as_array().unwrap();
    assert!((2..6).contains(&events.len()), "{events:?}");
}

#[tokio::test]
async fn members_without_effect_are_refused() {
    let (mut client, _) = started().await;
    for (name, value) in [
        ("prompt", json!("say A")),
        ("model", json!("large")),
        ("max_steps", json!(5)),
        ("allowed_tools", json!(["Read"])),
    ] {
        let error = client.error("session/new", json!({ name: value })).await;
        assert_eq!(error["code"], -32602);
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(name), "{message}");
        client.result("session/new", json!({ name: null })).await;
    }
}

/// The client has no way to be asked.
#[tokio::test]
async fn a_permission_of_the_text_without_one_is_rejected() {
    let (mut client, session) = started().await;
    let (result, _) = turn(&mut client, &session, "ask allow_once reject_once").await;
    assert_eq!(result["output"], "Chosen: reject_once.");
    let (result, _) = turn(&mut client, &session, "ask allow_always").await;
    assert_eq!(result["status"], "cancelled");
}
