//! Each way a message can fail, and that the violation names the field.

use serde_json::{Value, json};

use super::{Checked, Validator};
use crate::{Document, Side};

#[track_caller]
fn paths(checked: Checked) -> Vec<String> {
    match checked {
        Checked::Invalid(violations) => violations.into_iter().map(|one| one.path).collect(),
        other => panic!("expected violations, got {other:?}"),
    }
}

fn update(update: &Value) -> Checked {
    let params = json!({"sessionId": "s", "update": update});
    let validator = Validator::v1().expect("v1 is valid");
    validator.params(Side::Client, "session/update", &params)
}

#[test]
fn a_valid_update_passes() {
    let text =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "hi"}});
    assert_eq!(update(&text), Checked::Valid);
}

#[test]
fn a_wrong_type_inside_two_unions_is_named() {
    let text =
        json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": 1}});
    assert_eq!(paths(update(&text)), ["/update/content/text"]);
}

#[test]
fn an_unknown_tag_is_named() {
    let unknown = json!({"sessionUpdate": "dance"});
    assert_eq!(paths(update(&unknown)), ["/update/sessionUpdate"]);
}

#[test]
fn a_missing_tag_is_named() {
    let missing = json!({"sessionUpdate": "agent_message_chunk", "content": {"text": "hi"}});
    assert_eq!(paths(update(&missing)), ["/update/content/type"]);
}

#[test]
fn a_wrong_field_of_the_branch_without_tag_is_named() {
    let validator = Validator::v1().expect("v1 is valid");
    let server = json!({"name": "m", "command": 1, "args": [], "env": []});
    let params = json!({"cwd": "/", "mcpServers": [server]});
    let checked = validator.params(Side::Agent, "session/new", &params);
    assert_eq!(paths(checked), ["/mcpServers/0/command"]);
}

#[test]
fn a_wrong_field_behind_object_or_null_is_named() {
    let validator = Validator::v1().expect("v1 is valid");
    let params = json!({"protocolVersion": 1, "clientInfo": {"name": 1, "version": "1"}});
    let checked = validator.params(Side::Agent, "initialize", &params);
    assert_eq!(paths(checked), ["/clientInfo/name"]);
}

#[test]
fn missing_fields_and_ranges_are_found() {
    let validator = Validator::v1().expect("v1 is valid");
    assert_eq!(
        paths(validator.params(Side::Agent, "session/prompt", &json!({"prompt": []}))),
        [""]
    );
    let version = json!({"protocolVersion": 70_000});
    assert_eq!(
        paths(validator.params(Side::Agent, "initialize", &version)),
        ["/protocolVersion"]
    );
}

#[test]
fn unknown_methods_are_unknown_and_extensions_are_free() {
    let validator = Validator::v1().expect("v1 is valid");
    assert_eq!(
        validator.params(Side::Agent, "session/dance", &json!({})),
        Checked::Unknown
    );
    assert_eq!(
        validator.params(Side::Client, "session/prompt", &json!({})),
        Checked::Unknown
    );
    assert_eq!(
        validator.params(Side::Agent, "_x/y", &json!([1])),
        Checked::Valid
    );
}

#[test]
fn responses_are_checked_by_the_method_they_answer() {
    let validator = Validator::v1().expect("v1 is valid");
    let good = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
    let check = |message: &Value| validator.message(Side::Client, Some("session/prompt"), message);
    assert_eq!(check(&good), Checked::Valid);
    let bad = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "bored"}});
    assert_eq!(paths(check(&bad)), ["/result/stopReason"]);
    let error = json!({"jsonrpc": "2.0", "id": 1, "error": {"code": "x", "message": "m"}});
    assert_eq!(paths(check(&error)), ["/error/code"]);
}

#[test]
fn envelopes_follow_json_rpc() {
    let validator = Validator::v1().expect("v1 is valid");
    let cases = [
        (json!([]), ""),
        (json!({"id": 1, "method": "initialize"}), "/jsonrpc"),
        (
            json!({"jsonrpc": "2.0", "id": 1.5, "method": "initialize"}),
            "/id",
        ),
        (json!({"jsonrpc": "2.0", "method": 1}), "/method"),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": 1}),
            "/params",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "result": 1, "error": {}}),
            "",
        ),
        (json!({"jsonrpc": "2.0", "result": 1}), "/id"),
        (
            json!({"jsonrpc": "2.0", "method": "session/prompt", "params": {}}),
            "/id",
        ),
        (
            json!({"jsonrpc": "2.0", "id": 1, "method": "session/cancel", "params": {}}),
            "/id",
        ),
    ];
    for (message, path) in cases {
        let checked = validator.message(Side::Agent, None, &message);
        assert_eq!(paths(checked), [path], "{message}");
    }
}

#[test]
fn a_dangling_reference_is_named() {
    let text = r##"{"$defs": {"Error": {"$ref": "#/$defs/Gone"}}}"##;
    let document = Document::parse("bad.json", text).expect("an object");
    let error = Validator::new(&document)
        .expect_err("`Gone` does not exist")
        .to_string();
    assert!(
        error.contains("bad.json: /$defs/Error/$ref") && error.contains("Gone"),
        "{error}"
    );
}
