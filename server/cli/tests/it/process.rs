//! The binary: what it makes of bad input, and that it ends with its input.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// What the agent writes for these lines, after which its input ends.
fn answers(lines: &str) -> Vec<Value> {
    answers_with(&[], lines)
}

/// The same with further arguments.
fn answers_with(arguments: &[&str], lines: &str) -> Vec<Value> {
    output_with(arguments, lines)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// What it writes as text.
fn output_with(arguments: &[&str], input: &str) -> String {
    let mut agent = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .args(["--store", "memory"])
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    agent
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let mut output = String::new();
    agent
        .stdout
        .take()
        .unwrap()
        .read_to_string(&mut output)
        .unwrap();
    assert!(agent.wait().unwrap().success());
    output
}

#[test]
fn bad_input_gets_clear_errors_and_the_connection_goes_on() {
    let answers = answers(concat!(
        r#"{"jsonrpc":"2.0","id":0,"method":"session/list","params":{}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":4,"method":"initialize","params":{"protocolVersion":1}}"#,
        "\n",
        "{\"jsonrpc\": nonsense\n",
        r#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new","params":{"mcpServers":[]}}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":"x","prompt":[]}}"#,
        "\n",
    ));
    let codes: Vec<_> = answers
        .iter()
        .map(|answer| answer["error"]["code"].clone())
        .collect();
    assert_eq!(
        codes,
        [
            json!(-32600),
            json!(null),
            json!(-32700),
            json!(-32601),
            json!(-32602),
            json!(-32002),
        ]
    );
    assert_eq!(answers[3]["error"]["message"], "method not found: no/such");
    assert_eq!(answers[4]["error"]["data"]["path"], "/cwd");
    assert_eq!(
        answers[5]["error"]["message"],
        "Resource not found: session x"
    );
    assert_eq!(answers[1]["result"]["protocolVersion"], 1);
}

#[test]
fn the_dialect_of_a_client_is_detected() {
    let first = |params: &str, dialect: &str| {
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{params}}}"#);
        let mut answers = answers_with(&["--dialect", dialect], &format!("{line}\n"));
        answers.remove(0)["result"].take()
    };
    for dialect in ["otter-acp", "auto"] {
        assert_eq!(first("{}", dialect)["serverInfo"]["name"], "otter-acp");
    }
    let lines = concat!(
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#,
        "\n",
        r#"{"jsonrpc":"2.0","id":2,"method":"session/new"}"#,
        "\n",
    );
    let flags = [
        "--dialect",
        "otter-acp",
        "--cwd",
        "/w",
        "--model",
        "large",
        "--allowed-tools",
        "Read,Grep",
    ];
    let created = answers_with(&flags, lines).remove(1);
    assert_eq!(created["result"]["cwd"], "/w", "{created}");
    let capabilities = &first("{}", "otter-http-acp")["agentCapabilities"];
    assert_eq!(capabilities["loadSession"], false);
    let acp = first(r#"{"protocolVersion":1}"#, "auto");
    assert_eq!(acp["protocolVersion"], 1);
    assert!(acp["serverInfo"].is_null(), "{acp}");
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}"#;
    let framed = format!("Content-Length: {}\r\n\r\n{body}", body.len());
    for dialect in ["openoxide", "auto"] {
        let output = output_with(&["--dialect", dialect], &framed);
        let (header, body) = output.split_once("\r\n\r\n").unwrap();
        assert_eq!(header, format!("Content-Length: {}", body.len()));
        let answer: Value = serde_json::from_str(body).unwrap();
        assert_eq!(answer["result"]["session_fork"], true);
    }
    let create =
        r#"{"jsonrpc":"2.0","id":1,"method":"session/create","params":{"working_dir":"."}}"#;
    let created = answers_with(&["--dialect", "auto"], &format!("{create}\n"));
    assert!(
        created[0]["result"]["session_id"].is_string(),
        "{created:?}"
    );
}

/// The agent with its pipes, for a talk that depends on its answers.
struct Agent {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    /// The params of the last prompt.
    prompt: Value,
}

impl Agent {
    fn start() -> Self {
        Self::start_with(&[])
    }

    fn start_with(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_acp-server"))
            .args(["--store", "memory"])
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            input,
            output,
            prompt: Value::Null,
        }
    }

    fn last_prompt_params(&self) -> Value {
        self.prompt.clone()
    }

    fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.input
            .as_mut()
            .unwrap()
            .write_all(line.as_bytes())
            .unwrap();
    }

    fn next(&mut self) -> Value {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    fn call(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.next()["result"].take()
    }

    /// A session with a prompt on its way.
    fn prompt(&mut self, said: &str) {
        self.call(1, "initialize", json!({ "protocolVersion": 1 }));
        let session = self.call(2, "session/new", json!({ "cwd": "/", "mcpServers": [] }));
        let params = json!({
            "sessionId": session["sessionId"],
            "prompt": [{ "type": "text", "text": said }],
        });
        self.prompt = params.clone();
        self.send(
            &json!({ "jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": params }),
        );
    }
}

#[test]
fn a_turn_in_progress_ends_with_the_input() {
    let mut agent = Agent::start();
    agent.prompt("slow");
    assert_eq!(
        agent.next()["params"]["update"]["content"]["text"],
        "tick 1\n"
    );
    agent.input.take();
    let mut rest = String::new();
    agent.output.read_to_string(&mut rest).unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["stopReason"], "cancelled");
    assert!(agent.child.wait().unwrap().success());
}

