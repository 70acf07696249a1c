//! An agent as the leader of a process group, and the standard streams of this process.
//!
//! The leader is reaped last: until then its number, which names the group, is not given to a
//! stranger. The [reaper](crate::orphan_reaper) of this process, if there is one, knows of each group
//! from its start until its leader is reaped.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, Stdio};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

use crate::{Error, Result, orphan_reaper};

/// A running agent. It is not ended by dropping this.
#[derive(Debug)]
pub struct Agent {
    child: Child,
    group: Pid,
}

/// The agent's ends of the wire.
#[derive(Debug)]
pub struct Streams {
    /// What is written here, the agent reads.
    pub input: File,
    /// What the agent writes is read here.
    pub output: File,
}

impl Agent {
    /// Starts a program with its arguments in a group of its own; its standard error is ours.
    ///
    /// # Errors
    /// [`Error::Start`] when it cannot be started.
    pub fn start(words: &[OsString]) -> Result<(Self, Streams)> {
        let line = words.join(" ".as_ref());
        let line = line.to_string_lossy();
        let failed = Error::starting(&line);
        let Some((program, args)) = words.split_first() else {
            return Err(failed(io::ErrorKind::InvalidInput.into()));
        };
        let starting = orphan_reaper::starting();
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
        orphan_reaper::watch(group);
        drop(starting);
        let streams = Streams {
            input: OwnedFd::from(input).into(),
            output: OwnedFd::from(output).into(),
        };
        Ok((Self { child, group }, streams))
    }

    /// Returns the number of its process group.
    #[must_use]
    pub fn group(&self) -> Pid {
        self.group
    }

    /// Sends a signal to everybody in the group.
    pub fn signal(&self, signal: Signal) {
        // A group that has ended already needs none.
        let _ = kill_process_group(self.group, signal);
    }

    /// Returns its exit code, or 128 and the number of the signal that ended it, as a shell would have it.
    /// Waits for its end without a limit: call it when [`wait_for`] has returned, or after `SIGKILL`.
    pub fn reap(&mut self) -> u8 {
        orphan_reaper::forget(self.group);
        let Ok(status) = self.child.wait() else {
            return u8::MAX;
        };
        let signal = || status.signal().map(|number| 128 | number);
        let code = status.code().or_else(signal);
        code.and_then(|code| u8::try_from(code).ok())
            .unwrap_or(u8::MAX)
    }
}

/// Waits until the leader of a group has ended, without reaping it.
pub fn wait_for(leader: Pid) {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    while let Err(Errno::INTR) = waitid(WaitId::Pid(leader), options) {}
}

/// Takes standard input and output over: dropping the returned files closes them. Afterwards the standard
/// input of this process is empty, and its standard output goes nowhere.
///
/// # Errors
/// Fails when one of them is closed, or the system has no descriptor left.
pub fn take_stdio() -> io::Result<(File, File)> {
    let own = |fd: &dyn AsFd| fd.as_fd().try_clone_to_owned().map(File::from);
    let (input, output) = (own(&io::stdin())?, own(&io::stdout())?);
    let null = File::options().read(true).write(true).open("/dev/null")?;
    rustix::stdio::dup2_stdin(&null)?;
    rustix::stdio::dup2_stdout(&null)?;
    Ok((input, output))
}
