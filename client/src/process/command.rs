//! The command that starts an agent.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sandbox::Sandbox;
use tokio::io::DuplexStream;
use tokio::process::Command;

use super::adapter::{Adapter, ForeignAgent};
use super::{AgentInput, AgentOutput, AgentProcess, LONGEST_COMMAND};
use crate::error::{Error, Result};
use crate::reconnect::Reconnect;
use acp_sdk::text::one_line;

/// A callback that several processes of an agent share, one after the other.
pub(super) type Callback<T> = Arc<Mutex<dyn FnMut(&T) + Send>>;

/// The callback for the agent's standard error.
#[derive(Clone)]
pub(super) enum OnStderr {
    /// For lines of text.
    Line(Callback<str>),
    /// For the bytes as they are received.
    Bytes(Callback<[u8]>),
}

/// The command line, environment and working directory of an agent.
///
/// The command is a program with arguments, without a shell.
///
/// ```
/// use acp_client::AgentCommand;
///
/// let agent = AgentCommand::new("opencode").arg("acp").env("LOG_LEVEL", "debug");
/// assert_eq!(agent.to_string(), "opencode acp");
/// ```
#[derive(Clone)]
#[must_use]
pub struct AgentCommand {
    program: OsString,
    args: Vec<OsString>,
    /// A variable without a value is removed.
    env: Vec<(OsString, Option<OsString>)>,
    cwd: Option<PathBuf>,
    pub(super) on_stderr: Option<OnStderr>,
    pub(super) grace: Grace,
    leave_detached: bool,
    end_with_host: bool,
    adapter: Option<Adapter>,
    pub(crate) sandbox: Option<Sandbox>,
    pub(crate) restart: Option<Reconnect>,
}

/// The resolved command, for further runs of the agent's program.
#[derive(Debug, Clone)]
pub(crate) struct CommandLine {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    /// A variable without a value is removed.
    pub(crate) env: Vec<(OsString, Option<OsString>)>,
    pub(crate) cwd: Option<PathBuf>,
}

/// The shutdown timeouts of an agent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Grace {
    /// After closing its standard input.
    pub(super) eof: Duration,
    /// After `SIGTERM`.
    pub(super) terminate: Duration,
}

impl fmt::Debug for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Environment values may be secrets.
        f.debug_struct("AgentCommand")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .finish_non_exhaustive()
    }
}

/// The command line for display: arguments with white space are quoted.
impl fmt::Display for AgentCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_word(f, &self.program)?;
        for arg in &self.args {
            f.write_str(" ")?;
            write_word(f, arg)?;
        }
        Ok(())
    }
}

fn write_word(f: &mut fmt::Formatter<'_>, word: &OsStr) -> fmt::Result {
    let word = word.to_string_lossy();
    if word.is_empty() || word.contains(|c: char| c.is_whitespace() || c == '"') {
        write!(f, "{word:?}")
    } else {
        f.write_str(&word)
    }
}

