//! Commands with their output.
//!
//! A command is a process group with pipes, not a pseudo-terminal; its standard input is empty.
//! Standard output and error share one pipe, which keeps their order. There is no shell.
//!
//! The exit is reported after everything that the command itself wrote has been read. What it
//! leaves running in its group goes on until the command is killed or released.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_files::Directory;
use acp_sdk::RpcError;
use acp_sdk::text::command_line;
use acp_sdk::v1::{CreateTerminalRequest, TerminalExitStatus, TerminalId, TerminalOutputResponse};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{OwnedSemaphorePermit, watch};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::group::Group;
use super::output::Output;
use super::{Roots, internal, invalid};
use crate::limits::LocalLimits;

/// Bytes that are read at a time.
const CHUNK: usize = 16 << 10;

/// Bytes that a command can have left in its pipe when it ended: the largest pipe of Linux.
const LARGEST_PIPE: usize = 1 << 20;

/// Time for the system to end a group that was killed.
const KILL_TIMEOUT: Duration = Duration::from_secs(1);

/// A command that was started. Dropping it releases it.
#[derive(Debug)]
pub(crate) struct Command {
    id: TerminalId,
    /// The command and its arguments, for display.
    line: String,
    state: Arc<CommandState>,
}

#[derive(Debug)]
struct CommandState {
    output: Mutex<Output>,
    /// How the command ended.
    exit: watch::Sender<Option<TerminalExitStatus>>,
    kill: CancellationToken,
    release: CancellationToken,
    /// Cancelled when the command is released and has ended.
    released: CancellationToken,
}

impl Command {
    /// Answers `terminal/create`. Blocks; to be called in the context of a tokio runtime.
    ///
    /// The command is released when `release` is cancelled. Until then it holds `held`, and is a
    /// task of `tasks`.
    ///
    /// # Errors
    ///
    /// -32002 or -32602 for a directory that does not exist or is outside of the roots; -32602 if
    /// the command cannot be started.
    pub(crate) fn start(
        id: TerminalId,
        request: &CreateTerminalRequest,
        (roots, cwd): (&Roots, &str),
        limits: &LocalLimits,
        release: CancellationToken,
        held: OwnedSemaphorePermit,
        tasks: &TaskTracker,
    ) -> Result<Self, RpcError> {
        let cwd = roots.directory(request.cwd.as_deref().unwrap_or(cwd))?;
        let cannot = |error: io::Error| {
            let (command, cwd) = (&request.command, cwd.path().display());
            let hint = hint(request);
            invalid(format!("cannot run {command:?} in {cwd}: {error}{hint}"))
        };
        let (pipe, group) = spawn(request, &cwd).map_err(cannot)?;
        let limit = request.output_byte_limit;
        let limit = limit.map_or(limits.output_bytes, |limit| {
            usize::try_from(limit).unwrap_or(usize::MAX)
        });
        let state = Arc::new(CommandState {
            output: Mutex::new(Output::new(limit.min(limits.max_output_bytes))),
            exit: watch::Sender::new(None),
            kill: CancellationToken::new(),
            release,
            released: CancellationToken::new(),
        });
        let supervisor = Supervisor {
            state: state.clone(),
            group,
            grace: limits.kill_grace,
            kill_at: None,
            _held: held,
        };
        let runtime = tokio::runtime::Handle::try_current()
            .map_err(|_| internal("a command cannot be started outside of a tokio runtime"))?;
        tasks.spawn_on(supervisor.run(pipe), &runtime);
        let words = std::iter::once(&request.command).chain(&request.args);
        let line = command_line(words);
        Ok(Self { id, line, state })
    }

    pub(crate) fn id(&self) -> &TerminalId {
        &self.id
    }

    /// Returns the command and its arguments, for display.
    pub(crate) fn line(&self) -> &str {
        &self.line
    }

    /// Answers `terminal/output`, with at most the last `most` bytes.
    pub(crate) fn output(&self, most: usize) -> TerminalOutputResponse {
        // Read first: beside the exit status there must be all output before it.
        let exit = self.state.exit.borrow().clone();
        let (text, truncated) = self.state.output().text(most);
        let mut response = TerminalOutputResponse::new(text, truncated);
        response.exit_status = exit;
        response
    }

    /// Answers `terminal/wait_for_exit`.
    pub(crate) async fn exited(&self) -> TerminalExitStatus {
        let mut exit = self.state.exit.subscribe();
        let exit = exit.wait_for(Option::is_some).await;
        // The sender is part of this value.
        exit.ok().and_then(|exit| exit.clone()).unwrap_or_default()
    }

    /// Answers `terminal/kill`: SIGTERM for the group, after `kill_grace` SIGKILL. Returns when the
    /// command has ended.
    pub(crate) async fn kill(&self) {
        self.state.kill.cancel();
        self.exited().await;
    }

    /// Answers `terminal/release`: kills the group. Returns when the command has ended; its output
    /// can still be read.
    pub(crate) async fn release(&self) {
        self.begin_release();
        self.state.released.cancelled().await;
    }

    /// The same without waiting.
    pub(crate) fn begin_release(&self) {
        self.state.release.cancel();
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        self.begin_release();
    }
}

impl CommandState {
    fn output(&self) -> MutexGuard<'_, Output> {
        self.output.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The task of a command. When the runtime drops it, the group is killed.
struct Supervisor {
    state: Arc<CommandState>,
    group: Group,
    grace: Duration,
    /// When a command that was asked to end is killed.
    kill_at: Option<Instant>,
    _held: OwnedSemaphorePermit,
}

impl Supervisor {
    async fn run(mut self, mut pipe: Pipe) {
        let exit = self.until_exit(&mut pipe).await;
        self.state.exit.send_replace(Some(exit));
        self.until_release(&mut pipe).await;
        self.group.kill();
        let Self { state, group, .. } = self;
        drop(group);
        state.output().end();
        state.released.cancel();
    }

