//! `acp-conformance proxy` between this test, as the editor, and small agents.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use tempfile::TempDir;

use crate::command::acp_conformance;

/// A proxy that runs.
struct Proxy {
    child: Child,
    input: Option<ChildStdin>,
    output: Option<BufReader<ChildStdout>>,
    folder: TempDir,
}

/// Starts a proxy in front of an agent.
pub(crate) fn started(options: impl Iterator<Item = String>, agent: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .arg("proxy")
        .args(options)
        .arg("--")
        .args(agent)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

impl Proxy {
    /// Before an agent that is a shell script.
    fn of(options: &[&str], script: &str) -> Self {
        Self::in_folder(TempDir::new().unwrap(), options, &["sh", "-c", script])
    }

    /// `@` in an option is the folder.
    fn in_folder(folder: TempDir, options: &[&str], agent: &[&str]) -> Self {
        let place = folder.path().to_str().unwrap();
        let options = options.iter().map(|option| option.replace('@', place));
        let mut child = started(options, agent);
        Self {
            input: child.stdin.take(),
            output: child.stdout.take().map(BufReader::new),
            child,
            folder,
        }
    }

    fn send(&mut self, text: &str) {
        self.input
            .as_mut()
            .unwrap()
            .write_all(text.as_bytes())
            .unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.as_mut().unwrap().read_line(&mut line).unwrap();
        line
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Closes the input and waits for the rest.
    fn finish(mut self) -> Finished {
        drop(self.input.take());
        let (mut stdout, mut stderr) = (Vec::new(), String::new());
        if let Some(mut output) = self.output.take() {
            output.read_to_end(&mut stdout).unwrap();
        }
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut stderr)
            .unwrap();
        Finished {
            status: self.child.wait().unwrap(),
            stdout,
            stderr,
            folder: self.folder,
        }
    }
}

struct Finished {
    status: ExitStatus,
    stdout: Vec<u8>,
    stderr: String,
    folder: TempDir,
}

impl Finished {
    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.folder.path().join(name)).unwrap()
    }
}

/// A pipe that an agent and all its children hold open; it ends with the last.
struct Lifeline {
    folder: TempDir,
    end: fs::File,
}

impl Lifeline {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lifeline");
        assert!(
            Command::new("mkfifo")
                .arg(&path)
                .status()
                .unwrap()
                .success()
        );
        // Opened both ways, so that opening does not wait for the agent.
        let end = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        Self { folder, end }
    }

    fn tie(&self, script: &str) -> String {
        let path = self.folder.path().join("lifeline");
        format!("exec 9>'{}'; {script}", path.display())
    }

    /// Waits until nobody holds the pipe. To be called when the agent has it.
    fn all_dead(self) {
        let path = self.folder.path().join("lifeline");
        let mut reader = fs::File::open(&path).unwrap();
        drop(self.end);
        assert_eq!(reader.read(&mut [0]).unwrap(), 0);
    }
}

/// An agent that neither the end of its input nor `SIGTERM` ends, with a child.
const STUBBORN: &str = "trap '' TERM; echo ready; while :; do sleep 1; done";

#[test]
fn bytes_pass_as_they_are() {
    // Every byte value, lines of all lengths, and a line of two mebibytes.
    let mut state = 1_u32;
    let mut bytes: Vec<u8> = (0..1 << 20)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        })
        .collect();
    bytes.extend(vec![b'x'; 2 << 20]);
    bytes.extend(b"\r\n\n\0{\"jsonrpc\"");
    let mut proxy = Proxy::of(&["--log", "@/log.jsonl"], "cat");
    let mut input = proxy.input.take().unwrap();
    let copy = bytes.clone();
    let writer = std::thread::spawn(move || input.write_all(&copy).unwrap());
    let finished = proxy.finish();
    writer.join().unwrap();
    assert!(finished.stdout == bytes, "{} bytes", finished.stdout.len());
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
}

#[test]
fn the_end_of_the_input_the_output_after_it_and_the_exit_code_pass() {
    let finished = Proxy::of(&[], "cat; echo after >&2; echo after; exit 7").finish();
    assert_eq!(finished.stdout, b"after\n");
    assert_eq!(finished.status.code(), Some(7));
    assert!(
        finished.stderr.starts_with("after\n"),
        "{}",
        finished.stderr
    );
}

#[test]
fn a_signal_that_ends_the_agent_becomes_128_and_its_number() {
    assert_eq!(
        Proxy::of(&[], "kill -9 $$").finish().status.code(),
        Some(137)
    );
}

#[test]
fn an_agent_that_ends_first_ends_the_proxy_although_a_child_holds_its_output() {
    let mut proxy = Proxy::of(&[], "sleep 60 & echo last; exit 3");
    assert_eq!(proxy.line(), "last\n");
    // The input stays open: nobody but the agent has ended.
    assert_eq!(proxy.child.wait().unwrap().code(), Some(3));
}

