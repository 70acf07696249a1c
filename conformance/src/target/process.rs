//! An agent that is a process of its own, in a process group of its own.
//!
//! Its standard error is always read, so that it never blocks on it, and the end
//! of it is kept for reports. Dropping the process ends the whole group: agents
//! started through `npx` or `uvx` are trees.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
#[cfg(unix)]
use std::sync::mpsc::RecvTimeoutError;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::running::Behind;
use super::{Link, Tail};
use crate::{Error, Result};

/// How many lines of the standard error are reported.
const LAST_LINES: usize = 20;

/// How long the end of the standard error of a process that has ended is waited for.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A command, and how it is started and ended.
#[derive(Clone, Debug)]
pub(super) struct Launch {
    pub(super) words: Vec<OsString>,
    /// `None`: the directory of this process.
    pub(super) folder: Option<PathBuf>,
    pub(super) env: Vec<(OsString, OsString)>,
    pub(super) grace: Duration,
    habits: Arc<Habits>,
}

/// What its processes have ignored so far, so that the next ones are waited for less long. They may end
/// by themselves nevertheless, and an agent that is terminated leaves half-written files behind.
#[derive(Debug, Default)]
struct Habits {
    ignores_end_of_input: AtomicBool,
    ignores_terminate: AtomicBool,
}

impl Launch {
    pub(super) fn new(words: Vec<OsString>, grace: Duration) -> Self {
        Self {
            words,
            folder: None,
            env: Vec::new(),
            grace,
            habits: Arc::default(),
        }
    }
}

/// A child process.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    stderr: Tail,
    /// Told nothing, but disconnected once the standard error has ended.
    silent: Receiver<()>,
    ended: Ended,
    status: Option<ExitStatus>,
    grace: Duration,
    habits: Arc<Habits>,
}

impl Launch {
    /// Returns the command as a shell would take it.
    pub(super) fn command_line(&self) -> String {
        acp_sdk::text::command_line(self.words.iter().map(|word| word.to_string_lossy()))
    }
}

