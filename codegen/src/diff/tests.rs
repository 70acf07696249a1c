//! Each kind of change, and for whom it breaks.

use acp_schema::{Document, Side, V1_UNSTABLE};
use serde_json::{Value, json};

use super::{Change, diff};

/// A document in which the client sends `In` and the agent answers with `Out`; both
/// hold a `Part` that is `schema`.
fn document(name: &str, schema: &Value) -> Document {
    let hold = |side: &str| json!({ "type": "object", "x-side": side, "x-method": "do" });
    let mut params = hold("agent");
    params["properties"] = json!({ "in": schema });
    let mut result = hold("agent");
    result["properties"] = json!({ "out": schema });
    let text = json!({ "$defs": {
        "DoRequest": params,
        "DoResponse": result,
        "Other": { "type": "object" },
        "PingNotification": { "type": "object", "x-side": "client", "x-method": "ping" },
    }});
    Document::parse(name, &text.to_string()).unwrap()
}

/// The changes of a value that the client sends and of the same that the agent sends:
/// what changed, and for whom each breaks.
fn changes(old: &Value, new: &Value) -> Vec<(String, &'static str)> {
    let changes = diff(&document("old.json", old), &document("new.json", new)).unwrap();
    let changes = changes.changes.into_iter().map(|change| {
        let effect = match change.breaks[..] {
            [] => NOBODY,
            [Side::AGENT] => AGENTS,
            [Side::CLIENT] => CLIENTS,
            _ => BOTH,
        };
        (format!("{}: {}", change.at, change.what), effect)
    });
    changes.collect()
}

/// A change to a value: who is hurt when the client sends it, and when the agent does.
#[track_caller]
fn assert_change(old: Value, new: Value, what: &str, client_sends: &str, agent_sends: &str) {
    let found = changes(&old, &new);
    let expected = [
        (format!("DoRequest.in{what}"), client_sends),
        (format!("DoResponse.out{what}"), agent_sends),
    ];
    let found: Vec<_> = found
        .iter()
        .map(|(what, effect)| (what.clone(), *effect))
        .collect();
    assert_eq!(found, expected, "{old} -> {new}");
}

/// Texts with a name, and any other.
fn open(names: &[&str]) -> Value {
    let names = names
        .iter()
        .map(|name| json!({ "type": "string", "const": name }));
    let end = json!({ "title": "other", "type": "string" });
    json!({ "anyOf": names.chain([end]).collect::<Vec<_>>() })
}

const NOBODY: &str = "nobody";
const AGENTS: &str = "agents";
const CLIENTS: &str = "clients";
const BOTH: &str = "both";

