//! The proxies that are ready for use.

use std::path::Path;

use acp_client::{Rule, Rules};
use acp_proxy::proxies;
use acp_sdk::v1::{McpServer, McpServerStdio};
use serde_json::{Value, json};

use crate::wire::{Wired, both_runtimes, end_turn, prompt, update, wired};

/// Has the agent send a request, which the client answers with `result`. Returns the params that reach the
/// client, if they do, and the answer that reaches the agent.
async fn agent_asks(
    wired: &mut Wired,
    method: &str,
    params: Value,
    result: Value,
) -> (Option<Value>, Value) {
    let request = json!({"jsonrpc": "2.0", "id": 40, "method": method, "params": params});
    wired.agent.send(&request.to_string()).await;
    // What the proxy answers itself does not reach the client, whose next message of the session is this.
    let mark =
        json!({"jsonrpc": "2.0", "method": "_mark", "params": {"sessionId": params["sessionId"]}});
    wired.agent.send(&mark.to_string()).await;
    let mut received = None;
    loop {
        let message = wired.client.json().await;
        if message["method"] == "_mark" {
            break;
        }
        received = Some(message);
    }
    if let Some(request) = &received {
        let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": result});
        wired.client.send(&answer.to_string()).await;
    }
    (
        received.map(|request| request["params"].clone()),
        wired.agent.json().await,
    )
}

