//! Joining text chunks while the writer is behind.

use std::time::Duration;

use acp_sdk::{ConnectionBuilder, v1::*};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;

use super::support::{AbortOnDrop, TestAgent, raw, within};

/// What a client receives when all this is sent before the loop writes once.
async fn received(coalesce: bool, updates: Vec<SessionUpdate>) -> Vec<Value> {
    let (ours, mut theirs) = tokio::io::duplex(1 << 20);
    let (reader, writer) = tokio::io::split(ours);
    let driver = ConnectionBuilder::new()
        .coalesce_chunks(coalesce)
        .agent(TestAgent::default(), (reader, writer));
    let client = driver.handle().clone();
    for update in updates {
        let note = SessionNotification::new("s", update);
        client.session_update(note).await.unwrap();
    }
    client.peer().close_output();
    let driver = tokio::spawn(driver);
    let mut text = String::new();
    within(theirs.read_to_string(&mut text)).await.unwrap();
    driver.abort();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["params"]["update"].take())
        .collect()
}

fn say(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(TextContent::new(text)))
}

fn think(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(TextContent::new(text)))
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

#[tokio::test(start_paused = true)]
async fn adjacent_texts_leave_as_one_and_the_order_stays() {
    let call = SessionUpdate::ToolCall(ToolCall::new("call-1", "Look"));
    let updates = vec![
        say("a"),
        say("\n\"b"),
        think("c"),
        say("d"),
        call,
        say("e"),
        say("f"),
    ];
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "call-1", "title": "Look"});
    assert_eq!(
        received(true, updates).await,
        [
            chunk("agent_message_chunk", "a\n\"b"),
            chunk("agent_thought_chunk", "c"),
            chunk("agent_message_chunk", "d"),
            call,
            chunk("agent_message_chunk", "ef"),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn nothing_is_joined_unless_asked_for() {
    assert_eq!(received(false, vec![say("a"), say("b")]).await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn many_small_chunks_become_few_large_ones_without_loss() {
    let updates = (0..5_000).map(|i| say(&format!("{i} "))).collect();
    let got = received(true, updates).await;
    assert!(got.len() < 10, "{} messages", got.len());
    let text: String = got
        .iter()
        .filter_map(|update| update["content"]["text"].as_str())
        .collect();
    let sent: String = (0..5_000).map(|i| format!("{i} ")).collect();
    assert_eq!(text, sent);
}

#[tokio::test(start_paused = true)]
async fn chunks_wait_for_room_too() {
    let (ours, _theirs) = tokio::io::duplex(1 << 10);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().coalesce_chunks(true);
    let driver = connection.agent(TestAgent::default(), (reader, writer));
    let client = driver.handle().clone();
    let _driver = AbortOnDrop(tokio::spawn(driver));
    // The clock moves once nothing else can, so what was taken by then is all that is taken.
    let (mut taken, large) = (0, say(&"x".repeat(1 << 20)));
    let sending = async {
        for _ in 0..10 {
            let note = SessionNotification::new("s", large.clone());
            client.session_update(note).await.unwrap();
            taken += 1;
        }
    };
    let waiting = tokio::time::timeout(Duration::from_secs(1), sending).await;
    assert!(waiting.is_err() && taken <= 2, "{taken} MB were taken");
}

#[tokio::test(start_paused = true)]
async fn a_chunk_alone_is_written_at_once() {
    let (ours, theirs) = tokio::io::duplex(1 << 10);
    let (reader, writer) = tokio::io::split(ours);
    let connection = ConnectionBuilder::new().coalesce_chunks(true);
    let driver = connection.agent(TestAgent::default(), (reader, writer));
    let client = driver.handle().clone();
    let _driver = AbortOnDrop(tokio::spawn(driver));
    let mut raw = raw(theirs);
    for text in ["a", "b"] {
        // The loop has nothing to do and sleeps.
        raw.assert_alive().await;
        let note = SessionNotification::new("s", say(text));
        client.session_update(note).await.unwrap();
        let update = within(raw.expect()).await["params"]["update"].take();
        assert_eq!(update, chunk("agent_message_chunk", text));
    }
}
