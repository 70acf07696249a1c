//! The agent as a child process that leads a process group.
//!
//! The leader is reaped last: until then its number, which names the group, is
//! not given to a stranger.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::{Error, Result};

/// A running agent. It is not ended by dropping this.
#[derive(Debug)]
pub(crate) struct Agent {
    child: Child,
    group: Pid,
}

/// The agent's ends of the wire.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) input: File,
    pub(crate) output: File,
}

impl Agent {
    /// Starts the agent; its standard error is ours.
    pub(crate) fn start(words: &[OsString]) -> Result<(Self, Streams)> {
        let line: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
        let failed = |source| Error::Start {
            command: line.join(" "),
            source,
        };
        let Some((program, args)) = words.split_first() else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .process_group(0)
            .spawn()
            .map_err(failed)?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let pipes = (child.stdin.take(), child.stdout.take(), group);
        let (Some(input), Some(output), Some(group)) = pipes else {
            return Err(failed(io::ErrorKind::BrokenPipe.into()));
        };
        let streams = Streams {
            input: OwnedFd::from(input).into(),
            output: OwnedFd::from(output).into(),
        };
        Ok((Self { child, group }, streams))
    }

    /// The number of its process group.
    pub(crate) fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to everybody in the group.
    pub(crate) fn signal(&self, signal: Signal) {
        // A group that has ended already needs none.
        let _ = kill_process_group(self.group, signal);
    }

    /// Its exit code, or 128 and the number of the signal that ended it, as a shell
    /// would have it. To be called when it is known to end.
    pub(crate) fn reap(&mut self) -> u8 {
        let Ok(status) = self.child.wait() else {
            return u8::MAX;
        };
        let signal = || status.signal().map(|number| 128 | number);
        let code = status.code().or_else(signal);
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX)
    }
}
