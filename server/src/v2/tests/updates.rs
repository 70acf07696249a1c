//! Each kind of event, as an update of version 2.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::{V1, V2};
use crate::event::{Event, EventBody, QuestionId, TurnEvent, TurnId};
use crate::v2::updates::{state, update};

fn encode(body: EventBody) -> Option<Value> {
    let update = update(Event {
        number: 7,
        time: None,
        body,
    })?;
    let params = v2::UpdateSessionNotification::new("s", update);
    Some(V2.params("client", "session/update", &params)["update"].clone())
}

/// Encodes an update of version 1 from its JSON.
fn update_of(update: Value) -> Option<Value> {
    encode(EventBody::Update(serde_json::from_value(update).unwrap()))
}

fn turn(event: TurnEvent) -> Option<Value> {
    encode(EventBody::Turn(event))
}

#[test]
fn every_update_of_version_1_becomes_a_valid_one() {
    let mut kinds = std::collections::BTreeSet::new();
    for update in V1.values::<v1::SessionUpdate>("SessionUpdate") {
        if let Some(update) = encode(EventBody::Update(update)) {
            kinds.insert(update["sessionUpdate"].as_str().unwrap().to_owned());
        }
    }
    let expected = [
        "agent_message_chunk",
        "agent_thought_chunk",
        "available_commands_update",
        "compaction_summary_chunk",
        "compaction_update",
        "config_option_update",
        "notice",
        "plan_update",
        "session_info_update",
        "tool_call_update",
        "usage_update",
        "user_message_chunk",
    ];
    for kind in expected {
        assert!(kinds.contains(kind), "{kind} of {kinds:?}");
    }
}

#[test]
fn a_chunk_keeps_its_id_and_meta() {
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "_meta": {"a": 1},
        "content": {"type": "text", "text": "ü", "_meta": {"b": 2},
            "annotations": {"audience": ["user", "_x"], "priority": 0.5}}});
    assert_eq!(update_of(chunk.clone()), Some(chunk));
}

#[test]
fn a_chunk_without_an_id_gets_one() {
    let chunk = json!({"sessionUpdate": "user_message_chunk",
        "content": {"type": "text", "text": "a"}});
    assert_eq!(update_of(chunk).unwrap()["messageId"], "event-7");
}

#[test]
fn members_that_version_2_refuses_are_left_out() {
    let link = json!({"type": "resource_link", "name": "a", "uri": "file:///a", "size": -1,
        "annotations": {"priority": 7.0}});
    let chunk = json!({"sessionUpdate": "agent_message_chunk", "content": link});
    let link = &update_of(chunk).unwrap()["content"];
    assert_eq!(
        (&link["size"], &link["annotations"]["priority"]),
        (&Value::Null, &json!(1.0))
    );
    let notice = json!({"sessionUpdate": "notice", "severity": "info", "title": ""});
    assert_eq!(update_of(notice), None);
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
        "locations": [{"path": "/a", "line": 0}, {"path": "/a", "line": 1}]});
    let expected = json!([{"path": "/a"}, {"path": "/a", "line": 1}]);
    assert_eq!(update_of(call).unwrap()["locations"], expected);
}

#[test]
fn a_new_tool_call_is_an_update() {
    let call = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit",
    "name": "edit", "kind": "edit", "status": "_waiting", "rawInput": {"n": 1},
    "_meta": {"a": 1}, "locations": [{"path": "/a", "line": 3, "_meta": {"b": 2}}],
    "content": [
        {"type": "content", "content": {"type": "text", "text": "a"}, "_meta": {"c": 3}},
        {"type": "terminal", "terminalId": "t"},
        {"type": "_chart", "points": [1]},
    ]});
    let mut expected = call.clone();
    expected["sessionUpdate"] = json!("tool_call_update");
    assert_eq!(update_of(call), Some(expected));
    let least = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Edit"});
    let expected = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "Edit"});
    assert_eq!(update_of(least), Some(expected));
}

