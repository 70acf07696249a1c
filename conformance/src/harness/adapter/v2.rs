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
        let idle = update.get("sessionUpdate")? == "state_update" && update.get("state")? == "idle";
        (ours && idle).then(|| Ok(update.clone()))
    }

    fn answers_early(&self) -> bool {
        true
    }
}