/// Starts a command.
pub(super) fn start(launch: &Launch, filter: Option<Behind>) -> Result<Link> {
    let words = &launch.words;
    let line = launch.command_line();
    let failed = Error::starting(&line);
    let Some((program, arguments)) = words.split_first() else {
        return Err(failed(std::io::ErrorKind::InvalidInput.into()));
    };
    let mut command = Command::new(resolved(program).map_err(failed)?);
    command
        .args(arguments)
        .envs(launch.env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if let Some(folder) = &launch.folder {
        command.current_dir(folder);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    #[cfg(unix)]
    let starting = crate::orphan_reaper::starting();
    let mut child = command.spawn().map_err(failed)?;
    let ended = Ended::of(&child);
    #[cfg(unix)]
    drop(starting);
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (Some(input), Some(output), Some(errors)) = pipes else {
        return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
    };
    let stderr = Tail::default();
    let tail = stderr.clone();
    let (speaks, silent) = sync_channel(1);
    thread::spawn(move || {
        tail.read(errors);
        drop::<SyncSender<()>>(speaks);
    });
    let process = Process {
        ended,
        child,
        stderr,
        silent,
        status: None,
        grace: launch.grace,
        habits: launch.habits.clone(),
    };
    Ok(Link::new(output, input, Some(process), filter))
}

/// A program as it is found from another folder: one that is named by a path is meant
/// from where this process is, not from where it will run.
fn resolved(program: &OsStr) -> std::io::Result<PathBuf> {
    let path = Path::new(program);
    match path.components().nth(1) {
        Some(_) => std::path::absolute(path),
        None => Ok(path.to_owned()),
    }
}

impl Process {
    /// How it ended, in words, waiting until `deadline`; `None` while it runs.
    pub(super) fn exit(&mut self, deadline: Instant) -> Option<String> {
        self.status(deadline).map(|status| status.to_string())
    }

    /// Its exit code, if it has one, once it has ended.
    pub(super) fn exit_code(&mut self, deadline: Instant) -> Option<Option<i32>> {
        self.status(deadline).map(|status| status.code())
    }

    /// Interrupts it, as Ctrl-C does; its children are its own business.
    pub(super) fn interrupt(&self) {
        #[cfg(unix)]
        {
            use rustix::process::{Pid, Signal, kill_process};
            let id = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
            if let Some(id) = id {
                // Fails when it has ended, which its exit shows.
                let _ = kill_process(id, Signal::INT);
            }
        }
    }

    fn status(&mut self, deadline: Instant) -> Option<ExitStatus> {
        if self.status.is_none() {
            if !self.ended.before(deadline, &mut self.child) {
                return None;
            }
            // It has ended, so that this does not wait. The group, which may live on,
            // is ended with it: its number is free afterwards.
            end_group(&mut self.child);
            self.status = self.child.wait().ok();
            // What it said last may be on its way still. Whoever left the group may hold its
            // standard error open.
            let _ = self.silent.recv_timeout(LAST_WORDS);
        }
        self.status
    }

    /// The last lines that it wrote to its standard error.
    pub(super) fn stderr(&self) -> String {
        last_lines(&self.stderr.text())
    }
}

impl Process {
    /// Gives it time to end after the end of its input, and after `SIGTERM`.
    fn end_gently(&mut self) {
        if self.grace.is_zero() || self.ends_in_time(|habits| &habits.ignores_end_of_input) {
            return;
        }
        #[cfg(unix)]
        if let Some(group) = group_of(&self.child) {
            // Fails when the whole group is gone, which is what is wanted.
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
            self.ends_in_time(|habits| &habits.ignores_terminate);
        }
    }

    /// Waits for its end, half as long if the wait for an earlier process timed out.
    fn ends_in_time(&mut self, ignores: fn(&Habits) -> &AtomicBool) -> bool {
        let time = match ignores(&self.habits).load(Ordering::Relaxed) {
            true => self.grace / 2,
            false => self.grace,
        };
        let ends = self.ended.before(Instant::now() + time, &mut self.child);
        if !ends {
            ignores(&self.habits).store(true, Ordering::Relaxed);
        }
        ends
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // One that was reaped has given its number back.
        if self.status.is_none() {
            self.end_gently();
            end_group(&mut self.child);
            // Killed, so this returns at once.
            let _ = self.child.wait();
        }
    }
}

/// The end of a text, as far as it is worth reading.
fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.trim().lines().collect();
    let first = lines.len().saturating_sub(LAST_LINES);
    lines.get(first..).unwrap_or_default().join("\n")
}

/// Tells when a child has ended.
#[cfg(unix)]
#[derive(Debug)]
struct Ended(Receiver<()>);

#[cfg(unix)]
impl Ended {
    /// From a thread that waits for it, and leaves it to be reaped.
    fn of(child: &Child) -> Self {
        let (tell, ended) = sync_channel(1);
        if let Some(leader) = group_of(child) {
            crate::orphan_reaper::watch(leader);
            thread::spawn(move || {
                crate::process_group::wait_for(leader);
                // Nobody may ask any more.
                let _ = tell.send(());
            });
        }
        Self(ended)
    }

    fn before(&self, deadline: Instant, _: &mut Child) -> bool {
        let left = deadline.saturating_duration_since(Instant::now());
        self.0.recv_timeout(left) != Err(RecvTimeoutError::Timeout)
    }
}

/// Tells when a child has ended.
#[cfg(not(unix))]
#[derive(Debug)]
struct Ended;

#[cfg(not(unix))]
impl Ended {
    fn of(_: &Child) -> Self {
        Self
    }

    fn before(&self, deadline: Instant, child: &mut Child) -> bool {
        // The standard library can wait for a child without a limit, or look; a wait
        // in a thread would need the child, which we keep to be able to kill it.
        while matches!(child.try_wait(), Ok(None)) {
            if Instant::now() >= deadline {
                return false;
            }
            thread::sleep(std::time::Duration::from_millis(2));
        }
        true
    }
}

#[cfg(unix)]
fn group_of(child: &Child) -> Option<rustix::process::Pid> {
    let number = i32::try_from(child.id()).ok();
    number.and_then(rustix::process::Pid::from_raw)
}

#[cfg(unix)]
fn end_group(child: &mut Child) {
    use rustix::process::{Signal, kill_process_group};
    if let Some(group) = group_of(child) {
        // Fails when the whole group is gone, which is what is wanted.
        let _ = kill_process_group(group, Signal::KILL);
        crate::orphan_reaper::forget(group);
    }
}

#[cfg(not(unix))]
fn end_group(child: &mut Child) {
    // Fails when it is gone, which is what is wanted.
    let _ = child.kill();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_flood_the_end_is_told() {
        let flood: String = (0..1000).map(|line| format!("line {line}\n")).collect();
        let told = last_lines(&flood);
        assert!(
            told.starts_with("line 980\n") && told.ends_with("line 999"),
            "{told}"
        );
        assert_eq!(last_lines("\n  one\ntwo\n"), "one\ntwo");
    }
}