    /// Reads output until the command has ended and all of its output is read.
    async fn until_exit(&mut self, pipe: &mut Pipe) -> TerminalExitStatus {
        let mut chunk = vec![0; CHUNK];
        let mut is_open = true;
        let exit = loop {
            let kill_at = self.kill_at;
            // Reading comes last: a command that writes without end must end all the same.
            tokio::select! {
                biased;
                () = self.state.release.cancelled() => {
                    self.group.kill();
                    let ended = timeout(KILL_TIMEOUT, self.group.exited()).await;
                    break ended.unwrap_or_default();
                }
                () = self.state.kill.cancelled(), if kill_at.is_none() => {
                    self.group.terminate();
                    self.kill_at = Some(Instant::now() + self.grace);
                }
                () = at(kill_at), if kill_at.is_some() => {
                    self.group.kill();
                    let ended = timeout(KILL_TIMEOUT, self.group.exited()).await;
                    break ended.unwrap_or_default();
                }
                exit = self.group.exited() => break exit,
                read = pipe.read(&mut chunk), if is_open => {
                    is_open = self.take(&chunk, read);
                }
            }
        };
        if is_open {
            drain(pipe, &mut chunk, &mut |bytes| {
                self.state.output().push(bytes)
            })
            .await;
        }
        exit
    }

    /// Reads what processes of the group write that the command has left running.
    async fn until_release(&mut self, pipe: &mut Pipe) {
        let mut chunk = vec![0; CHUNK];
        let mut is_open = true;
        let mut killed = false;
        loop {
            tokio::select! {
                biased;
                () = self.state.release.cancelled() => return,
                () = self.state.kill.cancelled(), if !killed => {
                    self.group.kill();
                    killed = true;
                }
                read = pipe.read(&mut chunk), if is_open => {
                    is_open = self.take(&chunk, read);
                }
            }
        }
    }

    /// Keeps what was read; `false` at the end of the pipe.
    fn take(&self, chunk: &[u8], read: io::Result<usize>) -> bool {
        let Ok(bytes @ 1..) = read else {
            self.state.output().end();
            return false;
        };
        self.state.output().push(&chunk[..bytes]);
        true
    }
}

async fn at(time: Option<Instant>) {
    if let Some(time) = time {
        sleep_until(time).await;
    }
}

/// Starts the command; returns the pipe of its output.
fn spawn(request: &CreateTerminalRequest, cwd: &Directory) -> io::Result<(Pipe, Group)> {
    let (reader, writer) = io::pipe()?;
    let reader = asynchronous(reader)?;
    let mut command = tokio::process::Command::new(&request.command);
    // Commands are the agent's doing.
    for name in acp_sdk::SECRET_VARIABLES {
        command.env_remove(name);
    }
    command
        .args(&request.args)
        .envs(request.env.iter().map(|var| (&var.name, &var.value)))
        .current_dir(cwd.start_path())
        .stdin(Stdio::null())
        .stdout(writer.try_clone()?)
        .stderr(writer);
    // The command holds our ends of the pipe, which must not outlive this function.
    let group = Group::spawn(&mut command)?;
    Ok((reader, group))
}

#[cfg(unix)]
type Pipe = tokio::net::unix::pipe::Receiver;
#[cfg(not(unix))]
type Pipe = tokio::fs::File;

#[cfg(unix)]
fn asynchronous(reader: io::PipeReader) -> io::Result<Pipe> {
    Pipe::from_owned_fd(reader.into())
}

/// A pipe that is read on the runtime's blocking threads.
#[cfg(not(unix))]
fn asynchronous(reader: io::PipeReader) -> io::Result<Pipe> {
    let handle = std::os::windows::io::OwnedHandle::from(reader);
    Ok(Pipe::from_std(std::fs::File::from(handle)))
}

/// Reads what is in the pipe at this moment.
///
/// The runtime may learn of the data later than of the exit: its own notion of readiness cannot
/// distinguish an empty pipe from one that it has not polled.
#[cfg(unix)]
async fn drain(pipe: &Pipe, chunk: &mut [u8], take: &mut impl FnMut(&[u8])) {
    let mut left = LARGEST_PIPE;
    while left > 0 {
        match rustix::io::read(pipe, &mut *chunk) {
            Ok(bytes @ 1..) => {
                take(&chunk[..bytes]);
                left = left.saturating_sub(bytes);
            }
            Err(rustix::io::Errno::INTR) => {}
            _ => return,
        }
    }
}

/// Reads what is in the pipe, as far as it comes at once.
#[cfg(not(unix))]
async fn drain(pipe: &mut Pipe, chunk: &mut [u8], take: &mut impl FnMut(&[u8])) {
    let mut left = LARGEST_PIPE;
    let soon = Duration::from_millis(200);
    while left > 0
        && let Ok(Ok(bytes @ 1..)) = timeout(soon, pipe.read(chunk)).await
    {
        take(&chunk[..bytes]);
        left = left.saturating_sub(bytes);
    }
}

/// Agents now and then send a whole shell line as the command.
fn hint(request: &CreateTerminalRequest) -> &'static str {
    if request.args.is_empty() && request.command.contains(char::is_whitespace) {
        ". Pass the arguments in `args`; a shell line needs a shell such as `sh` with `-c`"
    } else {
        ""
    }
}