fn lines(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn new_session(wired: &mut Wired, params: Value) -> Value {
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": params});
    wired.client.send(&request.to_string()).await;
    let request = wired.agent.json().await;
    let answer = json!({"jsonrpc": "2.0", "id": request["id"], "result": {"sessionId": "s"}});
    wired.agent.send(&answer.to_string()).await;
    wired.client.json().await;
    request["params"].clone()
}

/// The versions that `policy` knows.
const VERSIONS: [u16; 2] = [1, 2];

fn rules() -> Rules {
    Rules::new()
        .rule(Rule::deny().path("**/.env").unwrap())
        .rule(Rule::deny().command("rm **").unwrap())
        .rule(Rule::allow().command("cargo test **").unwrap())
        .rule(Rule::deny().command("cargo **").unwrap())
}

fn options() -> Value {
    json!([
        {"optionId": "y", "name": "Yes", "kind": "allow_once"},
        {"optionId": "n", "name": "No", "kind": "reject_once"},
    ])
}

async fn initialize(wired: &mut Wired, version: u16) {
    wired
        .client
        .send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#)
        .await;
    wired.agent.json().await;
    let result = json!({"protocolVersion": version});
    let answer = json!({"jsonrpc": "2.0", "id": 0, "result": result});
    wired.agent.send(&answer.to_string()).await;
    wired.client.json().await;
}

/// Has the agent report a tool call, which reaches the client.
async fn announce(wired: &mut Wired, version: u16, call: Value) {
    announce_in(wired, version, json!({"sessionId": "s"}), call).await;
}

/// Has the agent report a tool call of the session that `params` names.
async fn announce_in(wired: &mut Wired, version: u16, params: Value, mut call: Value) {
    let kind = match version {
        1 => "tool_call",
        _ => "tool_call_update",
    };
    call["sessionUpdate"] = kind.into();
    updates(wired, params, call).await;
}

/// Has the agent send an update, which reaches the client.
async fn updates(wired: &mut Wired, mut params: Value, update: Value) {
    params["update"] = update;
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
    wired.agent.send(&update.to_string()).await;
    assert_eq!(wired.client.json().await, update);
}

/// Has the agent ask about a tool call. Returns as [`agent_asks`].
async fn asks_permission(wired: &mut Wired, version: u16, call: &Value) -> (Option<Value>, Value) {
    let question = match version {
        1 => json!({"sessionId": "s", "toolCall": call, "options": options()}),
        _ => {
            let subject = json!({"type": "tool_call", "toolCall": call});
            json!({"sessionId": "s", "title": "May I?", "subject": subject, "options": options()})
        }
    };
    let outcome = json!({"outcome": {"outcome": "cancelled"}});
    agent_asks(wired, "session/request_permission", question, outcome).await
}

both_runtimes! {
    async fn secrets_of_prompts_and_files_do_not_reach_the_agent() {
        let patterns = proxies::SECRETS.iter().copied().chain(["hunter[0-9]"]);
        let mut wired = wired(proxies::redact(patterns).unwrap());
        let key = "AKIAABCDEFGHIJKLMNOP";
        wired.client.send(&prompt(1, "s", &format!("use {key} and hunter2, please"))).await;
        let request = wired.agent.json().await;
        assert_eq!(request["params"]["prompt"][0]["text"], "use [redacted] and [redacted], please");
        let content = json!({"content": format!("-----BEGIN PRIVATE KEY-----\n{key}\n-----END PRIVATE KEY-----\nrest")});
        let (_, answer) = agent_asks(&mut wired, "fs/read_text_file", json!({"path": "/k"}), content).await;
        assert_eq!(answer["result"]["content"], "[redacted]\nrest");
        let (_, answer) = agent_asks(&mut wired, "terminal/output", json!({}), json!({"output": "ok", "data": key})).await;
        assert_eq!(answer["result"], json!({"output": "ok", "data": key}));
    }

    async fn files_come_before_the_first_prompt_of_a_new_session() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("AGENTS.md");
        std::fs::write(&file, "Be brief.").unwrap();
        let mut wired = wired(proxies::context([file.clone()]).unwrap());
        let load = json!({"jsonrpc": "2.0", "id": 1, "method": "session/load", "params": {"sessionId": "old"}});
        wired.client.send(&load.to_string()).await;
        let id = wired.agent.json().await["id"].clone();
        wired.agent.send(&json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string()).await;
        wired.client.json().await;
        for (session, count) in [("s", 2), ("s", 1), ("old", 1), ("t", 2)] {
            wired.client.send(&prompt(1, session, "hello")).await;
            let request = wired.agent.json().await;
            let texts = request["params"]["prompt"].as_array().unwrap();
            assert_eq!(texts.len(), count, "{session}");
            assert_eq!(texts[count - 1]["text"], "hello");
            if count == 2 {
                assert!(texts[0]["text"].as_str().unwrap().ends_with("\n\nBe brief."));
            }
            wired.agent.send(&end_turn(&request["id"])).await;
            wired.client.json().await;
        }
        std::fs::remove_file(&file).unwrap();
        wired.client.send(&prompt(1, "new", "hello")).await;
        let answer = wired.client.json().await;
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("AGENTS.md") && message.contains("for the prompt"), "{message}");
        assert!(proxies::context([file]).is_err());
    }

    async fn every_session_has_the_tools_in_the_form_of_its_version() {
        let server = McpServer::Stdio(McpServerStdio::new("team", "/bin/team", vec![], vec![]));
        for version in [1, 2] {
            let mut wired = wired(proxies::tools(std::slice::from_ref(&server)).unwrap());
            initialize(&mut wired, version).await;
            let sent = new_session(&mut wired, json!({"cwd": "/", "mcpServers": [{"name": "own"}], "later": 1})).await;
            let mut team = json!({"name": "team", "command": "/bin/team", "args": [], "env": []});
            if version == 2 {
                team["type"] = "stdio".into();
            }
            assert_eq!(sent, json!({"cwd": "/", "mcpServers": [{"name": "own"}, team], "later": 1}));
            let sent = new_session(&mut wired, json!({"cwd": "/", "mcpServers": [{"name": "team", "own": true}]})).await;
            assert_eq!(sent["mcpServers"], json!([{"name": "team", "own": true}]));
        }
    }

    async fn effects_are_written_down_with_their_ends() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("audit.jsonl");
        let mut wired = wired(proxies::audit(&file).unwrap());
        let write = json!({"sessionId": "s", "path": "/a", "content": "not written down"});
        agent_asks(&mut wired, "fs/write_text_file", write, json!({})).await;
        let question = json!({"sessionId": "s", "toolCall": {"title": "Run x"}, "options": []});
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": "yes"}});
        agent_asks(&mut wired, "session/request_permission", question, outcome).await;
        let call = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "s", "update":
            {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Edit", "content": ["left out"]}}});
        wired.agent.send(&call.to_string()).await;
        wired.agent.send(&update("s", "said")).await;
        assert_eq!(wired.client.json().await, call);
        wired.client.json().await;
        let mut lines = lines(&file);
        for line in &mut lines {
            let time = line.as_object_mut().unwrap().remove("time").unwrap();
            assert!(time.as_u64().unwrap() > 1_700_000_000_000);
        }
        assert_eq!(lines, [
            json!({"session": "s", "what": "fs/write_text_file", "path": "/a", "result": "ok"}),
            json!({"session": "s", "what": "session/request_permission", "toolCall": {"title": "Run x"},
                "result": {"outcome": "selected", "optionId": "yes"}}),
            json!({"session": "s", "what": "tool_call", "toolCallId": "1", "title": "Edit"}),
        ]);
    }

    async fn rules_refuse_allow_and_leave_the_rest_to_the_client() {
        let mut wired = wired(proxies::policy(rules()));
        new_session(&mut wired, json!({"cwd": "/project", "mcpServers": []})).await;
        let read = |path: &str| json!({"sessionId": "s", "path": path});
        let (asked, answer) = agent_asks(&mut wired, "fs/read_text_file", read("/project/.env"), json!({})).await;
        assert_eq!(asked, None);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.starts_with("reading /project/.env is refused by a rule of the proxy `policy`"), "{message}");
        let (asked, _) = agent_asks(&mut wired, "fs/read_text_file", read("/project/a"), json!({"content": ""})).await;
        assert_eq!(asked, Some(read("/project/a")));
        let run = |words: &[&str]| json!({"sessionId": "s", "command": words[0], "args": words[1..]});
        let (asked, _) = agent_asks(&mut wired, "terminal/create", run(&["rm", "-r", "x"]), json!({})).await;
        assert_eq!(asked, None);
        let (asked, _) = agent_asks(&mut wired, "terminal/create", run(&["ls"]), json!({"terminalId": "1"})).await;
        assert!(asked.is_some());
    }

    async fn rules_decide_permission_requests_of_both_versions() {
        for version in VERSIONS {
            let mut wired = wired(proxies::policy(rules()));
            initialize(&mut wired, version).await;
            new_session(&mut wired, json!({"cwd": "/project", "mcpServers": []})).await;
            wired.client.send(&prompt(1, "s", "go")).await;
            wired.agent.json().await;
            // What it says of the call earlier counts.
            announce(&mut wired, version, json!({"toolCallId": "known", "title": "x", "kind": "execute", "rawInput": {"command": "rm -r x"}})).await;
            let command = |command: &str| json!({"toolCallId": "1", "kind": "execute", "rawInput": {"command": command}});
            for (call, option) in [
                (command("cargo test --all"), Some("y")),
                (command("rm -r x"), Some("n")),
                (json!({"toolCallId": "known"}), Some("n")),
                (json!({"toolCallId": "2", "kind": "edit", "locations": [{"path": "/project/.env"}]}), Some("n")),
                // No rule is about it, and this is unclear to one that denies.
                (command("ls"), None),
                (json!({"toolCallId": "3"}), None),
            ] {
                let (asked, answer) = asks_permission(&mut wired, version, &call).await;
                assert_eq!(asked.is_none(), option.is_some(), "{version} {call}");
                assert_eq!(answer["result"]["outcome"]["optionId"].as_str(), option, "{version} {call}");
            }
            if version == 2 {
                let subject = |command: &str| json!({"type": "command", "command": command, "cwd": "/project"});
                for (subject, option) in [
                    (subject("cargo test"), Some("y")),
                    (subject("rm x"), Some("n")),
                    // Whatever the subject is, a rule that denies finds its command.
                    (json!({"type": "_later", "command": "rm x"}), Some("n")),
                    (json!({"type": "_later", "what": "x"}), None),
                ] {
                    let question = json!({"sessionId": "s", "title": "May I?", "subject": subject, "options": options()});
                    let outcome = json!({"outcome": {"outcome": "cancelled"}});
                    let (asked, answer) = agent_asks(&mut wired, "session/request_permission", question, outcome).await;
                    assert_eq!(asked.is_none(), option.is_some(), "{subject}");
                    assert_eq!(answer["result"]["outcome"]["optionId"].as_str(), option, "{subject}");
                }
            }
        }
    }

    /// As an agent does in a mode in which it never asks.
    async fn a_denied_call_that_was_made_without_asking_ends_the_turn() {
        for version in VERSIONS {
            let mut wired = wired(proxies::policy(rules()));
            initialize(&mut wired, version).await;
            new_session(&mut wired, json!({"cwd": "/project", "mcpServers": []})).await;
            let done = |id: &str, command: &str| json!({"toolCallId": id, "title": "Run it", "kind": "execute",
                "status": "completed", "rawInput": {"command": command}});
            // A history is no work of a turn.
            announce(&mut wired, version, done("old", "rm x")).await;
            // Other members of the prompt are not read, whatever they are.
            let prompt = prompt(1, "s", "go").replace(r#""prompt":"#, r#""later":1e400,"prompt":"#);
            wired.client.send(&prompt).await;
            wired.agent.text().await;
            // No rule is about the one, and a rule allows the other.
            announce(&mut wired, version, done("1", "ls")).await;
            announce(&mut wired, version, done("1", "cargo test --all")).await;
            // What was refused, and what the client has allowed, is settled.
            let refused = json!({"toolCallId": "2", "kind": "execute", "rawInput": {"command": "rm x"}});
            asks_permission(&mut wired, version, &refused).await;
            announce(&mut wired, version, done("2", "rm x")).await;
            asks_permission(&mut wired, version, &json!({"toolCallId": "3"})).await;
            announce(&mut wired, version, done("3", "rm x")).await;
            announce(&mut wired, version, done("4", "rm x")).await;
            let cancel = wired.agent.json().await;
            assert_eq!((&cancel["method"], &cancel["params"]["sessionId"]), (&json!("session/cancel"), &json!("s")));
            let update = wired.client.json().await["params"]["update"].clone();
            let text = update["content"]["text"].as_str().unwrap();
            assert!(text.contains("Run it: it is done, nobody was asked before, and it is denied: rule 2"), "{text}");
            assert_eq!(update["messageId"].is_string(), version == 2, "{update}");
        }
    }

    /// The rules are about what the agent does in the turn, in whatever session of its own.
    async fn a_denied_call_of_a_child_session_ends_the_turn_of_its_parent() {
        for version in VERSIONS {
            let mut wired = wired(proxies::policy(rules()));
            initialize(&mut wired, version).await;
            new_session(&mut wired, json!({"cwd": "/project", "mcpServers": []})).await;
            let child = |id: &str, capabilities: Value| json!({"sessionUpdate": "subagent_update",
                "sessionId": id, "capabilities": capabilities});
            let of = |id: &str| json!({"sessionId": id});
            let denied = json!({"toolCallId": "1", "title": "Run it", "kind": "execute",
                "status": "completed", "rawInput": {"command": "rm x"}});
            // The history has children, too.
            updates(&mut wired, of("s"), child("old", json!({}))).await;
            announce_in(&mut wired, version, of("old"), denied.clone()).await;
            wired.client.send(&prompt(1, "s", "go")).await;
            wired.agent.text().await;
            updates(&mut wired, of("s"), child("child", json!({"cancel": {}}))).await;
            updates(&mut wired, of("child"), child("grandchild", json!({}))).await;
            // Of a session that is nobody's, and of one that says that it is its own parent.
            announce_in(&mut wired, version, of("other"), denied.clone()).await;
            updates(&mut wired, of("s"), child("s", json!({"cancel": {}}))).await;
            let by_meta = json!({"sessionId": "named", "_meta": {"_vendor": {"parentSessionId": "child"}, "later": 7}});
            for (params, cancelled) in [
                (of("child"), vec!["child", "s"]),
                (of("grandchild"), vec!["s"]),
                (by_meta, vec!["s"]),
                (of("old"), vec!["s"]),
            ] {
                let mut call = denied.clone();
                call["toolCallId"] = "2".into();
                announce_in(&mut wired, version, params.clone(), call).await;
                for id in cancelled {
                    let cancel = wired.agent.json().await;
                    assert_eq!(cancel["method"], "session/cancel", "{params}");
                    assert_eq!(cancel["params"]["sessionId"], id, "{params}");
                }
                let text = wired.client.json().await["params"].clone();
                assert_eq!(text["sessionId"], "s", "{params}");
                assert!(text["update"]["content"]["text"].as_str().unwrap().contains("denied"), "{text}");
            }
        }
    }

    async fn a_transcript_has_what_passed() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("transcript.jsonl");
        let mut wired = wired(proxies::record(&file, true).unwrap());
        wired.client.send(&prompt(1, "s", "hello")).await;
        wired.agent.json().await;
        wired.agent.send(&end_turn(&1.into())).await;
        wired.client.json().await;
        drop((wired.client, wired.agent));
        wired.proxy.await.unwrap();
        // A thread writes it.
        let written = tokio::task::spawn_blocking(move || {
            for _ in 0..500 {
                let lines = lines(&file);
                if lines.len() == 2 {
                    return lines;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            lines(&file)
        });
        let lines = written.await.unwrap();
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert_eq!(lines[0]["msg"]["method"], "session/prompt");
    }
}
