//! For tests: a pipe that every process started from a script holds open.
//!
//! It ends when they are all dead, so a test can await that instead of polling for process ids.

use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::timeout;

/// A guard against a hanging test; nothing waits this long when all is well.
pub(crate) const GUARD: Duration = Duration::from_secs(30);

pub(crate) struct Lifeline {
    dir: tempfile::TempDir,
    end: pipe::Receiver,
}

impl Lifeline {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lifeline");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let end = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self { dir, end }
    }

    /// A script that runs `text` and whatever that starts on this lifeline.
    pub(crate) fn tie(&self, text: &str) -> String {
        format!("exec 9>'{}/lifeline'; {text}", self.dir.path().display())
    }

    /// To be called when the script is known to run.
    pub(crate) async fn all_dead(mut self) {
        let mut nothing = Vec::new();
        let end = timeout(GUARD, self.end.read_to_end(&mut nothing)).await;
        end.expect("somebody is still alive").unwrap();
    }
}
