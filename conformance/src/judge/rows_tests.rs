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

/// A server runs on for the next turns, and output may be read in a later turn. A command that has ended, and
/// whose output was read, needs its terminal no more.
#[test]
fn a_terminal_is_kept_until_its_command_has_ended_and_its_output_was_read() {
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
    assert_eq!(rows(&[&[created(), wait()], &[]]), nothing);
    let read_later: [&[_]; 2] = [&[created(), wait()], &[output(Value::Null), release()]];
    assert_eq!(rows(&read_later), nothing);
    let ended = || output(json!({"exitCode": 0}));
    let kept: [[&[_]; 2]; 3] = [
        [&[created(), wait()], &[output(Value::Null)]],
        [&[created(), wait(), output(Value::Null)], &[]],
        [&[created()], &[ended()]],
    ];
    for turns in kept {
        assert_eq!(rows(&turns), ["terminals.released"]);
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
            ("secret", text("Name of the secret")),
            ("clientSecret", text("Secret ID")),
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
            ("recoveryCodes", text("")),
            ("cardNumber", text("")),
            ("cvv", text("")),
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

#[test]
fn every_value_with_a_fallback_is_the_protocols_or_begins_with_an_underscore() {
    let rows = |method: &str, params: Value| {
        let mut talk = Talk::new(Version::V2);
        let mut message = json!({"method": method, "params": params});
        if method != "session/update" {
            message["id"] = json!(1);
        }
        talk.agent(message);
        talk.broken()
    };
    let update = |update: Value| {
        rows(
            "session/update",
            json!({"sessionId": "s", "update": update}),
        )
    };
    let chunk = |content: Value| {
        update(
            json!({"sessionUpdate": "agent_message_chunk", "messageId": "m", "content": content}),
        )
    };
    let option = |kind: &str| {
        let options = json!([{"optionId": "o", "name": "O", "kind": kind}]);
        let params = json!({"sessionId": "s", "title": "T", "options": options,
            "subject": {"type": "tool_call", "toolCall": {"toolCallId": "t"}}});
        rows("session/request_permission", params)
    };
    let entry = |status: &str| {
        let entries = json!([{"content": "c", "priority": "high", "status": status}]);
        let plan = json!({"type": "items", "planId": "p", "entries": entries});
        update(json!({"sessionUpdate": "plan_update", "plan": plan}))
    };
    let tool = |member: &str, value: Value| {
        let mut body =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "t", "title": "T"});
        body[member] = value;
        update(body)
    };
    let broken = ["extensibility.reserved-values"];
    for (kind, of) in [
        ("an update", update(json!({"sessionUpdate": "gaze"}))),
        (
            "a state",
            update(json!({"sessionUpdate": "state_update", "state": "asleep"})),
        ),
        (
            "a stop reason",
            update(
                json!({"sessionUpdate": "state_update", "state": "idle", "stopReason": "bored"}),
            ),
        ),
        ("content", chunk(json!({"type": "smell"}))),
        (
            "a role",
            chunk(json!({"type": "text", "text": "x", "annotations": {"audience": ["cat"]}})),
        ),
        (
            "content of a tool call",
            tool("content", json!([{"type": "smell"}])),
        ),
        ("a kind", tool("kind", json!("gaze"))),
        ("a status", tool("status", json!("asleep"))),
        ("the status of an entry", entry("paused")),
        ("an option", option("allow_sometimes")),
        (
            "a notice",
            update(json!({"sessionUpdate": "notice", "severity": "fatal", "title": "x"})),
        ),
    ] {
        assert_eq!(of, broken, "{kind}");
    }
    let nothing: [&str; 0] = [];
    assert_eq!(chunk(json!({"type": "_smell"})), nothing);
    assert_eq!(entry("_paused"), nothing);
    assert_eq!(entry("completed"), nothing);
    assert_eq!(tool("kind", Value::Null), nothing);
}

