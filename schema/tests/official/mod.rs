//! The official types as schema definitions, for the tests that compare.

#![allow(unreachable_pub, dead_code, reason = "each test is a crate of its own")]
#![allow(clippy::expect_used, reason = "a helper of tests fails by panicking")]

use acp_schema::{Document, V1_UNSTABLE};
use agent_client_protocol_schema::v1;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

/// Our document of version 1 with the overlay of proposals.
pub fn ours() -> Document {
    Document::v1()
        .and_then(|document| document.overlay("v1.unstable.json", V1_UNSTABLE))
        .expect("the bundled documents are valid")
}

/// The definitions behind everything that the two sides and the protocol send.
pub fn definitions() -> Map<String, Value> {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<v1::AgentRequest>();
    generator.subschema_for::<v1::AgentResponse>();
    generator.subschema_for::<v1::AgentNotification>();
    generator.subschema_for::<v1::ClientRequest>();
    generator.subschema_for::<v1::ClientResponse>();
    generator.subschema_for::<v1::ClientNotification>();
    generator.subschema_for::<v1::CancelRequestNotification>();
    generator.subschema_for::<v1::ProxyRequest>();
    generator.subschema_for::<v1::ProxyResponse>();
    generator.subschema_for::<v1::ProxyNotification>();
    generator.subschema_for::<v1::RequestId>();
    generator.subschema_for::<v1::Error>();
    generator.take_definitions(true)
}

/// Envelopes only route; what they carry is judged by itself.
pub fn is_envelope(schema: &Value) -> bool {
    schema.get("x-docs-ignore").is_some()
}
