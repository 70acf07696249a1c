//! Methods that an overlay adds, where they are not implemented: `ext_request` and `ext_notification`
//! have them, as without the overlay.

use std::sync::{Arc, Mutex};

use acp_sdk::v1::*;
use acp_sdk::{HandlerError, HandlerResult, Json};
use serde_json::json;

use super::support::{Raw, raw};

/// Knows the methods by their names alone, so that it compiles without the overlay.
#[derive(Clone, Default)]
struct ByName {
    notified: Arc<Mutex<Vec<(String, String)>>>,
}

impl Agent for ByName {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> {
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }

    async fn ext_request(
        &self,
        _: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        let params = params.unwrap_or_else(|| json!({}).into());
        match method {
            "session/fork" => {
                let session = params.to_value().unwrap()["sessionId"].clone();
                Ok(json!({"sessionId": format!("fork of {session}")}).into())
            }
            "session/archive" => Ok(json!("no object").into()),
            _ => Err(HandlerError::method_not_found(method)),
        }
    }

    async fn ext_notification(
        &self,
        _: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        let params = params.map_or(String::new(), |params| params.get().to_owned());
        let mut notified = self.notified.lock().unwrap();
        notified.push((method.to_owned(), params));
        Ok(())
    }
}

async fn call(raw: &mut Raw, method: &str, params: serde_json::Value) -> serde_json::Value {
    raw.send(json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))
        .await;
    raw.expect().await
}

#[tokio::test]
async fn methods_of_an_overlay_are_left_to_the_functions_for_unknown_ones() {
    let agent = ByName::default();
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let task = tokio::spawn(acp_sdk::serve(agent.clone(), tokio::io::split(ours)));
    let mut raw = raw(theirs);
    let fork = json!({"sessionId": "s", "cwd": "/w", "mcpServers": []});
    let forked = call(&mut raw, "session/fork", fork).await;
    assert_eq!(forked["result"]["sessionId"], "fork of \"s\"");
    // What is implemented nowhere is no method, and what is no method of the protocol still is none.
    for method in ["session/status", "_other"] {
        let refused = call(&mut raw, method, json!({"sessionId": "s"})).await;
        assert_eq!(refused["error"]["code"], -32601, "{refused}");
    }
    let message = json!({"jsonrpc": "2.0", "method": "mcp/message",
        "params": {"serverId": "m", "requestId": "1", "method": "notifications/x"}});
    raw.send(message).await;
    // A method of the protocol is not left to it.
    raw.send(json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}}))
        .await;
    drop(raw);
    task.await.unwrap().unwrap();
    let notified = agent.notified.lock().unwrap();
    let [(method, params)] = &notified[..] else {
        panic!("{notified:?}");
    };
    assert_eq!(method, "mcp/message");
    assert!(params.contains("notifications/x"), "{params}");
}

/// An answer that does not fit the type of the method is the agent's fault, and said.
#[cfg(feature = "unstable")]
#[tokio::test]
async fn an_answer_of_another_form_is_an_internal_error() {
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    tokio::spawn(acp_sdk::serve(ByName::default(), tokio::io::split(ours)));
    let archived = call(
        &mut raw(theirs),
        "session/archive",
        json!({"sessionId": "s"}),
    )
    .await;
    assert_eq!(archived["error"]["code"], -32603, "{archived}");
}
