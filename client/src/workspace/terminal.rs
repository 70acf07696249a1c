//! Commands that an agent runs through the client (`terminal/*`).
//!
//! A terminal here is a process group whose standard output and error share one pipe, or one
//! pseudo-terminal, so their order is kept. Standard input is empty. A command is a program with
//! arguments, without a shell.
//!
//! Guarantees: output is bounded by the limit. The exit is reported after all output of the command
//! itself. A terminal is killed with its process group when it is released or its session or
//! connection ends. Processes that have left the group are killed on Linux only; see `sweep` for the
//! limits.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/terminals>

use std::collections::HashMap;
use std::io;
use std::process::Stdio;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_files::Directory;
use acp_sdk::v1::{
    CreateTerminalRequest, SessionId, TerminalExitStatus, TerminalId, TerminalOutputResponse,
};
use acp_sdk::{HandlerError, HandlerResult};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::launch::Launch;
use super::output::Output;
use super::stream::OutputStream;
use crate::exit::Exit;
use crate::hooks::{ConnectionId, SessionContext};
use crate::process::group::{Group, Request};
use crate::process::sweep::{Mark, Sweeper};
use crate::process::{confined, pipe, why_not};

/// The output limit in bytes if the request names none.
const DEFAULT_LIMIT: u64 = 1 << 20;

/// The maximum output limit in bytes, because there may be many terminals.
const LARGEST_LIMIT: u64 = 4 << 20;

/// The maximum number of open terminals of a connection.
const MOST_TERMINALS: usize = 64;

/// The time from `SIGTERM` to `SIGKILL`.
const GRACE: Duration = Duration::from_millis(500);

/// The time that dropping the last handle waits for sweeps.
const SWEEP: Duration = Duration::from_secs(1);

/// The terminals of a workspace. Dropping them kills their processes.
#[derive(Debug, Default)]
pub(crate) struct Terminals {
    open: Mutex<HashMap<TerminalId, Slot>>,
    created: AtomicU64,
    sweeper: Arc<Sweeper>,
}

/// An entry of the terminal table.
#[derive(Debug)]
struct Slot {
    connection: ConnectionId,
    session: SessionId,
    /// `None` while the command is starting.
    terminal: Option<Arc<Terminal>>,
}

impl Slot {
    /// Returns whether the terminal is one of a session. Agents of two connections may use the same id.
    fn is_of(&self, session: &SessionContext) -> bool {
        self.connection == session.connection() && self.session == *session.id()
    }
}

impl Terminals {
    /// Starts a command in `cwd`.
    ///
    /// # Errors
    ///
    /// `-32602` if the command cannot be started, `-32603` if too many terminals are open.
    pub(crate) fn create(
        &self,
        session: &SessionContext,
        request: &CreateTerminalRequest,
        cwd: &Directory,
        launch: &Launch,
    ) -> HandlerResult<TerminalId> {
        let id = self.reserve(session)?;
        // Without the lock, because starting a process takes a while.
        let started = Terminal::start(request, cwd, &self.sweeper, launch);
        if started.is_err() {
            self.lock().remove(&id);
        }
        self.put(session, &id, started?)?;
        Ok(id)
    }

    fn reserve(&self, session: &SessionContext) -> HandlerResult<TerminalId> {
        let number = self.created.fetch_add(1, Ordering::Relaxed) + 1;
        let id = TerminalId::from(format!("term-{number}"));
        let mut open = self.lock();
        let connection = session.connection();
        let others = open.values().filter(|slot| slot.connection == connection);
        if others.count() >= MOST_TERMINALS {
            let reason = format!("{MOST_TERMINALS} terminals are open: release one first");
            return Err(HandlerError::internal(reason));
        }
        let slot = Slot {
            connection,
            session: session.id().clone(),
            terminal: None,
        };
        open.insert(id.clone(), slot);
        Ok(id)
    }

    /// Stores a started command in its reserved slot. If the session has ended meanwhile, kills it.
    fn put(
        &self,
        session: &SessionContext,
        id: &TerminalId,
        terminal: Terminal,
    ) -> HandlerResult<()> {
        match self.lock().get_mut(id) {
            Some(slot) => slot.terminal = Some(Arc::new(terminal)),
            None => {
                let reason = format!("session {} has ended", session.id());
                return Err(HandlerError::internal(reason));
            }
        }
        Ok(())
    }

    /// Returns a terminal of a session.
    ///
    /// # Errors
    ///
    /// `-32002` if the session does not have this terminal (any more).
    pub(crate) fn find(
        &self,
        session: &SessionContext,
        id: &TerminalId,
    ) -> HandlerResult<Arc<Terminal>> {
        let open = self.lock();
        let slot = open.get(id).filter(|slot| slot.is_of(session));
        let found = slot.and_then(|slot| slot.terminal.clone());
        found.ok_or_else(|| unknown(session.id(), id))
    }

