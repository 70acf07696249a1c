use std::collections::BTreeSet;

use acp_schema::{Checked, Document, Protocol, Side as Handler, Validator};
use serde_json::{Value, json};

use super::mask::mask;
use super::place::Place;
use super::policy::{Policies, Policy};
use super::*;

fn policies() -> Policies {
    Policies::new(Rules::v1())
}

fn masked(from: Side, message: &Value) -> Value {
    let text = message.to_string();
    let incoming = crate::jsonrpc::read(text.as_bytes());
    let policy = policies().of(from, &incoming);
    serde_json::from_str(&mask(&text, policy, &Rules::v1())).unwrap()
}

#[test]
fn the_tables_are_sorted_and_have_every_method() {
    let document = Document::v1().unwrap();
    let protocol = Protocol::from_document(&document).unwrap();
    let methods: BTreeSet<&str> = protocol.methods().map(|method| &*method.name).collect();
    let rules = &crate::v1::MASKING;
    let named: Vec<&str> = rules.methods.iter().map(|method| method.method).collect();
    assert!(named.is_sorted());
    if cfg!(feature = "unstable") {
        assert!(methods.iter().all(|method| named.contains(method)));
    } else {
        assert_eq!(named, methods.into_iter().collect::<Vec<_>>());
    }
    assert!(rules.shown.is_sorted() && rules.uris.is_sorted() && rules.sensitive.is_sorted());
}

/// One message of each kind that carries secrets, all of them called s3cret, as text or 5318008.
fn secrets() -> Vec<(Handler, Value)> {
    let request = |method: &str, params: Value| json!({"jsonrpc": "2.0", "id": "id-1", "method": method, "params": params});
    let update = |update: Value| json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update": update}});
    vec![
        (
            Handler::AGENT,
            request(
                "initialize",
                json!({
                    "protocolVersion": 1,
                    "clientInfo": {"name": "editor", "version": "1.2", "title": "s3cret"},
                    "clientCapabilities": {"fs": {"readTextFile": true}, "_meta": {"key": "s3cret", "type": "s3cret", "pin": 5_318_008}},
                }),
            ),
        ),
        (
            Handler::AGENT,
            request(
                "authenticate",
                json!({"methodId": "key", "_meta": {"path": "s3cret"}, "name": "s3cret"}),
            ),
        ),
        (
            Handler::AGENT,
            request(
                "session/new",
                json!({"cwd": "/home/me", "mcpServers": [
                    {"name": "a", "command": "/bin/a", "args": ["--key=s3cret"], "env": [{"name": "KEY", "value": "s3cret"}]},
                    {"type": "http", "name": "b", "url": "https://s3cret@b", "headers": [{"name": "Authorization", "value": "s3cret"}]},
                ]}),
            ),
        ),
        (
            Handler::AGENT,
            request(
                "session/prompt",
                json!({"sessionId": "s", "prompt": [
                    {"type": "text", "text": "a \"s3cret\" ] } , \\", "annotations": {"audience": ["user"], "priority": 0.5}},
                    {"type": "image", "data": "s3cret", "mimeType": "image/png"},
                    {"type": "resource_link", "name": "n", "uri": "https://x/?token=s3cret", "description": "s3cret"},
                    {"type": "resource", "resource": {"uri": "file:///a", "text": "s3cret", "mimeType": "text/plain"}},
                    {"type": "resource", "resource": {"uri": "file:///a", "blob": "s3cret"}},
                ], "vendor": {"name": "s3cret", "id": "s3cret", "line": 5_318_008}, "status": "s3cret"}),
            ),
        ),
        (
            Handler::CLIENT,
            update(
                json!({"sessionUpdate": "tool_call", "toolCallId": "t", "title": "s3cret", "kind": "edit", "status": "completed",
            "rawInput": {"status": "s3cret", "n": [5_318_008, -5_318_008e3]}, "rawOutput": ["s3cret"],
            "locations": [{"path": "/a", "line": 7}],
            "content": [{"type": "diff", "path": "/a", "oldText": "s3cret", "newText": "s3cret"},
                {"type": "content", "content": {"type": "text", "text": "s3cret"}}, {"type": "terminal", "terminalId": "t"}]}),
            ),
        ),
        (
            Handler::CLIENT,
            update(
                json!({"sessionUpdate": "plan", "entries": [{"content": "s3cret", "priority": "high", "status": "pending"}]}),
            ),
        ),
        (
            Handler::CLIENT,
            request(
                "session/request_permission",
                json!({"sessionId": "s", "toolCall": {"toolCallId": "t", "title": "s3cret"},
            "options": [{"optionId": "o", "name": "Allow", "kind": "allow_once"}]}),
            ),
        ),
        (
            Handler::CLIENT,
            request(
                "fs/write_text_file",
                json!({"sessionId": "s", "path": "/a", "content": "s3cret"}),
            ),
        ),
        (
            Handler::CLIENT,
            request(
                "terminal/create",
                json!({"sessionId": "s", "command": "s3cret", "args": ["s3cret"], "cwd": "/a",
            "env": [{"name": "K", "value": "s3cret"}], "outputByteLimit": 10}),
            ),
        ),
        (
            Handler::CLIENT,
            request(
                "elicitation/create",
                json!({"sessionId": "s", "mode": "form", "message": "s3cret",
            "requestedSchema": {"type": "object", "title": "s3cret", "properties": {"path": {"type": "string", "default": "s3cret"}}, "required": ["path"]}}),
            ),
        ),
    ]
}

