//! Sequences of updates.

use acp_sdk::{v1, v2};
use serde_json::{Value, json};

use super::super::Converter;
use super::{read, written};

fn convert(converter: &mut Converter, update: Value) -> Vec<v1::SessionUpdate> {
    let update: v2::SessionUpdate = read(update);
    converter.update(update).into_iter().collect()
}

/// Converts one update; returns the results as JSON.
fn converted(converter: &mut Converter, update: Value) -> Vec<Value> {
    convert(converter, update).iter().map(written).collect()
}

fn alone(update: Value) -> Vec<Value> {
    converted(&mut Converter::default(), update)
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// A chunk of a tool call's content.
fn piece(id: &str, said: &str) -> Value {
    json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": id,
        "content": {"type": "content", "content": text(said)}})
}

fn call(id: &str) -> Value {
    json!({"sessionUpdate": "tool_call_update", "toolCallId": id})
}

/// Returns the texts in the content of a tool call update.
fn contents(update: &Value) -> Option<Vec<&str>> {
    let items = update.get("content")?.as_array()?;
    items
        .iter()
        .map(|item| item["content"]["text"].as_str())
        .collect()
}

#[test]
fn messages_are_chunks() {
    let chunk = json!({"sessionUpdate": "agent_thought_chunk", "messageId": "m",
        "content": {"type": "text", "text": "Hm", "_meta": {"a": 1}}, "_meta": {"b": 2}});
    assert_eq!(alone(chunk.clone()), [chunk]);
    let mut converter = Converter::default();
    let whole = |content: Value| json!({"sessionUpdate": "agent_message", "messageId": "m", "content": content});
    let chunk = |said: &str| json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": text(said)});
    let first = converted(&mut converter, whole(json!([text("Hel"), text("lo")])));
    assert_eq!(first, [chunk("Hel"), chunk("lo")]);
    assert_eq!(
        converted(&mut converter, whole(json!([text("Hello")]))),
        [] as [Value; 0]
    );
    assert_eq!(
        converted(&mut converter, whole(json!([text("Hello!")]))),
        [chunk("!")]
    );
    let other = whole(json!([text("Bye")]));
    assert_eq!(
        converted(&mut converter, other.clone()),
        [other],
        "a replacement stays what it is"
    );
    assert_eq!(
        converted(&mut converter, whole(json!([text("Bye!")]))),
        [chunk("!")]
    );
    let cleared = whole(Value::Null);
    assert_eq!(converted(&mut converter, cleared.clone()), [cleared]);
    converter.restart();
    assert_eq!(
        converted(&mut converter, whole(json!([text("Bye")]))),
        [chunk("Bye")]
    );
}

#[test]
fn a_message_without_content_is_no_chunk() {
    let user = json!({"sessionUpdate": "user_message", "messageId": "m", "_meta": {"a": 1}});
    assert_eq!(alone(user.clone()), [user]);
    let marked = json!({"sessionUpdate": "user_message", "messageId": "m", "content": [text("a")],
        "_meta": {"a": 1}});
    let chunk = json!({"sessionUpdate": "user_message_chunk", "messageId": "m",
        "content": text("a"), "_meta": {"a": 1}});
    let mut converter = Converter::default();
    assert_eq!(converted(&mut converter, marked.clone()), [chunk]);
    assert_eq!(converted(&mut converter, marked.clone()), [marked]);
}

#[test]
fn what_only_version_2_has_stays_as_it_is() {
    for update in [
        json!({"sessionUpdate": "state_update", "state": "requires_action", "_meta": {"a": 1}}),
        json!({"sessionUpdate": "terminal_update", "terminalId": "t", "command": "ls",
            "output": {"data": "QQ=="}, "exitStatus": null}),
        json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": "QQ=="}),
        json!({"sessionUpdate": "plan_update", "plan": {"type": "_map", "planId": "p", "x": 1}}),
        json!({"sessionUpdate": "_mine", "depth": 3}),
    ] {
        let converted = convert(&mut Converter::default(), update.clone());
        assert!(
            matches!(converted.as_slice(), [v1::SessionUpdate::Unknown(_)]),
            "{update}"
        );
        assert_eq!(written(&converted[0]), update);
    }
}