#[test]
fn an_update_of_a_tool_call_sets_no_more_than_before() {
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
        "status": "completed", "content": [], "rawOutput": null});
    let expected = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
        "status": "completed", "content": []});
    assert_eq!(update_of(update), Some(expected));
}

#[test]
fn a_diff_is_a_change_with_its_patch() {
    let diff = json!({"type": "diff", "path": "/a", "oldText": "1\n", "newText": "2\n",
        "_meta": {"a": 1}});
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [diff]});
    let text = "diff --git /a /a\n--- /a\n+++ /a\n@@ -1,1 +1,1 @@\n-1\n+2\n";
    let expected = json!([{"type": "diff",
        "changes": [{"operation": "modify", "path": "/a", "fileType": "text"}],
        "patch": {"format": "git_patch", "text": text}, "_meta": {"a": 1}}]);
    assert_eq!(update_of(call).unwrap()["content"], expected);
    let diff = json!({"type": "diff", "path": "/a", "newText": "2\n"});
    let call = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [diff]});
    let change = &update_of(call).unwrap()["content"][0]["changes"][0];
    assert_eq!(change["operation"], "add");
}

#[test]
fn a_plan_has_an_id() {
    let entry = json!({"content": "a", "priority": "high", "status": "cancelled",
        "_meta": {"a": 1}});
    let plan = json!({"sessionUpdate": "plan", "entries": [entry], "_meta": {"b": 2}});
    let expected = json!({"sessionUpdate": "plan_update", "_meta": {"b": 2},
        "plan": {"type": "items", "planId": "plan", "entries": [entry]}});
    assert_eq!(update_of(plan), Some(expected));
}

#[test]
fn commands_and_their_input_have_types() {
    let command = json!({"name": "go", "description": "Goes", "input": {"hint": "where"}});
    let commands = json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [command], "_meta": {"a": 1}});
    let expected = json!({"sessionUpdate": "available_commands_update", "_meta": {"a": 1},
        "availableCommands": [{"type": "command", "name": "go", "description": "Goes",
            "input": {"type": "text", "hint": "where"}}]});
    assert_eq!(update_of(commands), Some(expected));
}

#[test]
fn config_options_have_new_names() {
    let grouped = json!({"id": "model", "name": "Model", "category": "model", "type": "select",
        "currentValue": "a", "options": [{"group": "g", "name": "G",
            "options": [{"value": "a", "name": "A"}]}, {"group": "h", "name": "H", "options": []}]});
    let flag = json!({"id": "web", "name": "Web", "type": "boolean", "currentValue": true,
        "_meta": {"a": 1}});
    let empty = json!({"id": "none", "name": "None", "type": "select", "currentValue": "a",
        "options": []});
    let unknown = json!({"id": "dial", "name": "Dial", "type": "_dial", "currentValue": 3});
    let update = json!({"sessionUpdate": "config_option_update",
        "configOptions": [grouped, flag, empty, unknown]});
    let expected = json!([
        {"configId": "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": "a", "options": [{"groupId": "g", "name": "G",
                "options": [{"value": "a", "name": "A"}]}]},
        {"configId": "web", "name": "Web", "type": "boolean", "currentValue": true,
            "_meta": {"a": 1}},
        {"configId": "dial", "name": "Dial", "type": "_dial", "currentValue": 3},
    ]);
    assert_eq!(update_of(update).unwrap()["configOptions"], expected);
}

#[test]
fn a_mode_is_reported_with_the_config_options_only() {
    let mode = json!({"sessionUpdate": "current_mode_update", "currentModeId": "plan"});
    assert_eq!(update_of(mode), None);
}

#[test]
fn kinds_with_the_same_form_stay_as_they_are() {
    for update in [
        json!({"sessionUpdate": "session_info_update", "title": null, "_meta": {"a": 1}}),
        json!({"sessionUpdate": "session_info_update", "updatedAt": "2026-01-31T09:30:00Z"}),
        json!({"sessionUpdate": "usage_update", "used": 1, "size": 2,
            "cost": {"amount": 0.5, "currency": "EUR", "_meta": {"a": 1}}, "_meta": {"b": 2}}),
        json!({"sessionUpdate": "notice", "severity": "_odd", "title": "a", "description": "b"}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed",
            "summary": [{"type": "text", "text": "a"}], "error": null, "_meta": null}),
        json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c",
            "content": {"type": "text", "text": "a"}, "_meta": {"a": 1}}),
    ] {
        assert_eq!(update_of(update.clone()), Some(update));
    }
}

