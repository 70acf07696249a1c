//! OpenOxide's ACP server, rule by rule of its text; see `docs/dialects.md`.

use acp_sdk::{ConnectionBuilder, Framing};
use acp_server::Server;
use acp_server_dialects::openoxide::OpenOxide;
use serde_json::{Value, json};

use crate::client::Client;
use crate::script::Script;

pub fn client_of(server: &Server) -> Client {
    let connection = OpenOxide::connection(ConnectionBuilder::new());
    let agent = OpenOxide::new(server.clone());
    Client::over(agent, Framing::ContentLength, connection)
}

async fn started_at(server: &Server) -> (Client, Value) {
    let mut client = client_of(server);
    let params = json!({ "working_dir": "/w" });
    let (created, _) = client.result("session/new", params).await;
    (client, created["session_id"].clone())
}

async fn started() -> (Client, Value) {
    started_at(&Server::new(Script)).await
}

pub fn prompt(session: &Value, text: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "type": "prompt", "session_id": session, "content": content })
}

/// Returns the response to a prompt, and its events.
async fn turn(client: &mut Client, session: &Value, text: &str) -> (Value, Vec<Value>) {
    let params = prompt(session, text);
    let (response, notifications) = client.result("session/prompt", params).await;
    let events = notifications.into_iter().map(|mut sent| {
        assert_eq!(sent["method"], "session/event");
        assert_eq!(sent["params"]["session_id"], *session);
        sent["params"]["event"].take()
    });
    (response, events.collect())
}

async fn text(client: &mut Client, session: &Value, said: &str) -> Value {
    let (mut response, _) = turn(client, session, said).await;
    response["text"].take()
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().map(|event| event["type"].as_str().unwrap());
    types.collect()
}

