//! Extensions by the builder, and overlays from derived schemas.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use acp_codegen::{Builder, Document, Side, export};
use serde_json::{Value, json};

fn assert_has(text: &str, expected: &[&str]) {
    for expected in expected {
        assert!(text.contains(expected), "{expected}");
    }
}

fn object(member: &str) -> Value {
    json!({ "properties": { member: { "type": "string" } }, "required": [member] })
}

#[test]
fn methods_types_members_and_meta() {
    let table = json!({ "type": "object", "properties": { "rows": { "type": "string" } } });
    let text = Builder::v1()
        .definition("Table", table)
        .member("ContentBlock", "_example/table", "Table")
        .meta("PromptRequest", "example.com/first", "Table")
        .meta("PromptRequest", "example.com/second-one", "Table")
        .request(
            Side::CLIENT,
            "_example/confirm",
            "Confirm",
            object("question"),
            object("answer"),
        )
        .notification(Side::AGENT, "_example/hint", "Hint", object("text"))
        .generate()
        .unwrap();
    assert_has(
        &text,
        &[
            "\"_example/table\" => variant.payload().map(Self::ExampleTable),",
            "pub fn meta_first(&self) -> Option<Table>",
            "pub fn with_meta_second_one(mut self, value: &Table) -> Self",
            "pub async fn confirm(",
            "runtime::Result<ConfirmResponse>",
            "notification: HintNotification,",
            "/// Method `_example/confirm`.",
        ],
    );
}

/// A member that an overlay adds ends joining, unless the overlay adds it to the rule as well.
#[test]
fn an_overlay_changes_which_notifications_are_joined() {
    let text = |patch: Value| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("overlay.json");
        let member = json!({
            "op": "add", "path": "/$defs/ContentChunk/properties/voice",
            "value": { "type": "string" },
        });
        let patches: Vec<Value> = [member]
            .into_iter()
            .chain(patch.as_array().cloned().unwrap())
            .collect();
        std::fs::write(&path, json!({ "x-patch": patches }).to_string()).unwrap();
        Builder::v1().overlay(path).generate().unwrap()
    };
    let rule = |text: &str| {
        let begin = text.find("pub static COALESCING").unwrap();
        let table = &text[begin..];
        table[..table.find("];\n").unwrap()].to_owned()
    };
    assert!(!rule(&text(json!([]))).contains("voice"));
    let equal = "/$defs/SessionNotification/x-coalesce/equal/-";
    let named = json!([{ "op": "add", "path": equal, "value": "/update/voice" }]);
    assert_has(
        &rule(&text(named)),
        &["(\"voice\", runtime::TextPattern::Equal)"],
    );
}

#[test]
fn an_extension_that_does_not_fit_says_where_and_what_to_do() {
    let error = |builder: Builder| builder.generate().unwrap_err().to_string();
    assert_eq!(
        error(Builder::v1().member("SessionId", "x", "Plan")),
        "build script: /$defs/SessionId: no union with a tag, so `x` cannot be a member of it; \
         name a definition whose `oneOf` or `anyOf` has a tag"
    );
    assert_eq!(
        error(Builder::v1().meta("SessionId", "k", "Plan")),
        "build script: /$defs/SessionId/properties/_meta: there is no `_meta`, so `k` cannot be \
         a member of it; name a definition that has the property `_meta`"
    );
    let clash = error(Builder::v1().definition("Plan", json!({ "type": "string" })));
    assert!(
        clash.starts_with("build script: /$defs/Plan: already defined"),
        "{clash}"
    );
    let nothing = error(Builder::v1().member("ContentBlock", "x", "Nothing"));
    assert!(nothing.contains("no definition `Nothing`"), "{nothing}");
}

#[test]
fn derived_schemas_become_definitions() {
    let choice = json!({ "type": "string", "enum": ["yes", "no"] });
    let root = |title: &str, schema: Value| {
        let mut schema = schema;
        schema["$schema"] = "https://json-schema.org/draft/2020-12/schema".into();
        schema["title"] = title.into();
        schema["$defs"] = json!({ "Choice": choice });
        schema
    };
    let tree = json!({ "type": "object", "properties": {
        "choice": { "$ref": "#/$defs/Choice" },
        "children": { "type": "array", "items": { "$ref": "#" } },
    } });
    let overlay = export(
        &Document::v1().unwrap(),
        [
            root("Tree", tree),
            root("Leaf", json!({ "type": "string" })),
        ],
    )
    .unwrap();
    assert_eq!(
        overlay,
        json!({ "$defs": {
            "Tree": { "type": "object", "properties": {
                "choice": { "$ref": "#/$defs/Choice" },
                "children": { "type": "array", "items": { "$ref": "#/$defs/Tree" } },
            } },
            "Choice": choice,
            "Leaf": { "type": "string" },
        } })
    );
}

#[test]
fn derived_schemas_that_make_no_overlay() {
    let document = Document::v1().unwrap();
    let error = |schemas: Vec<Value>| export(&document, schemas).unwrap_err().to_string();
    assert_eq!(
        error(vec![json!({ "type": "string" })]),
        "exported schemas: /0/title: the schema has no name; give the type's name as its `title`"
    );
    let two = ["string", "integer"].map(|kind| json!({ "title": "Id", "type": kind }));
    assert_eq!(
        error(two.into()),
        "exported schemas: /1: two types are called `Id` and differ; rename one of them"
    );
    assert_eq!(
        error(vec![json!(true)]),
        "exported schemas: /0: not an object; export the root schema of a type"
    );
}

#[test]
fn types_of_the_protocol_that_come_along_are_left_out() {
    let document = Document::v1().unwrap();
    let known = document.def("SessionId").unwrap().clone();
    let export = |id: Value| {
        let schema = json!({
            "title": "Hint",
            "type": "object",
            "properties": { "session": { "$ref": "#/$defs/SessionId" } },
            "$defs": { "SessionId": id },
        });
        export(&document, [schema]).unwrap()
    };
    let names = |overlay: &Value| -> Vec<String> {
        overlay["$defs"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect()
    };
    let overlay = export(known);
    assert_eq!(names(&overlay), ["Hint"]);
    assert!(
        document
            .clone()
            .overlay("ours", &overlay.to_string())
            .is_ok()
    );
    // One that says something else is not silently taken for it.
    let overlay = export(json!({ "type": "integer" }));
    assert_eq!(names(&overlay), ["Hint", "SessionId"]);
    assert!(
        document
            .clone()
            .overlay("ours", &overlay.to_string())
            .is_err()
    );
}

#[test]
fn schemas_for_schemars_are_written_on_demand() {
    let has = |builder: Builder| builder.generate().unwrap().contains("json_schemas!(");
    assert!(!has(Builder::v1()));
    assert!(has(Builder::v1().json_schemas()));
}
