//! The steps in v1: a turn ends with the answer to its prompt.

use serde_json::{Value, json};

use super::{Adapter, Capability, Place};
use crate::harness::Recording;
use crate::wire::Version;

pub(super) static ADAPTER: Adapter = Adapter {
    client_members: ("clientInfo", "clientCapabilities"),
    agent_members: ("agentInfo", "agentCapabilities"),
    all_capabilities,
    place,
    login_methods: ("authenticate", "logout"),
    load: "session/load",
    load_params: || None,
    turn_end,
    answers_early: false,
};

fn all_capabilities() -> Value {
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

fn place(capability: Capability) -> Place {
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

fn turn_end(recording: &Recording, request: usize, index: usize) -> Option<Result<Value, Value>> {
    let entry = recording.entries.get(index)?;
    (entry.request == Some(request)).then(|| entry.answer())
}
