//! Standard input and output as a transport: this very test binary, run again, is the agent.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Command, Stdio};

use acp_sdk::{HandlerResult, v1::*};
use serde_json::{Value, json};

/// Set for the process that is the agent.
const CHILD: &str = "ACP_SDK_TEST_AGENT";

/// Prints where it must not, and lets a child of its own read where it must not.
struct Careless;

impl Agent for Careless {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    #[allow(clippy::print_stdout, reason = "that is what is tried")]
    async fn prompt(&self, _: &AgentContext, _: PromptRequest) -> HandlerResult<PromptResponse> {
        println!("a stray line");
        let printed = Command::new("sh")
            .args(["-c", "echo a stray child; cat"])
            .status();
        assert!(printed.unwrap().success());
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

/// Chunks that [`Talkative`] sends for each prompt.
const CHUNKS: usize = 500;

/// Says far more than a pipe holds.
struct Talkative;

impl Agent for Talkative {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("s"))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        for _ in 0..CHUNKS {
            let text = ContentBlock::Text(TextContent::new("x".repeat(60)));
            let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(text));
            let note = SessionNotification::new(req.session_id.clone(), update);
            ctx.client().session_update(note).await?;
        }
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

#[test]
fn child_agent() {
    let Some(kind) = std::env::var_os(CHILD) else {
        return;
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let served = match kind == "talkative" {
        true => runtime.block_on(acp_sdk::serve_stdio(Talkative)),
        false => runtime.block_on(acp_sdk::serve_stdio(Careless)),
    };
    served.unwrap();
    if kind == "lingering" {
        let again = runtime.block_on(acp_sdk::serve_stdio(Careless));
        eprintln!("{}", again.unwrap_err());
        // Until the test sends a signal.
        loop {
            std::thread::park();
        }
    }
    // The harness would print its verdict.
    std::process::exit(0);
}

fn agent() -> Command {
    agent_of_kind("careless")
}

fn agent_of_kind(kind: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "stdio::child_agent", "--nocapture"])
        .env(CHILD, kind);
    command
}

fn requests() -> String {
    let prompt = json!({"sessionId": "s", "prompt": []});
    [("session/prompt", prompt), ("_unknown", json!({}))]
        .iter()
        .enumerate()
        .map(|(id, (method, params))| {
            let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            format!("{request}\n")
        })
        .collect()
}

/// Checks that the output holds the two answers and, but for what the test harness printed
/// before the agent began, nothing else.
fn assert_answers(output: &str) {
    let lines: Vec<&str> = output.lines().filter(|line| !line.is_empty()).collect();
    let lines = lines.strip_prefix(&["running 1 test"]).unwrap_or(&lines);
    let answers: Vec<Value> = lines
        .iter()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("on the wire: {output}")))
        .collect();
    assert_eq!(answers.len(), 2, "{output}");
    assert_eq!(answers[0]["result"]["stopReason"], "end_turn");
    assert_eq!(answers[1]["error"]["code"], -32601);
}

#[test]
fn what_is_printed_goes_to_standard_error() {
    let _alone = super::ALONE.blocking_lock();
    let mut child = agent()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, requests().as_bytes()).unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut answers = String::new();
    while !answers.contains("-32601") && stdout.read_line(&mut answers).unwrap() > 0 {}
    // Open until here: a child that shared this input would find it empty and fail.
    drop(input);
    stdout.read_to_string(&mut answers).unwrap();
    assert_answers(&answers);
    let output = child.wait_with_output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert!(errors.contains("a stray line\na stray child\n"), "{errors}");
    assert!(
        !errors.contains("_unknown"),
        "a child read the protocol's input: {errors}"
    );
}

#[test]
fn files_and_sockets_do_as_well() {
    let _alone = super::ALONE.blocking_lock();
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    std::fs::write(path("in"), requests()).unwrap();
    let status = agent()
        .stdin(File::open(path("in")).unwrap())
        .stdout(File::create(path("out")).unwrap())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    assert_answers(&std::fs::read_to_string(path("out")).unwrap());

    let (mut ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let theirs = std::os::fd::OwnedFd::from(theirs);
    let mut child = agent()
        .stdin(theirs.try_clone().unwrap())
        .stdout(theirs)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    std::io::Write::write_all(&mut ours, requests().as_bytes()).unwrap();
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    let mut output = String::new();
    ours.read_to_string(&mut output).unwrap();
    assert!(child.wait().unwrap().success());
    assert_answers(&output);
}

#[test]
fn a_reader_of_small_pieces_gets_whole_lines_up_to_the_last_answer() {
    const PROMPTS: usize = 16;
    let _alone = super::ALONE.blocking_lock();
    let mut child = agent_of_kind("talkative")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let prompt = json!({"sessionId": "s", "prompt": []});
    let requests: String = (0..PROMPTS)
        .map(|id| json!({"jsonrpc": "2.0", "id": id, "method": "session/prompt", "params": prompt}))
        .map(|request| format!("{request}\n"))
        .collect();
    // The input closes at once, behind the last request.
    let mut input = child.stdin.take().unwrap();
    std::io::Write::write_all(&mut input, requests.as_bytes()).unwrap();
    drop(input);

    let mut stdout = child.stdout.take().unwrap();
    let (mut output, mut piece) = (Vec::new(), vec![0; 16 << 10]);
    loop {
        // The pipe is full again before each piece is read.
        std::thread::sleep(std::time::Duration::from_millis(2));
        match stdout.read(&mut piece).unwrap() {
            0 => break,
            bytes => output.extend_from_slice(&piece[..bytes]),
        }
    }
    assert!(child.wait().unwrap().success());

    let output = String::from_utf8(output).unwrap();
    assert!(output.len() > 1 << 20, "{} bytes fit a pipe", output.len());
    assert!(output.ends_with('\n'), "a cut line at the end");
    let (mut chunks, mut answered) = (0, Vec::new());
    // The test harness prints a line before the agent begins.
    let printed = |line: &&str| line.is_empty() || *line == "running 1 test";
    for line in output.lines().skip_while(printed) {
        let message: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("cut: {line}"));
        match message["id"].as_u64() {
            Some(id) => answered.push(id),
            None => chunks += 1,
        }
    }
    answered.sort_unstable();
    assert_eq!(chunks, PROMPTS * CHUNKS);
    assert_eq!(answered, (0..PROMPTS as u64).collect::<Vec<_>>());
}

/// Standard input and output are gone, and the signal has its default effect again.
#[test]
fn after_the_end_a_second_connection_is_refused_and_sigterm_ends_the_process() {
    use std::os::unix::process::ExitStatusExt as _;

    let _alone = super::ALONE.blocking_lock();
    let mut child = agent_of_kind("lingering")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    errors.read_line(&mut line).unwrap();
    assert!(
        line.contains("another connection of this process has taken them over"),
        "{line}"
    );
    let pid = child.id().to_string();
    let killed = Command::new("kill").args(["-TERM", &pid]).status();
    assert!(killed.unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}