impl AgentCommand {
    /// Creates a command without arguments that inherits directory and environment.
    ///
    /// The variables `ACP_TOKEN`, `ACP_MCP_TOKEN`, `ACP_SERVER_TOKEN`, `ACP_NODE_SECRET` and `ACP_STORE` are
    /// not inherited: they are secrets of `acp` and `acp-server`.
    ///
    /// A name without a slash is searched in `PATH`.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            cwd: None,
            on_stderr: None,
            grace: Grace {
                eof: Duration::from_secs(2),
                terminate: Duration::from_secs(1),
            },
            restart: None,
            leave_detached: false,
            end_with_host: false,
            adapter: None,
            sandbox: None,
        }
    }

    /// Adds an argument.
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets an environment variable; the others are inherited.
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), Some(value.into())));
        self
    }

    /// Removes an inherited environment variable, such as a secret that is not the agent's.
    pub fn env_remove(mut self, name: impl Into<OsString>) -> Self {
        self.env.push((name.into(), None));
        self
    }

    /// Sets the working directory.
    ///
    /// A relative path to the program is still resolved in the directory of this process.
    pub fn current_dir(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Sets a callback for each line of the agent's standard error.
    ///
    /// Lines above 8 KiB are split. The callback must not block. The last 20 lines are kept for error
    /// messages in any case.
    pub fn on_stderr(mut self, line: impl FnMut(&str) + Send + 'static) -> Self {
        self.on_stderr = Some(OnStderr::Line(Arc::new(Mutex::new(line))));
        self
    }

    /// Sets a callback for the unchanged bytes of the agent's standard error. It must not block.
    pub fn on_stderr_bytes(mut self, bytes: impl FnMut(&[u8]) + Send + 'static) -> Self {
        self.on_stderr = Some(OnStderr::Bytes(Arc::new(Mutex::new(bytes))));
        self
    }

    /// Sets the timeouts of [`AgentProcess::shutdown`]: after closing standard input (default 2 s),
    /// and after `SIGTERM` (default 1 s).
    pub fn shutdown_grace(mut self, eof: Duration, terminate: Duration) -> Self {
        self.grace = Grace { eof, terminate };
        self
    }

    /// Does not kill processes that have left the agent's process group, such as a browser.
    ///
    /// By default they are killed with the agent (Linux only).
    pub fn leave_detached(mut self) -> Self {
        self.leave_detached = true;
        self
    }

    /// Ends the agent's process group also when this process is killed by `SIGKILL`: `SIGTERM` follows the end of
    /// its input after 2 s, and `SIGKILL` after another 2 s.
    ///
    /// On Unix, by a process of the shell `sh` that waits for the end of this one. On other systems
    /// the agent only gets the end of its input.
    pub fn end_with_host(mut self) -> Self {
        self.end_with_host = true;
        self
    }

    /// Confines the agent and the processes that it starts: they write where the sandbox permits it only.
    ///
    /// A login in the terminal ([`Client::authenticate`](crate::Client::authenticate)) is not confined.
    /// Commands that the client starts for the agent are those of the
    /// [`Workspace`](crate::Workspace::sandbox).
    pub fn sandbox(mut self, sandbox: impl Into<Option<Sandbox>>) -> Self {
        self.sandbox = sandbox.into();
        self
    }

    /// Sets what translates between the protocol of the agent and ACP (default: none; the agent speaks
    /// ACP).
    ///
    /// The future of `adapter` runs as a task, once for each start of the agent. The pair `(reader, writer)`
    /// connects it with the client of ACP. It must write out what the agent sent and drop the pair when
    /// the agent's output ends, and close the agent's input when the client has closed its side. Adapters
    /// are in the crate `acp-client-dialects`.
    pub fn adapter<F>(
        mut self,
        adapter: impl Fn(ForeignAgent, (DuplexStream, DuplexStream)) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.adapter = Some(Adapter::new(adapter));
        self
    }

    /// Sets how an agent that exits while its [`Client`](crate::Client) is open is restarted.
    ///
    /// The default is no restart. Sessions are continued after the last event if the agent numbers its
    /// events as `acp-server` does, else by `session/load` or `session/resume`
    /// ([`Event::Gap`](crate::Event::Gap)). Requests in flight fail with [`Error::ConnectionLost`]; none
    /// is sent twice. [`Client::connection_state`] reports the state. Messages must be lines; the framing
    /// with `Content-Length` is not supported.
    ///
    /// [`Client::connection_state`]: crate::Client::connection_state
    pub fn restart(mut self, restart: impl Into<Option<Reconnect>>) -> Self {
        self.restart = restart.into();
        self
    }

    /// Starts the agent. Requires a tokio runtime with I/O and time enabled.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`] with the command and the reason.
    pub fn spawn(self) -> Result<AgentProcess> {
        let program = self.resolved_program();
        let mut command = confined(&program, self.sandbox.as_ref());
        command
            .args(&self.args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in &self.env {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(cwd) = &self.cwd {
            command.current_dir(cwd);
        }
        let name = self.to_string();
        let line = CommandLine {
            program,
            args: self.args,
            env: self.env,
            cwd: self.cwd,
        };
        let started = AgentProcess::start(
            &mut command,
            &name,
            self.on_stderr,
            self.grace,
            &line,
            (self.leave_detached, self.end_with_host),
            self.sandbox.as_ref(),
        );
        let mut process = started.map_err(|error| Error::Spawn {
            command: one_line(&name, LONGEST_COMMAND),
            reason: why_not(&line.program, line.cwd.as_deref(), &error),
        })?;
        if let Some(adapter) = &self.adapter {
            process.adapt(adapter);
        }
        Ok(process)
    }

    /// Starts the agent and takes its standard output and input.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`] with the command and the reason.
    pub(crate) fn spawn_connected(self) -> Result<(AgentProcess, AgentOutput, AgentInput)> {
        let mut process = self.spawn()?;
        match process.take_streams() {
            Some((output, input)) => Ok((process, output, input)),
            None => Err(Error::Spawn {
                command: process.command().to_owned(),
                reason: "its streams are not connected".to_owned(),
            }),
        }
    }

    /// Returns the program with a relative path resolved in the directory of this process.
    fn resolved_program(&self) -> OsString {
        let path = Path::new(&self.program);
        if self.cwd.is_some()
            && path.is_relative()
            && path.components().count() > 1
            && let Ok(absolute) = std::path::absolute(path)
        {
            return absolute.into();
        }
        self.program.clone()
    }
}

/// Returns the command of a program, to be started in the sandbox.
pub(crate) fn confined(program: &OsStr, sandbox: Option<&Sandbox>) -> Command {
    let Some(sandbox) = sandbox else {
        return Command::new(program);
    };
    let (program, args) = sandbox.program(program);
    let mut command = Command::new(program);
    command.args(args);
    command
}

/// Returns the reason why a program could not be started.
pub fn why_not(program: &OsStr, cwd: Option<&Path>, error: &io::Error) -> String {
    let path = Path::new(program);
    if let Some(cwd) = cwd
        && !cwd.is_dir()
    {
        return match cwd.exists() {
            true => format!("its working directory {} is no directory", cwd.display()),
            false => format!("its working directory {} does not exist", cwd.display()),
        };
    }
    // A relative path is resolved in the working directory of the command.
    let at = cwd.map_or_else(|| path.to_owned(), |cwd| cwd.join(path));
    let named = path.components().count() <= 1 && !path.starts_with(".");
    match error.kind() {
        _ if program.is_empty() => "its name is empty".to_owned(),
        io::ErrorKind::NotFound if named => format!("{} is not found in PATH", path.display()),
        io::ErrorKind::NotFound if at.exists() => {
            format!("the interpreter of {} does not exist", path.display())
        }
        io::ErrorKind::NotFound => format!("{} does not exist", at.display()),
        io::ErrorKind::PermissionDenied if !named && at.is_dir() => {
            format!("{} is a directory", path.display())
        }
        io::ErrorKind::PermissionDenied => format!("{} is not executable", path.display()),
        _ => error.to_string(),
    }
}
