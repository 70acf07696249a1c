//! Updates before responses, updates among each other.

use serde_json::json;

use acp_sdk::RpcError;
use acp_sdk::v1::methods;

use super::support::{TestClient, chunk, client, prompt, until};

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

/// Sends updates and an answer in between; the first update is handled slowly, or none is.
async fn call_between_updates(first: &str) {
    for _ in 0..200 {
        let watcher = TestClient::default();
        let (agent, mut raw, _driver) = client(watcher.clone());
        let texts = watcher.texts.clone();
        let mark = move |response: Result<&str, &RpcError>| {
            assert_eq!(response.unwrap(), r#"{"stopReason":"end_turn"}"#);
            texts.lock().unwrap().push("answer".into());
        };
        let marked = &watcher;
        let call = tokio::spawn(async move {
            let prompt = prompt("s", "go");
            agent
                .peer()
                .call_then::<methods::Prompt>(&prompt, mark)
                .await
        });
        raw.expect().await;
        let answer = json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}});
        let lines = [
            chunk("s", first),
            chunk("s", "before"),
            answer,
            chunk("s", "after"),
        ];
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        raw.write(text).await;
        if first == "slow" {
            marked.reached_gate.notified().await;
            assert_eq!(marked.texts(), [""; 0]);
            marked.gate.notify_one();
        }
        call.await.unwrap().unwrap();
        until("the last update", || marked.texts().len() == 4).await;
        assert_eq!(marked.texts(), [first, "before", "answer", "after"]);
    }
}

async fn the_place_of_an_answer_is_between_the_updates_around_it() {
    call_between_updates("quick").await;
    call_between_updates("slow").await;
}

async fn a_function_that_panics_at_an_answer_harms_nothing() {
    let (agent, mut raw, _driver) = client(TestClient::default());
    let call = tokio::spawn(async move {
        let prompt = prompt("s", "go");
        let then = |_: Result<&str, &RpcError>| panic!("a fault in the client");
        agent
            .peer()
            .call_then::<methods::Prompt>(&prompt, then)
            .await
    });
    raw.expect().await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": "end_turn"}}))
        .await;
    call.await.unwrap().unwrap();
    raw.assert_alive().await;
}

crate::on_every_runtime!(
    the_place_of_an_answer_is_between_the_updates_around_it,
    a_function_that_panics_at_an_answer_harms_nothing,
    updates_are_handled_before_the_answer_however_the_bytes_arrive,
    a_slow_session_does_not_hold_up_another,
    a_panicking_handler_loses_its_own_update_only,
    a_handler_whose_call_has_ended_holds_responses_back_again,
);
