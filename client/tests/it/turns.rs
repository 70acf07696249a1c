//! Turns: what they come to, and how they end.

use std::time::Duration;

use acp_client::{Client, Error, Event, Session};
use acp_sdk::v1::{SessionUpdate, StopReason, ToolCallStatus};

use crate::agent::{Raw, TestAgent, connect, said, within};

async fn session(agent: &TestAgent) -> Session {
    let client = connect(agent.clone(), Client::builder()).await;
    within(client.new_session("/")).await.unwrap()
}

#[tokio::test]
async fn a_turn_streams_updates_and_ends_in_an_outcome() {
    let session = session(&TestAgent::default()).await;
    let mut turn = session.prompt("work").await.unwrap();
    let mut updates = Vec::new();
    while let Some(event) = within(turn.next()).await {
        if let Event::Update(update) = event {
            updates.push(update);
        }
    }
    assert_eq!(updates.len(), 8);
    assert_eq!(updates[1], said("One"));
    assert!(matches!(updates[7], SessionUpdate::AgentMessageChunk(_)));
    assert!(within(turn.next()).await.is_none(), "the end stays the end");

    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
    assert_eq!(outcome.text, "One.\n\nTwo.");
    assert_eq!(outcome.thoughts, "Hm.");
    assert_eq!(outcome.tool_calls.len(), 1);
    assert_eq!(outcome.tool_calls[0].title, "Read it");
    assert_eq!(
        outcome.tool_calls[0].status,
        Some(ToolCallStatus::Completed)
    );
    assert_eq!(outcome.plan.as_ref().unwrap().entries.len(), 1);
    assert_eq!(outcome.usage.as_ref().unwrap().used, 7);
    assert_eq!(outcome.cost().unwrap().currency, "EUR");
    assert!(!outcome.truncated);
}

#[tokio::test]
async fn an_outcome_needs_no_reader() {
    let session = session(&TestAgent::default()).await;
    let turn = session.prompt("work").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "One.\n\nTwo.");
}

#[tokio::test]
async fn an_error_of_the_agent_is_the_outcome() {
    let session = session(&TestAgent::default()).await;
    let turn = session.prompt("fail").await.unwrap();
    let error = within(turn.outcome()).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`session/prompt` failed: as you wish (code -32603)"
    );
    let turn = session.prompt("again").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "again");
}

#[tokio::test]
async fn a_cancelled_turn_goes_on_to_its_end() {
    let agent = TestAgent::default();
    let session = session(&agent).await;
    let turn = session.prompt("hang").await.unwrap();
    within(agent.hanging.notified()).await;
    session.cancel();
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert_eq!(
        outcome.text, "workingstopped",
        "what comes after the cancel too"
    );
    let turn = session.prompt("again").await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "again");
}

#[tokio::test]
async fn a_turn_that_is_dropped_is_cancelled_and_the_next_one_waits_for_it() {
    let agent = TestAgent::default();
    let session = session(&agent).await;
    let turn = session.prompt("hang").await.unwrap();
    within(agent.hanging.notified()).await;
    drop(turn);
    let turn = within(session.prompt("again")).await.unwrap();
    assert_eq!(within(turn.outcome()).await.unwrap().text, "again");
}

#[tokio::test]
async fn nothing_is_cancelled_between_turns() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", serde_json::json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    session.cancel();
    let turn = session.prompt("hi").await.unwrap();
    let result = serde_json::json!({"stopReason": "end_turn"});
    // The next message is the prompt, so no cancel was sent that would hit it.
    let (outcome, ()) = tokio::join!(turn.outcome(), raw.answer("session/prompt", result));
    outcome.unwrap();
}

#[tokio::test]
async fn one_turn_at_a_time() {
    let agent = TestAgent::default();
    let session = session(&agent).await;
    let turn = session.prompt("hang").await.unwrap();
    let error = session.prompt("more").await.unwrap_err();
    assert!(matches!(error, Error::TurnRunning { .. }), "{error}");
    turn.cancel();
    within(turn.outcome()).await.unwrap();
}

#[tokio::test]
async fn an_agent_that_does_not_end_a_cancelled_turn_is_given_up() {
    let agent = TestAgent::default();
    let builder = Client::builder().cancel_within(Duration::from_millis(10));
    let client = connect(agent.clone(), builder).await;
    let session = within(client.new_session("/")).await.unwrap();
    let turn = session.prompt("stubborn").await.unwrap();
    within(agent.hanging.notified()).await;
    turn.cancel();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
}

#[tokio::test]
async fn what_comes_after_a_turn_that_was_given_up_is_not_part_of_the_next() {
    let limit = Duration::from_millis(10);
    let (client, mut raw) = Raw::connect(Client::builder().cancel_within(limit)).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", serde_json::json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    let turn = session.prompt("first").await.unwrap();
    let first = raw.next().await;
    turn.cancel();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    assert_eq!(raw.next().await["method"], "session/cancel");

    // As long as the agent works on the first prompt, it gets no second one.
    let error = within(session.prompt("second")).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    raw.say("s", "late").await;
    let result = serde_json::json!({"stopReason": "cancelled"});
    raw.send(serde_json::json!({"jsonrpc": "2.0", "id": first["id"], "result": result}))
        .await;
    assert_eq!(
        within(session.next_missed()).await.unwrap().updates,
        [said("late")]
    );
    let turn = loop {
        match within(session.prompt("second")).await {
            Ok(turn) => break turn,
            // The answer is on its way.
            Err(Error::NotCancelled { .. }) => tokio::task::yield_now().await,
            Err(error) => panic!("{error}"),
        }
    };
    let result = serde_json::json!({"stopReason": "end_turn"});
    let (outcome, ()) = tokio::join!(turn.outcome(), raw.answer("session/prompt", result));
    assert_eq!(outcome.unwrap().text, "");
}

#[tokio::test]
async fn an_agent_that_nobody_reads_is_slowed_down() {
    let session = session(&TestAgent::default()).await;
    let mut turn = session.prompt("flood").await.unwrap();
    let mut bytes = 0;
    while bytes < 20 << 20 {
        match within(turn.next()).await {
            Some(Event::Update(SessionUpdate::AgentMessageChunk(_))) => bytes += 10_000,
            other => panic!("{other:?}"),
        }
    }
    turn.cancel();
    drop(turn);
}

#[tokio::test]
async fn a_closed_connection_ends_the_turn() {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", serde_json::json!({"sessionId": "s"}))
    );
    let session = session.unwrap();
    let turn = session.prompt("hi").await.unwrap();
    raw.next().await;
    drop(raw);
    let error = within(turn.outcome()).await.unwrap_err().to_string();
    assert!(
        error.contains("connection closed: the peer closed its side"),
        "{error}"
    );
    let turn = session.prompt("more").await.unwrap();
    assert!(within(turn.outcome()).await.is_err());
}

#[tokio::test]
async fn sessions_do_not_hear_each_other() {
    let client = connect(TestAgent::default(), Client::builder()).await;
    let dir = tempfile::tempdir().unwrap();
    let one = within(client.new_session("/")).await.unwrap();
    let two = within(client.new_session(dir.path())).await.unwrap();
    let first = one.prompt("first").await.unwrap();
    let second = two.prompt("second").await.unwrap();
    assert_eq!(within(second.outcome()).await.unwrap().text, "second");
    assert_eq!(within(first.outcome()).await.unwrap().text, "first");
}