    /// Returns a terminal of any session.
    pub(crate) fn get(&self, id: &TerminalId) -> Option<Arc<Terminal>> {
        self.lock().get(id)?.terminal.clone()
    }

    /// Removes a terminal from its session and returns it.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`find`](Self::find).
    pub(crate) fn remove(
        &self,
        session: &SessionContext,
        id: &TerminalId,
    ) -> HandlerResult<Arc<Terminal>> {
        let found = self.find(session, id)?;
        self.lock().remove(id);
        Ok(found)
    }

    /// Kills and removes all terminals of a session.
    pub(crate) fn end_session(&self, session: &SessionContext) {
        self.end(|slot| slot.is_of(session));
    }

    /// Kills and removes all terminals of a connection.
    pub(crate) fn end_connection(&self, connection: ConnectionId) {
        self.end(|slot| slot.connection == connection);
    }

    /// Kills and removes the matching terminals with one sweep for all.
    fn end(&self, which: impl Fn(&Slot) -> bool) {
        let mut marks = Vec::new();
        self.lock().retain(|_, slot| {
            let ended = which(slot);
            if let (true, Some(terminal)) = (ended, &slot.terminal) {
                terminal.group.end();
                marks.extend(terminal.take_mark());
            }
            !ended
        });
        self.sweeper.begin(marks);
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, HashMap<TerminalId, Slot>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Terminals {
    fn drop(&mut self) {
        self.end(|_| true);
        // The process may exit next, which would end the sweeping threads.
        self.sweeper.wait(SWEEP);
    }
}

fn unknown(session: &SessionId, id: &TerminalId) -> HandlerError {
    HandlerError::resource_not_found(format!("terminal {id} of session {session}"))
}

/// One command and its output. Dropping it kills the command and its processes.
#[derive(Debug)]
pub(crate) struct Terminal {
    group: Group,
    output: watch::Receiver<Output>,
    /// The exit of the command, set after all its output is read.
    done: watch::Receiver<Option<Exit>>,
    reader: JoinHandle<()>,
    /// The mark of the command's processes; `None` once a sweep has taken it.
    mark: Mutex<Option<Mark>>,
    sweeper: Arc<Sweeper>,
}

impl Terminal {
    fn start(
        request: &CreateTerminalRequest,
        cwd: &Directory,
        sweeper: &Arc<Sweeper>,
        launch: &Launch,
    ) -> HandlerResult<Self> {
        let cannot = |error: &io::Error| {
            let reason = why_not(request.command.as_ref(), Some(cwd.path()), error);
            HandlerError::invalid_params("/command", format!("{reason}{}", hint(request)))
        };
        let (pipe, stdout, stderr) = launch.streams().map_err(|error| cannot(&error))?;
        let sandbox = launch.sandbox.as_ref();
        let mut command = confined(request.command.as_ref(), sandbox);
        command
            .args(&request.args)
            .envs(launch.variables().iter().copied())
            .envs(request.env.iter().map(|var| (&var.name, &var.value)))
            .current_dir(cwd.start_path())
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr);
        let mark = Mark::new();
        mark.put(&mut command);
        let (group, _) = Group::spawn(&mut command, sandbox).map_err(|error| cannot(&error))?;
        group.end_with_host();
        // The command holds our write ends of the output; it ends when all of them are closed.
        drop(command);

        let limit = request.output_byte_limit.unwrap_or(DEFAULT_LIMIT);
        let limit = usize::try_from(limit.min(LARGEST_LIMIT)).unwrap_or(usize::MAX);
        let (collected, output) = watch::channel(Output::new(limit));
        let (sender, done) = watch::channel(None);
        let exit = group.exit().clone();
        let reader = tokio::spawn(collect(pipe, exit, collected, sender));
        Ok(Self {
            group,
            output,
            done,
            reader,
            mark: Mutex::new(Some(mark)),
            sweeper: sweeper.clone(),
        })
    }

    /// Returns the output so far, and the exit status if the command has exited.
    pub(crate) fn output(&self) -> TerminalOutputResponse {
        // Read before the output, so that the output is complete if the exit is set.
        let exit = *self.done.borrow();
        let (text, truncated) = self.output.borrow().text();
        let mut response = TerminalOutputResponse::new(text, truncated);
        response.exit_status = exit.as_ref().map(Exit::terminal_status);
        response
    }

    /// Returns the output from a position on.
    pub(crate) fn stream(&self, position: u64) -> OutputStream {
        OutputStream {
            output: self.output.clone(),
            done: self.done.clone(),
            position,
        }
    }

    /// Waits for the command's exit.
    pub(crate) async fn exited(&self) -> TerminalExitStatus {
        let mut done = self.done.clone();
        let exit = done.wait_for(Option::is_some).await;
        // The sender is dropped without a value only when the runtime shuts down.
        let exit = exit.ok().and_then(|exit| *exit);
        exit.unwrap_or(Exit::UNKNOWN).terminal_status()
    }

    /// Sends `SIGTERM`, then `SIGKILL` after 500 ms, and waits for the exit.
    pub(crate) async fn kill(&self) {
        if self.group.exit().now().is_none() {
            self.group.request(Request::Terminate);
            if timeout(GRACE, self.exited()).await.is_err() {
                self.group.request(Request::Kill);
                self.exited().await;
            }
        }
    }

    /// Kills the remaining processes of the command.
    pub(crate) async fn release(&self) {
        self.kill().await;
        self.group.end();
        let mark = self.take_mark();
        // An error means that the sweep has ended.
        let _ = self.sweeper.begin(mark.into_iter().collect()).await;
    }

    fn take_mark(&self) -> Option<Mark> {
        let mut mark = self.mark.lock().unwrap_or_else(PoisonError::into_inner);
        mark.take()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.reader.abort();
        self.group.end();
        self.sweeper.begin(self.take_mark().into_iter().collect());
    }
}

async fn collect(
    mut pipe: Box<dyn pipe::Pipe + Send>,
    exit: crate::process::group::ExitWatch,
    output: watch::Sender<Output>,
    sender: watch::Sender<Option<Exit>>,
) {
    let mut take = |chunk: &[u8]| output.send_modify(|output| output.push(chunk));
    let open = pipe::read_until_exit(&mut pipe, exit.clone(), &mut take).await;
    sender.send_replace(exit.now());
    if open {
        pipe::read_to_end(&mut pipe, &mut take).await;
    }
    output.send_modify(Output::end);
}

/// Returns a hint for requests with a whole shell line as the command.
fn hint(request: &CreateTerminalRequest) -> &'static str {
    if request.args.is_empty() && request.command.contains(char::is_whitespace) {
        "; the command is one program and its arguments go into `args`, \
         a shell line needs a shell such as `sh` with `-c`"
    } else {
        ""
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::path::Path;

    use acp_files::Roots;

    use super::*;
    use crate::hooks::Directories;

    fn session() -> SessionContext {
        SessionContext::new(ConnectionId::new(), "s".into(), Directories::open("/", &[]))
    }

    fn directory(path: &Path) -> Directory {
        Roots::open([path]).unwrap().first().unwrap()
    }

    #[tokio::test]
    async fn a_command_whose_session_ended_while_it_was_started_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let lifeline = dir.path().join("lifeline");
        let made = std::process::Command::new("mkfifo").arg(&lifeline).status();
        assert!(made.unwrap().success());
        let words = [
            "-c".to_owned(),
            "exec 3>lifeline; exec sleep 600".to_owned(),
        ];
        let request = CreateTerminalRequest::new("s", "sh").with_args(words.to_vec());

        let terminals = Terminals::default();
        let session = session();
        let id = terminals.reserve(&session).unwrap();
        let cwd = directory(dir.path());
        let terminal =
            Terminal::start(&request, &cwd, &terminals.sweeper, &Launch::default()).unwrap();
        // Opened once the command has opened it, too.
        let (opened, is_open) = tokio::sync::oneshot::channel();
        let end = tokio::task::spawn_blocking(move || {
            let file = std::fs::File::open(lifeline).unwrap();
            opened.send(()).unwrap();
            io::read_to_string(file).unwrap()
        });
        is_open.await.unwrap();
        assert!(
            terminals.find(&session, &id).is_err(),
            "it is not there yet"
        );
        terminals.end_session(&session);
        let error = terminals.put(&session, &id, terminal).unwrap_err();
        assert!(error.to_string().contains("session s has ended"), "{error}");
        let end = timeout(Duration::from_secs(30), end).await;
        assert_eq!(end.expect("the command runs on").unwrap(), "");
    }

    #[tokio::test]
    async fn a_command_that_cannot_be_started_takes_no_place() {
        let terminals = Terminals::default();
        let request = CreateTerminalRequest::new("s", "/no/such/program");
        let cwd = directory(Path::new("/"));
        for _ in 0..=MOST_TERMINALS {
            let created = terminals.create(&session(), &request, &cwd, &Launch::default());
            let error = created.unwrap_err();
            assert!(error.to_string().contains("/no/such/program"), "{error}");
        }
    }
}
