//! The steps in v1: a turn ends with the answer to its prompt.

use serde_json::{Value, json};

use super::{Adapter, Capability, Place};
use crate::harness::Recording;
use crate::wire::Version;

pub(super) struct V1;

impl Adapter for V1 {
    fn client_members(&self) -> (&'static str, &'static str) {
        ("clientInfo", "clientCapabilities")
    }

    fn agent_members(&self) -> (&'static str, &'static str) {
        ("agentInfo", "agentCapabilities")
    }

    fn all_capabilities(&self) -> Value {
        json!({
            "fs": {"readTextFile": true, "writeTextFile": true},
            "terminal": true,
            "elicitation": {"form": {}, "url": {}},
            "session": {
                "configOptions": {"boolean": {}},
                "notices": {},
                "compaction": {},
            },
            "auth": {"terminal": true},
        })
    }

    fn place(&self, capability: Capability) -> Place {
        Place::At(match capability {
            Capability::AdditionalDirectories => "/sessionCapabilities/additionalDirectories",
            Capability::Image => "/promptCapabilities/image",
            Capability::Audio => "/promptCapabilities/audio",
            Capability::EmbeddedContext => "/promptCapabilities/embeddedContext",
            Capability::McpStdio => return Place::Baseline,
            Capability::McpHttp => "/mcpCapabilities/http",
            Capability::Method(method) => return Place::of_method(Version::V1, method),
        })
    }

    fn login_methods(&self) -> (&'static str, &'static str) {
        ("authenticate", "logout")
    }

    fn load(&self) -> (&'static str, Option<(&'static str, Value)>) {
        ("session/load", None)
    }

    fn turn_end(
        &self,
        recording: &Recording,
        request: usize,
        index: usize,
    ) -> Option<Result<Value, Value>> {
        let entry = recording.entries.get(index)?;
        (entry.request == Some(request)).then(|| entry.answer())
    }

    fn answers_early(&self) -> bool {
        false
    }
}
