//! The option of the command `acp-server`.

use std::io::{BufRead as _, BufReader, Lines, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

use crate::lifeline::Lifeline;

/// Starts the command with its standard input and the lines of its output.
fn spawn(arguments: &[&str]) -> (Child, ChildStdin, Lines<BufReader<ChildStdout>>) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .args(["--store", "memory"])
        .args(arguments)
        .env("ACP_SERVER_TOKEN", "the-token-of-the-server")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input = child.stdin.take().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    (child, input, lines)
}

/// Sends a prompt and returns the updates until the answer, then ends the input.
fn prompt(arguments: &[&str], cwd: &std::path::Path, said: &str) -> String {
    let (mut child, mut input, mut lines) = spawn(arguments);
    let mut call = |id: u64, method: &str, params: Value| {
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        writeln!(input, "{request}").unwrap();
        let mut all = String::new();
        loop {
            let line = lines.next().unwrap().unwrap();
            let message: Value = serde_json::from_str(&line).unwrap();
            all += &line;
            if message["id"] == id {
                return (message["result"].clone(), all);
            }
        }
    };
    call(0, "initialize", json!({ "protocolVersion": 1 }));
    let params = json!({ "cwd": cwd, "mcpServers": [] });
    let (session, _) = call(1, "session/new", params);
    let prompt = json!([{ "type": "text", "text": said }]);
    let params = json!({ "sessionId": session["sessionId"], "prompt": prompt });
    let (_, said) = call(2, "session/prompt", params);
    drop(input);
    assert!(child.wait().unwrap().success());
    said
}

#[test]
fn rules_of_a_file_decide_before_the_client_is_asked() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("rules.toml");
    let path = file.to_str().unwrap();
    for (effect, said) in [
        ("allow", "Permission: allow"),
        ("deny", "Permission: reject"),
    ] {
        std::fs::write(
            &file,
            format!("[[rule]]\neffect = \"{effect}\"\nkind = \"execute\"\n"),
        )
        .unwrap();
        let all = prompt(&["--rules", path], dir.path(), "permission");
        assert!(all.contains(said), "{all}");
        assert!(!all.contains("session/request_permission"), "{all}");
    }
    std::fs::write(&file, "[[rule]]\neffect = \"perhaps\"\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
    let ended = command
        .args(["--store", "memory", "--rules", path])
        .output()
        .unwrap();
    assert_eq!(ended.status.code(), Some(2));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains(path) && said.contains("perhaps"), "{said}");
}

#[test]
fn a_permission_that_nobody_gives_is_rejected_in_time() {
    let dir = tempfile::tempdir().unwrap();
    let all = prompt(&["--permission-timeout", "1"], dir.path(), "permission");
    assert!(all.contains("Permission: reject"), "{all}");
    let cancel = ["--permission-timeout", "1", "--on-timeout", "cancel"];
    let all = prompt(&cancel, dir.path(), "permission");
    assert!(all.contains(r#""stopReason":"cancelled""#), "{all}");
}

#[test]
fn the_command_uses_this_machine_only_when_told() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("file"), "words").unwrap();
    let file = dir.path().join("file");
    let said = format!("read {}", file.display());
    for off in [&[][..], &["--local-tools", "off"]] {
        let seen = prompt(off, dir.path(), &said);
        assert!(seen.contains("no attached client offers"), "{seen}");
    }
    let on = ["--local-tools", "fallback"];
    let seen = prompt(&on, dir.path(), &said);
    assert!(seen.contains("words"), "{seen}");
    let seen = prompt(&on, dir.path(), "terminal printenv PATH ACP_SERVER_TOKEN");
    assert!(!seen.contains("the-token-of-the-server"), "{seen}");
    let seen = prompt(&on, dir.path(), "terminal echo by-itself");
    assert!(seen.contains("by-itself\\nexit code 0"), "{seen}");
}

/// The client ends its input in the middle of a turn.
#[tokio::test]
async fn nothing_survives_the_process() {
    let mut running = Running::start().await;
    drop(running.input);
    assert!(running.server.wait().unwrap().success());
    running.lifeline.all_dead().await;
}

#[tokio::test]
async fn nothing_survives_a_killed_process() {
    let mut running = Running::start().await;
    running.server.kill().unwrap();
    running.server.wait().unwrap();
    running.lifeline.all_dead().await;
}

/// A server with a local command that runs.
struct Running {
    server: Child,
    input: ChildStdin,
    _lines: Lines<BufReader<ChildStdout>>,
    lifeline: Lifeline,
    _dir: tempfile::TempDir,
}

impl Running {
    async fn start() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut lifeline = Lifeline::new();
        let script = dir.path().join("script");
        std::fs::write(&script, lifeline.script("sleep 1000 & sleep 1000")).unwrap();
        let (child, mut input, mut lines) = spawn(&["--local-tools", "fallback"]);
        let mut send = |id: u64, method: &str, params: Value| {
            let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
            writeln!(input, "{request}").unwrap();
        };
        send(0, "initialize", json!({ "protocolVersion": 1 }));
        send(
            1,
            "session/new",
            json!({ "cwd": dir.path(), "mcpServers": [] }),
        );
        let session = loop {
            let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            if message["id"] == 1 {
                break message["result"]["sessionId"].clone();
            }
        };
        let said = format!("terminal sh {}", script.display());
        let prompt = json!([{ "type": "text", "text": said }]);
        send(
            2,
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        );
        lifeline.runs().await;
        // The command is shown when the server has done what belongs to its start.
        loop {
            let message: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
            let content = &message["params"]["update"]["content"];
            if content
                .as_array()
                .is_some_and(|content| !content.is_empty())
            {
                break;
            }
        }
        Self {
            server: child,
            input,
            _lines: lines,
            lifeline,
            _dir: dir,
        }
    }
}
