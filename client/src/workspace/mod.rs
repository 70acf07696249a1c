//! Serves files and commands inside the directories of a session.
//!
//! A [`Workspace`] handles `fs/*` and `terminal/*`. Files are served by [`acp_files`], which holds
//! the directories open, so a directory that is renamed or replaced later is still served under its
//! former name. This restricts an agent to its directories; it does not confine a hostile process
//! that runs with the user's rights. What a client serves of it is decided by the client's guard.
//!
//! Clones share their terminals; dropping the last clone kills them. Several clients may share a workspace:
//! a terminal belongs to one session of one client.

mod hooks;
mod launch;
mod output;
#[cfg(all(unix, feature = "pty"))]
mod pty;
mod stream;
mod terminal;
#[cfg(all(test, unix))]
mod tests;

use std::path::Path;
use std::sync::Arc;

use acp_files::Roots;
use acp_sandbox::Sandbox;
use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    TerminalId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use acp_sdk::{HandlerError, HandlerResult, RpcError};

use tokio::sync::Semaphore;

use self::launch::Launch;
pub use self::output::OutputChunk;
pub use self::stream::OutputStream;
use self::terminal::Terminals;
use crate::error::{Error, Result};
use crate::hooks::{ConnectionId, SessionContext};

/// Handles `fs/*` and `terminal/*` inside the directories of each session.
///
/// These are its working directory and its additional directories.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Directories that are served to all sessions.
    shared: Roots,
    terminals: Arc<Terminals>,
    /// Limits concurrent file operations.
    workers: Arc<Semaphore>,
    is_guarded: bool,
    terminals_declared: bool,
    launch: Launch,
}

/// Maximum number of concurrent file operations.
const WORKERS: usize = 16;

/// Maximum size of the text in a response, in bytes. In JSON, quotes and line endings take two bytes
/// each, and peers commonly accept messages of up to [`MAX_MESSAGE_BYTES`](acp_sdk::limits::MAX_MESSAGE_BYTES).
const MOST_TEXT: usize = 12 << 20;