/// Messages and errors are types of the specification, of extensions too.
#[test]
fn members_beside_the_params_and_of_an_error_are_the_senders_own() {
    for version in [Version::V1, Version::V2] {
        let mut talk = Talk::new(version);
        let params = json!({"cwd": "/", "mcpServers": []});
        talk.client(json!({"id": 1, "method": "session/new", "params": params}));
        talk.client(json!({"id": 2, "method": "_own", "params": {"a": 1}, "_meta": {"b": 1}}));
        let error = json!({"code": -32000, "message": "m", "data": {"own": 1}});
        talk.agent(json!({"id": 1, "error": error}));
        assert_eq!(talk.broken(), [""; 0]);
        let error = json!({"code": -32601, "message": "m", "hint": "x"});
        talk.agent(json!({"id": 2, "error": error}));
        let broken = talk.broken();
        assert!(
            broken.contains(&"extensibility.no-custom-fields"),
            "{broken:?}"
        );
        let mut talk = Talk::new(version);
        let params = json!({"cwd": "/", "mcpServers": []});
        talk.client(json!({"id": 1, "method": "session/new", "params": params, "trace": 1}));
        talk.agent(json!({"id": 1, "result": {"sessionId": "s"}}));
        assert_eq!(talk.broken(), ["client.custom-fields"]);
    }
}

/// What an agent repeats of the prompt has the members that the client has given it.
#[test]
fn members_of_the_clients_own_content_are_not_the_agents() {
    let content = json!([{"type": "text", "text": "x", "fromTheFuture": 1}]);
    for (kind, broken) in [
        ("user_message", vec![]),
        ("agent_message", vec!["extensibility.no-custom-fields"]),
    ] {
        let update = json!({"sessionUpdate": kind, "messageId": "m", "content": content});
        let mut talk = Talk::new(Version::V2);
        let params = json!({"sessionId": "s", "update": update});
        talk.agent(json!({"method": "session/update", "params": params}));
        assert_eq!(talk.broken(), broken, "{kind}");
    }
}

#[test]
fn data_that_the_client_has_written_is_not_the_agents() {
    for (kind, row) in [
        ("user_message_chunk", None),
        ("agent_message_chunk", Some("content.base64")),
    ] {
        let content = json!({"type": "image", "mimeType": "image/png", "data": "no base64"});
        let update = json!({"sessionUpdate": kind, "content": content});
        let mut talk = Talk::new(Version::V1);
        let params = json!({"sessionId": "s", "update": update});
        talk.agent(json!({"method": "session/update", "params": params}));
        let found = talk.found(&[Level::Error, Level::Warning]);
        let found = found
            .iter()
            .map(|(row, _)| *row)
            .find(|row| *row == "content.base64");
        assert_eq!(found, row, "{kind}");
    }
}

#[test]
fn a_mode_of_the_agents_own_is_one_that_the_client_has_not_advertised() {
    let rows = |meta: Option<Value>| {
        let mut talk = Talk::new(Version::V2);
        if let (Some(meta), Some(Record::Message(_, first))) = (meta, talk.records.first_mut()) {
            first["params"]["capabilities"]["elicitation"]["_meta"] = meta;
        }
        let params = json!({"sessionId": "s", "mode": "_voice", "message": "Which?"});
        talk.agent(json!({"id": 1, "method": "elicitation/create", "params": params}));
        talk.broken()
    };
    // The second row is about everything that the client does not declare.
    let broken = [
        "elicitation.no-undeclared-mode",
        "initialization.undeclared",
    ];
    assert_eq!(rows(None), broken);
    assert_eq!(rows(Some(json!({"voice": true}))), [""; 0]);
}