#[test]
fn unknown_kinds_stay_as_they_are() {
    let unknown = json!({"sessionUpdate": "_score", "points": [1, {"a": null}]});
    assert_eq!(update_of(unknown.clone()), Some(unknown));
    // A kind that only version 2 has.
    let terminal = json!({"sessionUpdate": "terminal_update", "terminalId": "t", "cwd": "/w"});
    assert_eq!(update_of(terminal.clone()), Some(terminal));
    let incomplete = json!({"sessionUpdate": "terminal_update", "cwd": "/w"});
    assert_eq!(update_of(incomplete), None);
}

#[test]
fn turns_are_states() {
    let state = |text: &str| Some(json!({"sessionUpdate": "state_update", "state": text}));
    let id = TurnId(1);
    let started = TurnEvent::TurnStarted {
        turn: id,
        client: None,
        prompt: None,
        model: None,
    };
    assert_eq!(turn(started), state("running"));
    let ended = |stop_reason, error: Option<&str>| {
        turn(TurnEvent::TurnEnded {
            turn: id,
            stop_reason,
            error: error.map(str::to_owned),
            usage: None,
        })
        .unwrap()
    };
    for text in [
        "end_turn",
        "max_tokens",
        "max_turn_requests",
        "refusal",
        "cancelled",
        "_odd",
    ] {
        let update = ended(Some(v1::StopReason::from(text)), None);
        let expected = json!({"sessionUpdate": "state_update", "state": "idle",
            "stopReason": text});
        assert_eq!(update, expected);
    }
    let failed = json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "error",
        "error": {"code": -32603, "message": "no model"}});
    assert_eq!(ended(None, Some("no model")), failed);
    let unspecified = json!({"sessionUpdate": "state_update", "state": "idle",
        "stopReason": "error"});
    assert_eq!(ended(None, None), unspecified);
    assert_eq!(
        ended(Some(v1::StopReason::from("error")), None),
        unspecified
    );
}

#[test]
fn questions_are_states() {
    let state = |text: &str| Some(json!({"sessionUpdate": "state_update", "state": text}));
    let question = QuestionId(2);
    let request = json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": []});
    let request = serde_json::from_value(request).unwrap();
    let asked = TurnEvent::PermissionAsked {
        question,
        request,
        child: None,
    };
    assert_eq!(turn(asked), state("requires_action"));
    let outcome = None;
    let answered = TurnEvent::PermissionAnswered {
        question,
        outcome,
        by: None,
        child: None,
    };
    assert_eq!(turn(answered), state("running"));
    let request = json!({"sessionId": "s", "mode": "url", "message": "a", "elicitationId": "e",
        "url": "https://a.example/"});
    let request = serde_json::from_value(request).unwrap();
    let asked = TurnEvent::ElicitationAsked { question, request };
    assert_eq!(turn(asked), state("requires_action"));
    let action = None;
    let answered = TurnEvent::ElicitationAnswered { question, action };
    assert_eq!(turn(answered), state("running"));
}

#[test]
fn an_event_of_a_later_version_is_not_sent() {
    let event = Event::parse(1, r#"{"event":"of_tomorrow"}"#);
    assert_eq!(encode(event.body), None);
}

#[test]
fn a_client_that_attaches_gets_the_state() {
    for (turn, question, expected) in [
        (false, false, "idle"),
        (true, false, "running"),
        (true, true, "requires_action"),
    ] {
        let params = v2::UpdateSessionNotification::new("s", state(turn, question));
        let params = V2.params("client", "session/update", &params);
        assert_eq!(params["update"]["state"], expected);
    }
}