#[test]
fn new_values_hurt_those_who_receive_them() {
    let text = json!({ "type": "string" });
    for (old, new, what) in [
        (
            text.clone(),
            json!({ "type": ["string", "null"] }),
            ": may be null",
        ),
        (
            json!({ "type": "integer" }),
            json!({ "type": "number" }),
            ": is number in place of integer",
        ),
        (
            json!({ "type": "string", "minLength": 1 }),
            text.clone(),
            ": `minLength` 1 removed",
        ),
        (
            json!({ "type": "integer", "format": "int32" }),
            json!({ "type": "integer", "format": "int64" }),
            ": `format` is \"int64\" in place of \"int32\"",
        ),
        (
            json!({ "type": "integer", "maximum": 5 }),
            json!({ "type": "integer", "maximum": 6 }),
            ": `maximum` is 6 in place of 5",
        ),
        (text.clone(), json!({}), ": may be anything"),
        (
            json!({ "type": "array", "items": text }),
            json!({ "type": "array", "items": {} }),
            "[]: may be anything",
        ),
        (
            json!({ "oneOf": [{ "type": "string", "const": "a" }] }),
            json!({ "oneOf": [{ "type": "string", "const": "a" }, { "type": "string", "const": "b" }] }),
            ": variant `b` added",
        ),
        (
            json!({ "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] }),
            json!({ "type": "object", "properties": { "a": { "type": "string" } } }),
            ".a: may be absent",
        ),
        (
            json!({ "type": "object", "properties": { "a": {} }, "required": ["a"] }),
            json!({ "type": "object", "properties": { } }),
            ".a: required member removed",
        ),
    ] {
        assert_change(old.clone(), new.clone(), what, AGENTS, CLIENTS);
        // The way back hurts those who send.
        let back = changes(&new, &old);
        let effects: Vec<_> = back.iter().map(|(_, effect)| *effect).collect();
        assert_eq!(effects, [CLIENTS, AGENTS], "{new} -> {old}");
    }
}

#[test]
fn other_values_hurt_both() {
    for (old, new, what) in [
        (
            json!({ "type": "string" }),
            json!({ "type": "integer" }),
            ": is integer in place of string",
        ),
        (
            json!({ "type": "string", "const": "a" }),
            json!({ "type": "string", "const": "b" }),
            ": `const` is \"b\" in place of \"a\"",
        ),
        (
            json!({ "type": "string", "format": "date" }),
            json!({ "type": "string", "format": "uri" }),
            ": `format` is \"uri\" in place of \"date\"",
        ),
    ] {
        assert_change(old, new, what, BOTH, BOTH);
    }
}

#[test]
fn what_is_ignored_or_tolerated_hurts_nobody() {
    let object = |properties: Value| json!({ "type": "object", "properties": properties });
    for (old, new, what) in [
        (
            object(json!({})),
            object(json!({ "a": {} })),
            ".a: optional member added",
        ),
        (
            object(json!({ "a": {} })),
            object(json!({})),
            ".a: optional member removed",
        ),
        (open(&["a"]), open(&["a", "b"]), ": variant `b` added"),
        (
            json!({ "type": "string" }),
            open(&["a"]),
            ": is one of several texts in place of string",
        ),
        (
            object(json!({ "a": { "type": "string" } })),
            object(json!({ "a": { "type": "string", "x-deserialize-default-on-error": true } })),
            ".a: `x-deserialize-default-on-error` added",
        ),
        (
            object(json!({ "a": { "type": "object", "default": { "b": 1 } } })),
            object(json!({ "a": { "type": "object", "default": { "b": 1, "c": 2 } } })),
            ".a: `default` has more members",
        ),
    ] {
        assert_change(old, new, what, NOBODY, NOBODY);
    }
}

#[test]
fn what_nobody_knows_any_more_hurts_those_who_send_it() {
    let what = ": variant `b` removed";
    assert_change(open(&["a", "b"]), open(&["a"]), what, CLIENTS, AGENTS);
}

#[test]
fn words_and_order_are_no_facts() {
    let old = json!({ "type": "object", "description": "a", "properties": { "a": {}, "b": {} } });
    let new = json!({ "description": "b", "properties": { "b": {}, "a": {} }, "type": "object" });
    assert_eq!(changes(&old, &new), []);
}

#[test]
fn a_tagged_union_is_compared_by_tag() {
    let branch = |tag: &str, to: &str| {
        json!({
            "type": "object",
            "properties": { "type": { "type": "string", "const": tag } },
            "required": ["type"],
            "allOf": [{ "$ref": format!("#/$defs/{to}") }],
        })
    };
    let old = json!({ "oneOf": [branch("a", "Other"), branch("b", "Other")] });
    let new = json!({ "oneOf": [branch("b", "Other"), branch("a", "DoResponse")] });
    let found = changes(&old, &new);
    assert_eq!(
        found
            .iter()
            .map(|(what, _)| what.as_str())
            .collect::<Vec<_>>(),
        [
            "DoRequest.in#a: refers to `DoResponse` in place of `Other`",
            "DoResponse.out: optional member added",
            "DoResponse.out#a: refers to `DoResponse` in place of `Other`",
        ]
    );
}

#[test]
fn methods_that_go_hurt_their_callers() {
    let with = |methods: &[(&str, &str, &str)]| {
        let mut defs = serde_json::Map::new();
        for (name, side, method) in methods {
            let marks = json!({ "type": "object", "x-side": side, "x-method": method });
            defs.insert((*name).to_owned(), marks);
        }
        Document::parse("methods.json", &json!({ "$defs": defs }).to_string()).unwrap()
    };
    let old = with(&[
        ("ANotification", "agent", "a"),
        ("BRequest", "client", "b"),
        ("BResponse", "client", "b"),
        ("CNotification", "protocol", "c"),
    ]);
    let new = with(&[("BNotification", "client", "b")]);
    let change = |at: &str, what: &str, breaks: &[Side]| Change {
        at: at.into(),
        what: what.into(),
        breaks: breaks.to_vec(),
    };
    let (agent, client) = (Side::AGENT, Side::CLIENT);
    assert_eq!(
        diff(&old, &new).unwrap().changes,
        [
            change("a", "notification to agents removed", &[client]),
            change("b", "request to clients removed", &[agent]),
            change("c", "notification to both sides removed", &[agent, client]),
            change("b", "notification to clients added", &[]),
        ]
    );
}

/// Roles of other protocols, the only role of a protocol, and none.
#[test]
fn every_role_of_a_document_can_break() {
    let breaks = |methods: Value| {
        let document = |kind: &str| {
            let mut defs = methods.clone();
            for schema in defs.as_object_mut().unwrap().values_mut() {
                schema["type"] = "object".into();
                schema["properties"] = json!({ "n": { "type": kind } });
            }
            let text = json!({ "$defs": defs }).to_string();
            Document::parse("roles.json", &text).unwrap()
        };
        let found = diff(&document("integer"), &document("number")).unwrap();
        let names = |sides: &[Side]| sides.iter().map(Side::to_string).collect::<Vec<_>>();
        let changes = found.changes.iter().map(|change| names(&change.breaks));
        (names(&found.roles), changes.collect::<Vec<_>>())
    };
    let (roles, changes) = breaks(json!({
        "RunNotification": { "x-side": "kernel", "x-method": "run" },
        "ShowNotification": { "x-side": "code-editor", "x-method": "show" },
    }));
    assert_eq!(roles, ["code-editor", "kernel"]);
    assert_eq!(
        changes,
        [["kernel"], ["code-editor"]],
        "each one that receives"
    );
    let (roles, changes) = breaks(json!({
        "GreetNotification": { "x-side": "node", "x-method": "greet" },
    }));
    assert_eq!(
        (roles, changes),
        (vec!["node".into()], vec![vec!["node".into()]])
    );
    let (roles, _) = breaks(json!({
        "GreetNotification": { "x-side": "both", "x-method": "greet" },
    }));
    assert_eq!(roles, ["both"]);
}

#[test]
fn the_proposals_break_agents_in_one_place_alone() {
    let old = Document::v1().unwrap();
    assert_eq!(diff(&old, &old).unwrap().changes, []);
    let new = Document::v1()
        .and_then(|document| document.overlay("v1.unstable.json", V1_UNSTABLE))
        .unwrap();
    let changes = diff(&old, &new).unwrap().changes;
    let added = changes.iter().filter(|one| one.what.ends_with(" added"));
    assert!(added.count() > 30, "{changes:#?}");
    let breaking: Vec<&str> = changes
        .iter()
        .filter(|change| change.breaks.contains(&Side::AGENT))
        .map(|change| change.at.as_str())
        .collect();
    assert_eq!(breaking, ["McpServer"]);
    let update = changes
        .iter()
        .find(|change| change.what == "variant `plan_update` added")
        .unwrap();
    assert_eq!(update.breaks, [Side::CLIENT], "{update:?}");
}

#[test]
fn a_definition_with_a_new_name_is_told_of_once() {
    let document = |name: &str, leaf: &str| {
        let to = |name: &str| json!({ "$ref": format!("#/$defs/{name}") });
        let text = json!({ "$defs": {
            "DoNotification": { "type": "object", "x-side": "agent", "x-method": "do",
                "properties": { "a": to(name), "b": to(name), "c": to("Other") } },
            name: { "type": "object", "properties": { "leaf": { "type": leaf } } },
            "Other": { "type": "object" },
        }});
        Document::parse("doc.json", &text.to_string()).unwrap()
    };
    let found = diff(&document("Part", "string"), &document("Piece", "integer")).unwrap();
    let found: Vec<_> = found
        .changes
        .iter()
        .map(|c| format!("{}: {}", c.at, c.what))
        .collect();
    let expected = [
        "Piece: was called `Part`",
        "Piece.leaf: is integer in place of string",
    ];
    assert_eq!(found, expected);
    // What is there under both names has not been renamed.
    let found = diff(&document("Part", "string"), &document("Other", "string")).unwrap();
    let found = found.changes;
    assert_eq!(found[0].what, "refers to `Other` in place of `Part`");
    assert_eq!(found[0].at, "DoNotification.a");
}
