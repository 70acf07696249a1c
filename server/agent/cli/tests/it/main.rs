//! The command `acp-agent`, over its standard input and output.
#![allow(clippy::unwrap_used, reason = "tests")]

mod hosted;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;

/// Time for an answer.
const SOON: Duration = Duration::from_secs(60);

struct Agent {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    requests: u64,
    /// The permission that is given to whatever is asked.
    option: &'static str,
}

impl Agent {
    fn start(home: &Path, arguments: &[&str]) -> Self {
        let mut process = command(home, arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (send, messages) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let _ = send.send(serde_json::from_str(&line).unwrap());
            }
        });
        let input = process.stdin.take().unwrap();
        let mut agent = Self {
            process,
            input,
            messages,
            requests: 0,
            option: "allow",
        };
        agent.request("initialize", json!({"protocolVersion": 1}));
        agent
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.requests += 1;
        let id = self.requests;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    fn next(&mut self) -> Value {
        let message = self.messages.recv_timeout(SOON).expect("a message");
        if message["method"] == "session/request_permission" {
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": self.option}});
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": outcome}));
        }
        message
    }

    /// Sends a request, and returns its answer and the messages before it.
    fn request(&mut self, method: &str, params: Value) -> (Value, Vec<Value>) {
        let id = self.begin(method, params);
        let mut before = Vec::new();
        loop {
            let message = self.next();
            if message["id"] == id && message.get("method").is_none() {
                return (message, before);
            }
            before.push(message);
        }
    }

    fn session(&mut self, cwd: &Path) -> String {
        let (answer, _) = self.request("session/new", json!({"cwd": cwd, "mcpServers": []}));
        let id = answer["result"]["sessionId"].as_str();
        id.unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    fn prompt(&mut self, session: &str, text: &str) -> (Value, Vec<Value>) {
        self.request("session/prompt", prompt(session, text))
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn prompt(session: &str, text: &str) -> Value {
    json!({"sessionId": session, "prompt": [{"type": "text", "text": text}]})
}

/// The command with a home folder of its own.
fn command(home: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-agent"));
    command
        .args(arguments)
        .env("HOME", home)
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_DATA_HOME")
        .current_dir(home);
    command
}

fn run(home: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let output = command(home, arguments)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    (output.status.code(), error)
}

fn text(messages: &[Value]) -> String {
    let updates = messages.iter().map(|message| &message["params"]["update"]);
    let chunks = updates.filter(|update| update["sessionUpdate"] == "agent_message_chunk");
    chunks
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

fn folders() -> (TempDir, TempDir) {
    (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap())
}

#[test]
fn the_scripted_model_uses_tools_with_permission_and_undo() {
    let (home, project) = folders();
    let file = project.path().join("a.txt");
    std::fs::write(&file, "old").unwrap();
    let mut agent = Agent::start(home.path(), &["--model", "scripted"]);
    let session = agent.session(project.path());

    let (answer, before) = agent.prompt(&session, r#"write {"path": "a.txt", "content": "new"}"#);
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let asked = before
        .iter()
        .find(|message| message["method"] == "session/request_permission");
    let asked = &asked.expect("a question")["params"]["toolCall"];
    assert_eq!(
        asked["content"][0]["newText"], "new",
        "the user sees the change: {asked}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");

    agent.option = "reject";
    let (_, before) = agent.prompt(&session, r#"shell {"command": "touch made"}"#);
    assert!(
        text(&before).contains("does not allow"),
        "{}",
        text(&before)
    );
    assert!(!project.path().join("made").exists());

    // The last turn that changed something: the newest one changed nothing.
    agent.request("_acp-sdk/session/undo", json!({"sessionId": session}));
    let (answer, _) = agent.request("_acp-sdk/session/undo", json!({"sessionId": session}));
    let read = std::fs::read_to_string(&file).unwrap();
    assert_eq!(read, "old", "{answer}");
}

#[test]
fn a_command_of_the_project_is_expanded_for_the_model() {
    let (home, project) = folders();
    let commands = project.path().join(".acp/commands");
    std::fs::create_dir_all(&commands).unwrap();
    std::fs::write(commands.join("greet.md"), "Greet $1 politely.").unwrap();
    let mut agent = Agent::start(home.path(), &["--model", "scripted"]);
    let session = agent.session(project.path());
    let (_, before) = agent.prompt(&session, "/greet Ada");
    assert_eq!(text(&before), "You said: Greet Ada politely.");
}

#[test]
fn a_killed_tool_is_interrupted_and_the_session_is_resumed_by_its_name() {
    let (home, project) = folders();
    let mut agent = Agent::start(home.path(), &["-n", "work"]);
    let session = agent.session(project.path());
    agent.prompt(&session, "remember this");
    let shell = r#"shell {"command": "touch began; sleep 20"}"#;
    agent.begin("session/prompt", prompt(&session, shell));
    loop {
        let message = agent.next();
        let update = &message["params"]["update"];
        if update["status"] == "in_progress" && update["sessionUpdate"] == "tool_call_update" {
            break;
        }
    }
    drop(agent);

    for again in [&["--resume-recent"][..], &["-r", "work"]] {
        let mut agent = Agent::start(home.path(), again);
        assert_eq!(agent.session(project.path()), session, "{again:?}");
    }
    let mut agent = Agent::start(home.path(), &[]);
    let load = json!({"sessionId": session, "cwd": project.path(), "mcpServers": []});
    let (answer, replay) = agent.request("session/load", load);
    assert!(answer["error"].is_null(), "{answer}");
    let updates: Vec<_> = replay
        .iter()
        .map(|message| &message["params"]["update"])
        .collect();
    assert!(text(&replay).contains("remember this"), "{updates:?}");
    let failed = updates.iter().any(|update| update["status"] == "failed");
    assert!(failed, "the call has ended: {updates:?}");
    let (answer, _) = agent.prompt(&session, "go on");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

#[test]
fn an_answer_for_ever_counts_in_later_sessions_of_the_project() {
    let (home, project) = folders();
    let touch = r#"shell {"command": "touch made"}"#;
    let made = project.path().join("made");
    let asked = |messages: &[Value]| {
        let asked = |message: &&Value| message["method"] == "session/request_permission";
        messages.iter().filter(asked).count()
    };
    let mut agent = Agent::start(home.path(), &[]);
    agent.option = "always";
    let session = agent.session(project.path());
    let (_, before) = agent.prompt(&session, touch);
    assert_eq!((asked(&before), made.exists()), (1, true));
    drop(agent);

    std::fs::remove_file(&made).unwrap();
    let mut agent = Agent::start(home.path(), &[]);
    agent.option = "reject";
    let session = agent.session(project.path());
    let (_, before) = agent.prompt(&session, touch);
    assert_eq!((asked(&before), made.exists()), (0, true), "{before:?}");
    let (_, before) = agent.prompt(&session, r#"shell {"command": "touch other"}"#);
    assert_eq!(asked(&before), 1, "another command is another question");
    // In another project nothing was allowed.
    let other = tempfile::tempdir().unwrap();
    let session = agent.session(other.path());
    let (_, before) = agent.prompt(&session, touch);
    assert_eq!(
        (asked(&before), other.path().join("made").exists()),
        (1, false)
    );
}

#[test]
fn a_recording_is_replayed_without_the_model() {
    let (home, project) = folders();
    let recording = home.path().join("recording.jsonl");
    let recording = recording.to_str().unwrap();
    let mut agent = Agent::start(home.path(), &["--record", recording]);
    let session = agent.session(project.path());
    let (_, first) = agent.prompt(&session, "list {}");
    drop(agent);
    let mut agent = Agent::start(home.path(), &["--replay", recording]);
    let session = agent.session(project.path());
    let (_, second) = agent.prompt(&session, "list {}");
    assert_eq!(text(&first), text(&second));
    assert!(!text(&first).is_empty());
}

#[test]
fn options_say_what_is_wrong_with_them() {
    let (home, _project) = folders();
    let home = home.path();
    let says = |arguments: &[&str], expected: &str| {
        let (code, error) = run(home, arguments);
        assert!(
            code == Some(2) && error.contains(expected),
            "{arguments:?}: {code:?} {error}"
        );
    };
    says(
        &["--allowed-tools", "read,none"],
        "there is no tool \"none\"",
    );
    says(&["--role", "reviewer"], "no such role");
    says(&["--config", "missing.toml"], "missing.toml");
    says(&["--replay", "missing.jsonl"], "missing.jsonl");

    let (code, error) = run(home, &["--init"]);
    assert!(code == Some(0) && error.contains("config.toml"), "{error}");
    says(&["--init"], "exists");
}

#[test]
fn roles_and_options_decide_what_the_model_may_do() {
    let (home, project) = folders();
    let config = home.path().join("roles.toml");
    let text_of_config = "max_steps = 1\n[roles.reader]\ntools = [\"read\", \"list\"]\nmode = \"plan\"\n\
        instructions = \"Only read.\"\n";
    std::fs::write(&config, text_of_config).unwrap();
    let config = config.to_str().unwrap();
    let mut agent = Agent::start(home.path(), &["--config", config, "--role", "reader"]);
    let (answer, _) = agent.request(
        "session/new",
        json!({"cwd": project.path(), "mcpServers": []}),
    );
    assert_eq!(
        answer["result"]["modes"]["currentModeId"], "plan",
        "{answer}"
    );
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    // A tool that there is not is no command of the scripted model.
    let (_, before) = agent.prompt(&session, r#"write {"path": "a", "content": ""}"#);
    assert!(text(&before).starts_with("You said:"), "{}", text(&before));
    let (answer, _) = agent.prompt(&session, "list {}");
    assert_eq!(
        answer["result"]["stopReason"], "max_turn_requests",
        "{answer}"
    );
    drop(agent);

    let options = [
        "--config",
        config,
        "--max-steps",
        "5",
        "--allowed-tools",
        "list",
        "--mode",
        "code",
    ];
    let mut agent = Agent::start(home.path(), &options);
    let (answer, _) = agent.request(
        "session/new",
        json!({"cwd": project.path(), "mcpServers": []}),
    );
    assert_eq!(
        answer["result"]["modes"]["currentModeId"], "code",
        "{answer}"
    );
    let session = answer["result"]["sessionId"].as_str().unwrap().to_owned();
    let (answer, _) = agent.prompt(&session, "list {}");
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_confined_agent_writes_in_its_directory_only() {
    let (home, _project) = folders();
    let outside = tempfile::tempdir().unwrap();
    let begin = std::panic::catch_unwind(|| Agent::start(home.path(), &["--sandbox"]));
    let Ok(mut agent) = begin else {
        let (_, error) = run(home.path(), &["--sandbox"]);
        assert!(error.contains("--sandbox"), "{error}");
        eprintln!("skipped: this machine does not confine processes: {error}");
        return;
    };
    let session = agent.session(home.path());
    let file = outside.path().join("made");
    let touch = |path: &Path| {
        format!(
            "shell {}",
            json!({"command": format!("touch {}", path.display())})
        )
    };
    agent.prompt(&session, &touch(&file));
    assert!(!file.exists(), "outside of the working directory");
    let file = home.path().join("made");
    let (_, before) = agent.prompt(&session, &touch(&file));
    assert!(file.exists(), "{}", text(&before));
}
