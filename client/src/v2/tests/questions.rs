//! Permission requests, elicitations and their answers.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::{converted, read, written};

fn permission(request: Value) -> v1::RequestPermissionRequest {
    converted(read::<v2::RequestPermissionRequest>(request))
}

fn asked(subject: Value) -> Value {
    let request = json!({"sessionId": "s", "title": "May I?", "subject": subject,
        "options": [{"optionId": "o", "name": "Yes", "kind": "allow_once"}], "_meta": {"a": 1}});
    let mut asked = written(&permission(request));
    let options = json!([{"optionId": "o", "name": "Yes", "kind": "allow_once"}]);
    assert_eq!(
        (&asked["sessionId"], &asked["options"]),
        (&json!("s"), &options)
    );
    asked["toolCall"].take()
}

#[test]
fn a_question_about_a_tool_call_is_one() {
    let subject = json!({"type": "tool_call", "toolCall": {"toolCallId": "c", "kind": "edit",
        "title": "Edit it", "content": [{"type": "diff",
            "changes": [{"operation": "delete", "path": "/a"}]}]}});
    let expected = json!({"toolCallId": "c", "kind": "edit", "title": "Edit it",
        "content": [{"type": "diff", "path": "/a", "oldText": "", "newText": ""}]});
    assert_eq!(asked(subject), expected);
    let bare = json!({"type": "tool_call", "toolCall": {"toolCallId": "c"}});
    assert_eq!(asked(bare), json!({"toolCallId": "c", "title": "May I?"}));
}

#[test]
fn a_question_about_a_command_is_a_tool_call_that_runs_it() {
    let subject = json!({"type": "command", "command": "rm -rf /", "cwd": "/w",
        "terminalId": "t"});
    let expected = json!({"toolCallId": "t", "kind": "execute", "title": "May I?",
        "rawInput": {"command": "rm -rf /", "cwd": "/w"}});
    assert_eq!(asked(subject), expected);
}

#[test]
fn a_question_about_something_else_has_no_kind() {
    let call = asked(json!({"type": "_network", "host": "example.com"}));
    assert_eq!(call["title"], "May I?");
    assert_eq!(call["rawInput"]["host"], "example.com");
    assert_eq!(call.get("kind"), None);
    let call = asked(Value::Null);
    assert_eq!((&call["title"], call.get("kind")), (&json!("May I?"), None));
}

#[test]
fn a_description_stands_before_the_content() {
    let request = json!({"sessionId": "s", "title": "May I?", "description": "Really",
        "options": [{"optionId": "o", "name": "Yes", "kind": "_maybe"}]});
    let asked = written(&permission(request));
    let content = json!([{"type": "content", "content": {"type": "text", "text": "Really"}}]);
    assert_eq!(asked["toolCall"]["content"], content);
    assert_eq!(asked["options"][0]["kind"], "_maybe");
}

#[test]
fn answers_keep_their_meaning() {
    let answer = |outcome| {
        let answer = v1::RequestPermissionResponse::new(outcome);
        written(&converted::<_, v2::RequestPermissionResponse>(answer))
    };
    let selected = v1::SelectedPermissionOutcome::new("o");
    let expected = json!({"outcome": {"outcome": "selected", "optionId": "o"}});
    assert_eq!(
        answer(v1::RequestPermissionOutcome::Selected(selected)),
        expected
    );
    let expected = json!({"outcome": {"outcome": "cancelled"}});
    assert_eq!(answer(v1::RequestPermissionOutcome::Cancelled), expected);
}

#[test]
fn elicitations_have_the_same_form() {
    for request in [
        json!({"sessionId": "s", "toolCallId": "c", "mode": "form", "message": "Who?",
            "requestedSchema": {"type": "object", "required": ["name"], "properties":
                {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer"}}}}),
        json!({"requestId": 7, "mode": "url", "message": "Pay", "elicitationId": "e",
            "url": "https://example.com"}),
        json!({"sessionId": "s", "mode": "_voice", "message": "Speak", "depth": 3}),
    ] {
        let asked: v2::CreateElicitationRequest = read(request.clone());
        let asked: v1::CreateElicitationRequest = converted(asked);
        assert_eq!(written(&asked), request);
    }
    for answer in [
        json!({"action": "accept", "content": {"name": "Ada", "age": 3, "tags": ["a"]}}),
        json!({"action": "decline"}),
        json!({"action": "cancel"}),
    ] {
        let next: v1::CreateElicitationResponse = read(answer.clone());
        let next: v2::CreateElicitationResponse = converted(next);
        assert_eq!(written(&next), answer);
    }
}