#[test]
fn a_command_that_needs_permission_runs_inside_of_the_session() {
    let rows = |kind: &str, cwd: &str| {
        let mut talk = Talk::new(Version::V2);
        let params = json!({"cwd": "/work", "mcpServers": []});
        talk.client(json!({"id": 1, "method": "session/new", "params": params}));
        talk.agent(json!({"id": 1, "result": {"sessionId": "s"}}));
        let options = json!([{"optionId": "o", "name": "O", "kind": "allow_once"}]);
        let subject = json!({"type": kind, "command": "ls", "cwd": cwd});
        let params =
            json!({"sessionId": "s", "title": "T", "options": options, "subject": subject});
        talk.agent(json!({"id": 1, "method": "session/request_permission", "params": params}));
        let found = talk.found(&[Level::Error, Level::Warning]);
        found.into_iter().map(|(row, _)| row).collect::<Vec<_>>()
    };
    assert_eq!(rows("command", "/work/a"), [""; 0]);
    assert_eq!(
        rows("command", "/elsewhere"),
        ["session-setup.inside-roots"]
    );
    // What a subject of an extension has is its own.
    assert_eq!(rows("_deploy", "/elsewhere"), [""; 0]);
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

/// The result that names a session may be on its way when the agent reads the first files for it.
#[test]
fn a_session_that_is_being_opened_is_one_of_the_client() {
    let rows = |request: &str| {
        let mut talk = Talk::new(Version::V1);
        let params = json!({"cwd": "/", "mcpServers": [], "sessionId": "other", "prompt": []});
        talk.client(json!({"id": 1, "method": request, "params": params}));
        let params = json!({"sessionId": "s", "path": "/AGENTS.md"});
        talk.agent(json!({"id": 1, "method": "fs/read_text_file", "params": params}));
        let found = talk.found(&[Level::Warning]).into_iter();
        let rows: Vec<_> = found.map(|(row, _)| row).collect();
        rows.contains(&"file-system.own-session")
    };
    assert!(!rows("session/new"));
    assert!(rows("session/prompt"));
}

/// `elicitation/complete` is optional, so that an accepted interaction may be over without it.
#[test]
fn the_id_of_an_interaction_by_url_is_free_once_its_turn_is_over() {
    for version in [Version::V1, Version::V2] {
        let rows = |between: &[(Party, Value)]| {
            let mut talk = Talk::new(version);
            let params = json!({"sessionId": "s", "prompt": [{"type": "text", "text": "x"}]});
            talk.client(json!({"id": 9, "method": "session/prompt", "params": params}));
            let ask = json!({"sessionId": "s", "mode": "url", "message": "Log in.",
                "elicitationId": "login", "url": "https://agent.example/"});
            talk.agent(json!({"id": 1, "method": "elicitation/create", "params": ask}));
            for (from, message) in between {
                talk.says(*from, message.clone());
            }
            talk.agent(json!({"id": 2, "method": "elicitation/create", "params": ask}));
            talk.broken()
        };
        let answer = |action: &str| {
            (
                Party::Client,
                json!({"id": 1, "result": {"action": action}}),
            )
        };
        let params = json!({"elicitationId": "login"});
        let completed = json!({"method": "elicitation/complete", "params": params});
        let update = json!({"sessionUpdate": "state_update", "state": "idle"});
        let end = match version {
            Version::V1 => json!({"id": 9, "result": {"stopReason": "end_turn"}}),
            Version::V2 => {
                json!({"method": "session/update", "params": {"sessionId": "s", "update": update}})
            }
        };
        let end = (Party::Agent, end);
        for goes_on in [&[][..], &[answer("accept")]] {
            assert_eq!(rows(goes_on), ["elicitation.unique-id"]);
        }
        for over in [
            &[answer("decline")][..],
            &[answer("accept"), (Party::Agent, completed)],
            &[answer("accept"), end],
        ] {
            assert_eq!(rows(over), [""; 0], "{over:?}");
        }
    }
}

/// In v2 a MUST of the schema, in v1 what follows from JSON-RPC.
#[test]
fn a_request_that_is_open_keeps_its_id_to_itself() {
    for (version, level) in [(Version::V1, Level::Warning), (Version::V2, Level::Error)] {
        let mut talk = Talk::new(version);
        let new =
            json!({"id": 1, "method": "session/new", "params": {"cwd": "/", "mcpServers": []}});
        talk.client(new.clone());
        talk.client(new);
        let ask = json!({"id": 1, "method": "_x/ask", "params": {}});
        talk.agent(ask.clone());
        talk.agent(ask);
        let rows: Vec<_> = talk
            .found(&[level])
            .into_iter()
            .map(|(row, _)| row)
            .collect();
        assert_eq!(
            rows,
            ["client.unique-ids", "jsonrpc.own-ids"],
            "{version:?}"
        );
    }
}

/// In v2 the names have a form, and the result that opens a session has commands too.
#[test]
fn commands_of_v2_have_names_of_one_word_wherever_they_are_listed() {
    let rows = |in_result: bool, names: &[&str]| {
        let mut talk = Talk::new(Version::V2);
        let command = |name| json!({"type": "command", "name": name, "description": "D"});
        let commands: Vec<_> = names.iter().map(command).collect();
        talk.client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}}));
        let mut result = json!({"sessionId": "s", "configOptions": [], "availableCommands": []});
        let update =
            json!({"sessionUpdate": "available_commands_update", "availableCommands": commands});
        if in_result {
            result["availableCommands"] = json!(commands);
        }
        talk.agent(json!({"id": 1, "result": result}));
        if !in_result {
            let params = json!({"sessionId": "s", "update": update});
            talk.agent(json!({"method": "session/update", "params": params}));
        }
        talk.broken()
    };
    for in_result in [false, true] {
        assert_eq!(rows(in_result, &["look", "create_plan"]), [""; 0]);
        assert_eq!(rows(in_result, &["look around"]), ["commands.names"]);
        assert_eq!(rows(in_result, &["look", "look"]), ["commands.unique"]);
    }
}

