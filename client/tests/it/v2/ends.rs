//! Turns that are cancelled, and agents that disconnect during a turn.

use std::time::Duration;

use acp_client::{Client, Error};
use acp_sdk::v1::StopReason;
use serde_json::json;

use super::{connect, ends, open, ready, session};
use crate::agent::within;

#[tokio::test]
async fn a_cancelled_turn_goes_on_until_the_session_is_idle() {
    let (session, mut agent) = session().await;
    let turn = session.prompt("hi").await.unwrap();
    agent.start_work().await;
    turn.cancel();
    let cancel = agent.raw.next().await;
    assert_eq!(
        (&cancel["method"], cancel.get("id")),
        (&json!("session/cancel"), None)
    );
    assert_eq!(cancel["params"], json!({"sessionId": "s"}));
    agent.say("still").await;
    agent.idle("cancelled").await;
    ends(turn, StopReason::Cancelled, "still").await;
}

#[tokio::test]
async fn a_prompt_that_is_cancelled_before_it_is_accepted_is_cancelled() {
    let (session, mut agent) = session().await;
    let mut events = session.events();
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    turn.cancel();
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    agent.refuse(-32800, "cancelled").await;
    ends(turn, StopReason::Cancelled, "").await;
    assert_eq!(ready(&mut events).last().unwrap().1, "ended cancelled");
    // Cancelled by another client.
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.refuse(-32800, "cancelled").await;
    ends(turn, StopReason::Cancelled, "").await;
    // Cancelled before it began.
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    turn.cancel();
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    agent.accept().await;
    agent.idle("cancelled").await;
    ends(turn, StopReason::Cancelled, "").await;
}

#[tokio::test]
async fn what_comes_after_a_turn_that_was_given_up_is_not_part_of_the_next() {
    let limit = Duration::from_millis(10);
    let (client, mut agent) = connect(Client::builder().cancel_within(limit)).await;
    let session = open(&client, &mut agent).await;
    let mut events = session.events();
    let turn = session.prompt("first").await.unwrap();
    agent.start_work().await;
    turn.cancel();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    let error = within(session.prompt("second")).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    agent.say("late").await;
    agent.idle("cancelled").await;
    agent.say("later").await;
    agent.handled().await;
    let mut expected: Vec<_> = ["started", "running", "late", "idle", "ended cancelled"]
        .map(|word| (Some(1), word.to_owned()))
        .into();
    expected.push((None, "later".to_owned()));
    assert_eq!(ready(&mut events), expected);
    let turn = within(session.prompt("second")).await.unwrap();
    agent.called("session/prompt").await;
    agent.answer(json!({"messageId": "user-2"})).await;
    agent.state("running").await;
    agent.idle("end_turn").await;
    ends(turn, StopReason::EndTurn, "").await;
}

#[tokio::test]
async fn an_agent_that_is_gone_ends_the_turn_after_its_last_words() {
    for accepts in [true, false] {
        let (session, mut agent) = session().await;
        let mut events = session.events();
        let mut turn = session.prompt("hi").await.unwrap();
        agent.called("session/prompt").await;
        if accepts {
            agent.accept().await;
            agent.state("running").await;
        }
        agent.say("farewell").await;
        drop(agent);
        let error = within(turn.finish()).await.unwrap_err().to_string();
        assert!(
            error.contains("connection closed: the peer closed its side"),
            "{error}"
        );
        assert_eq!(turn.so_far().text, "farewell");
        let mut said = Vec::new();
        while let Some(event) = within(events.next()).await {
            said.push(super::word(&event.event));
        }
        assert!(said.contains(&"farewell".to_owned()), "{said:?}");
        assert!(
            within(session.prompt("more").await.unwrap().outcome())
                .await
                .is_err()
        );
    }
}

#[tokio::test]
async fn a_given_up_turn_keeps_no_connection_open() {
    let limit = Duration::from_millis(10);
    let (client, mut agent) = connect(Client::builder().cancel_within(limit)).await;
    let session = open(&client, &mut agent).await;
    let turn = session.prompt("hi").await.unwrap();
    agent.called("session/prompt").await;
    agent.accept().await;
    turn.cancel();
    assert!(within(turn.outcome()).await.is_err());
    drop((session, client));
    assert_eq!(agent.raw.next().await["method"], "session/cancel");
    assert!(agent.raw.is_over().await);
}