#[tokio::test]
async fn the_handshake_lists_the_capabilities() {
    let mut client = client_of(&Server::new(Script));
    let expected = json!({
        "file_read": true,
        "file_write": true,
        "terminal_exec": true,
        "web_search": true,
        "slash_commands": [],
        "streaming": true,
        "session_fork": true,
        "agent_info": { "name": "script", "version": "1" },
    });
    for params in [json!({}), json!({ "capabilities": {} })] {
        let (capabilities, _) = client.result("initialize", params).await;
        assert_eq!(capabilities, expected);
    }
    client
        .write(r#"{"jsonrpc":"2.0","id":"a","method":"initialize"}"#)
        .await;
    assert_eq!(client.next().await["result"], expected);
}

#[tokio::test]
async fn a_prompt_has_text_deltas_and_a_response_with_all_text() {
    let (mut client, session) = started().await;
    let (response, events) = turn(&mut client, &session, "say Hel|lo").await;
    let delta = |text: &str| json!({ "type": "text_delta", "text": text });
    assert_eq!(events, [delta("Hel"), delta("lo")]);
    assert_eq!(response["session_id"], session);
    assert_eq!(
        (&response["text"], &response["stop_reason"]),
        (&json!("Hello"), &json!("end_turn"))
    );
    assert_eq!(
        text(&mut client, &session, "tool works").await,
        "Before. After."
    );
    // Thoughts are no part of the answer.
    let (response, events) = turn(&mut client, &session, "think").await;
    assert_eq!(
        (types(&events), &response["text"]),
        (vec!["text_delta"], &json!("Yes."))
    );
    let (_, events) = turn(&mut client, &session, "usage").await;
    assert_eq!(events, [] as [Value; 0]);
}

#[tokio::test]
async fn a_prompt_is_blocks_of_text() {
    let (mut client, session) = started().await;
    let mut params = prompt(&session, "say ");
    let more = json!({ "type": "text", "text": "A" });
    params["content"].as_array_mut().unwrap().push(more);
    let (response, _) = client.result("session/prompt", params).await;
    assert_eq!(response["stop_reason"], "end_turn");
    let image = json!({ "type": "image", "data": "" });
    for (member, value, expected) in [
        (
            "type",
            json!("cancel"),
            "expected a message of type `prompt`, got \"cancel\"",
        ),
        (
            "content",
            json!([]),
            "expected a block in the `content` of the prompt, got none",
        ),
        (
            "content",
            json!([image]),
            "expected type `text` with a text in /content/0, got \"image\"",
        ),
    ] {
        let mut params = prompt(&session, "say A");
        params[member] = value;
        let error = client.error("session/prompt", params).await;
        assert_eq!(
            (&error["code"], &error["message"]),
            (&json!(-32602), &json!(expected))
        );
    }
    let mut params = prompt(&session, "say A");
    params.as_object_mut().unwrap().remove("type");
    assert_eq!(client.result("session/prompt", params).await.0["text"], "A");
}

#[tokio::test]
async fn a_tool_call_its_diffs_and_its_reports_are_events() {
    let (mut client, session) = started().await;
    let (_, mut events) = turn(&mut client, &session, "files").await;
    let read = &mut events[1]["reports"][0];
    assert!(read["time"].take().as_str().unwrap().ends_with('Z'));
    let edited = "--- a/w/a\n+++ b/w/a\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
    let created = "--- /dev/null\n+++ b/w/c\n@@ -0,0 +1 @@\n+new\n";
    let call = |id: &Value, kind: &str, title: &str, input: Value| {
        json!({ "type": "tool_call", "tool_call_id": id, "name": kind, "kind": kind,
            "title": title, "input": input })
    };
    let result = |id: &Value, success: bool, output: Value, reports: Value| {
        json!({ "type": "tool_result", "tool_call_id": id, "success": success,
            "output": output, "reports": reports })
    };
    let diff = |id: &Value, path: &str, text: &str| json!({ "type": "diff", "tool_call_id": id, "path": path, "unified_diff": text });
    let at = |index: usize| events[index]["tool_call_id"].clone();
    let write = |path: &str| json!([{ "type": "file_write", "path": path }]);
    let run = json!({ "type": "terminal", "command": "echo 'a b'", "output": "\u{1b}[1ma b" });
    let page = json!({ "type": "web_search", "url": "https://example.com", "content": "Example" });
    let expected = [
        call(&at(0), "read", "Read", json!({})),
        result(
            &at(0),
            true,
            json!("one"),
            json!([{ "type": "file_read", "path": "/w/a", "time": null }]),
        ),
        call(&at(2), "edit", "Edit", json!({})),
        diff(&at(2), "/w/a", edited),
        result(&at(2), true, json!("/w/a"), write("/w/a")),
        // What failed has changed nothing.
        call(&at(5), "edit", "Create", json!({})),
        result(&at(5), false, json!("/w/b\ndisk full"), json!([])),
        call(&at(7), "edit", "Create", json!({})),
        diff(&at(7), "/w/c", created),
        result(&at(7), true, json!("/w/c"), write("/w/c")),
        call(
            &at(10),
            "execute",
            "Run",
            json!({ "command": "echo", "args": ["a b"] }),
        ),
        result(&at(10), true, json!("\u{1b}[1ma b"), json!([run])),
        call(
            &at(12),
            "fetch",
            "Fetch",
            json!({ "url": "https://example.com" }),
        ),
        result(&at(12), true, json!("Example"), json!([page])),
    ];
    assert_eq!(events.len(), expected.len());
    for (found, expected) in events.iter().zip(&expected) {
        assert_eq!(found, expected);
    }
}

#[tokio::test]
async fn the_steps_of_a_plan_are_an_event() {
    let (mut client, session) = started().await;
    let (_, events) = turn(&mut client, &session, "plan").await;
    let step = |content: &str, status: &str| json!({ "content": content, "status": status, "priority": "high" });
    let steps = [step("Read", "completed"), step("Write", "pending")];
    assert_eq!(events, [json!({ "type": "plan", "steps": steps })]);
}

#[tokio::test]
async fn slash_commands_are_advertised_by_sessions_and_run_as_prompts() {
    let (mut client, session) = started().await;
    let (_, events) = turn(&mut client, &session, "commands").await;
    let commands = json!([{ "command": "/review", "description": "Reviews changes" }]);
    assert_eq!(
        events,
        [json!({ "type": "slash_commands", "slash_commands": commands })]
    );
    let id = json!({ "session_id": session });
    let (resumed, _) = client.result("session/resume", id).await;
    assert_eq!(resumed["slash_commands"], commands);
    // The text reaches the agent as it is.
    turn(&mut client, &session, "/review now").await;
    assert_eq!(
        text(&mut client, &session, "history").await,
        "commands, /review now, history"
    );
}

#[tokio::test]
async fn a_session_begins_with_its_configuration() {
    let server = Server::new(Script);
    let mut client = client_of(&server);
    let params = json!({ "working_dir": "/w", "config": { "model": "large", "mode": "plan" } });
    let (created, _) = client.result("session/new", params).await;
    assert_eq!(created["working_dir"], "/w");
    let session = created["session_id"].clone();
    let settings = text(&mut client, &session, "settings").await;
    assert_eq!(settings, "Some(\"plan\") Some(\"large\")");
    // What would be ignored must not seem to hold, and what was refused is not left behind.
    for (config, expected) in [
        (
            json!({ "temperature": "0" }),
            "the agent offers no choice of \"temperature\"",
        ),
        (
            json!({ "model": 1 }),
            "expected a text or a boolean in /config/model, got 1",
        ),
    ] {
        let error = client
            .error("session/new", json!({ "config": config }))
            .await;
        assert_eq!(error["code"], -32602);
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(expected), "{message}");
    }
    assert_eq!(server.open_sessions().len(), 1);
}