/// The content of a form is its texts; a schema has other members that look like links.
#[test]
fn a_url_in_a_form_counts_where_it_is_shown() {
    let rows = |message: &str, schema: Value| {
        let mut talk = Talk::new(Version::V2);
        let params = json!({"sessionId": "s", "mode": "form", "message": message, "requestedSchema": schema});
        talk.agent(json!({"id": 1, "method": "elicitation/create", "params": params}));
        let found = talk.found(&[Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("elicitation."))
            .collect::<Vec<_>>()
    };
    let url = "https://agent.example/";
    let form = |field: Value| json!({"type": "object", "properties": {"title": field}});
    let mut hidden = form(json!({"type": "string", "default": url, "pattern": "^https://"}));
    hidden["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    assert_eq!(rows("Which?", hidden), [""; 0]);
    let no_url = ["elicitation.no-url-in-form"];
    assert_eq!(rows(url, form(json!({"type": "string"}))), no_url);
    for field in [
        json!({"type": "string", "description": url}),
        json!({"type": "string", "oneOf": [{"const": "a", "title": url}]}),
    ] {
        assert_eq!(rows("Which?", form(field)), no_url);
    }
}

/// The Preview of v2 has sessions of subagents, which the client has not opened.
#[test]
fn a_session_that_an_update_announces_is_known() {
    let rows = |announced: &str| {
        let mut talk = Talk::new(Version::V2);
        talk.client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}}));
        let result = json!({"sessionId": "s", "configOptions": [], "availableCommands": []});
        talk.agent(json!({"id": 1, "result": result}));
        let mut update = |session: &str, update: Value| {
            let params = json!({"sessionId": session, "update": update});
            talk.agent(json!({"method": "session/update", "params": params}));
        };
        update(
            "s",
            json!({"sessionUpdate": "subagent_update", "sessionId": announced}),
        );
        update(
            "child",
            json!({"sessionUpdate": "state_update", "state": "running"}),
        );
        let found = talk.found(&[Level::Warning]).into_iter();
        found.map(|(row, _)| row).collect::<Vec<_>>()
    };
    assert_eq!(rows("child"), [""; 0]);
    assert_eq!(rows("another"), ["session-setup.known-session"]);
}

