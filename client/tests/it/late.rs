//! Agents that answer a prompt before their last updates.

use std::time::Duration;

use acp_client::{Client, Error, Event, Session, Turn};
use acp_sdk::v1::StopReason;
use serde_json::{Value, json};

use crate::agent::{Raw, within};

const LATE: Duration = Duration::from_millis(100);

async fn session(limit: Option<Duration>, hello: Value) -> (Client, Raw, Session) {
    let builder = match limit {
        Some(limit) => Client::builder().late_updates(limit),
        None => Client::builder(),
    };
    let (client, mut raw) = Raw::connect_saying(builder, hello).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

fn hello() -> Value {
    json!({"protocolVersion": 1})
}

async fn prompt(session: &Session, raw: &mut Raw) -> Turn {
    let turn = session.prompt("hi").await.unwrap();
    raw.answer("session/prompt", json!({"stopReason": "end_turn"}))
        .await;
    turn
}

#[tokio::test(start_paused = true)]
async fn updates_after_the_answer_belong_to_the_turn_if_the_client_waits() {
    let (_client, mut raw, session) = session(Some(LATE), hello()).await;
    let mut events = session.events();
    let turn = prompt(&session, &mut raw).await;
    tokio::time::sleep(LATE / 2).await;
    raw.say("s", "late").await;
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(
        (outcome.text.as_str(), outcome.stop_reason),
        ("late", StopReason::EndTurn)
    );
    assert!(outcome.elapsed < LATE / 2, "the agent took no time");
    raw.say("s", "too late").await;
    let mut seen = Vec::new();
    while seen.len() < 4 {
        let event = within(events.next()).await.unwrap();
        let word = match event.event {
            Event::TurnStarted { .. } => "started",
            Event::Update(_) => "update",
            Event::TurnEnded {
                stop_reason: Some(StopReason::EndTurn),
            } => "ended",
            other => panic!("{other:?}"),
        };
        seen.push((event.turn, word));
    }
    let expected = [
        (Some(1), "started"),
        (Some(1), "update"),
        (Some(1), "ended"),
        (None, "update"),
    ];
    assert_eq!(seen, expected);
}

#[tokio::test(start_paused = true)]
async fn a_turn_ends_with_the_answer_by_default() {
    let (_client, mut raw, session) = session(None, hello()).await;
    let begun = tokio::time::Instant::now();
    let turn = prompt(&session, &mut raw).await;
    raw.say("s", "late").await;
    assert_eq!(within(turn.outcome()).await.unwrap().text, "");
    assert_eq!(begun.elapsed(), Duration::ZERO);
}

/// A turn that nobody waits for any more does not hold the next one up.
#[tokio::test(start_paused = true)]
async fn a_turn_that_is_dropped_waits_for_no_late_updates() {
    let (_client, mut raw, session) = session(Some(Duration::from_secs(3600)), hello()).await;
    let turn = prompt(&session, &mut raw).await;
    // The answer was handled, and the turn goes on.
    tokio::time::sleep(LATE).await;
    let error = session.prompt("more").await.unwrap_err();
    assert!(matches!(error, Error::TurnRunning { .. }), "{error}");
    drop(turn);
    let next = within(prompt(&session, &mut raw)).await;
    // Nothing was cancelled that has ended.
    drop(next);
    within(session.prompt("last")).await.unwrap().cancel();
    assert_eq!(raw.next().await["method"], "session/prompt");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_dies_meanwhile_has_answered() {
    let (_client, mut raw, session) = session(Some(Duration::from_secs(3600)), hello()).await;
    let turn = prompt(&session, &mut raw).await;
    raw.say("s", "late").await;
    drop(raw);
    assert_eq!(within(turn.outcome()).await.unwrap().text, "late");
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_names_prompts_is_not_waited_for() {
    let capabilities = json!({"_meta": {"acp-sdk": {"promptId": true}}});
    let hello = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
    let (_client, mut raw, session) = session(Some(LATE), hello).await;
    let begun = tokio::time::Instant::now();
    let turn = prompt(&session, &mut raw).await;
    within(turn.outcome()).await.unwrap();
    assert_eq!(begun.elapsed(), Duration::ZERO);
}
