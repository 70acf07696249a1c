//! Conversations, and the requirements that a judge finds broken in them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::*;

/// A conversation from its beginning.
struct Talk {
    records: Vec<Record>,
}

impl Talk {
    fn new(version: Version) -> Self {
        let mut talk = Self {
            records: Vec::new(),
        };
        let number = version.number();
        let (info, capabilities) = match version {
            Version::V1 => ("clientInfo", "clientCapabilities"),
            Version::V2 => ("info", "capabilities"),
        };
        let forms =
            json!({"elicitation": {"form": {}, "url": {}}, "terminal": version == Version::V1});
        let mut params = json!({"protocolVersion": number});
        params[info] = json!({"name": "c", "version": "1"});
        params[capabilities] = forms;
        if version == Version::V2 {
            params[capabilities] = json!({"elicitation": {"form": {}, "url": {}}});
        }
        talk.client(json!({"id": 0, "method": "initialize", "params": params}));
        let mut result = json!({"protocolVersion": number});
        if version == Version::V2 {
            result["info"] = json!({"name": "a", "version": "1"});
            result["capabilities"] = json!({});
        }
        talk.agent(json!({"id": 0, "result": result}));
        talk
    }

    fn client(&mut self, message: Value) {
        self.says(Party::Client, message);
    }

    fn agent(&mut self, message: Value) {
        self.says(Party::Agent, message);
    }

    fn says(&mut self, from: Party, mut message: Value) {
        message["jsonrpc"] = json!("2.0");
        self.records.push(Record::Message(from, message));
    }

    /// A turn of version 1 in which the agent calls these methods, and what the client answers.
    fn turn(&mut self, calls: &[(&str, Value, Value)]) {
        let id = self.records.len();
        let params = json!({"sessionId": "s", "prompt": []});
        self.client(json!({"id": id, "method": "session/prompt", "params": params}));
        for (method, params, result) in calls {
            let id = self.records.len();
            let mut params = params.clone();
            params["sessionId"] = json!("s");
            self.agent(json!({"id": id, "method": method, "params": params}));
            self.client(json!({"id": id, "result": result}));
        }
        self.agent(json!({"id": id, "result": {"stopReason": "end_turn"}}));
    }

    /// What is found, at these levels.
    fn found(&self, levels: &[Level]) -> BTreeSet<(&'static str, String)> {
        let mut judge = Judge::new(Schemas::any().unwrap(), None);
        let mut found = BTreeSet::new();
        let mut each = |all: Diagnostic| {
            if levels.contains(&all.level) {
                let row = all.requirement.unwrap_or_default();
                found.insert((row, all.finding.message));
            }
        };
        for (place, record) in (1..).zip(&self.records) {
            judge.record(place, record, &mut each);
        }
        judge.finish(&mut each);
        found
    }

    /// The rows that decide and are broken.
    fn broken(&self) -> Vec<&'static str> {
        let found = self.found(&[Level::Error]);
        found.into_iter().map(|(row, _)| row).collect()
    }
}

fn created() -> (&'static str, Value, Value) {
    let params = json!({"command": "server"});
    ("terminal/create", params, json!({"terminalId": "t"}))
}

fn of_terminal(method: &'static str, result: Value) -> (&'static str, Value, Value) {
    (method, json!({"terminalId": "t"}), result)
}

/// A server runs on for the next turns. A command that has ended needs its terminal no more.
#[test]
fn a_terminal_is_kept_as_long_as_its_command_runs() {
    let output = |status: Value| {
        let result = json!({"output": "", "truncated": false, "exitStatus": status});
        of_terminal("terminal/output", result)
    };
    let wait = || of_terminal("terminal/wait_for_exit", json!({"exitCode": 0}));
    let release = || of_terminal("terminal/release", json!({}));
    let rows = |turns: &[&[(&str, Value, Value)]]| {
        let mut talk = Talk::new(Version::V1);
        turns.iter().for_each(|turn| talk.turn(turn));
        talk.broken()
    };
    let nothing: [&str; 0] = [];
    assert_eq!(rows(&[&[created()], &[]]), nothing);
    assert_eq!(rows(&[&[created(), output(Value::Null)], &[]]), nothing);
    assert_eq!(rows(&[&[created()], &[wait(), release()]]), nothing);
    for end in [wait(), output(json!({"exitCode": 0}))] {
        let kept = ["terminals.released"];
        assert_eq!(rows(&[&[created(), end.clone()]]), kept);
        assert_eq!(rows(&[&[created()], &[end]]), kept);
    }
}

/// A form with this field.
fn form(version: Version, name: &str, field: Value) -> Vec<&'static str> {
    let mut talk = Talk::new(version);
    let params = json!({"sessionId": "s", "mode": "form", "message": "Which?",
        "requestedSchema": {"type": "object", "properties": {name: field}}});
    talk.agent(json!({"id": 1, "method": "elicitation/create", "params": params}));
    talk.broken()
}