#[test]
fn a_tool_call_is_announced_once() {
    let mut converter = Converter::default();
    let first = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "name": "read",
        "kind": "read", "status": "pending", "rawInput": {"path": "/a"},
        "locations": [{"path": "/a", "line": 3}], "_meta": {"a": 1}});
    let announced = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "name": "read",
        "title": "read", "kind": "read", "status": "pending", "rawInput": {"path": "/a"},
        "locations": [{"path": "/a", "line": 3}], "_meta": {"a": 1}});
    assert_eq!(converted(&mut converter, first), [announced]);
    let cleared = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": null,
        "kind": null, "status": "cancelled", "content": null, "locations": null, "rawInput": null});
    let expected = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "title": "",
        "kind": "other", "status": "cancelled", "content": [], "locations": [], "rawInput": null});
    assert_eq!(converted(&mut converter, cleared), [expected]);
    assert_eq!(converted(&mut converter, call("c")), [call("c")]);
}

#[test]
fn diffs_and_terminals_are_content_of_tool_calls() {
    let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c", "content": [
        {"type": "terminal", "terminalId": "t"},
        {"type": "diff", "changes": [
            {"operation": "move", "oldPath": "/a", "path": "/b"},
            {"operation": "add", "path": "/c"},
        ]},
        {"type": "_hologram", "depth": 3},
    ]});
    let expected = json!([
        {"type": "terminal", "terminalId": "t"},
        {"type": "diff", "path": "/a", "oldText": "", "newText": ""},
        {"type": "diff", "path": "/b", "oldText": "", "newText": ""},
        {"type": "diff", "path": "/c", "newText": ""},
        {"type": "_hologram", "depth": 3},
    ]);
    assert_eq!(alone(update)[0]["content"], expected);
}

#[test]
fn pieces_are_the_content_so_far() {
    let mut converter = Converter::default();
    converted(&mut converter, call("c"));
    let said = converted(&mut converter, piece("c", "one"));
    assert_eq!(contents(&said[0]), Some(vec!["one"]));
    let said = converted(&mut converter, piece("c", "two"));
    assert_eq!(contents(&said[0]), Some(vec!["one", "two"]));
    let mut replaced = call("c");
    replaced["content"] = json!([{"type": "content", "content": text("new")}]);
    converted(&mut converter, replaced);
    let said = converted(&mut converter, piece("c", "er"));
    assert_eq!(contents(&said[0]), Some(vec!["new", "er"]));
    // A tool call that was never announced.
    let said = converted(&mut converter, piece("d", "one"));
    assert_eq!(contents(&said[0]), Some(vec!["one"]));
}

#[test]
fn long_content_is_not_repeated_with_each_piece_and_never_cut() {
    let mut converter = Converter::default();
    let (mut updates, mut bytes) = (0, 0);
    let line = "x".repeat(36);
    for _ in 0..5000 {
        for update in converted(&mut converter, piece("c", &line)) {
            updates += 1;
            bytes += update.to_string().len();
        }
    }
    assert!(updates < 200, "{updates}");
    assert!(bytes < 20 * 5000 * 100, "{bytes}");
    // The next update contains all content.
    let mut other = Converter::default();
    for _ in 0..5000 {
        converted(&mut other, piece("c", &line));
    }
    let mut done = call("c");
    done["status"] = json!("completed");
    let done = converted(&mut converter, done);
    assert_eq!(contents(&done[0]).map(|texts| texts.len()), Some(5000));
    let idle = json!({"sessionUpdate": "state_update", "state": "idle"});
    let said = converted(&mut other, idle.clone());
    assert_eq!(contents(&said[0]).map(|texts| texts.len()), Some(5000));
    assert_eq!(said[1], idle);
    assert_eq!(converted(&mut other, idle.clone()), [idle]);
}

