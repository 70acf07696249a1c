//! What the hooks of several defects share.

use serde_json::{Value, json};

use crate::connection::Step::{Handle, Write};
use crate::connection::{Memory, Step};

/// `message` answers a request of `method` with a result.
pub(crate) fn answers(memory: &Memory, message: &Value, method: &str) -> bool {
    message.get("result").is_some() && memory.answered(message) == method
}

pub(crate) fn is_request(message: &Value) -> bool {
    message.get("method").is_some() && message.get("id").is_some()
}

/// The response with an error to `message`.
pub(crate) fn refusal(message: &Value, code: i64) -> Step {
    let error = json!({"code": code, "message": "refused"});
    Write(json!({"jsonrpc": "2.0", "id": message["id"], "error": error}))
}

/// The response with `result` to `message`.
pub(crate) fn success(message: &Value, result: Value) -> Step {
    Write(json!({"jsonrpc": "2.0", "id": message["id"], "result": result}))
}

/// The kind of the update that `message` is; empty for all else.
pub(crate) fn kind(message: &Value) -> &str {
    message["params"]["update"]["sessionUpdate"]
        .as_str()
        .unwrap_or_default()
}

/// An update of the kind in the session of `message`.
pub(crate) fn update(session: &Value, update: Value) -> Step {
    let params = json!({"sessionId": session, "update": update});
    Write(json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))
}

/// Declares a capability in the client's name.
pub(crate) fn declare(mut message: Value, pointer: [&str; 2], value: Value) -> Vec<Step> {
    if message["method"] == "initialize" {
        message["params"]["clientCapabilities"][pointer[0]][pointer[1]] = value;
    }
    vec![Handle(message)]
}

/// Answers all requests of `method` with an empty result and does nothing.
pub(crate) fn pretend(message: Value, method: &str) -> Vec<Step> {
    match message["method"] == method {
        true => vec![success(&message, json!({}))],
        false => vec![Handle(message)],
    }
}

/// Holds the messages that `late` selects until the response to `method` is written.
pub(crate) fn hold(memory: &mut Memory, message: Value, late: bool, method: &str) -> Vec<Step> {
    if late {
        memory.held.push(message);
        return Vec::new();
    }
    if answers(memory, &message, method) {
        let held = std::mem::take(&mut memory.held);
        return [message].into_iter().chain(held).map(Write).collect();
    }
    vec![Write(message)]
}
