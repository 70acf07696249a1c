//! Runs `acp` and captures its output and exit code.

use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::script::script;
use crate::agent::within;

/// The output and the exit code of a run.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    /// The lines of the format `json`.
    pub fn lines(&self) -> Vec<Value> {
        let lines = self.stdout.lines();
        lines
            .map(|line| serde_json::from_str(line).expect(line))
            .collect()
    }

    /// The line `result`, which must be the last.
    #[track_caller]
    pub fn result(&self) -> Value {
        let lines = self.lines();
        let last = lines.last().expect("a line");
        let results = lines.iter().filter(|line| line["type"] == "result");
        assert_eq!(results.count(), 1);
        assert_eq!(last["type"], "result");
        last.clone()
    }
}

/// A running `acp`.
pub struct Acp {
    child: Child,
    stdout: Option<ChildStdout>,
    printed: Vec<u8>,
    complained: Vec<u8>,
}

impl Acp {
    /// `acp run ARGS PROMPT -- sh -c AGENT`
    pub fn start(args: &[&str], agent: &str) -> Self {
        Self::start_in(Path::new("."), args, agent)
    }

    pub fn start_in(dir: &Path, args: &[&str], agent: &str) -> Self {
        let mut command = command(args, agent);
        command.current_dir(dir);
        Self::spawn(command)
    }

    pub fn spawn(mut command: Command) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            stdout: child.stdout.take(),
            child,
            printed: Vec::new(),
            complained: Vec::new(),
        }
    }

    /// Waits until `text` has been printed on standard output.
    pub async fn printed(&mut self, text: &str) {
        read_until(self.stdout.as_mut().unwrap(), &mut self.printed, text).await;
    }

    /// Waits until `text` has been printed on standard error.
    pub async fn complained(&mut self, text: &str) {
        let stderr = self.child.stderr.as_mut().unwrap();
        read_until(stderr, &mut self.complained, text).await;
    }

    pub fn signal(&self, signal: Signal) {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok());
        kill_process(Pid::from_raw(pid.unwrap()).unwrap(), signal).unwrap();
    }

    /// Takes its standard input, which is closed when it is dropped.
    pub fn input(&mut self) -> ChildStdin {
        self.child.stdin.take().unwrap()
    }

    pub async fn types(&mut self, text: &str) {
        self.input().write_all(text.as_bytes()).await.unwrap();
    }

    /// Stops reading standard output.
    pub fn close_stdout(&mut self) {
        self.stdout = None;
    }

    /// Waits for its own end; its input stays open.
    pub async fn exited(mut self) -> Ended {
        let input = self.child.stdin.take();
        let ended = self.end().await;
        drop(input);
        ended
    }

    pub async fn end(mut self) -> Ended {
        drop(self.child.stdin.take());
        let printing = async {
            if let Some(stdout) = &mut self.stdout {
                stdout.read_to_end(&mut self.printed).await.unwrap();
            }
        };
        let complaining = async {
            let stderr = self.child.stderr.as_mut().unwrap();
            stderr.read_to_end(&mut self.complained).await.unwrap();
        };
        within(async { tokio::join!(printing, complaining) }).await;
        let status = within(self.child.wait()).await.unwrap();
        Ended {
            code: status.code(),
            stdout: String::from_utf8(self.printed).unwrap(),
            stderr: String::from_utf8(self.complained).unwrap(),
        }
    }
}

async fn read_until(stream: &mut (impl AsyncRead + Unpin), seen: &mut Vec<u8>, text: &str) {
    while !String::from_utf8_lossy(seen).contains(text) {
        let read = within(stream.read_buf(seen)).await.unwrap();
        assert_ne!(read, 0, "it ended: {}", String::from_utf8_lossy(seen));
    }
}

/// `acp ARGS`
pub async fn acp(args: &[&str]) -> Ended {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command.args(args);
    Acp::spawn(command).end().await
}

/// `acp run ARGS PROMPT -- sh -c AGENT`, to be started.
pub fn command(args: &[&str], agent: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp"));
    command.arg("run").args(args).args(["--", "sh", "-c"]);
    command.arg(script(agent));
    command
}

/// Runs to the end.
pub async fn run(args: &[&str], agent: &str) -> Ended {
    Acp::start(args, agent).end().await
}

/// A gate at which an agent waits until a test opens it.
pub struct Gate(tempfile::TempDir);

impl Gate {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let made = std::process::Command::new("mkfifo")
            .arg(dir.path().join("gate"))
            .status();
        assert!(made.unwrap().success());
        Self(dir)
    }

    /// A command that waits for the gate to be opened.
    pub fn pass(&self) -> String {
        format!("read -r _ <'{}/gate'", self.0.path().display())
    }

    /// Waits until the agent is at the gate, and opens it.
    pub fn open(&self) {
        std::fs::write(self.0.path().join("gate"), "go\n").unwrap();
    }
}