#[test]
fn a_signal_passes_to_the_agent() {
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    let mut proxy = Proxy::of(&[], script);
    assert_eq!(proxy.line(), "ready\n");
    let id = proxy.child.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-TERM", &id])
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(proxy.child.wait().unwrap().code(), Some(9));
}

#[test]
fn either_end_learns_that_the_other_does_not_read_or_write() {
    // The agent closes its output: the editor sees the end while the agent lives.
    let mut proxy = Proxy::of(&[], "exec >&-; read line; exit 5");
    assert_eq!(proxy.line(), "");
    proxy.send("go\n");
    assert_eq!(proxy.finish().status.code(), Some(5));

    // The agent closes its input: the editor cannot write any more.
    let mut proxy = Proxy::of(&[], "exec <&-; echo closed; sleep 60");
    assert_eq!(proxy.line(), "closed\n");
    let mut input = proxy.input.take().unwrap();
    while input.write_all(&[b'x'; 1024]).is_ok() {}
    proxy.child.kill().unwrap();

    // The editor stops reading: the agent cannot write any more.
    let mut proxy = Proxy::of(
        &[],
        "trap '' PIPE; while echo more 2>/dev/null; do :; done; exit 4",
    );
    drop(proxy.output.take());
    assert_eq!(proxy.child.wait().unwrap().code(), Some(4));
}

#[test]
fn an_agent_is_ended_with_its_children_when_the_editor_is_gone() {
    let lifeline = Lifeline::new();
    let mut proxy = Proxy::of(&["--grace", "0.1"], &lifeline.tie(STUBBORN));
    assert_eq!(proxy.line(), "ready\n");
    drop((proxy.input.take(), proxy.output.take()));
    lifeline.all_dead();
    assert_eq!(proxy.child.wait().unwrap().code(), Some(137));
}

#[test]
fn an_agent_that_is_alone_is_asked_before_it_is_killed_and_its_children_go_with_it() {
    let lifeline = Lifeline::new();
    let child = "(trap '' TERM; while :; do sleep 0.1; done) &";
    let script = format!("trap 'exit 9' TERM; {child} echo ready; wait");
    let mut proxy = Proxy::of(&["--grace", "0.2"], &lifeline.tie(&script));
    assert_eq!(proxy.line(), "ready\n");
    drop((proxy.input.take(), proxy.output.take()));
    assert_eq!(proxy.child.wait().unwrap().code(), Some(9));
    lifeline.all_dead();
}

#[test]
fn an_agent_that_hangs_up_while_the_editor_is_there_is_left_in_peace() {
    let script = "echo ready; exec <&- >&-; sleep 1; exit 5";
    let mut proxy = Proxy::of(&["--grace", "0.1"], script);
    assert_eq!(proxy.line(), "ready\n");
    assert_eq!(proxy.child.wait().unwrap().code(), Some(5));
}

#[test]
fn an_agent_is_ended_with_its_children_when_the_proxy_is_killed() {
    let lifeline = Lifeline::new();
    let mut proxy = Proxy::of(&["--grace", "0.1"], &lifeline.tie(STUBBORN));
    assert_eq!(proxy.line(), "ready\n");
    proxy.child.kill().unwrap();
    lifeline.all_dead();
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{},"clientInfo":{"name":"c","version":"1"}}}"#;
const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[{"name":"m","command":"/m","args":[],"env":[{"name":"K","value":"s3cret"}]}]}}"#;

#[test]
fn a_turn_of_a_real_agent_is_recorded_and_conformant() {
    let binary = env!("CARGO_BIN_EXE_acp-conformance");
    let options = ["--strict", "--log", "@/{pid}.jsonl"];
    let folder = TempDir::new().unwrap();
    let mut proxy = Proxy::in_folder(folder, &options, &[binary, "reference-agent"]);
    let log = proxy.at(&format!("{}.jsonl", proxy.child.id()));
    proxy.send(&format!("{INITIALIZE}\n{NEW}\n"));
    assert!(proxy.line().contains("agentCapabilities"));
    let answer: serde_json::Value = loop {
        let line = serde_json::from_str::<serde_json::Value>(&proxy.line()).unwrap();
        if line["id"] == 1 {
            break line;
        }
    };
    let session = &answer["result"]["sessionId"];
    proxy.send(&format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"session/prompt\",\"params\":{{\"sessionId\":{session},\"prompt\":[{{\"type\":\"text\",\"text\":\"tool\"}}]}}}}\n"
    ));
    while !proxy.line().contains("end_turn") {}
    let finished = proxy.finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let text = fs::read_to_string(&log).unwrap();
    assert!(text.contains("\"dir\":\"c2a\"") && text.contains("tool_call_update"));
    assert!(!text.contains("s3cret"), "{text}");
    let checked = acp_conformance(["check", "--strict", log.to_str().unwrap()]);
    assert_eq!(checked.code, Some(0), "{}", checked.stdout);
}

