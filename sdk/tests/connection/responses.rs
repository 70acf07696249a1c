//! Responses that JSON-RPC does not have, and what real peers mean by them.

use std::sync::Arc;
use std::task::Poll;

use acp_sdk::v1::{methods, *};
use acp_sdk::{ConnectionBuilder, Error, Framing, Peer, RpcError};
use serde_json::json;

use super::handlers::{Handlers, open};
use super::support::{TestAgent, TestClient, agent, client, on_its_own_thread, prompt};
use crate::on_every_runtime;

/// Answers a prompt with a line. Checks that nothing is sent in return.
async fn answered(line: &str) -> Result<PromptResponse, Error> {
    let (handle, mut raw, _driver) = client(TestClient::default());
    let call = tokio::spawn(async move { handle.prompt(prompt("s", "x")).await });
    assert_eq!(raw.expect().await["id"], 0);
    raw.write(format!("{line}\n")).await;
    raw.assert_alive().await;
    call.await.unwrap()
}

async fn an_answer_without_result_and_error_fails_its_call() {
    for line in [
        r#"{"jsonrpc":"2.0","id":0}"#,
        r#"{"id":0,"jsonrpc":"2.0","error":null}"#,
    ] {
        let error = answered(line).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "invalid response to `session/prompt`: it has neither `result` nor `error`"
        );
    }
}

async fn an_answer_to_nobody_is_not_answered() {
    // The id is that of a request of the peer in progress, which an error would end.
    let subject = TestAgent::default();
    let (mut raw, _driver) = agent(subject.clone());
    raw.send(super::support::raw_prompt(5, "hang")).await;
    subject.hanging.notified().await;
    raw.write("{\"jsonrpc\":\"2.0\",\"id\":5}\n").await;
    raw.assert_alive().await;
}

async fn a_null_beside_the_other_member_is_absent() {
    let error = r#""error":{"code":-32000,"message":"log in first"}"#;
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":0,"result":null,{error}}}"#),
        format!(r#"{{"jsonrpc":"2.0","id":0,{error},"result":null}}"#),
    ] {
        let error = answered(&line).await.unwrap_err();
        assert_eq!(
            error.code(),
            Some(ErrorCode::AUTHENTICATION_REQUIRED),
            "{line}"
        );
    }
    let line = r#"{"jsonrpc":"2.0","id":0,"result":{"stopReason":"end_turn"},"error":null}"#;
    assert_eq!(
        answered(line).await.unwrap().stop_reason,
        StopReason::EndTurn
    );
    let both = r#"{"jsonrpc":"2.0","id":0,"result":{},"error":{"code":1,"message":"x"}}"#;
    let error = answered(both).await.unwrap_err();
    assert!(matches!(error, Error::InvalidResponse { .. }), "{error}");
}

const MAX: usize = 10_000;

fn small() -> ConnectionBuilder {
    ConnectionBuilder::new().max_message_bytes(MAX)
}

async fn an_answer_above_the_limit_fails_its_call() {
    let long = "x".repeat(MAX);
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":0,"result":{{"stopReason":"{long}"}}}}"#),
        format!(r#"{{"jsonrpc":"2.0","result":{{"stopReason":"{long}"}},"id":0}}"#),
        format!(r#"{{"jsonrpc":"2.0","error":{{"code":1,"message":"{long}"}},"id":0}}"#),
    ] {
        let headers = format!("Content-Length: {}\r\n\r\n{line}", line.len());
        for (framing, bytes) in [
            (Framing::Lines, format!("{line}\n")),
            (Framing::ContentLength, headers),
        ] {
            let (peer, mut raw, _driver) = open(small().framing(framing), Handlers::new());
            let call =
                tokio::spawn(async move { peer.call::<methods::Prompt>(&prompt("s", "x")).await });
            match framing {
                Framing::Lines => drop(raw.expect().await),
                _ => drop((raw.line().await, raw.line().await)),
            }
            raw.write(bytes).await;
            let error = call.await.unwrap().unwrap_err().to_string();
            let expected = format!(
                "invalid response to `session/prompt`: a message of {} bytes exceeds the limit of {MAX}",
                line.len()
            );
            assert_eq!(error, expected);
        }
    }
}

async fn a_request_above_the_limit_is_answered_with_its_id() {
    let long = "x".repeat(MAX);
    let (_peer, mut raw, _driver) = open(small(), Handlers::new());
    for line in [
        format!(r#"{{"jsonrpc":"2.0","id":"a","method":"_r","params":["{long}"]}}"#),
        format!(r#"{{"jsonrpc":"2.0","method":"_r","params":["{long}"],"id":"a"}}"#),
        format!(r#"{{"method":"_r","params":["{long}"],"id":"a","jsonrpc":"2.0"}}"#),
    ] {
        raw.write(format!("{line}\n")).await;
        let answer = raw.expect().await;
        assert_eq!(
            (&answer["id"], &answer["error"]["code"]),
            (&json!("a"), &json!(-32600))
        );
        raw.assert_alive().await;
    }
    // A notification has no id, so its error has none.
    raw.write(format!(
        r#"{{"jsonrpc":"2.0","method":"_n","params":["{long}"]}}"#
    ))
    .await;
    raw.write("\n").await;
    assert_eq!(raw.expect().await["id"], json!(null));
    raw.assert_alive().await;
}

/// Uses the connection when it is dropped, as a value of an application may.
struct CallsWhenDropped(Peer);

impl Drop for CallsWhenDropped {
    fn drop(&mut self) {
        let mut call = Box::pin(self.0.call_ext("_dropped", None));
        let mut cx = std::task::Context::from_waker(std::task::Waker::noop());
        assert!(!matches!(call.as_mut().poll(&mut cx), Poll::Ready(Ok(_))));
    }
}

/// Whoever drops the hook of a call holds no lock: otherwise this hangs.
#[test]
fn the_hook_of_a_call_is_dropped_without_a_lock() {
    for answer in [true, false] {
        on_its_own_thread(move || async move {
            let (peer, mut raw, driver) = open(ConnectionBuilder::new(), Handlers::new());
            let value = Arc::new(CallsWhenDropped(peer.clone()));
            let call = tokio::spawn(async move {
                let then = move |_: Result<&str, &RpcError>| drop(value);
                peer.call_then::<methods::Prompt>(&prompt("s", "x"), then)
                    .await
            });
            raw.expect().await;
            if answer {
                // The caller is gone before the answer.
                call.abort();
                assert!(call.await.unwrap_err().is_cancelled());
            } else {
                raw.close_writing().await;
                assert!(call.await.unwrap().is_err());
                driver.await.unwrap().unwrap();
            }
        });
    }
}

on_every_runtime!(
    an_answer_without_result_and_error_fails_its_call,
    an_answer_to_nobody_is_not_answered,
    a_null_beside_the_other_member_is_absent,
    an_answer_above_the_limit_fails_its_call,
    a_request_above_the_limit_is_answered_with_its_id,
);
