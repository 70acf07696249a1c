//! Documents other than the bundled ones: as the base of a builder, with types of their own
//! or external ones, and untouched by the overrides of ACP.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_codegen::{Builder, Document, Options, generate};

/// A document with definitions and a method that have overrides in ACP's document.
const FOREIGN: &str = r#"{ "$defs": {
    "PromptRequest": { "type": "object", "x-side": "agent", "x-method": "session/prompt" },
    "PromptResponse": { "type": "object", "x-side": "agent", "x-method": "session/prompt" },
    "SessionNotification": { "type": "object", "x-side": "client", "x-method": "session/update" },
    "ProtocolVersion": { "type": "integer", "format": "uint16" },
    "SessionConfigOption": {
        "type": "object",
        "properties": { "name": { "type": "string" } },
        "oneOf": [{
            "type": "object",
            "properties": { "type": { "type": "string", "const": "flag" }, "on": { "type": "boolean" } },
            "required": ["type"]
        }]
    }
} }"#;

fn foreign() -> Document {
    Document::parse("foreign.json", FOREIGN).unwrap()
}

#[test]
fn overrides_of_a_bundled_document_do_not_touch_another() {
    let text = generate(&foreign(), &Options::other()).unwrap().text;
    // `session_update` is the override's name.
    assert!(text.contains("fn session("), "{text}");
    assert!(!text.contains("session_update"), "{text}");
    // The override makes the method required.
    assert!(text.contains("runtime::unsupported::<methods::Prompt>()"));
    assert!(!text.contains("const V1"));
    assert!(text.contains("SessionConfigOptionType"), "{text}");
    assert!(!text.contains("SessionConfigKind"));
}

#[test]
fn a_builder_starts_with_any_document() {
    let expected = generate(&foreign(), &Options::other()).unwrap().text;
    let text = Builder::from_document(foreign()).generate().unwrap();
    assert_eq!(text, expected);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("foreign.json");
    std::fs::write(&path, FOREIGN).unwrap();
    assert_eq!(Builder::from_file(&path).generate().unwrap(), expected);

    let text = Builder::from_file(&path)
        .definition("Extra", serde_json::json!({ "type": "string" }))
        .reference("https://example.com/protocol")
        .generate()
        .unwrap();
    assert!(text.contains("pub struct Extra("));
    assert!(text.contains("https://example.com/protocol#session-prompt"));
}

#[test]
fn proposals_belong_to_bundled_documents() {
    let builder = Builder::from_document(foreign()).unstable();
    assert_eq!(
        builder.generate().unwrap_err().to_string(),
        "foreign.json: `unstable` applies to the bundled documents only; \
         add the proposals with `overlay`"
    );
}

#[test]
fn an_external_type_must_exist_and_have_a_path() {
    let error = |name: &str, path: &str| {
        let builder = Builder::from_document(foreign()).external(name, path);
        builder.generate().unwrap_err().to_string()
    };
    assert_eq!(
        error("Nothing", "::a::B"),
        "foreign.json: /$defs/Nothing: no such definition, so it cannot be the external type \
         `::a::B`; correct the name of the external type"
    );
    assert_eq!(
        error("ProtocolVersion", "a b"),
        "foreign.json: /$defs/ProtocolVersion: `a b` is not the path of a Rust type; \
         write an absolute path such as `::acp_sdk::v1::SessionId`"
    );
}

#[test]
fn types_inside_an_external_one_are_external_too() {
    let text = Builder::from_document(foreign())
        .external("SessionConfigOption", "::other::Setting")
        .generate()
        .unwrap();
    assert!(text.contains("pub use ::other::Setting as SessionConfigOption;"));
    assert!(!text.contains("SessionConfigOptionType"), "{text}");
}
