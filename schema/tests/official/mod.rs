//! The official types as schema definitions, for the tests that compare.

#![allow(unreachable_pub, dead_code, reason = "each test is a crate of its own")]
#![allow(clippy::expect_used, reason = "a helper of tests fails by panicking")]

use acp_schema::Document;
use agent_client_protocol_schema::{v1, v2};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Definitions of a protocol version: ours and those of the official types.
pub struct Version {
    pub name: &'static str,
    /// Document of [`compared`].
    pub ours: Document,
    /// Definitions of all official messages.
    pub theirs: Map<String, Value>,
}

/// Collects the definitions of all official messages of a version.
macro_rules! definitions {
    ($version:ident) => {{
        let mut generator = SchemaSettings::draft2020_12().into_generator();
        generator.subschema_for::<$version::AgentRequest>();
        generator.subschema_for::<$version::AgentResponse>();
        generator.subschema_for::<$version::AgentNotification>();
        generator.subschema_for::<$version::ClientRequest>();
        generator.subschema_for::<$version::ClientResponse>();
        generator.subschema_for::<$version::ClientNotification>();
        generator.subschema_for::<$version::CancelRequestNotification>();
        generator.subschema_for::<$version::ProxyRequest>();
        generator.subschema_for::<$version::ProxyResponse>();
        generator.subschema_for::<$version::ProxyNotification>();
        generator.subschema_for::<$version::RequestId>();
        generator.subschema_for::<$version::Error>();
        generator.take_definitions(true)
    }};
}

/// Returns all protocol versions.
pub fn versions() -> [Version; 2] {
    let [first, second] = compared();
    [
        Version {
            name: "v1",
            ours: first,
            theirs: definitions!(v1),
        },
        Version {
            name: "v2",
            ours: second,
            theirs: definitions!(v2),
        },
    ]
}

/// Returns the bundled documents with their overlays.
pub fn ours() -> [Document; 2] {
    [Document::v1_unstable(), Document::v2_unstable()]
        .map(|document| document.expect("the bundled documents are valid"))
}

/// Removes what the official types, those of proposals too, lack of the Preview of version 2.
const LACKING: &str = r#"{"x-patch": [
    {"op": "remove", "path": "/$defs/ReplayComplete"},
    {"op": "remove", "path": "/$defs/IdempotencyKey"},
    {"op": "remove", "path": "/$defs/PromptRequest/properties/idempotencyKey"},
    {"op": "test", "path": "/$defs/SessionUpdate/anyOf/24/properties/sessionUpdate/const", "value": "replay_complete"},
    {"op": "remove", "path": "/$defs/SessionUpdate/anyOf/24"},
    {"op": "test", "path": "/$defs/SessionUpdate/anyOf/23/not/anyOf/23/properties/sessionUpdate/const", "value": "replay_complete"},
    {"op": "remove", "path": "/$defs/SessionUpdate/anyOf/23/not/anyOf/23"}
]}"#;

/// Returns the documents without what the official types lack.
pub fn compared() -> [Document; 2] {
    let [first, second] = ours();
    let second = second.overlay("lacking.json", LACKING);
    [first, second.expect("the patch applies")]
}

/// Returns whether a definition is an envelope. Envelopes are not compared.
pub fn is_envelope(schema: &Value) -> bool {
    schema.get("x-docs-ignore").is_some()
}
