//! Questions to clients of version 2, and their answers.

use acp_sdk::convert::convert_logged;
use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::{V1, V2, converted};

#[test]
fn permission_requests_become_valid_ones() {
    let mut asked = 0;
    for request in V1.values::<v1::RequestPermissionRequest>("RequestPermissionRequest") {
        let next: Option<v2::RequestPermissionRequest> = convert_logged(request.clone());
        let Some(next) = next else {
            assert!(request.options.is_empty());
            continue;
        };
        asked += 1;
        V2.params("client", "session/request_permission", &next);
    }
    assert!(asked > 0);
}

#[test]
fn a_tool_call_is_the_subject_of_a_permission() {
    let options = json!([{"optionId": "y", "name": "Yes", "kind": "allow_once", "_meta": {"a": 1}},
        {"optionId": "n", "name": "No", "kind": "_never"}]);
    let call = json!({"toolCallId": "c", "title": "Edit a", "status": "pending",
        "_meta": {"b": 2}});
    let request = |call: &Value| -> v1::RequestPermissionRequest {
        let request = json!({"sessionId": "s", "toolCall": call, "options": options,
            "_meta": {"c": 3}});
        serde_json::from_value(request).unwrap()
    };
    let asked = |call: &Value| -> v2::RequestPermissionRequest { converted(request(call)) };
    let next = asked(&call);
    let next = V2.params("client", "session/request_permission", &next);
    let expected = json!({"sessionId": "s", "title": "Edit a", "options": options,
        "subject": {"type": "tool_call", "toolCall": call}, "_meta": {"c": 3}});
    assert_eq!(next, expected);
    let title = |call: Value| asked(&call).title;
    assert_eq!(title(json!({"toolCallId": "c", "name": "edit"})), "edit");
    assert_eq!(title(json!({"toolCallId": "c"})), "Allow this tool call?");
}

fn answer(response: Value) -> Value {
    let response: v2::RequestPermissionResponse = serde_json::from_value(response).unwrap();
    let next: v1::RequestPermissionResponse = converted(response);
    serde_json::to_value(next).unwrap()
}

#[test]
fn answers_to_permission_requests_are_kept() {
    for response in [
        json!({"outcome": {"outcome": "selected", "optionId": "y", "_meta": {"a": 1}},
            "_meta": {"b": 2}}),
        json!({"outcome": {"outcome": "cancelled"}}),
        json!({"outcome": {"outcome": "_later", "minutes": 5}}),
    ] {
        assert_eq!(answer(response.clone()), response);
    }
}

#[test]
fn elicitations_become_valid_ones() {
    let mut asked = 0;
    for request in V1.values::<v1::CreateElicitationRequest>("CreateElicitationRequest") {
        let next: Option<v2::CreateElicitationRequest> = convert_logged(request);
        if let Some(next) = next {
            asked += 1;
            V2.params("client", "elicitation/create", &next);
        }
    }
    assert!(asked > 100, "{asked}");
    // Sent as it is.
    type Complete = v1::CompleteElicitationNotification;
    for complete in V1.values::<Complete>("CompleteElicitationNotification") {
        V2.params("client", "elicitation/complete", &complete);
    }
}

fn elicit(request: &Value) -> Option<Value> {
    let request: v1::CreateElicitationRequest = serde_json::from_value(request.clone()).unwrap();
    let request: v2::CreateElicitationRequest = convert_logged(request)?;
    Some(V2.params("client", "elicitation/create", &request))
}

#[test]
fn forms_and_links_keep_their_members() {
    let form = json!({"sessionId": "s", "toolCallId": "c", "mode": "form", "message": "m",
        "_meta": {"a": 1}, "requestedSchema": {"type": "object", "title": "t",
            "required": ["color"], "_meta": {"b": 2}, "properties": {
                "color": {"type": "string", "enum": ["red"], "default": "red"},
                "many": {"type": "array", "items": {"type": "string", "enum": ["x"]}},
                "dial": {"type": "_dial", "max": 5}}}});
    assert_eq!(elicit(&form), Some(form));
    let link = json!({"requestId": 5, "mode": "url", "message": "m", "elicitationId": "e",
        "url": "https://a.example/"});
    assert_eq!(elicit(&link), Some(link));
    let null = json!({"requestId": null, "mode": "url", "message": "m", "elicitationId": "e",
        "url": "https://a.example/"});
    assert_eq!(elicit(&null), None);
    let bare = json!({"sessionId": "s", "mode": "form", "message": "m", "requestedSchema": {}});
    let schema = &elicit(&bare).unwrap()["requestedSchema"];
    assert_eq!(*schema, json!({"type": "object", "properties": {}}));
}

#[test]
fn a_choice_among_nothing_cannot_be_asked() {
    for field in [
        json!({"type": "string", "enum": []}),
        json!({"type": "string", "oneOf": []}),
        json!({"type": "array", "items": {"type": "string", "enum": []}}),
        json!({"type": "array", "items": {"anyOf": []}}),
    ] {
        let form = json!({"sessionId": "s", "mode": "form", "message": "m",
            "requestedSchema": {"type": "object", "properties": {"a": field}}});
        assert_eq!(elicit(&form), None, "{form}");
    }
}

#[test]
fn answers_to_elicitations_become_valid_ones() {
    for response in V2.values::<v2::CreateElicitationResponse>("CreateElicitationResponse") {
        let next: v1::CreateElicitationResponse = converted(response.clone());
        assert_eq!(next.meta, response.meta);
        if !matches!(next.action, v1::ElicitationAction::Unknown(_)) {
            V1.result("client", "elicitation/create", &next);
        }
    }
}

#[test]
fn values_that_version_1_does_not_have_are_left_out() {
    let response = json!({"action": "accept", "_meta": {"a": 1}, "content": {"text": "a",
        "whole": 1, "part": 0.5, "flag": true, "list": ["a"], "none": null, "object": {}}});
    let response: v2::CreateElicitationResponse = serde_json::from_value(response).unwrap();
    let next: v1::CreateElicitationResponse = converted(response);
    let next = serde_json::to_value(next).unwrap();
    let expected = json!({"action": "accept", "_meta": {"a": 1}, "content": {"text": "a",
        "whole": 1, "part": 0.5, "flag": true, "list": ["a"]}});
    assert_eq!(next, expected);
    for action in ["decline", "cancel", "_later"] {
        let response = json!({"action": action});
        let next: v2::CreateElicitationResponse = serde_json::from_value(response.clone()).unwrap();
        let next: v1::CreateElicitationResponse = converted(next);
        let next = serde_json::to_value(next).unwrap();
        assert_eq!(next, response);
    }
}
