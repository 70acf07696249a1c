//! Requests: nesting, cancellation, panics, backpressure.

use acp_sdk::v1::*;
use acp_sdk::{Json, runtime::Peer};
use serde_json::json;

use super::support::{TestAgent, TestClient, agent, chunk, client, pair, prompt, raw_prompt};

async fn down(peer: &Peer, depth: u64) -> Json {
    peer.call_ext("_down", Some(&Json::from(json!({"depth": depth}))))
        .await
        .unwrap()
}

async fn handlers_call_back_and_forth_100_deep() {
    let (handle, _drivers) = pair(TestAgent::default(), TestClient::default());
    assert_eq!(down(handle.peer(), 100).await.get(), "\"bottom\"");
}

async fn a_notification_handler_may_call_the_peer_and_be_called_back() {
    let watcher = TestClient::default();
    let (handle, _drivers) = pair(TestAgent::default(), watcher.clone());
    // The agent echoes the text as an update, whose handler then calls the agent.
    handle.prompt(prompt("s", "call")).await.unwrap();
    assert_eq!(down(handle.peer(), 1).await.get(), "\"bottom\"");
    while watcher.texts() != ["call"] {
        tokio::task::yield_now().await;
    }
}

async fn dropping_a_call_cancels_that_request_and_no_other() {
    let (handle, mut raw, _driver) = client(TestClient::default());
    let (first, second) = (handle.clone(), handle);
    let first = tokio::spawn(async move { first.prompt(prompt("a", "x")).await });
    assert_eq!(raw.expect().await["id"], 0);
    let second = tokio::spawn(async move { second.prompt(prompt("b", "x")).await });
    assert_eq!(raw.expect().await["id"], 1);
    first.abort();
    let cancel = raw.expect().await;
    assert_eq!(cancel["method"], "$/cancel_request");
    assert_eq!(cancel["params"], json!({"requestId": 0}));
    // A late answer to the first is nobody's; the second still gets its own.
    for id in [0, 1] {
        raw.send(json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": "end_turn"}}))
            .await;
    }
    assert_eq!(
        second.await.unwrap().unwrap().stop_reason,
        StopReason::EndTurn
    );
}

async fn a_cancelled_request_is_told_and_answered_once() {
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    raw.send(raw_prompt("p", "hang")).await;
    subject.hanging.notified().await;
    for id in [json!(7), json!("p"), json!("p")] {
        let params = json!({"requestId": id});
        raw.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params}))
            .await;
    }
    let answer = raw.expect().await;
    assert_eq!(answer["id"], "p");
    assert_eq!(answer["result"]["stopReason"], "cancelled");
    raw.assert_alive().await;
}

async fn session_cancel_cancels_the_prompts_of_its_session() {
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    raw.send(raw_prompt("s", "hang")).await;
    subject.hanging.notified().await;
    let mut other = raw_prompt("t", "hang");
    other["params"]["sessionId"] = json!("t");
    raw.send(other).await;
    subject.hanging.notified().await;
    let cancel = |session| json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": session}});
    raw.send(cancel("nobody's")).await;
    raw.assert_alive().await;
    for session in ["s", "t"] {
        raw.send(cancel(session)).await;
        let answer = raw.expect().await;
        assert_eq!(answer["id"], session);
        assert_eq!(answer["result"]["stopReason"], "cancelled");
    }
    raw.assert_alive().await;
}

async fn a_list_names_no_request_to_cancel() {
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    raw.send(raw_prompt("p", "hang")).await;
    subject.hanging.notified().await;
    let cancel = |params| json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params});
    raw.send(cancel(json!(["p"]))).await;
    // The answer of a cancelled prompt would come between.
    for _ in 0..3 {
        raw.assert_alive().await;
    }
    raw.send(cancel(json!({"requestId": "p"}))).await;
    assert_eq!(raw.expect().await["id"], "p");
}

async fn an_id_in_use_is_refused_without_touching_its_request() {
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    let request = raw_prompt(1, "hang");
    raw.send(request.clone()).await;
    subject.hanging.notified().await;
    raw.send(request).await;
    let refusal = raw.expect().await;
    assert_eq!(
        (&refusal["id"], &refusal["error"]["code"]),
        (&json!(null), &json!(-32600))
    );
    raw.send(json!({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}}))
        .await;
    assert_eq!(raw.expect().await["result"]["stopReason"], "cancelled");
}

async fn a_panic_answers_its_request_and_nothing_else() {
    let (mut raw, _driver) = agent(TestAgent::default());
    raw.send(raw_prompt(5, "panic")).await;
    let answer = raw.expect().await;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(5), &json!(-32603))
    );
    assert!(
        answer["error"]["message"]
            .as_str()
            .unwrap()
            .contains("`session/prompt` panicked")
    );
    raw.assert_alive().await;
}

// With one thread it is known when nothing more can be sent.
#[tokio::test]
async fn a_peer_that_does_not_read_stops_the_sender() {
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    raw.send(raw_prompt(5, "flood")).await;
    // The sender is stopped when the runtime finds nothing more to do for it.
    let mut before = u64::MAX;
    loop {
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let sent = *subject.sent.lock().unwrap();
        if sent == before {
            break;
        }
        before = sent;
    }
    assert!(
        (1..400).contains(&before),
        "{before} updates of 1 KB were accepted"
    );
    assert_eq!(raw.expect().await["method"], "session/update");
}

async fn an_answer_that_does_not_fit_names_the_place() {
    let (handle, mut raw, _driver) = client(TestClient::default());
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
    raw.expect().await;
    raw.send(chunk("s", "unrelated")).await;
    raw.send(json!({"jsonrpc": "2.0", "id": 0, "result": {"stopReason": 5}}))
        .await;
    let error = call.await.unwrap().unwrap_err();
    assert!(
        matches!(&error, acp_sdk::Error::Decode { method, path, .. }
            if method == "session/prompt" && path == "/stopReason"),
        "{error}"
    );
}

crate::on_every_runtime!(
    handlers_call_back_and_forth_100_deep,
    a_notification_handler_may_call_the_peer_and_be_called_back,
    dropping_a_call_cancels_that_request_and_no_other,
    a_cancelled_request_is_told_and_answered_once,
    session_cancel_cancels_the_prompts_of_its_session,
    a_list_names_no_request_to_cancel,
    an_id_in_use_is_refused_without_touching_its_request,
    a_panic_answers_its_request_and_nothing_else,
    an_answer_that_does_not_fit_names_the_place,
);
