//! The agent as a child process.
//!
//! Guarantees: standard error is always drained, and its end is kept for error messages in bounded
//! memory. The agent leads its own process group. [`AgentProcess::shutdown`] closes its input and then
//! sends `SIGTERM`; the rest of the group is killed afterwards, or when the value is dropped.
//! Descendants that have left the group are found by a mark (Linux), see `sweep`. On request, the group ends also
//! when this process is killed, see the crate `acp-orphans`.

mod adapter;
mod command;
mod connector;
pub(crate) mod group;
mod lines;
pub(crate) mod memory;
pub(crate) mod pipe;
pub(crate) mod sweep;
mod tail;
#[cfg(all(test, unix))]
mod tests;
pub(crate) mod tokens;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_sandbox::Sandbox;
use acp_sdk::{CloseReason, ProcessExit};
use tokio::process::{ChildStderr, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use self::adapter::Adapter;
pub use self::adapter::ForeignAgent;
pub use self::command::AgentCommand;
pub use self::command::why_not;
use self::command::{Callback, Grace, OnStderr};
pub(crate) use self::command::{CommandLine, confined};
pub(crate) use self::connector::{CurrentProcess, ProcessConnector};
pub use self::group::ProcessEnd;
use self::group::{ExitWatch, Group, Request};
use self::memory::ProcessTree;
pub use self::pipe::{AgentInput, AgentOutput};
use self::sweep::{Mark, Sweeper};
use self::tail::Tail;
use crate::error::Error;
use crate::exit::Exit;
use acp_sdk::text::one_line;

/// Maximum number of lines of standard error in an error message.
const LAST_LINES: usize = 20;

/// Maximum number of characters of a command line in an error message.
pub(crate) const LONGEST_COMMAND: usize = 200;

/// Time from the end of an agent's output until it counts as still running.
const EXIT_AFTER_EOF: Duration = Duration::from_secs(1);

/// Time that dropping an agent waits for the sweep.
const SWEEP: Duration = Duration::from_secs(1);

/// Time for the kernel to end a killed process.
const EXIT_AFTER_KILL: Duration = Duration::from_secs(5);

/// A running agent process.
///
/// Dropping it kills its process group, and on Linux descendants that have left the group.
#[derive(Debug)]
pub struct AgentProcess {
    command: String,
    line: CommandLine,
    group: Group,
    /// The mark of descendants; taken by the sweep.
    mark: Mutex<Option<Mark>>,
    sweeper: Sweeper,
    stdin: Option<AgentInput>,
    stdout: Option<AgentOutput>,
    stderr: Stderr,
    grace: Grace,
    /// Whether the agent closed its output without exiting. It may exit later because of that.
    hung_up: Arc<AtomicBool>,
    reader: tokio::task::JoinHandle<()>,
}

impl AgentProcess {
    fn start(
        command: &mut Command,
        name: &str,
        on_stderr: Option<OnStderr>,
        grace: Grace,
        line: &CommandLine,
        (leave_detached, end_with_host): (bool, bool),
        sandbox: Option<&Sandbox>,
    ) -> std::io::Result<Self> {
        let mark = (!leave_detached).then(Mark::new);
        if let Some(mark) = &mark {
            mark.put(command);
        }
        let (group, streams) = Group::spawn(command, sandbox)?;
        if end_with_host {
            group.end_with_host();
        }
        let stderr = Stderr::default();
        let exit = group.exit().clone();
        let reader = tokio::spawn(drain_stderr(
            streams.stderr,
            exit.clone(),
            stderr.clone(),
            on_stderr,
        ));
        Ok(Self {
            command: one_line(name, LONGEST_COMMAND),
            line: line.clone(),
            stdin: streams.stdin.map(AgentInput::new),
            stdout: streams.stdout.map(|pipe| AgentOutput::new(pipe, exit)),
            group,
            mark: Mutex::new(mark),
            sweeper: Sweeper::default(),
            stderr,
            grace,
            hung_up: Arc::default(),
            reader,
        })
    }

    /// Puts an adapter before the streams.
    fn adapt(&mut self, adapter: &Adapter) {
        if let Some((output, input)) = self.take_streams() {
            let agent = ForeignAgent {
                output,
                input,
                end: self.group.process_end(self.grace.terminate),
            };
            let (output, input) = adapter.start(agent);
            (self.stdout, self.stdin) = (Some(output), Some(input));
        }
    }

    /// Returns the command line for messages, up to 200 characters.
    #[must_use]
    pub fn command(&self) -> &str {
        &self.command
    }

    /// Returns the program, arguments, variables and directory, for another run of the program.
    pub(crate) fn command_line(&self) -> &CommandLine {
        &self.line
    }

    /// Returns the process id, which is also the id of the process group.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        self.group.id()
    }

    /// Returns the agent and the processes that it starts, for measurements.
    #[doc(hidden)]
    pub fn tree(&self) -> ProcessTree {
        let mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        ProcessTree::new(self.id(), mark.clone())
    }

    /// Takes the agent's standard output and input; `None` after the first call.
    pub fn take_streams(&mut self) -> Option<(AgentOutput, AgentInput)> {
        Some((self.stdout.take()?, self.stdin.take()?))
    }

    /// Returns the exit status if the agent has exited.
    #[must_use]
    pub fn exit(&self) -> Option<Exit> {
        self.group.exit().now()
    }

    /// Waits until the agent exits by itself.
    pub async fn exited(&self) -> Exit {
        self.group.exit().clone().seen().await
    }

    /// Returns the last lines of the agent's standard error, at most 20.
    ///
    /// If the agent has exited, waits until all its output was read.
    pub async fn stderr_tail(&self) -> Vec<String> {
        if self.exit().is_some() {
            self.stderr.drained().await;
        }
        self.stderr.lock().lines(LAST_LINES)
    }

    /// Shuts the agent down and returns its exit status.
    ///
    /// Closes its standard input if it was not taken, then sends `SIGTERM` after the first timeout and
    /// `SIGKILL` after the second, and kills the rest of the process group. If the input was taken, close
    /// it first; otherwise the first timeout always elapses.
    pub async fn shutdown(&mut self) -> Exit {
        drop(self.stdin.take());
        self.await_end().await
    }

    /// Shuts the agent down like [`shutdown`](Self::shutdown), after its taken input was closed.
    pub async fn await_end(&self) -> Exit {
        if timeout(self.grace.eof, self.exited()).await.is_ok() {
            return self.end().await;
        }
        self.terminate().await
    }

    /// Terminates the agent without waiting after the end of its input.
    ///
    /// Sends `SIGTERM`, then `SIGKILL` after the timeout. On Linux, kills descendants outside the process
    /// group.
    pub async fn terminate(&self) -> Exit {
        self.group
            .process_end(self.grace.terminate)
            .terminate()
            .await;
        self.end().await
    }

    /// Kills the process group immediately.
    pub fn kill(&self) {
        self.group.request(Request::Kill);
    }

    /// Returns the close reason for pending calls after the agent's output has ended.
    ///
    /// Waits up to 1 s for the agent to exit.
    pub fn explain_close(&self) -> impl Future<Output = CloseReason> + Send + use<> {
        let mut exit = self.group.exit().clone();
        let stderr = self.stderr.clone();
        let hung_up = self.hung_up.clone();
        let command = self.command.clone();
        async move {
            match timeout(EXIT_AFTER_EOF, exit.seen()).await {
                Ok(exit) => {
                    stderr.drained().await;
                    ProcessExit::new(command)
                        .with_code(exit.code)
                        .with_signal(exit.signal)
                        .with_stderr(stderr.lock().lines(LAST_LINES))
                        .into()
                }
                Err(_) => {
                    hung_up.store(true, Ordering::Relaxed);
                    CloseReason::other("the agent closed its output and is still running")
                }
            }
        }
    }

    /// Returns the error for the end of the connection. Waits up to 1 s for the agent to exit.
    pub(crate) async fn why_ended(&self) -> Error {
        let exited = timeout(EXIT_AFTER_EOF, self.exited()).await;
        let (command, method, stray_output) = (self.command.clone(), String::new(), Vec::new());
        match exited {
            Ok(exit) if !self.hung_up.load(Ordering::Relaxed) => Error::AgentExited {
                command,
                method,
                exit,
                stderr: self.stderr_tail().await,
                stray_output,
            },
            _ => Error::AgentHungUp {
                command,
                method,
                stderr: self.stderr_tail().await,
                stray_output,
            },
        }
    }

    async fn end(&self) -> Exit {
        let exit = timeout(EXIT_AFTER_KILL, self.exited()).await;
        self.stderr.drained().await;
        self.group.end();
        // An error means that the sweep has ended.
        let _ = timeout(EXIT_AFTER_KILL, self.sweeper.begin(self.take_mark())).await;
        exit.unwrap_or(Exit::UNKNOWN)
    }

    fn take_mark(&self) -> Vec<Mark> {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.take().into_iter().collect()
    }
}

