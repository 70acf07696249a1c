//! The steps in v2: a turn ends with the update that its session is idle.

use serde_json::{Value, json};

use super::{Adapter, Capability, Place};
use crate::harness::Recording;
use crate::wire::Version;

pub(super) struct V2;

impl Adapter for V2 {
    fn client_members(&self) -> (&'static str, &'static str) {
        ("info", "capabilities")
    }

    fn agent_members(&self) -> (&'static str, &'static str) {
        ("info", "capabilities")
    }

    fn all_capabilities(&self) -> Value {
        json!({
            "auth": {"terminal": {}},
            "elicitation": {"form": {}, "url": {}},
        })
    }

    fn place(&self, capability: Capability) -> Place {
        match capability {
            Capability::AdditionalDirectories => Place::At("/session/additionalDirectories"),
            Capability::Image => Place::At("/session/prompt/image"),
            Capability::Audio => Place::At("/session/prompt/audio"),
            Capability::EmbeddedContext => Place::At("/session/prompt/embeddedContext"),
            Capability::McpStdio => Place::At("/session/mcp/stdio"),
            Capability::McpHttp => Place::At("/session/mcp/http"),
            // Those that are not in the document of version 2 have another one in their place.
            Capability::Method(method) => Place::of_method(Version::V2, method),
        }
    }

    fn login_methods(&self) -> (&'static str, &'static str) {
        ("auth/login", "auth/logout")
    }

    fn load(&self) -> (&'static str, Option<(&'static str, Value)>) {
        let from = json!({"type": "start"});
        ("session/resume", Some(("replayFrom", from)))
    }

    fn turn_end(
        &self,
        recording: &Recording,
        request: usize,
        index: usize,
    ) -> Option<Result<Value, Value>> {
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

    fn answers_early(&self) -> bool {
        true
    }
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
