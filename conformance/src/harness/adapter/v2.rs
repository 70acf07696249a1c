//! The steps in v2: a turn ends with the update that its session is idle.

use serde_json::{Value, json};

use super::{Adapter, Capability, Place};
use crate::harness::Recording;
use crate::wire::Version;

pub(super) static ADAPTER: Adapter = Adapter {
    client_members: ("info", "capabilities"),
    agent_members: ("info", "capabilities"),
    all_capabilities,
    place,
    login_methods: ("auth/login", "auth/logout"),
    load: "session/resume",
    load_params: || Some(("replayFrom", json!({"type": "start"}))),
    turn_end,
    answers_early: true,
};

fn all_capabilities() -> Value {
    json!({
        "auth": {"terminal": {}},
        "elicitation": {"form": {}, "url": {}},
    })
}

fn place(capability: Capability) -> Place {
    Place::At(match capability {
        Capability::AdditionalDirectories => "/session/additionalDirectories",
        Capability::Image => "/session/prompt/image",
        Capability::Audio => "/session/prompt/audio",
        Capability::EmbeddedContext => "/session/prompt/embeddedContext",
        Capability::McpStdio => "/session/mcp/stdio",
        Capability::McpHttp => "/session/mcp/http",
        // Those that are not in the document of version 2 have another one in their place.
        Capability::Method(method) => return Place::of_method(Version::V2, method),
    })
}

fn turn_end(recording: &Recording, request: usize, index: usize) -> Option<Result<Value, Value>> {
    let entry = recording.entries.get(index)?;
    if entry.request == Some(request) {
        return entry.answer().err().map(Err);
    }
    let update = entry.params().get("update")?;
    let prompt = recording.entries.get(request)?;
    let ours = index > request && entry.session() == prompt.session();
    if !ours || state(update)? != "idle" {
        return None;
    }
    // An idle state that ends no work may be on its way when the prompt is sent.
    let mut since = recording.entries.get(request + 1..index)?.iter();
    let has_begun = update.get("stopReason").is_some_and(Value::is_string)
        || since.any(|entry| {
            let update = entry.params().get("update");
            entry.session() == prompt.session() && update.is_some_and(is_work)
        });
    has_begun.then(|| Ok(update.clone()))
}

/// The state that an update reports.
fn state(update: &Value) -> Option<&str> {
    let is_state = update.get("sessionUpdate")? == "state_update";
    update.get("state").filter(|_| is_state)?.as_str()
}

/// Whether an update says that work goes on, or that a prompt was inserted.
fn is_work(update: &Value) -> bool {
    let kind = update.get("sessionUpdate").and_then(Value::as_str);
    matches!(kind, Some("user_message" | "user_message_chunk"))
        || state(update).is_some_and(|state| state != "idle")
}
