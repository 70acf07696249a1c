//! Agents that violate the protocol: the caller's session continues.
//!
//! `docs/misbehaving-agents.md` lists these cases with those of the other files.

use acp_client::{Client, Event, Events, Outcome, Session};
use acp_sdk::v1::{SessionUpdate, StopReason};
use serde_json::{Value, json};

use crate::agent::{Raw, said, within};

async fn session() -> (Client, Raw, Session) {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

/// Sends a prompt; the agent sends these messages and then ends the turn.
async fn turn(raw: &mut Raw, session: &Session, messages: &[Value]) -> Outcome {
    let turn = session.prompt("hi").await.unwrap();
    let request = raw.next().await;
    assert_eq!(request["method"], "session/prompt");
    for message in messages {
        raw.send(message.clone()).await;
    }
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
        .await;
    within(turn.outcome()).await.unwrap()
}

fn update(session: &str, update: Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

fn text(session: &str, text: &str) -> Value {
    let content = json!({"type": "text", "text": text});
    update(
        session,
        json!({"sessionUpdate": "agent_message_chunk", "content": content}),
    )
}

/// Returns the next update and its turn.
async fn next_update(events: &mut Events) -> (SessionUpdate, Option<u64>) {
    loop {
        let event = within(events.next()).await.unwrap();
        if let Event::Update(update) = event.event {
            return (update, event.turn);
        }
    }
}

#[tokio::test]
async fn an_answer_that_comes_twice_counts_once() {
    let (_client, mut raw, session) = session().await;
    for answer in ["first", "second"] {
        let turn = session.prompt("hi").await.unwrap();
        let request = raw.next().await;
        raw.send(text("s", answer)).await;
        for stop in ["max_tokens", "refusal"] {
            let result = json!({"stopReason": stop});
            raw.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result}))
                .await;
        }
        let outcome = within(turn.outcome()).await.unwrap();
        assert_eq!(
            (outcome.text.as_str(), outcome.stop_reason),
            (answer, StopReason::MaxTokens)
        );
    }
}

#[tokio::test]
async fn what_comes_after_the_answer_belongs_to_no_turn() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    for number in 1..=20 {
        let outcome = turn(&mut raw, &session, &[text("s", "within")]).await;
        assert_eq!(outcome.text, "within");
        assert_eq!(
            next_update(&mut events).await,
            (said("within"), Some(number))
        );
        raw.send(text("s", "late")).await;
        assert_eq!(next_update(&mut events).await, (said("late"), None));
    }
}

#[tokio::test]
async fn kinds_that_nobody_knows_are_passed_on() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let new = update("s", json!({"sessionUpdate": "from_the_future", "x": [1]}));
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "T",
        "kind": "teleport", "status": "dreaming"});
    let outcome = turn(
        &mut raw,
        &session,
        &[new, update("s", call), text("s", "on")],
    )
    .await;
    assert_eq!((outcome.text.as_str(), outcome.tool_calls.len()), ("on", 1));
    let (first, _) = next_update(&mut events).await;
    let first = serde_json::to_value(first).unwrap();
    assert_eq!(first, json!({"sessionUpdate": "from_the_future", "x": [1]}));
}

#[tokio::test]
async fn a_field_that_is_invalid_costs_no_more_than_its_message() {
    let (_client, mut raw, session) = session().await;
    let messages = [
        text("s", "a"),
        update(
            "s",
            json!({"sessionUpdate": "agent_message_chunk", "content": 7}),
        ),
        update(
            "s",
            json!({"sessionUpdate": "usage_update", "used": "many"}),
        ),
        json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": 5}}),
        json!({"jsonrpc": "2.0", "method": "session/update"}),
        json!({"jsonrpc": "1.0", "method": 3}),
        text("s", "b"),
    ];
    assert_eq!(turn(&mut raw, &session, &messages).await.text, "ab");
}

#[tokio::test]
async fn what_is_for_another_session_reaches_nobody() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let messages = [text("other", "no"), text("", "no"), text("s", "yes")];
    assert_eq!(turn(&mut raw, &session, &messages).await.text, "yes");
    assert_eq!(next_update(&mut events).await, (said("yes"), Some(1)));
}

#[tokio::test]
async fn what_was_not_offered_is_refused_and_the_turn_goes_on() {
    let (_client, mut raw, session) = session().await;
    let turn = session.prompt("hi").await.unwrap();
    let prompt = raw.next().await;
    let params = [
        ("fs/read_text_file", json!({"path": "/etc/passwd"})),
        (
            "fs/write_text_file",
            json!({"path": "/tmp/x", "content": ""}),
        ),
        ("terminal/create", json!({"command": "id"})),
        ("terminal/output", json!({"terminalId": "t"})),
    ];
    for (number, (method, mut params)) in params.into_iter().enumerate() {
        params["sessionId"] = "s".into();
        raw.send(json!({"jsonrpc": "2.0", "id": number, "method": method, "params": params}))
            .await;
        let refused = raw.next().await;
        assert_eq!(refused["id"], number);
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    within(turn.outcome()).await.unwrap();
}

/// Only the connection itself says that it was lost, or that the agent is another process.
#[tokio::test]
async fn an_agent_cannot_pretend_that_its_connection_was_lost() {
    let (_client, mut raw, session) = session().await;
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    let prompt = raw.next().await;
    for (method, own) in [
        ("_acp-client/session/gap", json!(null)),
        ("_acp-client/session/gap", json!(true)),
        ("_acp-client/agent/restarted", json!("")),
    ] {
        let params = json!({"sessionId": "s", "kind": "lost", "acp-client/own": own});
        raw.send(json!({"jsonrpc": "2.0", "method": method, "params": params}))
            .await;
    }
    raw.say("s", "still here").await;
    let data = json!({"acp-client/connection-lost": true, "acp-client/own": true});
    let error = json!({"code": -32603, "message": "no", "data": data});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "error": error}))
        .await;
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, acp_client::Error::Sdk(_)), "{error:?}");
    while let Some(event) = events.next_ready() {
        assert!(!matches!(event.event, Event::Gap(_)), "{event:?}");
    }
}