#[test]
fn a_field_asks_for_a_secret_if_it_takes_the_text_of_one() {
    let text = |title: &str| json!({"type": "string", "title": title});
    for version in [Version::V1, Version::V2] {
        for (name, field) in [
            ("secret", json!({"type": "boolean"})),
            ("password", json!({"type": "boolean", "title": "Password"})),
            (
                "apiKey",
                json!({"type": "string", "enum": ["first", "second"]}),
            ),
            ("password_hint", text("Hint")),
            ("secretName", text("Name of the secret")),
            ("token", text("Token to look for")),
            ("passwords", json!({"type": "integer"})),
        ] {
            let found = form(version, name, field);
            assert!(found.is_empty(), "{name}: {found:?}");
        }
        for (name, field) in [
            ("password", text("")),
            ("githubPassword", text("")),
            ("db_password2", json!({"type": "string"})),
            ("API_KEY", text("")),
            ("openai-api-key", text("")),
            ("accessToken", text("")),
            ("clientSecret", text("")),
            ("recovery_code", text("")),
            ("value", text("Your password")),
            ("field1", text("API key")),
        ] {
            let found = form(version, name, field);
            assert_eq!(found, ["elicitation.no-secrets-in-form"], "{name}");
        }
    }
}

#[test]
fn credentials_in_a_url_are_found_in_its_query_and_its_fragment_too() {
    let rows = |version, url: &str| {
        let mut talk = Talk::new(version);
        let params = json!({"sessionId": "s", "mode": "url", "message": "Log in.",
            "elicitationId": "e", "url": url});
        talk.agent(json!({"id": 1, "method": "elicitation/create", "params": params}));
        talk.broken()
    };
    for version in [Version::V1, Version::V2] {
        for url in [
            "https://agent.example/connect?elicitationId=e&state=x",
            "https://agent.example/password/new",
            "https://agent.example/login?response_type=token&code_challenge=x",
            "https://agent.example/login?token=",
            "https://agent.example/login?next=/a@b",
        ] {
            let found = rows(version, url);
            assert!(found.is_empty(), "{url}: {found:?}");
        }
        for url in [
            "https://me:secret@agent.example/",
            "https://agent.example/login?token=abc",
            "https://agent.example/login?a=b&access_token=abc",
            "https://agent.example/login#access_token=abc",
            "https://agent.example/login?apiKey=abc",
            "https://agent.example/login?PASSWORD=abc",
        ] {
            let found = rows(version, url);
            assert_eq!(found, ["elicitation.no-credentials-in-url"], "{url}");
        }
    }
}

/// Names of other releases of the schema are not the agent's own.
#[test]
fn members_of_other_releases_are_notes_that_name_the_release() {
    let mut talk = Talk::new(Version::V1);
    let params = json!({"cwd": "/", "mcpServers": []});
    talk.client(json!({"id": 1, "method": "session/new", "params": params}));
    let result = json!({"sessionId": "s", "models": {"currentModelId": "m"}});
    talk.agent(json!({"id": 1, "result": result}));
    assert_eq!(talk.broken(), [""; 0]);
    let notes = talk.found(&[Level::Note]);
    let note = |(row, text): &(&str, String)| {
        *row == "extensibility.no-custom-fields" && text.contains("0.4.1 to 0.13.4")
    };
    assert!(notes.iter().any(note), "{notes:?}");

    // The same member of another type is nobody's.
    let params = json!({"sessionId": "s", "prompt": []});
    talk.client(json!({"id": 2, "method": "session/prompt", "params": params}));
    let result = json!({"stopReason": "end_turn", "models": {}});
    talk.agent(json!({"id": 2, "result": result}));
    assert_eq!(talk.broken(), ["extensibility.no-custom-fields"]);
}

/// A gap may hide a request, but not that one request has two answers.
#[test]
fn two_answers_are_found_after_a_gap() {
    let mut talk = Talk::new(Version::V1);
    talk.records.push(Record::Lost {
        from: Party::Client,
        messages: 2,
        why: "the queue was full".into(),
        on_purpose: false,
    });
    let stop = json!({"id": 9, "result": {"stopReason": "end_turn"}});
    let mut unseen = stop.clone();
    unseen["id"] = json!(7);
    talk.agent(unseen);
    let params = json!({"sessionId": "s", "prompt": []});
    talk.client(json!({"id": 9, "method": "session/prompt", "params": params}));
    talk.agent(stop.clone());
    assert_eq!(talk.broken(), [""; 0]);
    talk.agent(stop);
    assert_eq!(talk.broken(), ["jsonrpc.answers-once"]);
}
