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
    validator.params(Side::CLIENT, "session/update", &params)
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
    let checked = validator.params(Side::AGENT, "session/new", &params);
    assert_eq!(paths(checked), ["/mcpServers/0/command"]);
}

#[test]
fn a_wrong_item_of_a_list_of_one_form_or_another_is_named() {
    let validator = Validator::v1().expect("v1 is valid");
    for (options, path) in [
        (json!([{"value": "a", "name": 1}]), "/0/name"),
        (json!([{"name": "A"}]), "/0"),
        (
            json!([{"group": "g", "name": "G", "options": [{"value": 1, "name": "A"}]}]),
            "/0/options/0/value",
        ),
        (json!([{"name": "G", "options": []}]), "/0"),
        (
            json!([{"value": "a", "name": "A"}, {"value": "b", "name": "B"}, {"value": "c"}]),
            "/2",
        ),
        (json!([7]), ""),
        (json!("all"), ""),
    ] {
        let option = json!({
            "id": "o", "name": "O", "type": "select", "currentValue": "a", "options": options,
        });
        let result = json!({ "configOptions": [option] });
        let checked = validator.result(Side::AGENT, "session/set_config_option", &result);
        let expected = format!("/configOptions/0/options{path}");
        assert_eq!(paths(checked), [expected], "{options}");
    }
}

#[test]
fn a_wrong_field_of_a_union_of_objects_without_tags_is_named() {
    let validator = Validator::v1().expect("v1 is valid");
    for (resource, path) in [
        (json!({"uri": 1, "text": "t"}), "/uri"),
        (json!({"uri": "u", "blob": 1}), "/blob"),
        (json!({"uri": "u", "blob": "b", "mimeType": 1}), "/mimeType"),
        (json!({"uri": "u"}), ""),
    ] {
        let block = json!({"type": "resource", "resource": resource});
        let params = json!({"sessionId": "s", "prompt": [block]});
        let checked = validator.params(Side::AGENT, "session/prompt", &params);
        assert_eq!(paths(checked), [format!("/prompt/0/resource{path}")]);
    }
}

#[test]
fn a_known_type_with_a_wrong_value_is_not_of_the_branch_without_tag() {
    let validator = Validator::v1().expect("v1 is valid");
    let check = |value: Value| {
        let mut params = json!({"sessionId": "s", "configId": "c"});
        if let (Some(params), Value::Object(more)) = (params.as_object_mut(), value) {
            params.extend(more);
        }
        validator.params(Side::AGENT, "session/set_config_option", &params)
    };
    assert_eq!(
        check(json!({"type": "boolean", "value": true})),
        Checked::Valid
    );
    assert_eq!(
        check(json!({"type": "future", "value": "v"})),
        Checked::Valid
    );
    assert_eq!(check(json!({"value": "v"})), Checked::Valid);
    let wrong = json!({"type": "boolean", "value": "v"});
    assert_eq!(paths(check(wrong)), ["/value"]);
}

/// The branch without a tag has no say about members that it does not know, and
/// `type` is one of those: the schema reads such a method as one of the agent's,
/// as the official types do. An unknown type is therefore no violation, as long
/// as the members of that branch are there.
#[test]
fn an_unknown_type_is_legal_where_a_branch_has_no_tag() {
    let validator = Validator::v1().expect("v1 is valid");
    let result = |method: Value| {
        let result = json!({"protocolVersion": 1, "authMethods": [method]});
        validator.result(Side::AGENT, "initialize", &result)
    };
    let unknown = json!({"type": "dance", "id": "d", "name": "Dance"});
    assert_eq!(result(unknown), Checked::Valid);
    let incomplete = json!({"type": "dance", "id": "d"});
    assert_eq!(paths(result(incomplete)), ["/authMethods/0"]);
    let wrong = json!({"type": "terminal", "id": "d", "name": "Dance", "args": 1});
    assert_eq!(paths(result(wrong)), ["/authMethods/0/args"]);
}

#[test]
fn the_form_of_a_method_follows_from_the_id() {
    let text = r#"{"$defs": {
        "Error": {},
        "RelayRequest": {"x-method": "relay", "x-side": "agent", "required": ["a"]},
        "RelayResponse": {"x-method": "relay", "x-side": "agent"},
        "RelayNotification": {"x-method": "relay", "x-side": "agent", "required": ["b"]}
    }}"#;
    let document = Document::parse("forms.json", text).expect("an object");
    let validator = Validator::new(&document).expect("nothing is wrong");
    let check = |message: Value| validator.message(Side::AGENT, None, &message);
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "relay", "params": {"a": 1}});
    assert_eq!(check(request), Checked::Valid);
    let notification = json!({"jsonrpc": "2.0", "method": "relay", "params": {"b": 1}});
    assert_eq!(check(notification), Checked::Valid);
    let wrong = json!({"jsonrpc": "2.0", "method": "relay", "params": {"a": 1}});
    assert_eq!(paths(check(wrong)), ["/params"]);
    let params = json!({"b": 1});
    assert_eq!(paths(validator.params(Side::AGENT, "relay", &params)), [""]);
    assert_eq!(
        validator.notification(Side::AGENT, "relay", &params),
        Checked::Valid
    );
    assert_eq!(
        validator.notification(Side::CLIENT, "relay", &params),
        Checked::Unknown
    );
}

#[test]
fn a_wrong_field_behind_object_or_null_is_named() {
    let validator = Validator::v1().expect("v1 is valid");
    let params = json!({"protocolVersion": 1, "clientInfo": {"name": 1, "version": "1"}});
    let checked = validator.params(Side::AGENT, "initialize", &params);
    assert_eq!(paths(checked), ["/clientInfo/name"]);
}

#[test]
fn missing_fields_and_ranges_are_found() {
    let validator = Validator::v1().expect("v1 is valid");
    assert_eq!(
        paths(validator.params(Side::AGENT, "session/prompt", &json!({"prompt": []}))),
        [""]
    );
    let version = json!({"protocolVersion": 70_000});
    assert_eq!(
        paths(validator.params(Side::AGENT, "initialize", &version)),
        ["/protocolVersion"]
    );
}

#[test]
fn unknown_methods_are_unknown_and_extensions_are_free() {
    let validator = Validator::v1().expect("v1 is valid");
    assert_eq!(
        validator.params(Side::AGENT, "session/dance", &json!({})),
        Checked::Unknown
    );
    assert_eq!(
        validator.params(Side::CLIENT, "session/prompt", &json!({})),
        Checked::Unknown
    );
    assert_eq!(
        validator.params(Side::AGENT, "_x/y", &json!([1])),
        Checked::Valid
    );
}

#[test]
fn responses_are_checked_by_the_method_they_answer() {
    let validator = Validator::v1().expect("v1 is valid");
    let good = json!({"jsonrpc": "2.0", "id": 1, "result": {"stopReason": "end_turn"}});
    let check = |message: &Value| validator.message(Side::CLIENT, Some("session/prompt"), message);
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
        let checked = validator.message(Side::AGENT, None, &message);
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