#[tokio::test]
async fn a_session_is_resumed_with_its_history() {
    let server = Server::new(Script);
    let (mut client, session) = started_at(&server).await;
    turn(&mut client, &session, "say A").await;
    drop(client);
    let id = session.as_str().unwrap().into();
    server.close_session(&id).await.unwrap();
    let mut client = client_of(&server);
    let id = json!({ "session_id": session });
    let (resumed, events) = client.result("session/resume", id).await;
    assert_eq!((&resumed["working_dir"], events.len()), (&json!("/w"), 0));
    assert_eq!(
        text(&mut client, &session, "history").await,
        "say A, history"
    );
}

#[tokio::test]
async fn a_fork_begins_at_the_given_point() {
    let (mut client, session) = started().await;
    let (first, _) = turn(&mut client, &session, "say A").await;
    turn(&mut client, &session, "say B").await;
    let fork = |event: Value| json!({ "session_id": session, "event_id": event });
    for (point, expected) in [
        (first["event_id"].clone(), "say A, history"),
        (json!(0), "history"),
        (Value::Null, "say A, say B, history"),
    ] {
        let (forked, _) = client.result("session/fork", fork(point)).await;
        let copy = forked["session_id"].clone();
        assert_ne!(copy, session);
        assert_eq!(text(&mut client, &copy, "history").await, expected);
    }
    let error = client.error("session/fork", fork(json!(10_000))).await;
    assert_eq!(error["code"], -32602);
    let message = error["message"].as_str().unwrap();
    assert!(
        message.starts_with("expected an event_id up to "),
        "{message}"
    );
    assert_eq!(
        text(&mut client, &session, "history").await,
        "say A, say B, history"
    );
}

#[tokio::test]
async fn a_deleted_session_is_gone() {
    let (mut client, session) = started().await;
    let id = json!({ "session_id": session });
    let (deleted, _) = client.result("session/delete", id.clone()).await;
    assert_eq!(deleted, id);
    for method in ["session/delete", "session/resume", "session/fork"] {
        assert_eq!(client.error(method, id.clone()).await["code"], -32002);
    }
    let params = prompt(&session, "say A");
    assert_eq!(client.error("session/prompt", params).await["code"], -32002);
}

#[tokio::test]
async fn a_cancelled_request_is_answered_with_the_partial_result() {
    let (mut client, session) = started().await;
    let held = client
        .send("session/prompt", prompt(&session, "hold A"))
        .await;
    let queued = client
        .send("session/prompt", prompt(&session, "say B"))
        .await;
    assert_eq!(client.next().await["params"]["event"]["text"], "A");
    for id in [queued, held] {
        let cancel =
            json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": id } });
        client.write(&cancel.to_string()).await;
    }
    let mut answers = [client.next().await, client.next().await];
    answers.sort_by_key(|answer| answer["id"].as_u64());
    for (answer, (id, text)) in answers.iter().zip([(held, "A"), (queued, "")]) {
        assert_eq!(answer["id"], id);
        assert_eq!(answer["result"]["stop_reason"], "cancelled", "{answer}");
        assert_eq!(answer["result"]["text"], text);
    }
    assert_eq!(
        text(&mut client, &session, "history").await,
        "hold A, history"
    );
}

#[tokio::test]
async fn a_permission_that_nobody_can_give_is_rejected() {
    let (mut client, session) = started().await;
    let (response, events) = turn(&mut client, &session, "ask allow_once reject_once").await;
    assert_eq!(response["text"], "Chosen: reject_once.");
    assert_eq!(types(&events), ["tool_call", "text_delta", "tool_result"]);
    assert_eq!(events[2]["success"], false);
}

#[tokio::test]
async fn headers_frame_messages_and_failures_are_errors() {
    let (mut client, session) = started().await;
    let body = r#"{"jsonrpc":"2.0","id":"x","method":"initialize"}"#;
    let length = body.len();
    // Names have no case; other headers do not matter.
    let good = format!("content-LENGTH:{length}\r\nContent-Type: x\r\nX-Y: z\r\n\r\n{body}");
    client.write_raw(&good).await;
    assert_eq!(client.next().await["id"], "x");
    let params = prompt(&session, "fail");
    let error = client.error("session/prompt", params).await;
    assert_eq!(error["message"], "no model answers");
    assert_eq!(
        client.error("session/message", json!({})).await["code"],
        -32601
    );
    assert_eq!(text(&mut client, &session, "say On").await, "On");
}

#[tokio::test]
async fn a_bad_length_is_an_error_and_the_end() {
    let server = Server::new(Script);
    for bad in [
        "Content-Length: many\r\n\r\n",
        "Content-Length: -1\r\n\r\n",
        "X-Y: z\r\n\r\n",
    ] {
        let (mut client, session) = started_at(&server).await;
        turn(&mut client, &session, "say A").await;
        client.write_raw(bad).await;
        let error = client.next().await["error"].take();
        assert_eq!(error["code"], -32700, "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("Content-Length"), "{message}");
        client.closed().await;
        // The session stays.
        let mut client = client_of(&server);
        let said = text(&mut client, &session, "history").await;
        assert_eq!(said, "say A, history");
    }
}