#[test]
fn the_values_of_an_option_of_an_extension_are_its_own() {
    let rows = |kind: &str, value: Value| {
        let mut talk = Talk::new(Version::V2);
        talk.client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}}));
        let low = json!({"value": "low", "name": "Low"});
        let option = json!({"configId": "dial", "name": "Dial", "type": kind,
            "currentValue": value, "options": [low, low]});
        let result = json!({"sessionId": "s", "configOptions": [option], "availableCommands": []});
        talk.agent(json!({"id": 1, "result": result}));
        talk.broken()
    };
    for value in [json!("high"), json!(3), json!(true)] {
        assert_eq!(rows("_dial", value), [""; 0]);
    }
    let own = ["config-options.default", "config-options.values"];
    let found = rows("select", json!("high"));
    assert!(own.iter().all(|row| found.contains(row)), "{found:?}");
}

/// JSON-RPC allows it, and so does v1.
#[test]
fn a_request_of_v2_has_no_null_as_its_id() {
    for (version, broken) in [(Version::V1, vec![]), (Version::V2, vec!["jsonrpc.schema"])] {
        let mut talk = Talk::new(version);
        talk.agent(json!({"id": null, "method": "_x/ask", "params": {}}));
        assert_eq!(talk.broken(), broken);
    }
}

#[test]
fn the_directory_of_a_command_is_absolute_and_that_of_an_extension_its_own() {
    let rows = |kind: &str| {
        let mut talk = Talk::new(Version::V2);
        let options = json!([{"optionId": "o", "name": "O", "kind": "allow_once"}]);
        let subject = json!({"type": kind, "command": "make", "cwd": "src"});
        let params =
            json!({"sessionId": "s", "title": "T", "options": options, "subject": subject});
        talk.agent(json!({"id": 1, "method": "session/request_permission", "params": params}));
        talk.broken()
    };
    assert_eq!(rows("command"), ["tool-calls.absolute-cwd"]);
    assert_eq!(rows("_deploy"), [""; 0]);
}

/// Lists are kept up to date by updates of sessions that the client has not opened.
#[test]
fn a_session_that_was_listed_may_have_news_and_nothing_else() {
    let rows = |method: &str, session: &str, update: &str| {
        let mut talk = Talk::new(Version::V1);
        talk.client(json!({"id": 1, "method": "session/list", "params": {}}));
        let listed = json!([{"sessionId": "listed", "cwd": "/"}]);
        talk.agent(json!({"id": 1, "result": {"sessions": listed}}));
        let content = json!({"type": "text", "text": "x"});
        let update = json!({"sessionUpdate": update, "content": content});
        let params = json!({"sessionId": session, "update": update});
        talk.agent(json!({"method": method, "params": params}));
        let found = talk.found(&[Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("session-setup."))
            .collect::<Vec<_>>()
    };
    let news = "session_info_update";
    assert_eq!(rows("session/update", "listed", news), [""; 0]);
    let known = ["session-setup.known-session"];
    assert_eq!(rows("session/update", "another", news), known);
    assert_eq!(
        rows("session/update", "listed", "agent_message_chunk"),
        known
    );
    // The method of an extension has members of its own.
    assert_eq!(rows("_trace/update", "another", news), [""; 0]);
}

/// A client takes the tool call of a question for an update of it.
#[test]
fn a_tool_call_is_reported_by_the_question_about_it() {
    let rows = |kind: &str, call: Value| {
        let mut talk = Talk::new(Version::V2);
        talk.client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}}));
        let result = json!({"sessionId": "s", "configOptions": [], "availableCommands": []});
        talk.agent(json!({"id": 1, "result": result}));
        let options = json!([{"optionId": "o", "name": "O", "kind": "allow_once"}]);
        let mut call = call;
        call["toolCallId"] = json!("c");
        let subject = json!({"type": kind, "toolCall": call});
        let params =
            json!({"sessionId": "s", "title": "T", "options": options, "subject": subject});
        talk.agent(json!({"id": 1, "method": "session/request_permission", "params": params}));
        let update = json!({"sessionUpdate": "tool_call_update", "toolCallId": "c",
            "status": "in_progress"});
        let params = json!({"sessionId": "s", "update": update});
        talk.agent(json!({"method": "session/update", "params": params}));
        let found = talk.found(&[Level::Error, Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("tool-calls."))
            .collect::<Vec<_>>()
    };
    let with = |member: &str, value: Value| {
        let mut call = json!({"title": "Look"});
        call[member] = value;
        call
    };
    assert_eq!(rows("tool_call", json!({"title": "Look"})), [""; 0]);
    assert_eq!(rows("tool_call", json!({})), ["tool-calls.title"]);
    let places = with("locations", json!([{"path": "notes.txt"}]));
    assert_eq!(
        rows("tool_call", places.clone()),
        ["tool-calls.absolute-paths"]
    );
    let change = json!({"operation": "modify", "path": "notes.txt"});
    let diff = with("content", json!([{"type": "diff", "changes": [change]}]));
    assert_eq!(rows("tool_call", diff), ["tool-calls.absolute-paths"]);
    // What a subject of an extension has is its own; so the update is the first report.
    assert_eq!(rows("_deploy", places), ["tool-calls.title"]);
}