impl Drop for AgentProcess {
    fn drop(&mut self) {
        self.reader.abort();
        let left = self.take_mark();
        if !left.is_empty() {
            self.group.end();
            self.sweeper.begin(left);
            // The process may exit next, which would end the sweeping thread.
            self.sweeper.wait(SWEEP);
        }
    }
}

/// The end of an agent's standard error.
#[derive(Debug, Clone)]
struct Stderr {
    tail: Arc<Mutex<Tail>>,
    /// Whether all output of the agent itself was read.
    drained: watch::Sender<bool>,
}

impl Default for Stderr {
    fn default() -> Self {
        Self {
            tail: Arc::default(),
            drained: watch::Sender::new(false),
        }
    }
}

impl Stderr {
    /// A std mutex suffices: it is held while a chunk is copied and never across an await.
    fn lock(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all output from before the agent's exit was read.
    async fn drained(&self) {
        let mut drained = self.drained.subscribe();
        // Reading a pipe's contents is fast; the timeout is for a callback that blocks.
        let _ = timeout(EXIT_AFTER_EOF, drained.wait_for(|drained| *drained)).await;
    }
}

async fn drain_stderr(
    pipe: Option<ChildStderr>,
    exit: ExitWatch,
    stderr: Stderr,
    on_stderr: Option<OnStderr>,
) {
    let Some(mut pipe) = pipe else { return };
    let mut lines = None;
    let mut bytes: Option<Callback<[u8]>> = None;
    match on_stderr {
        Some(OnStderr::Line(callback)) => lines = Some(Lines::new(callback)),
        Some(OnStderr::Bytes(callback)) => bytes = Some(callback),
        None => {}
    }
    let mut take = |chunk: &[u8]| {
        stderr.lock().push(chunk);
        if let Some(lines) = &mut lines {
            lines.push(chunk);
        }
        if let Some(bytes) = &bytes {
            bytes.lock().unwrap_or_else(PoisonError::into_inner)(chunk);
        }
    };
    let open = pipe::read_until_exit(&mut pipe, exit, &mut take).await;
    stderr.drained.send_replace(true);
    if open {
        pipe::read_to_end(&mut pipe, &mut take).await;
    }
    if let Some(mut lines) = lines {
        lines.flush();
    }
}

/// Splits a stream into lines for a callback.
struct Lines {
    line: Vec<u8>,
    callback: Callback<str>,
}

impl Lines {
    /// Longer lines are split.
    const LONGEST: usize = 8 << 10;

    fn new(callback: Callback<str>) -> Self {
        Self {
            line: Vec::new(),
            callback,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if piece.ends_with(b"\n") || self.line.len() >= Self::LONGEST {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() {
            let mut callback = self.callback.lock().unwrap_or_else(PoisonError::into_inner);
            callback(&String::from_utf8_lossy(line));
        }
        self.line.clear();
    }
}
