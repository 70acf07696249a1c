//! What is left of the proxy when it is killed: a second process that ends the
//! agent.
//!
//! Editors end their agent with `SIGKILL`, which no process can pass on. Without
//! the proxy the agent would be dead then; so a guard waits for the end of a pipe
//! that only the proxy holds, and ends the agent's group in steps.

use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};

/// How often a group that should end is looked at. It is nobody's child here, so
/// nothing tells.
const POLL: Duration = Duration::from_millis(20);

/// A guard that stands by.
#[derive(Debug)]
pub(super) struct Guard {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    /// Starts `program proxy-guard GROUP SECONDS` in a group of its own, so that
    /// what is sent to the proxy's group does not reach it.
    pub(super) fn start(program: &Path, group: Pid, grace: Duration) -> io::Result<Self> {
        let mut child = Command::new(program)
            .arg("proxy-guard")
            .arg(group.as_raw_nonzero().to_string())
            .arg(grace.as_secs_f64().to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// Sends the guard home; the agent needs none any more.
    pub(super) fn dismiss(mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // It is gone already if somebody has ended it.
            let _ = pipe.write_all(b".");
        }
        let _ = self.child.wait();
    }
}

/// Stands by until `pipe` ends; then, unless it was dismissed, ends the group: its
/// input has ended with the proxy, `grace` later comes `SIGTERM`, and again
/// `SIGKILL`.
pub fn guard(mut pipe: impl Read, group: i32, grace: Duration) {
    let mut dismissed = Vec::new();
    // An error is an end, too: nobody can dismiss us any more.
    let _ = pipe.read_to_end(&mut dismissed);
    let Some(group) = Pid::from_raw(group).filter(|_| dismissed.is_empty()) else {
        return;
    };
    for signal in [Signal::TERM, Signal::KILL] {
        let deadline = Instant::now() + grace;
        while Instant::now() < deadline {
            if test_kill_process_group(group).is_err() {
                return;
            }
            thread::sleep(POLL);
        }
        // Fails when the group has ended, which is what is wanted.
        let _ = kill_process_group(group, signal);
    }
}