/// An option may depend on another, so that an update has fewer. One that can be set was missing.
#[test]
fn an_update_of_options_lacks_none_that_can_be_set() {
    let list = |ids: &[&str]| {
        let value = json!([{"value": "a", "name": "A"}]);
        let option = |id: &&str| {
            json!({"configId": id, "name": "N", "type": "select",
            "currentValue": "a", "options": value})
        };
        Value::Array(ids.iter().map(option).collect())
    };
    let rows = |answers: &[(&str, &[&str])]| {
        let mut talk = Talk::new(Version::V2);
        talk.client(json!({"id": 1, "method": "session/new", "params": {"cwd": "/"}}));
        let both = list(&["model", "thinking"]);
        let result = json!({"sessionId": "s", "configOptions": both, "availableCommands": []});
        talk.agent(json!({"id": 1, "result": result}));
        let update =
            json!({"sessionUpdate": "config_option_update", "configOptions": list(&["model"])});
        let params = json!({"sessionId": "s", "update": update});
        talk.agent(json!({"method": "session/update", "params": params}));
        for (set, answer) in answers {
            let params = json!({"sessionId": "s", "configId": set, "type": "id", "value": "a"});
            talk.client(json!({"id": 2, "method": "session/set_config_option", "params": params}));
            talk.agent(json!({"id": 2, "result": {"configOptions": list(answer)}}));
        }
        let found = talk.found(&[Level::Error, Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("config-options."))
            .collect::<Vec<_>>()
    };
    let both: &[&str] = &["model", "thinking"];
    assert_eq!(rows(&[]), [""; 0]);
    assert_eq!(rows(&[("model", &["model"])]), [""; 0]);
    // Another model has brought it back.
    assert_eq!(rows(&[("model", both), ("thinking", both)]), [""; 0]);
    let lacks = ["config-options.complete-update"];
    assert_eq!(rows(&[("thinking", both)]), lacks);
}

/// The output of a killed command may be read in a later turn, too. Who has read it needs the terminal no more.
#[test]
fn a_terminal_is_kept_until_the_output_of_its_killed_command_was_read() {
    let output = || {
        let status = json!({"signal": "SIGKILL"});
        let result = json!({"output": "", "truncated": false, "exitStatus": status});
        of_terminal("terminal/output", result)
    };
    let kill = || of_terminal("terminal/kill", json!({}));
    let release = || of_terminal("terminal/release", json!({}));
    let rows = |turns: &[&[(&str, Value, Value)]]| {
        let mut talk = Talk::new(Version::V1);
        turns.iter().for_each(|turn| talk.turn(turn));
        talk.broken()
    };
    assert_eq!(rows(&[&[created(), kill()]]), [""; 0]);
    assert_eq!(
        rows(&[&[created(), kill()], &[output(), release()]]),
        [""; 0]
    );
    let kept: [&[&[_]]; 2] = [
        &[&[created(), kill()], &[output()]],
        &[&[created(), kill(), output()], &[]],
    ];
    for turns in kept {
        let broken = ["terminals.released", "terminals.released-after-kill"];
        assert_eq!(rows(turns), broken);
    }
}

/// The id is invalid for all other methods.
#[test]
fn a_terminal_may_be_released_twice_and_not_used_then() {
    let rows = |method: &'static str| {
        let mut talk = Talk::new(Version::V1);
        let release = || of_terminal("terminal/release", json!({}));
        let then = of_terminal(method, json!({}));
        talk.turn(&[created(), release(), then]);
        let found = talk.found(&[Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("terminals."))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("terminal/release"), [""; 0]);
    assert_eq!(rows("terminal/kill"), ["terminals.gone-when-released"]);
}

#[test]
fn paths_and_lines_of_a_replay_are_judged_as_well() {
    let rows = |path: &str, line: Value| {
        let mut talk = Talk::new(Version::V1);
        let params = json!({"sessionId": "s", "cwd": "/", "mcpServers": []});
        talk.client(json!({"id": 1, "method": "session/load", "params": params}));
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Look",
            "locations": [{"path": path, "line": line}]});
        let params = json!({"sessionId": "s", "update": update});
        talk.agent(json!({"method": "session/update", "params": params}));
        talk.agent(json!({"id": 1, "result": {}}));
        let found = talk.found(&[Level::Error, Level::Warning]).into_iter();
        let rows = found.map(|(row, _)| row);
        rows.filter(|row| row.starts_with("tool-calls."))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows("/notes.txt", json!(1)), [""; 0]);
    assert_eq!(rows("notes.txt", json!(1)), ["tool-calls.absolute-paths"]);
    assert_eq!(rows("/notes.txt", json!(0)), ["tool-calls.lines-from-one"]);
}