#[test]
fn content_is_remembered_within_bounds_and_the_rest_stays_as_it_is() {
    let mut converter = Converter::default();
    let long = "x".repeat(300 << 10);
    for _ in 0..3 {
        converted(&mut converter, piece("c", &long));
    }
    let said = converted(&mut converter, piece("c", &long));
    let raw = piece("c", &long);
    assert_eq!(said, [raw]);
    assert_eq!(
        converted(&mut converter, piece("c", "more")),
        [piece("c", "more")]
    );
    // Another call replaces it in the table; later chunks do not continue it.
    for id in ["d", "e", "f", "g"] {
        assert_eq!(
            contents(&converted(&mut converter, piece(id, &long))[0]).map(|all| all.len()),
            Some(1)
        );
    }
    assert_eq!(
        converted(&mut converter, piece("d", "more")),
        [piece("d", "more")]
    );
    let said = converted(&mut converter, piece("g", &long));
    assert_eq!(contents(&said[0]).map(|all| all.len()), Some(2));
    // A chunk after the end of the call does not continue it.
    let mut done = call("g");
    done["status"] = json!("failed");
    converted(&mut converter, done);
    assert_eq!(
        converted(&mut converter, piece("g", "more")),
        [piece("g", "more")]
    );
}

#[test]
fn plans_usage_and_settings_keep_what_they_say() {
    let entry = json!({"content": "Read", "priority": "high", "status": "pending"});
    let plan = json!({"sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": "p", "entries": [entry]}});
    assert_eq!(
        alone(plan),
        [json!({"sessionUpdate": "plan", "entries": [entry]})]
    );
    for same in [
        json!({"sessionUpdate": "usage_update", "used": 7, "size": 10,
            "cost": {"amount": 0.5, "currency": "EUR"}}),
        json!({"sessionUpdate": "session_info_update", "title": "New", "updatedAt": null}),
        json!({"sessionUpdate": "notice", "severity": "warning", "title": "Low"}),
        json!({"sessionUpdate": "compaction_update", "compactionId": "c", "status": "completed",
            "summary": [text("short")], "error": null}),
        json!({"sessionUpdate": "compaction_summary_chunk", "compactionId": "c",
            "content": text("short")}),
    ] {
        assert_eq!(alone(same.clone()), [same]);
    }
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"type": "command", "name": "plan", "description": "Plans",
            "input": {"type": "text", "hint": "what"}},
        {"type": "_other", "name": "odd", "description": "Odd"},
    ]});
    let expected = json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "plan", "description": "Plans", "input": {"hint": "what"}},
        {"name": "odd", "description": "Odd"},
    ]});
    assert_eq!(alone(commands), [expected]);
    let option = |id: &str| {
        json!({id: "model", "name": "Model", "category": "model", "type": "select",
            "currentValue": "a", "options": [{"value": "a", "name": "A"}]})
    };
    let update =
        |option: Value| json!({"sessionUpdate": "config_option_update", "configOptions": [option]});
    assert_eq!(alone(update(option("configId"))), [update(option("id"))]);
}

#[test]
fn blocks_of_every_type_arrive() {
    for block in [
        json!({"type": "image", "mimeType": "image/png", "data": "AA==", "uri": "file:///a"}),
        json!({"type": "audio", "mimeType": "audio/wav", "data": "AA=="}),
        json!({"type": "resource", "resource": {"uri": "file:///a", "text": "a"}}),
        json!({"type": "resource_link", "name": "a", "uri": "file:///a", "size": 7}),
        json!({"type": "text", "text": "a", "annotations": {"priority": 0.5}}),
        json!({"type": "_hologram", "depth": 3}),
    ] {
        let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
            "content": block});
        assert_eq!(alone(update.clone()), [update]);
    }
    let update = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content":
        {"type": "resource_link", "name": "a", "uri": "file:///a", "size": u64::MAX}});
    assert_eq!(alone(update)[0]["content"].get("size"), None);
}
