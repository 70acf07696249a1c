//! The extension of a protocol alone: what it has, takes from elsewhere, and refuses.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_codegen::{Builder, Side};
use serde_json::{Value, json};

fn object(member: &str) -> Value {
    json!({
        "type": "object",
        "properties": { member: { "type": "string" } },
        "required": [member],
    })
}

/// An extension with a method of each form, a member and a key.
fn extension(builder: Builder, module: &str) -> Builder {
    let about = json!({
        "type": "object",
        "properties": { "session": { "$ref": "#/$defs/SessionId" } },
        "required": ["session"],
    });
    builder
        .definition("Table", object("rows"))
        .member("ContentBlock", "_example/table", "Table")
        .meta("PromptRequest", "example.com/table", "Table")
        .request(
            Side::AGENT,
            "_example/index",
            "Index",
            about,
            object("words"),
        )
        .notification(Side::CLIENT, "_example/hint", "Hint", object("text"))
        .extends(module)
}

#[test]
fn an_extension_has_its_own_items_only() {
    let text = extension(Builder::v1(), "::acp_sdk::v1")
        .generate()
        .unwrap();
    for expected in [
        "pub use ::acp_sdk::v1::SessionId;",
        "pub use ::acp_sdk::v1::AgentContext;",
        "pub struct IndexRequest {",
        "pub trait AgentExtension: Send + Sync + 'static {",
        "pub trait ClientExtension: Send + Sync + 'static {",
        "impl AgentHandleExt for AgentHandle {",
        "impl<T: AgentExtension> ::acp_sdk::service::Layer for AgentExtensionLayer<T> {",
        "_ => self.inner.request(request),",
        "impl From<Table> for ContentBlock {",
        "pub fn from_content_block(value: &ContentBlock) -> Option<Self> {",
        "impl PromptRequestExt for PromptRequest {",
        "fn meta_table(&self) -> Option<Table>",
        "/// Handled by [`AgentExtension::index`], sent by [`AgentHandleExt::index`].",
    ] {
        assert!(text.contains(expected), "{expected}\nis not in\n{text}");
    }
    for other in ["struct PromptRequest", "trait Agent:", "struct Prompt;"] {
        assert!(!text.contains(other), "{other}\nis in\n{text}");
    }
}

#[test]
fn the_module_that_is_extended_may_be_any() {
    let text = extension(Builder::v2(), "::my_crate::acp")
        .generate()
        .unwrap();
    assert!(
        text.contains("pub use ::my_crate::acp::SessionId;"),
        "{text}"
    );
}

#[test]
fn a_changed_definition_needs_the_whole_protocol() {
    let directory = tempfile::tempdir().unwrap();
    let overlay = directory.path().join("changed.json");
    let patch = json!({ "x-patch": [{
        "op": "add",
        "path": "/$defs/PromptRequest/properties/extra",
        "value": { "type": "string" },
    }] });
    std::fs::write(&overlay, patch.to_string()).unwrap();
    let builder = Builder::v1().overlay(&overlay);
    assert!(builder.generate().is_ok());
    let error = builder.extends("::acp_sdk::v1").generate().unwrap_err();
    assert!(
        error.to_string().contains(
            "/$defs/PromptRequest: the overlay changes the definition, whose Rust type exists already"
        ),
        "{error}"
    );
}

#[test]
fn a_member_needs_a_type_of_its_own() {
    let builder = Builder::v1().member("ContentBlock", "_example/plan", "Plan");
    let error = builder.extends("::acp_sdk::v1").generate().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the member `_example/plan` of the union needs a new definition"),
        "{error}"
    );
    let error = Builder::v1().extends("no path").generate().unwrap_err();
    assert!(
        error
            .to_string()
            .contains("`no path` is not the path of a Rust module"),
        "{error}"
    );
}