#[test]
fn an_agent_that_nobody_reads_ends_all_the_same() {
    let mut agent = Agent::start();
    agent.prompt("stream 100000000");
    drop(agent.output);
    // What it cannot write any more ends it, with words on standard error.
    assert_eq!(exit_code(agent.child), Some(1));
}

/// The exit code, which must come soon.
fn exit_code(mut child: Child) -> Option<i32> {
    let (ended, end) = std::sync::mpsc::channel();
    let id = child.id();
    std::thread::spawn(move || ended.send(child.wait().unwrap().code()));
    end.recv_timeout(Duration::from_secs(20))
        .unwrap_or_else(|_| panic!("the agent {id} does not end"))
}

#[test]
fn an_agent_whose_output_is_stuck_ends_and_says_that_output_is_lost() {
    let mut agent = Agent::start_with(&["--drain-timeout", "1"]);
    agent.prompt("stream 100000000");
    agent.input.take();
    // The other end of the output stays open, but nobody reads it.
    let mut stderr = agent.child.stderr.take().unwrap();
    assert_eq!(exit_code(agent.child), Some(1));
    let mut words = String::new();
    stderr.read_to_string(&mut words).unwrap();
    assert!(
        words.contains("the peer accepted no output for 1s"),
        "{words}"
    );
}

#[test]
fn sixteen_prompts_are_answered_although_the_input_closes_at_once_and_the_reader_pauses() {
    let mut agent = Agent::start();
    agent.prompt("stream 2000");
    for id in 4..19 {
        let params = agent.last_prompt_params();
        agent.send(
            &json!({ "jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": params }),
        );
    }
    agent.input.take();
    // A pipe holds 64 KiB: nothing more is written until this thread reads on.
    std::thread::sleep(Duration::from_secs(5));
    let mut answered = Vec::new();
    let mut line = String::new();
    while agent.output.read_line(&mut line).unwrap() > 0 {
        assert!(line.ends_with('\n'), "a cut line: {line}");
        let message: Value = serde_json::from_str(&line).unwrap();
        if let Some(id) = message["id"].as_u64() {
            assert!(message["result"]["stopReason"].is_string(), "{message}");
            answered.push(id);
        }
        line.clear();
    }
    answered.sort_unstable();
    assert_eq!(answered, (3..19).collect::<Vec<_>>());
    assert_eq!(exit_code(agent.child), Some(0));
}

#[test]
fn a_terminated_agent_answers_its_turn() {
    let mut agent = Agent::start();
    agent.prompt("slow");
    assert_eq!(
        agent.next()["params"]["update"]["content"]["text"],
        "tick 1\n"
    );
    let pid = agent.child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status().unwrap();
    assert!(killed.success());
    let mut rest = String::new();
    agent.output.read_to_string(&mut rest).unwrap();
    let last: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!(last["result"]["stopReason"], "cancelled");
    assert_eq!(exit_code(agent.child), Some(0));
}

#[test]
fn an_agent_without_standard_output_says_so() {
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "exec \"$0\" --store memory >&-",
        env!("CARGO_BIN_EXE_acp-server"),
    ]);
    let run = command.stdin(Stdio::null()).output().unwrap();
    assert_eq!(run.status.code(), Some(1));
    let words = String::from_utf8(run.stderr).unwrap();
    assert!(words.contains("standard output is closed"), "{words}");
}

#[test]
fn an_agent_that_waits_for_an_answer_ends_with_its_input() {
    let mut agent = Agent::start();
    agent.prompt("permission");
    assert_eq!(
        agent.next()["params"]["update"]["sessionUpdate"],
        "tool_call"
    );
    assert_eq!(agent.next()["method"], "session/request_permission");
    agent.input.take();
    let last = std::iter::from_fn(|| {
        let mut line = String::new();
        (agent.output.read_line(&mut line).unwrap() > 0).then_some(line)
    })
    .last()
    .unwrap();
    let last: Value = serde_json::from_str(&last).unwrap();
    assert_eq!(last["result"]["stopReason"], "cancelled");
    assert_eq!(exit_code(agent.child), Some(0));
}

#[test]
fn help_says_how_to_begin() {
    let help = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .arg("--help")
        .output()
        .unwrap();
    assert!(help.status.success());
    let help = String::from_utf8(help.stdout).unwrap();
    assert!(help.contains(acp_reference_agent::HELP), "{help}");
    // What it tells to write by hand is what the agent takes.
    let talk: Vec<&str> = help
        .lines()
        .map(str::trim)
        .filter(|line| line.starts_with(r#"{"jsonrpc""#) && !line.contains("PROMPT"))
        .collect();
    let answers = answers(&format!("{}\n", talk.join("\n")));
    assert_eq!(answers.len(), 2, "{talk:?}");
    assert!(answers.iter().all(|answer| answer["result"].is_object()));

    let wrong = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .arg("--nonsense")
        .output()
        .unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    assert!(wrong.stdout.is_empty());
}

#[test]
fn only_commands_that_use_a_store_list_one() {
    let help = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_acp-server"));
        let help = command.args(words).arg("--help").output().unwrap();
        assert!(help.status.success(), "{words:?}");
        String::from_utf8(help.stdout).unwrap().contains("--store")
    };
    for words in [&["status"][..], &["stop"]] {
        assert!(!help(words), "{words:?}");
    }
    for words in [
        &[][..],
        &["serve"],
        &["host"],
        &["sessions"],
        &["sessions", "list"],
    ] {
        assert!(help(words), "{words:?}");
    }
}
