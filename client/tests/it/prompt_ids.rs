//! Updates that name their prompt: a client distinguishes the turn of another one from its own.

use acp_client::{Client, Event, Session, SessionEvent};
use acp_sdk::v1::{ContentBlock, SessionUpdate};
use serde_json::{Value, json};

use crate::agent::{Raw, said, within};

/// An agent with the session `s`, which names the prompts of its updates or not.
async fn session(names: bool) -> (Client, Raw, Session) {
    let capabilities = json!({"_meta": {"acp-sdk": {"eventId": true, "promptId": names}}});
    let hello = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
    let (client, mut raw) = Raw::connect_saying(Client::builder(), hello).await;
    let (session, ()) = tokio::join!(
        client.new_session("/"),
        raw.answer("session/new", json!({"sessionId": "s"}))
    );
    (client, raw, session.unwrap())
}

async fn say(raw: &mut Raw, text: &str, ours: Value) {
    let params = json!({"sessionId": "s", "update": said(text), "_meta": {"acp-sdk": ours}});
    raw.send(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
        .await;
}

/// Returns the text of an update, its turn and the id of its prompt.
fn text(event: &SessionEvent) -> Option<(String, Option<u64>, Option<&str>)> {
    let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = &event.event else {
        return None;
    };
    let ContentBlock::Text(text) = &chunk.content else {
        return None;
    };
    Some((text.text.clone(), event.turn, event.prompt_id.as_deref()))
}

#[tokio::test]
async fn a_prompt_that_waits_behind_another_turn_gets_its_own_answer() {
    let (_client, mut raw, session) = session(true).await;
    let mut events = session.events();
    let turn = session.prompt("mine").await.unwrap();
    let prompt = raw.next().await;
    let mine = prompt["params"]["_meta"]["acp-sdk"]["promptId"].clone();
    assert!(mine.is_string(), "{prompt}");
    say(
        &mut raw,
        "theirs",
        json!({"eventId": 1, "promptId": "turn-1"}),
    )
    .await;
    say(&mut raw, "outside", json!({"eventId": 2})).await;
    say(&mut raw, "mine", json!({"eventId": 3, "promptId": mine})).await;
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.text, "outsidemine");

    let events: Vec<_> = std::iter::from_fn(|| events.next_ready()).collect();
    let seen: Vec<_> = events.iter().filter_map(text).collect();
    let expected = [
        ("theirs".to_owned(), None, Some("turn-1")),
        ("outside".to_owned(), Some(1), None),
        ("mine".to_owned(), Some(1), mine.as_str()),
    ];
    assert_eq!(seen, expected);

    let next = session.prompt("again").await.unwrap();
    let again = raw.next().await;
    assert_ne!(again["params"]["_meta"]["acp-sdk"]["promptId"], mine);
    drop(next);
}

#[tokio::test]
async fn an_agent_that_names_no_prompts_is_sent_no_ids() {
    let (_client, mut raw, session) = session(false).await;
    let turn = session.prompt("mine").await.unwrap();
    let prompt = raw.next().await;
    assert!(prompt["params"].get("_meta").is_none(), "{prompt}");
    // It is the only turn that this client knows of.
    say(&mut raw, "one", json!({"eventId": 1, "promptId": "other"})).await;
    say(&mut raw, "two", json!({"eventId": "two", "promptId": 7})).await;
    let result = json!({"stopReason": "end_turn"});
    raw.send(json!({"jsonrpc": "2.0", "id": prompt["id"], "result": result}))
        .await;
    assert_eq!(within(turn.outcome()).await.unwrap().text, "onetwo");
}