impl Workspace {
    /// Creates a workspace that serves each session in its own directories, as far as the
    /// [permissions](crate::ClientBuilder::permissions) of the client allow it.
    ///
    /// A command runs in the working directory of its session unless the request names another one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Roots::new(),
            terminals: Arc::default(),
            workers: Arc::new(Semaphore::new(WORKERS)),
            is_guarded: true,
            terminals_declared: true,
            launch: Launch::default(),
        }
    }

    /// Creates a workspace that serves files and commands without asking the permissions of the client.
    ///
    /// The agent may then read and write every file in the directories of its sessions, and run every
    /// command with the rights of this process.
    #[must_use]
    pub fn unguarded() -> Self {
        Self {
            is_guarded: false,
            ..Self::new()
        }
    }

    /// Serves a directory to all sessions, in addition to their own.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] if the directory does not exist.
    pub fn with_directory(mut self, dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let added = self.shared.add(dir);
        added.map_err(|error| unusable(dir, &error))?;
        Ok(self)
    }

    /// Does not declare terminals. The agent runs commands itself, if it can.
    #[must_use]
    pub fn without_terminals(mut self) -> Self {
        self.terminals_declared = false;
        self
    }

    /// Confines the commands that are started for the agent, as
    /// [`AgentCommand::sandbox`](crate::AgentCommand::sandbox) confines the agent.
    #[must_use]
    pub fn sandbox(mut self, sandbox: impl Into<Option<Sandbox>>) -> Self {
        self.launch.sandbox = sandbox.into();
        self
    }

    /// Starts commands in pseudo-terminals of this size, so that they print colours and progress
    /// (default: in pipes).
    ///
    /// Standard output and error are the terminal. Standard input is empty, and the command has no controlling
    /// terminal. The output has the escape sequences of the command and `\r\n` as line endings, for the agent
    /// too. `TERM` is `xterm-256color`, and `PAGER` and `GIT_PAGER` are `cat`, unless the request sets them.
    #[cfg(all(unix, feature = "pty"))]
    #[must_use]
    pub fn pseudo_terminals(mut self, columns: u16, rows: u16) -> Self {
        self.launch.pty = Some(pty::Size { columns, rows });
        self
    }

    /// Returns the output of a terminal from a position in bytes on, as it is printed; `None` if the
    /// terminal does not exist or was released.
    ///
    /// The agent names the terminal in the content of a tool call.
    ///
    /// ```no_run
    /// use acp_client::Workspace;
    /// use acp_sdk::v1::TerminalId;
    ///
    /// # async fn example(workspace: &Workspace, shown: &TerminalId) {
    /// if let Some(mut output) = workspace.output_stream(shown, 0) {
    ///     while let Some(chunk) = output.next().await {
    ///         if chunk.missed > 0 {
    ///             println!("[{} bytes are missing]", chunk.missed);
    ///         }
    ///         print!("{}", String::from_utf8_lossy(&chunk.bytes));
    ///     }
    /// }
    /// # }
    /// ```
    #[must_use]
    pub fn output_stream(&self, id: &TerminalId, position: u64) -> Option<OutputStream> {
        Some(self.terminals.get(id)?.stream(position))
    }

    /// Handles `fs/read_text_file`.
    ///
    /// `line` counts from 1, and line endings are unchanged. Lines beyond the end of the file are an
    /// empty text.
    ///
    /// # Errors
    ///
    /// `-32002` if the file does not exist; `-32602` if the path is outside the workspace or the file
    /// is not UTF-8 text; `-32603` if it cannot be read or the response would exceed 12 MiB.
    pub async fn read_text_file(
        &self,
        session: &SessionContext,
        request: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        let (line, limit) = (request.line, request.limit);
        let read =
            move |roots: &Roots| acp_files::read(roots, &request.path, line, limit, MOST_TEXT);
        let content = self.blocking(session, read).await?;
        Ok(ReadTextFileResponse::new(content))
    }

    /// Handles `fs/write_text_file`: replaces the file atomically and creates missing directories.
    ///
    /// # Errors
    ///
    /// `-32602` if the path is outside the workspace or is not a regular file; `-32002` if a parent is a
    /// file; `-32603` if it cannot be written.
    pub async fn write_text_file(
        &self,
        session: &SessionContext,
        request: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        let write = move |roots: &Roots| acp_files::write(roots, &request.path, &request.content);
        self.blocking(session, write).await?;
        Ok(WriteTextFileResponse::new())
    }

    /// Handles `terminal/create`: starts a program without a shell.
    ///
    /// Keeps the last 1 MiB of output unless the request names a limit of up to 4 MiB.
    ///
    /// # Errors
    ///
    /// `-32601` if terminals are disabled; `-32602` if the program cannot be started or the directory is
    /// outside the workspace; `-32603` if the client has 64 open terminals already.
    pub async fn create_terminal(
        &self,
        session: &SessionContext,
        request: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        if !self.terminals_declared {
            return Err(HandlerError::method_not_found("terminal/create"));
        }
        let cwd = match request.cwd.clone() {
            Some(cwd) => {
                let directory = move |roots: &Roots| roots.directory(&cwd);
                self.blocking(session, directory).await?
            }
            None => session.roots().first().ok_or_else(|| {
                let cwd = session.cwd().display();
                let reason = format!("the working directory {cwd} does not exist on this machine");
                HandlerError::internal(reason)
            })?,
        };
        let launch = &self.launch;
        let id = self.terminals.create(session, &request, &cwd, launch)?;
        Ok(CreateTerminalResponse::new(id))
    }

    /// Handles `terminal/output`.
    ///
    /// # Errors
    ///
    /// `-32002` if the session does not have this terminal.
    pub async fn terminal_output(
        &self,
        session: &SessionContext,
        request: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        let terminal = self.terminals.find(session, &request.terminal_id)?;
        Ok(terminal.output())
    }

    /// Handles `terminal/wait_for_exit`; responds when the command has exited.
    ///
    /// # Errors
    ///
    /// `-32002` if the session does not have this terminal.
    pub async fn wait_for_terminal_exit(
        &self,
        session: &SessionContext,
        request: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        let terminal = self.terminals.find(session, &request.terminal_id)?;
        let exit = terminal.exited().await;
        let mut response = WaitForTerminalExitResponse::new();
        response.exit_code = exit.exit_code;
        response.signal = exit.signal;
        Ok(response)
    }

    /// Handles `terminal/kill`: sends `SIGTERM`, and `SIGKILL` after 500 ms; waits for the exit.
    ///
    /// # Errors
    ///
    /// `-32002` if the session does not have this terminal.
    pub async fn kill_terminal(
        &self,
        session: &SessionContext,
        request: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        let terminal = self.terminals.find(session, &request.terminal_id)?;
        terminal.kill().await;
        Ok(KillTerminalResponse::new())
    }

    /// Handles `terminal/release`: kills the command with all processes that it started.
    ///
    /// On Linux this includes processes that have left the process group of the command (`setsid`),
    /// which are found by the variable `ACP_MARKS` in their environment. A process survives if it has
    /// cleared the variable and outlived its parent, or if it belongs to another user.
    ///
    /// # Errors
    ///
    /// `-32002` if the session does not have this terminal.
    pub async fn release_terminal(
        &self,
        session: &SessionContext,
        request: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        let terminal = self.terminals.remove(session, &request.terminal_id)?;
        terminal.release().await;
        Ok(ReleaseTerminalResponse::new())
    }

    /// Kills the terminals of a closed session, as [`release_terminal`](Self::release_terminal) does.
    ///
    /// Processes outside the process groups are killed asynchronously; dropping the last clone of the
    /// workspace waits up to 1 s for this.
    pub fn end_session(&self, session: &SessionContext) {
        self.terminals.end_session(session);
    }

    /// Kills the terminals of a connection that has ended, as [`end_session`](Self::end_session) does for
    /// a session.
    pub fn end_connection(&self, connection: ConnectionId) {
        self.terminals.end_connection(connection);
    }

    /// Runs file system calls on a blocking thread.
    async fn blocking<T: Send + 'static>(
        &self,
        session: &SessionContext,
        work: impl FnOnce(&Roots) -> Result<T, RpcError> + Send + 'static,
    ) -> HandlerResult<T> {
        let mut roots = session.roots().clone();
        roots.extend(&self.shared);
        // The semaphore is never closed.
        let _permit = self.workers.acquire().await;
        let done = tokio::task::spawn_blocking(move || work(&roots)).await;
        Ok(done.map_err(HandlerError::internal)??)
    }
}

impl Default for Workspace {
    fn default() -> Self {
        Self::new()
    }
}

fn unusable(dir: &Path, error: &std::io::Error) -> Error {
    Error::Directory {
        path: dir.display().to_string(),
        reason: error.to_string(),
    }
}