/// `null` clears the exit status, so that the terminal has not exited.
#[test]
fn output_may_follow_an_exit_status_that_was_cleared() {
    let notes = |between: Option<Value>| {
        let mut talk = Talk::new(Version::V2);
        let mut update = |update: Value| {
            let params = json!({"sessionId": "s", "update": update});
            talk.agent(json!({"method": "session/update", "params": params}));
        };
        let exit = |status: Value| json!({"sessionUpdate": "terminal_update", "terminalId": "t", "exitStatus": status});
        update(exit(json!({})));
        if let Some(status) = between {
            update(exit(status));
        }
        update(json!({"sessionUpdate": "terminal_output_chunk", "terminalId": "t", "data": ""}));
        let found = talk.found(&[Level::Note]);
        found
            .iter()
            .any(|(row, _)| *row == "tool-calls.output-after-exit")
    };
    assert!(notes(None));
    assert!(!notes(Some(Value::Null)));
}

/// The client of version 2 may repeat `initialize`, and the latest one counts.
#[test]
fn what_the_client_declared_last_is_declared() {
    let rows = |again: Value| {
        let mut talk = Talk::new(Version::V2);
        let mut second = talk.records.clone();
        if let Some(Record::Message(_, params)) = second.first_mut() {
            params["params"]["capabilities"] = again;
        }
        talk.records.append(&mut second);
        let form = json!({"type": "object", "properties": {}});
        let params =
            json!({"sessionId": "s", "mode": "form", "message": "Which?", "requestedSchema": form});
        talk.agent(json!({"id": 1, "method": "elicitation/create", "params": params}));
        talk.broken().contains(&"elicitation.no-undeclared-mode")
    };
    assert!(rows(json!({})));
    assert!(!rows(json!({"elicitation": {"form": {}}})));
}
