//! Whether processes that a script has started still run.

use std::path::PathBuf;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;

/// Nothing waits this long when all is well.
const GUARD: Duration = Duration::from_secs(30);

/// A pipe that every process started from a script holds open: it ends when all have ended.
pub struct Lifeline {
    _dir: tempfile::TempDir,
    path: PathBuf,
    end: pipe::Receiver,
}

impl Lifeline {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lifeline");
        fifo(&path);
        let end = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self {
            _dir: dir,
            path,
            end,
        }
    }

    /// A script that holds this lifeline, writes to it and then runs `text`.
    pub fn script(&self, text: &str) -> String {
        format!("exec 9>'{}'; echo runs >&9; {text}", self.path.display())
    }

    /// Waits until the script runs.
    pub async fn runs(&mut self) {
        let mut line = [0; 5];
        let runs = tokio::time::timeout(GUARD, self.end.read_exact(&mut line)).await;
        runs.expect("the script does not run").unwrap();
        assert_eq!(&line, b"runs\n");
    }

    pub fn is_held(&mut self) -> bool {
        matches!(self.end.try_read(&mut [0]), Err(error) if error.kind() == std::io::ErrorKind::WouldBlock)
    }

    /// Waits until no process of the script is left.
    pub async fn all_dead(mut self) {
        let mut nothing = Vec::new();
        let end = tokio::time::timeout(GUARD, self.end.read_to_end(&mut nothing)).await;
        end.expect("a process is still alive").unwrap();
    }
}

pub fn fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

impl Lifeline {
    /// The reading end for a thread without a runtime.
    pub fn into_file(self) -> (std::fs::File, tempfile::TempDir) {
        let end = self.end.into_blocking_fd().unwrap();
        (end.into(), self._dir)
    }

    /// Waits until no process of the script is left.
    pub fn ends((mut end, _dir): (std::fs::File, tempfile::TempDir)) {
        let (ended, wait) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let read = std::io::Read::read_to_end(&mut end, &mut Vec::new());
            ended.send(read.is_ok()).unwrap();
        });
        assert!(wait.recv_timeout(GUARD).expect("a process is still alive"));
    }
}
