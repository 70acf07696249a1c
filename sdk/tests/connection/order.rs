//! Updates before responses, updates among each other.

use serde_json::json;

use super::support::{TestClient, chunk, client, prompt};

/// The two lines that the bug reports are about.
fn update_and_answer() -> Vec<u8> {
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}});
    format!("{}\n{}\n{answer}\n", chunk("s", "slow"), chunk("s", "last")).into_bytes()
}

async fn updates_are_handled_before_the_answer_however_the_bytes_arrive() {
    let bytes = update_and_answer();
    for split in 0..bytes.len() {
        let watcher = TestClient::default();
        let (agent, mut raw, _driver) = client(watcher.clone());
        let call = tokio::spawn(async move { agent.prompt(prompt("s", "go")).await });
        raw.expect().await;
        raw.write(&bytes[..split]).await;
        raw.write(&bytes[split..]).await;
        watcher.reached_gate.notified().await;
        assert!(!call.is_finished());
        watcher.gate.notify_one();
        call.await.unwrap().unwrap();
        assert_eq!(watcher.texts(), ["slow", "last"], "split at {split}");
    }
}

async fn a_slow_session_does_not_hold_up_another() {
    let watcher = TestClient::default();
    let (agent, mut raw, _driver) = client(watcher.clone());
    let call = tokio::spawn(async move { agent.prompt(prompt("b", "go")).await });
    raw.expect().await;
    raw.send(chunk("a", "slow")).await;
    raw.send(chunk("b", "quick")).await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    call.await.unwrap().unwrap();
    assert_eq!(watcher.texts(), ["quick"]);
}

async fn a_panicking_handler_loses_its_own_update_only() {
    let watcher = TestClient::default();
    let (agent, mut raw, _driver) = client(watcher.clone());
    let call = tokio::spawn(async move { agent.prompt(prompt("s", "go")).await });
    raw.expect().await;
    for text in ["one", "panic", "two"] {
        raw.send(chunk("s", text)).await;
    }
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    call.await.unwrap().unwrap();
    assert_eq!(watcher.texts(), ["one", "two"]);
}

async fn a_handler_whose_call_has_ended_holds_responses_back_again() {
    let watcher = TestClient::default();
    let (agent, mut raw, _driver) = client(watcher.clone());
    let call = tokio::spawn(async move { agent.prompt(prompt("s", "go")).await });
    raw.expect().await;
    raw.send(chunk("s", "call, then slow")).await;
    assert_eq!(raw.expect().await["id"], 1);
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "result": "bottom"}))
        .await;
    watcher.reached_gate.notified().await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(!call.is_finished(), "its update is still being handled");
    watcher.gate.notify_one();
    call.await.unwrap().unwrap();
    assert_eq!(watcher.texts(), ["call, then slow"]);
}

crate::on_every_runtime!(
    updates_are_handled_before_the_answer_however_the_bytes_arrive,
    a_slow_session_does_not_hold_up_another,
    a_panicking_handler_loses_its_own_update_only,
    a_handler_whose_call_has_ended_holds_responses_back_again,
);
