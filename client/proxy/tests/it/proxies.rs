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
            wired.client.send(r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}"#).await;
            wired.agent.json().await;
            wired.agent.send(&json!({"jsonrpc": "2.0", "id": 0, "result": {"protocolVersion": version}}).to_string()).await;
            wired.client.json().await;
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
        let rules = Rules::new()
            .rule(Rule::deny().path("**/.env").unwrap())
            .rule(Rule::deny().command("rm **").unwrap())
            .rule(Rule::allow().command("cargo test **").unwrap());
        let mut wired = wired(proxies::policy(rules));
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
        let question = |command: &str| json!({"sessionId": "s", "toolCall": {"toolCallId": "1", "kind": "execute",
            "rawInput": {"command": command}}, "options": [
                {"optionId": "y", "name": "Yes", "kind": "allow_once"},
                {"optionId": "n", "name": "No", "kind": "reject_once"}]});
        for (command, option) in [("cargo test --all", Some("y")), ("rm -r x", Some("n")), ("ls", None)] {
            let outcome = json!({"outcome": {"outcome": "cancelled"}});
            let (asked, answer) = agent_asks(&mut wired, "session/request_permission", question(command), outcome).await;
            assert_eq!(asked.is_none(), option.is_some(), "{command}");
            assert_eq!(answer["result"]["outcome"]["optionId"].as_str(), option, "{command}");
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
