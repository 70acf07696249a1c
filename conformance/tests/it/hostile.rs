//! Agents that behave as badly as processes can: the suite ends within its limits,
//! says what it saw, and leaves nobody behind.

use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// Nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(60);

/// A pipe that every process of a test holds open, so that its end says that they
/// are all dead.
struct Lifeline {
    folder: TempDir,
    ended: mpsc::Receiver<()>,
    started: mpsc::Receiver<()>,
}

impl Lifeline {
    fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("lifeline");
        let made = Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let (start, started) = mpsc::channel();
        let (end, ended) = mpsc::channel();
        std::thread::spawn(move || {
            // Waits for the first process that opens the other end.
            let mut pipe = std::fs::File::open(path).unwrap();
            start.send(()).unwrap();
            pipe.read_to_end(&mut Vec::new()).unwrap();
            let _ = end.send(());
        });
        Self {
            folder,
            ended,
            started,
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("lifeline")
    }

    /// A script of which every process is on this lifeline.
    fn tie(&self, script: &str) -> String {
        format!("exec 9>'{}'; {script}", self.path().display())
    }

    fn all_dead(self) {
        self.ended
            .recv_timeout(GUARD)
            .expect("somebody is still alive");
    }
}

/// The suite against an agent in shell, with short limits.
fn suite(only: &str, script: &str) -> Ran {
    let mut args = vec!["agent", "--timeout", "0.5", "--turn-timeout", "1"];
    if !only.is_empty() {
        args.extend(["--only", only]);
    }
    args.extend(["--", "sh", "-c", script]);
    acp_conformance(args)
}

#[test]
fn agents_do_not_outlive_a_suite_that_is_killed() {
    let lifeline = Lifeline::new();
    // On the lifeline once it was spoken to: the suite starts one in vain first.
    let script = lifeline.tie("sleep 1000 & while :; do sleep 1; done");
    let script = format!("read -r line; {script}");
    let mut suite = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .args(["agent", "--turn-timeout", "100", "--", "sh", "-c", &script])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    lifeline.started.recv_timeout(GUARD).unwrap();
    suite.kill().unwrap();
    suite.wait().unwrap();
    lifeline.all_dead();
}