/// Answers one request with what the schema forbids, between noise.
const FAULTY: &str = r#"echo Listening; read line; echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"1"}}'; read line; echo '{"jsonrpc":"2.0","id":7,"result":{}}'"#;

#[test]
fn findings_are_those_of_check_on_the_transcript() {
    let mut proxy = Proxy::of(&["--log", "@/log.jsonl", "--findings", "@/found"], FAULTY);
    proxy.send(&format!("{INITIALIZE}\noops\n"));
    let finished = proxy.finish();
    assert_eq!(finished.status.code(), Some(0));
    assert!(finished.stderr.contains("4 errors"), "{}", finished.stderr);
    let log = finished.folder.path().join("log.jsonl");
    let checked = acp_conformance(["check", log.to_str().unwrap()]);
    let found = finished.file("found");
    assert_eq!(found.lines().count(), 4, "{found}");
    assert!(
        checked.stdout.starts_with(&found),
        "{found}\n{}",
        checked.stdout
    );
    assert!(
        found.contains("session/new") || found.contains("initialize at /result/protocolVersion")
    );
}

#[test]
fn findings_go_to_standard_error_and_decide_when_strict() {
    let mut proxy = Proxy::of(&["--strict"], FAULTY);
    proxy.send(&format!("{INITIALIZE}\n\n"));
    let finished = proxy.finish();
    assert_eq!(finished.status.code(), Some(1));
    assert!(
        finished
            .stderr
            .contains(": error[transports.only-messages] agent: "),
        "{}",
        finished.stderr
    );
    let mut proxy = Proxy::of(&["--json", "--findings", "@/found"], FAULTY);
    proxy.send(&format!("{INITIALIZE}\n\n"));
    let finished = proxy.finish();
    for line in finished.file("found").lines() {
        let finding: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(finding["type"], "finding");
    }
}

#[test]
fn the_wire_does_not_wait_for_a_log_that_nobody_takes() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    assert!(Command::new("mkfifo").arg(&log).status().unwrap().success());
    let mut held = fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open(&log)
        .unwrap();
    let mut proxy = Proxy::in_folder(folder, &["--log", "@/log"], &["cat"]);
    let line = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":\"{}\"}}\n",
        "x".repeat(32 << 10)
    );
    // Far more than may wait for the judge, which is stuck in the log. Each line fits
    // into the pipes on its way, so that this test is not what blocks.
    for _ in 0..2048 {
        proxy.send(&line);
        assert_eq!(proxy.line().len(), line.len());
    }
    let (mut seen, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    while !seen.ends_with(b"does not wait for it\"}\n") {
        let length = held.read(&mut chunk).unwrap();
        seen.extend_from_slice(&chunk[..length]);
    }
    let finished = proxy.finish();
    assert_eq!(finished.status.code(), Some(0));
    let stderr = finished.stderr;
    assert!(stderr.contains(": warning[lost] "), "{stderr}");
}

#[test]
fn a_burst_is_judged_whole_when_strict() {
    let text = "x".repeat(1600);
    let script = format!(
        "yes '{{\"jsonrpc\":\"2.0\",\"method\":\"_x\",\"params\":{{\"x\":\"{text}\"}}}}' | head -n 20000"
    );
    let finished = Proxy::of(&["--protocol", "1", "--strict", "--log", "@/log"], &script).finish();
    assert_eq!(finished.status.code(), Some(0), "{}", finished.stderr);
    assert_eq!(finished.stderr, "");
    let log = finished.file("log");
    assert_eq!(log.lines().count(), 20_000);
    assert!(!log.contains("\"lost\""));
}

#[test]
fn a_log_that_cannot_be_written_ends_alone() {
    let mut proxy = Proxy::of(&["--log", "/dev/full"], "cat");
    proxy.send(&format!("{INITIALIZE}\n"));
    assert_eq!(proxy.line(), format!("{INITIALIZE}\n"));
    let finished = proxy.finish();
    assert_eq!(finished.status.code(), Some(0));
    assert!(
        finished.stderr.contains("the transcript ends here"),
        "{}",
        finished.stderr
    );
}

#[test]
fn what_cannot_be_started_or_written_is_said() {
    let ran = acp_conformance(["proxy", "--", "/no/such/agent"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("cannot start /no/such/agent: "),
        "{}",
        ran.stderr
    );
    let ran = acp_conformance(["proxy", "--log", "/no/such/log", "--", "cat"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("cannot write /no/such/log: "),
        "{}",
        ran.stderr
    );
}
