//! The part of the machine that an agent may use through the client: files and commands inside the
//! directories of the session that asks.
//!
//! A [`Workspace`] answers `fs/*` and `terminal/*`. Files are served by [`acp_sdk::files`], which
//! holds the directories open: one that is renamed or replaced later is still meant by the name that
//! it had. This keeps an agent inside its directories; it does not confine a hostile process that
//! runs with the user's rights. Clones share the same terminals, and the last one that is dropped
//! kills them.

mod hooks;
mod output;
mod terminal;
#[cfg(all(test, unix))]
mod tests;

use std::path::Path;
use std::sync::Arc;

use acp_sdk::files::{self, Roots};
use acp_sdk::v1::{
    CreateTerminalRequest, CreateTerminalResponse, KillTerminalRequest, KillTerminalResponse,
    ReadTextFileRequest, ReadTextFileResponse, ReleaseTerminalRequest, ReleaseTerminalResponse,
    SessionId, TerminalOutputRequest, TerminalOutputResponse, WaitForTerminalExitRequest,
    WaitForTerminalExitResponse, WriteTextFileRequest, WriteTextFileResponse,
};
use acp_sdk::{HandlerError, HandlerResult, RpcError};

use tokio::sync::Semaphore;

use self::terminal::Terminals;
use crate::error::{Error, Result};
use crate::hooks::SessionContext;

/// Serves `fs/*` and `terminal/*` inside the directories of the session that asks: its working
/// directory and the further ones that it was opened with.
#[derive(Debug, Clone)]
pub struct Workspace {
    /// Served to every session.
    shared: Roots,
    terminals: Arc<Terminals>,
    /// Whoever works on files takes a part of it.
    workers: Arc<Semaphore>,
    read_only: bool,
    terminals_declared: bool,
}

/// Files that are read or written at once.
const WORKERS: usize = 16;

/// The most text that one answer carries, in bytes. In JSON, quotes and line endings take two bytes
/// each, and peers commonly accept messages of up to 32 MiB.
const MOST_TEXT: usize = 12 << 20;

impl Workspace {
    /// Serves each session in its own directories. A command runs in the working directory of its
    /// session unless the request names another one.
    #[must_use]
    pub fn new() -> Self {
        Self {
            shared: Roots::new(),
            terminals: Arc::default(),
            workers: Arc::new(Semaphore::new(WORKERS)),
            read_only: false,
            terminals_declared: true,
        }
    }

    /// Serves a directory to every session, besides those of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] if there is no such directory.
    pub fn with_directory(mut self, dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        let added = self.shared.add(dir);
        added.map_err(|error| unusable(dir, &error))?;
        Ok(self)
    }

    /// Lets files be read only: writing files and running commands are refused.
    ///
    /// They are declared all the same. An agent without them uses its own tools instead, which the
    /// client does not see.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Offers no terminals: the agent runs commands by its own means, or not at all.
    #[must_use]
    pub fn without_terminals(mut self) -> Self {
        self.terminals_declared = false;
        self
    }

    /// Answers `fs/read_text_file`.
    ///
    /// `line` counts from 1, lines keep their endings, and lines beyond the end of the file
    /// are an empty text.
    ///
    /// # Errors
    ///
    /// `-32002` if there is no such file; `-32602` if the path is not inside the workspace
    /// or the file is not UTF-8 text; `-32603` if it cannot be read or is too long for one
    /// answer (12 MiB).
    pub async fn read_text_file(
        &self,
        session: &SessionContext,
        request: ReadTextFileRequest,
    ) -> HandlerResult<ReadTextFileResponse> {
        let (line, limit) = (request.line, request.limit);
        let read = move |roots: &Roots| files::read(roots, &request.path, line, limit, MOST_TEXT);
        let content = self.blocking(session, read).await?;
        Ok(ReadTextFileResponse::new(content))
    }

    /// Answers `fs/write_text_file`: replaces the file as a whole. Missing directories are
    /// made.
    ///
    /// # Errors
    ///
    /// `-32602` if the path is not inside the workspace or names no regular file; `-32002` if a file
    /// is in the place of a directory; `-32603` if the workspace is read-only, or the file cannot be
    /// written.
    pub async fn write_text_file(
        &self,
        session: &SessionContext,
        request: WriteTextFileRequest,
    ) -> HandlerResult<WriteTextFileResponse> {
        self.changing(&format!("writing {}", request.path))?;
        let write = move |roots: &Roots| files::write(roots, &request.path, &request.content);
        self.blocking(session, write).await?;
        Ok(WriteTextFileResponse::new())
    }

