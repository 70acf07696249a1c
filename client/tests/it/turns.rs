//! Turns: their outcomes and their ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use acp_client::{Client, Error, Event, Phase, Session};
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
        assert_eq!((event.turn, event.phase), (Some(1), Phase::Live));
        if let Event::Update(update) = event.event {
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
    assert!(outcome.elapsed > Duration::ZERO);
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
    // The next message is the prompt, so no `session/cancel` was sent that would affect it.
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
    let mut events = session.events();
    let turn = session.prompt("first").await.unwrap();
    let first = raw.next().await;
    turn.cancel();
    let error = within(turn.outcome()).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    assert_eq!(raw.next().await["method"], "session/cancel");

    // While the agent works on the first prompt, it receives no second one.
    let error = within(session.prompt("second")).await.unwrap_err();
    assert!(matches!(error, Error::NotCancelled { .. }), "{error}");
    raw.say("s", "late").await;
    let result = serde_json::json!({"stopReason": "cancelled"});
    raw.send(serde_json::json!({"jsonrpc": "2.0", "id": first["id"], "result": result}))
        .await;
    // It belongs to the first turn, which ends only now.
    let mut seen = Vec::new();
    loop {
        let event = within(events.next()).await.unwrap();
        assert_eq!(event.turn, Some(1));
        match event.event {
            Event::TurnStarted { .. } => {}
            Event::Update(update) => seen.push(update),
            Event::TurnEnded { stop_reason } => {
                assert_eq!(stop_reason, Some(StopReason::Cancelled));
                break;
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(seen, [said("late")]);
    let turn = within(session.prompt("second")).await.unwrap();
    let result = serde_json::json!({"stopReason": "end_turn"});
    let (outcome, ()) = tokio::join!(turn.outcome(), raw.answer("session/prompt", result));
    assert_eq!(outcome.unwrap().text, "");
}

async fn raw_session() -> (Client, Raw, Session) {
    let (client, mut raw) = Raw::connect(Client::builder()).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", serde_json::json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_nobody_reads_is_slowed_down() {
    let (_client, mut raw, session) = raw_session().await;
    let mut turn = session.prompt("hi").await.unwrap();
    raw.next().await;
    let written = Arc::new(AtomicUsize::new(0));
    let writing = tokio::spawn({
        let written = written.clone();
        async move {
            let text = "x".repeat(10_000);
            loop {
                raw.say("s", &text).await;
                written.fetch_add(1, Ordering::Relaxed);
            }
        }
    });
    // Time advances when no task can continue.
    let pause = || tokio::time::sleep(Duration::from_secs(1));
    pause().await;
    let before = written.load(Ordering::Relaxed);
    // 1 MiB waits for the reader and 4 MiB for the handler of updates.
    assert!((100..1000).contains(&before), "{before}");
    pause().await;
    assert_eq!(written.load(Ordering::Relaxed), before);
    while turn.next_ready().is_some() {}
    pause().await;
    assert!(written.load(Ordering::Relaxed) > before, "it goes on");
    writing.abort();
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_not_read_does_not_stall_other_calls() {
    let (client, mut raw, session) = raw_session().await;
    let mut turn = session.prompt("hi").await.unwrap();
    raw.next().await;
    let text = "x".repeat(10_000);
    let (answered, ()) = tokio::join!(client.authenticate("x"), async {
        let request = raw.next().await;
        // The response follows more than the connection holds, and nothing is read.
        for _ in 0..700 {
            raw.say("s", &text).await;
        }
        let answer = serde_json::json!({"jsonrpc": "2.0", "id": request["id"], "result": {}});
        raw.send(answer).await;
    });
    answered.unwrap();
    let mut missed = 0;
    while let Some(event) = turn.next_ready() {
        if let Event::Missed(count) = event.event {
            missed = count;
        }
    }
    assert!(
        missed > 100,
        "the reader learns what it has missed: {missed}"
    );
    raw.say("s", "last").await;
    let event = within(turn.next()).await.unwrap();
    assert!(matches!(event.event, Event::Update(update) if update == said("last")));
}

#[tokio::test]
async fn what_an_agent_does_not_accept_is_not_sent() {
    use acp_sdk::v1::{ContentBlock, ImageContent};
    let (_client, mut raw, session) = raw_session().await;
    let image = ContentBlock::Image(ImageContent::new("AAAA", "image/png"));
    let error = within(session.prompt(image)).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "the agent does not support images in prompts: its capability promptCapabilities.image \
         is not set"
    );
    let turn = session.prompt("text").await.unwrap();
    let result = serde_json::json!({"stopReason": "end_turn", "usage": {
        "totalTokens": 9, "inputTokens": 7, "outputTokens": 2, "cachedReadTokens": 5}});
    let (outcome, ()) = tokio::join!(turn.outcome(), raw.answer("session/prompt", result));
    let tokens = outcome.unwrap().tokens.unwrap();
    assert_eq!((tokens.input_tokens, tokens.output_tokens), (7, 2));
    assert_eq!(
        (tokens.cached_read_tokens, tokens.thought_tokens),
        (Some(5), None)
    );
}

/// Agents report the cost of the session, which other clients' turns are a part of.
#[tokio::test]
async fn the_cost_of_a_turn_is_what_it_has_added() {
    let hello = serde_json::json!({"protocolVersion": 1, "agentCapabilities": {
        "loadSession": true, "_meta": {"acp-sdk": {"promptId": true}}}});
    let (client, mut raw) = Raw::connect_saying(Client::builder(), hello).await;
    let (session, ()) = tokio::join!(client.load_session("s", "/"), async {
        let load = raw.next().await;
        spend(&mut raw, 1.0, None).await;
        raw.send(serde_json::json!({"jsonrpc": "2.0", "id": load["id"], "result": {}}))
            .await;
    });
    let session = session.unwrap();
    let mut costs = Vec::new();
    for (theirs, mine) in [(1.5, Some(3.5)), (4.0, None), (4.5, Some(6.0))] {
        let turn = session.prompt("hi").await.unwrap();
        let prompt = raw.next().await;
        let id = prompt["params"]["_meta"]["acp-sdk"]["promptId"].as_str();
        spend(&mut raw, theirs, Some("turn-1")).await;
        if let Some(mine) = mine {
            spend(&mut raw, mine, id).await;
        }
        let result = serde_json::json!({"stopReason": "end_turn"});
        raw.send(serde_json::json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
            .await;
        let outcome = within(turn.outcome()).await.unwrap();
        let amount = |cost: &acp_sdk::v1::Cost| cost.amount;
        costs.push((
            outcome.turn_cost.as_ref().map(amount),
            outcome.cost().map(amount),
        ));
    }
    let expected = [(Some(2.0), Some(3.5)), (None, None), (Some(1.5), Some(6.0))];
    assert_eq!(costs, expected);
}

/// Reports the cost of the session so far.
async fn spend(raw: &mut Raw, amount: f64, prompt: Option<&str>) {
    let update = serde_json::json!({"sessionUpdate": "usage_update", "used": 1, "size": 9,
        "cost": {"amount": amount, "currency": "EUR"}});
    let params = serde_json::json!({"sessionId": "s", "update": update,
        "_meta": {"acp-sdk": {"promptId": prompt}}});
    let method = "session/update";
    raw.send(serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params}))
        .await;
}

#[tokio::test]
async fn text_can_be_had_piece_by_piece() {
    let session = session(&TestAgent::default()).await;
    let mut pieces = Vec::new();
    let turn = session.prompt("work").await.unwrap();
    let outcome = within(turn.on_text(|text| pieces.push(text.to_owned())))
        .await
        .unwrap();
    assert_eq!(outcome.text, "One.\n\nTwo.");
    assert_eq!(pieces.concat(), "One.Two.");
    assert!(pieces.len() > 1);
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