#[test]
fn secrets_go_and_the_message_stays_valid() {
    let validator = Validator::v1().unwrap();
    for (handler, message) in secrets() {
        let method = message["method"].as_str().unwrap().to_owned();
        assert_eq!(
            validator.params(handler, &method, &message["params"]),
            Checked::Valid,
            "{message}"
        );
        let shown = masked(Side::Client, &message);
        assert_eq!(
            validator.params(handler, &method, &shown["params"]),
            Checked::Valid,
            "{shown}"
        );
        let text = shown.to_string();
        assert!(
            !text.contains("s3cret") && !text.contains("5318008"),
            "{text}"
        );
        assert_eq!(shape(&message), shape(&shown), "{text}");
    }
}

/// The value with every string and number gone.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(members) => members.iter().map(|(k, v)| (k.clone(), shape(v))).collect(),
        Value::Array(items) => items.iter().map(shape).collect(),
        Value::String(_) => json!(""),
        Value::Number(_) => json!(0),
        other => other.clone(),
    }
}

#[test]
fn what_a_message_is_about_is_kept() {
    let (_, call) = secrets().swap_remove(4);
    let update = &masked(Side::Agent, &call)["params"]["update"];
    for kept in ["sessionUpdate", "toolCallId", "kind", "status", "locations"] {
        assert_eq!(update[kept], call["params"]["update"][kept]);
    }
    assert_eq!(
        update["rawInput"],
        json!({"status": "[redacted]", "n": [0, 0]})
    );
    assert_eq!(update["title"], "[redacted]");
    let (_, prompt) = secrets().swap_remove(3);
    let prompt = &masked(Side::Client, &prompt)["params"]["prompt"];
    assert_eq!(
        prompt[0]["annotations"],
        json!({"audience": ["user"], "priority": 0.5})
    );
    assert_eq!(prompt[2]["uri"], "about:redacted");
    assert_eq!(prompt[3]["resource"]["uri"], "file:///a");
}

#[test]
fn a_result_shows_what_its_request_asked_for() {
    let mut policies = policies();
    let mut show = |from: Side, message: Value| {
        let text = message.to_string();
        let policy = policies.of(from, &crate::jsonrpc::read(text.as_bytes()));
        let shown: Value = serde_json::from_str(&mask(&text, policy, &Rules::v1())).unwrap();
        shown
    };
    let ask =
        |id: u64, method: &str| json!({"jsonrpc": "2.0", "id": id, "method": method, "params": {}});
    let answer = |id: u64, result: Value| json!({"jsonrpc": "2.0", "id": id, "result": result});
    show(Side::Client, ask(1, "session/new"));
    show(Side::Agent, ask(1, "elicitation/create"));
    let form = json!({"action": "accept", "content": {"name": "s3cret", "action": 7}});
    assert_eq!(
        show(Side::Client, answer(1, form))["result"],
        json!({"action": "accept", "content": {"name": "[redacted]", "action": 0}})
    );
    let session = json!({"sessionId": "s", "modes": {"currentModeId": "m", "availableModes": []}});
    assert_eq!(
        show(Side::Agent, answer(1, session.clone()))["result"],
        session
    );
    // Asked by nobody, or by a method that nobody knows.
    for method in [None, Some("_vendor/login"), Some("login")] {
        if let Some(method) = method {
            let asked = show(
                Side::Client,
                json!({"jsonrpc": "2.0", "id": 2, "method": method, "params": {"id": "s3cret"}}),
            );
            assert_eq!(asked["params"], json!({"id": "[redacted]"}));
        }
        let shown = show(
            Side::Agent,
            answer(2, json!({"id": "s3cret", "n": 5, "b": true})),
        );
        assert_eq!(
            shown["result"],
            json!({"id": "[redacted]", "n": 0, "b": true})
        );
    }
    let error = json!({"jsonrpc": "2.0", "id": 3, "error": {"code": -32603, "message": "s3cret", "data": {"path": "s3cret", "code": 7}}});
    assert_eq!(
        show(Side::Agent, error)["error"],
        json!({"code": -32603, "message": "[redacted]", "data": {"path": "[redacted]", "code": 0}})
    );
}

/// Masks by the rules of a known method.
fn shown(text: &str) -> String {
    let place = Place::of(&[<crate::v1::SessionMode as crate::json::Described>::descriptor]);
    mask(text, Policy::Method(Visible::Members, place), &Rules::v1())
}

#[test]
fn what_is_hard_to_read_is_masked_all_the_same() {
    for (text, expected) in [
        // A name that is spelt in escapes is not recognised, so its value goes.
        (
            r#"{"params":{"session\u0049d":"s"}}"#,
            r#"{"params":{"session\u0049d":"[redacted]"}}"#,
        ),
        (
            r#"{"params":{"a\"":"\\","id":"\""},"x":"s"}"#,
            r#"{"params":{"a\"":"[redacted]","id":"\""},"x":"[redacted]"}"#,
        ),
        (
            r#"[{"method":"s","id":1e999}]"#,
            r#"[{"method":"[redacted]","id":0}]"#,
        ),
        (r#""s""#, r#""[redacted]""#),
        ("12", "0"),
        (
            "{\"id\"\n:\r\n12345678901234567890123}",
            "{\"id\" :  12345678901234567890123}",
        ),
        (
            r#"{"params":{"name":["a",{"text":"s"},"b"]},"id":"é"}"#,
            r#"{"params":{"name":["a",{"text":"[redacted]"},"b"]},"id":"é"}"#,
        ),
    ] {
        assert_eq!(shown(text), expected);
    }
    let deep = format!(
        "{{\"params\":{}\"s\"{}}}",
        "[".repeat(10_000),
        "]".repeat(10_000)
    );
    assert_eq!(shown(&deep), deep.replace("\"s\"", "\"[redacted]\""));
    // Not JSON, which does not get here; it must do no harm.
    for text in ["\"", "\"\\", "{\"a", "}}]]", "é", "{\"a\":-"] {
        shown(text);
    }
}