    /// Answers `terminal/create`: starts a program, without a shell.
    ///
    /// 1 MiB of output is kept if the request names no limit, and 4 MiB at most.
    ///
    /// # Errors
    ///
    /// `-32601` if no terminals are offered; `-32602` if the program cannot be started or the
    /// directory is not inside the workspace;
    /// `-32603` if the workspace is read-only, or 64 terminals are open already.
    pub async fn create_terminal(
        &self,
        session: &SessionContext,
        request: CreateTerminalRequest,
    ) -> HandlerResult<CreateTerminalResponse> {
        if !self.terminals_declared {
            return Err(HandlerError::method_not_found("terminal/create"));
        }
        self.changing(&format!("running {}", request.command))?;
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
        let id = self.terminals.create(&request, &cwd)?;
        Ok(CreateTerminalResponse::new(id))
    }

    /// Answers `terminal/output`.
    ///
    /// # Errors
    ///
    /// `-32002` if the session has no such terminal.
    pub async fn terminal_output(
        &self,
        request: TerminalOutputRequest,
    ) -> HandlerResult<TerminalOutputResponse> {
        let terminal = self
            .terminals
            .find(&request.session_id, &request.terminal_id)?;
        Ok(terminal.output())
    }

    /// Answers `terminal/wait_for_exit`, when the command has ended.
    ///
    /// # Errors
    ///
    /// `-32002` if the session has no such terminal.
    pub async fn wait_for_terminal_exit(
        &self,
        request: WaitForTerminalExitRequest,
    ) -> HandlerResult<WaitForTerminalExitResponse> {
        let terminal = self
            .terminals
            .find(&request.session_id, &request.terminal_id)?;
        let exit = terminal.exited().await;
        let mut response = WaitForTerminalExitResponse::new();
        response.exit_code = exit.exit_code;
        response.signal = exit.signal;
        Ok(response)
    }

    /// Answers `terminal/kill`, when the command has ended: it may clean up for half a second.
    ///
    /// # Errors
    ///
    /// `-32002` if the session has no such terminal.
    pub async fn kill_terminal(
        &self,
        request: KillTerminalRequest,
    ) -> HandlerResult<KillTerminalResponse> {
        let terminal = self
            .terminals
            .find(&request.session_id, &request.terminal_id)?;
        terminal.kill().await;
        Ok(KillTerminalResponse::new())
    }

    /// Answers `terminal/release`: the command is killed if it runs, with all that it started.
    ///
    /// On Linux this includes what has left the process group of the command (`setsid`). It is found
    /// by the variable `ACP_MARKS` in its environment; a process that has cleared it and has
    /// outlived its parent goes on, and so does one of another user.
    ///
    /// # Errors
    ///
    /// `-32002` if the session has no such terminal.
    pub async fn release_terminal(
        &self,
        request: ReleaseTerminalRequest,
    ) -> HandlerResult<ReleaseTerminalResponse> {
        let terminal = self
            .terminals
            .remove(&request.session_id, &request.terminal_id)?;
        terminal.release().await;
        Ok(ReleaseTerminalResponse::new())
    }

    /// Kills the terminals of a session that has ended, with all that they started, as
    /// [`release_terminal`](Self::release_terminal) does. What has left its process group ends a moment
    /// later; dropping the last clone of the workspace waits for it, up to a second.
    pub fn end_session(&self, session: &SessionId) {
        self.terminals.end_session(session);
    }

    /// Refuses what is more than reading, if that is all that is allowed.
    fn changing(&self, what: &str) -> HandlerResult<()> {
        if self.read_only {
            let reason = format!("{what} is refused: the user allows reading files only");
            return Err(HandlerError::internal(reason));
        }
        Ok(())
    }

    /// The file system may block, and handlers must not.
    async fn blocking<T: Send + 'static>(
        &self,
        session: &SessionContext,
        work: impl FnOnce(&Roots) -> Result<T, RpcError> + Send + 'static,
    ) -> HandlerResult<T> {
        let mut roots = session.roots().clone();
        roots.extend(&self.shared);
        // The semaphore is never closed, so there is always a permit in the end.
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
