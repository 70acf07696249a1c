//! The part of the extension that is written as Rust types.
//!
//! They exist while the package is built: what the agent and the client use is
//! generated from their schemas, with everything that generated types have.

#![allow(dead_code, reason = "only the schemas of the types are used")]

use schemars::JsonSchema;

/// Asks the user a question that can be answered with yes or no.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[schemars(extend("x-method" = "_example/confirm", "x-side" = "client"))]
pub(crate) struct ConfirmRequest {
    /// The session that the question is about.
    #[schemars(schema_with = "session_id")]
    session_id: String,
    /// The question, to show to the user.
    question: String,
    /// What is meant when the user does not answer.
    fallback: Option<Choice>,
}

/// What the user said.
#[derive(JsonSchema)]
#[schemars(extend("x-method" = "_example/confirm", "x-side" = "client"))]
pub(crate) struct ConfirmResponse {
    /// The answer.
    choice: Choice,
}

/// Yes or no.
#[derive(JsonSchema)]
#[schemars(rename_all = "snake_case")]
pub(crate) enum Choice {
    /// Do it.
    Yes,
    /// Leave it.
    No,
}

/// A type of the protocol is referred to by its name.
fn session_id(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({ "$ref": "#/$defs/SessionId" })
}
