//! What clients are sent of local commands.

use acp_sdk::v1::{SessionUpdate, ToolCallContent, ToolKind};
use acp_server::{Limits, Terminal};
use serde_json::{Value, json};

use crate::bench::Bench;

/// The content of the last update that has one.
fn shown(updates: &[SessionUpdate]) -> Vec<Value> {
    let mut contents = updates.iter().filter_map(|update| match update {
        SessionUpdate::ToolCallUpdate(update) => update.content.clone(),
        _ => None,
    });
    let last: Vec<ToolCallContent> = contents.next_back().unwrap();
    last.iter().map(|content| json!(content)).collect()
}

async fn run(bench: &Bench, script: &str) -> (Vec<Value>, Vec<Value>) {
    let (turn, prompt) = bench.begin().await;
    let mut call = turn.tool_call("Run", ToolKind::Execute).await.unwrap();
    call.add_text("before").await.unwrap();
    let terminal: Terminal = turn.terminal("sh", ["-c", script]).await.unwrap();
    call.add_terminal(&terminal).await.unwrap();
    call.add_text("after").await.unwrap();
    terminal.wait().await.unwrap();
    // The output is kept for the call.
    terminal.release().await.unwrap();
    call.complete("").await.unwrap();
    bench.end(prompt).await;
    let updates = std::mem::take(&mut *bench.client.updates.lock().unwrap());
    let all = updates.iter().map(|update| json!(update)).collect();
    (shown(&updates), all)
}

fn text(text: &str) -> Value {
    json!({ "type": "content", "content": { "type": "text", "text": text } })
}

#[tokio::test]
async fn a_tool_call_displays_the_output_as_text() {
    let bench = Bench::with_limits(Limits::default()).await;
    let (content, all) = run(&bench, "echo one; echo two").await;
    let command = "$ sh -c 'echo one; echo two'\none\ntwo\n";
    let expected = [
        text("before"),
        text(&format!("```\n{command}```")),
        text("after"),
    ];
    assert_eq!(content, expected);
    // No client is sent the id of a terminal that it does not have.
    assert!(!json!(all).to_string().contains("terminalId"));
}

#[tokio::test]
async fn output_does_not_end_its_block_of_code() {
    let bench = Bench::new().await;
    let (content, _) = run(&bench, "echo '````'").await;
    let block = content[1]["content"]["text"].as_str().unwrap();
    assert!(
        block.starts_with("`````\n$ ") && block.ends_with("\n`````"),
        "{block}"
    );
}

#[tokio::test]
async fn the_end_of_long_output_is_displayed() {
    let bench = Bench::new().await;
    let (content, _) = run(&bench, "seq 100000").await;
    let block = content[1]["content"]["text"].as_str().unwrap();
    assert!(block.len() < 17 << 10, "{}", block.len());
    assert!(block.contains("\n…\n") && block.ends_with("\n100000\n```"));
}
