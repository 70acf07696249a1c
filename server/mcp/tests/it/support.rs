//! Sessions with scripted servers.

use std::path::Path;
use std::time::Duration;

use acp_sdk::v1::{EnvVariable, McpServer, McpServerStdio};
use acp_server_mcp::{CallError, CallOutput, Options, Reconnect, ServerState, Servers};
use serde_json::{Map, Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::program::MODE;

/// A guard against a hanging test; nothing waits this long when all is well. Less than the 60 s after which the
/// scripted server, as a test, says that it is slow.
pub const GUARD: Duration = Duration::from_secs(30);

/// Returns the command of the scripted server.
pub fn command() -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let test = [
        "--ignored",
        "--exact",
        "--nocapture",
        "program::scripted_server",
    ];
    let program = std::iter::once(program.to_str().unwrap().to_owned());
    program.chain(test.map(str::to_owned)).collect()
}

/// Returns a server that behaves in this way.
pub fn scripted(name: &str, mode: &str) -> McpServer {
    let mut command = command();
    let program = command.remove(0);
    let env = vec![EnvVariable::new(MODE, mode)];
    McpServerStdio::new(name, program, command, env).into()
}

/// Returns a server that a shell starts in this way; `"$@"` is its command.
pub fn in_shell(name: &str, mode: &str, script: &str) -> McpServer {
    let mut args = vec!["-c".to_owned(), script.to_owned(), "sh".to_owned()];
    args.extend(command());
    let env = vec![EnvVariable::new(MODE, mode)];
    McpServerStdio::new(name, "sh", args, env).into()
}

/// Returns options whose timeouts end no test, with restarts at once.
pub fn options() -> Options {
    let mut options = Options::default();
    let waits = (Duration::from_millis(1), Duration::from_millis(10));
    options.restart = Some(Reconnect::default().with_waits(waits.0, waits.1));
    options.open_timeout = GUARD;
    options.start_timeout = GUARD;
    options.list_timeout = GUARD;
    options.call_timeout = GUARD;
    options.shutdown_grace = (Duration::from_millis(500), Duration::from_millis(500));
    options
}

pub async fn connect(servers: Vec<McpServer>, options: &Options) -> Servers {
    Servers::connect_to(servers, "session-1", Path::new("/"), options).await
}

/// Connects to one server that is called `a`.
pub async fn one(mode: &str, options: &Options) -> Servers {
    connect(vec![scripted("a", mode)], options).await
}

pub fn arguments(word: &str, number: u64) -> Map<String, Value> {
    let arguments = json!({"word": word, "number": number});
    arguments.as_object().unwrap().clone()
}

/// Calls a tool of the server `a`.
pub async fn call(servers: &Servers, tool: &str, word: &str) -> Result<CallOutput, CallError> {
    let name = format!("a__{tool}");
    let call = servers.call(&name, arguments(word, 0), std::future::pending());
    timeout(GUARD, call).await.expect("the call hangs")
}

/// Calls a tool of the server `a` with a number; returns its text.
pub async fn text(servers: &Servers, tool: &str, number: u64) -> String {
    let name = format!("a__{tool}");
    let call = servers.call(&name, arguments("", number), std::future::pending());
    let output = timeout(GUARD, call).await.expect("the call hangs");
    output.unwrap().text()
}

/// Waits until the first server has such a state.
pub async fn state(servers: &Servers, is: impl Fn(&ServerState) -> bool) -> ServerState {
    let mut seen = 0;
    loop {
        let state = servers.states()[0].state.clone();
        if is(&state) {
            return state;
        }
        let changed = timeout(GUARD, servers.changed(&mut seen)).await;
        changed.unwrap_or_else(|_| panic!("stays {state:?}"));
    }
}

pub async fn ready(servers: &Servers) {
    state(servers, |state| matches!(state, ServerState::Ready { .. })).await;
}

/// A pipe that every process started from a script holds open. It ends when they are all dead.
pub struct Lifeline {
    dir: tempfile::TempDir,
    end: pipe::Receiver,
}

impl Lifeline {
    pub fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lifeline");
        let made = std::process::Command::new("mkfifo").arg(&path).status();
        assert!(made.unwrap().success());
        let end = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self { dir, end }
    }

    /// Returns a script that runs `text`, and what that starts, on this lifeline.
    pub fn tie(&self, text: &str) -> String {
        format!("exec 9>'{}/lifeline'; {text}", self.dir.path().display())
    }

    /// Must be called when the scripts are known to run.
    pub async fn all_dead(mut self) {
        let mut nothing = Vec::new();
        let end = timeout(GUARD, self.end.read_to_end(&mut nothing)).await;
        end.expect("a process is still alive").unwrap();
    }
}
