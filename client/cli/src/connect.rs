//! Connects to the agent of a run or chat, with files, terminals and a permission handler.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use acp_sandbox::Sandbox;
use acp_sdk::Observer;

use super::answers::Answers;
use super::args::{Offered, SetupArgs};
use super::login;
use super::notes::Notes;
use super::open;
use super::opening_failure::OpeningFailure;
use super::sandbox;
use acp_client::AgentCommand;
use acp_client::Workspace;
use acp_client::{Client, ClientBuilder};
use acp_client::{Error, Result};
use acp_client::{Permissions, Rules};
use acp_sdk::text::one_line;

/// Maximum number of reported lines of invalid output.
const NOISE_SHOWN: u64 = 5;

/// Returns the working directory of the agent.
///
/// # Errors
///
/// Fails when it is invalid.
pub(super) fn directory(args: &SetupArgs) -> Result<PathBuf> {
    let cwd = args.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let found = match cwd.canonicalize() {
        Ok(path) if !path.is_dir() => Err(io::ErrorKind::NotADirectory.into()),
        found => found,
    };
    found.map_err(|error: io::Error| Error::Directory {
        path: cwd.display().to_string(),
        reason: error.to_string(),
    })
}

/// Starts the agent, or connects to it, and authenticates if requested. The client is stored where
/// it can be shut down even if a later step fails.
///
/// `ask` asks the user, if there is one. A method that requires the terminal is used the `first`
/// time only: afterwards the agent has its credentials and the terminal is in use. `prepare`
/// configures the client.
///
/// # Errors
///
/// Fails when an option is invalid, or the agent cannot be started or reached.
pub(super) async fn connect<'a>(
    args: &SetupArgs,
    cwd: &Path,
    ask: Option<impl Permissions>,
    notes: &Notes,
    slot: &'a mut Option<Client>,
    first: bool,
    prepare: impl Fn(ClientBuilder) -> ClientBuilder,
) -> Result<&'a Client, OpeningFailure> {
    let allows_all = args.permissions.approve_all && args.rules.is_none();
    let answers = Answers::new(&args.permissions, ask);
    let rules = match &args.rules {
        Some(path) => {
            Rules::read(path).map_err(|error| OpeningFailure::Usage(error.to_string()))?
        }
        None => Rules::new(),
    };
    if let Some(file) = rules.file_inside(cwd) {
        notes.line(format_args!(
            "acp: {} is in the directory of the session: a command of the agent can change the rules",
            file.display()
        ));
    }
    let rules = rules.fallback(answers);
    let sandbox =
        sandbox::prepare(&args.sandbox, &args.agent, cwd).map_err(OpeningFailure::Usage)?;
    if let (true, Some(sandbox)) = (args.verbose, &sandbox) {
        notes.line(format_args!("acp: {sandbox}"));
    }
    let start = async || {
        let builder = login::declare(prepare(open::builder()), &args.agent)
            .observer(Listener::new(args.verbose, notes.clone()));
        let builder = guarded(
            builder.late_updates(args.late_updates.unwrap_or_default()),
            &rules,
            args.terminals,
            allows_all,
            sandbox.as_ref(),
        );
        let with_output = |command: AgentCommand| {
            let command = command.current_dir(cwd).sandbox(sandbox.clone());
            let command = match args.auth {
                // The user may continue to use a browser that the agent opens.
                Some(_) => command.leave_detached(),
                None => command,
            };
            if !args.verbose {
                return command;
            }
            let notes = notes.clone();
            command
                .on_stderr(move |line| notes.line(format_args!("agent: {}", one_line(line, 2000))))
        };
        open::client(&args.agent, builder, with_output).await
    };
    let client = slot.insert(start().await?);
    if let Some(method) = &args.auth {
        match login::in_terminal(client, method)? {
            None => client.authenticate(method.as_str()).await?,
            Some(login) if first => {
                client.shutdown().await;
                login::run(&login).await?;
                *client = start().await?;
            }
            Some(_) => {}
        }
    }
    Ok(client)
}

/// Serves files and commands as far as the rules allow it, and has the agent ask unless everything is
/// allowed.
pub(super) fn guarded(
    builder: ClientBuilder,
    rules: &Rules,
    terminals: Offered,
    allows_all: bool,
    sandbox: Option<&Sandbox>,
) -> ClientBuilder {
    let workspace = Workspace::new().sandbox(sandbox.cloned());
    let workspace = match terminals {
        Offered::Yes => workspace,
        Offered::No => workspace.without_terminals(),
    };
    let builder = builder.workspace(workspace).permissions(rules.clone());
    match allows_all {
        true => builder,
        false => builder.ask_first(),
    }
}

/// Reports invalid output of the agent.
struct Listener {
    verbose: bool,
    noise: AtomicU64,
    notes: Notes,
}

impl Listener {
    fn new(verbose: bool, notes: Notes) -> Self {
        Self {
            verbose,
            noise: AtomicU64::new(0),
            notes,
        }
    }

    fn noise(&self, what: impl FnOnce() -> String) {
        match self.noise.fetch_add(1, Ordering::Relaxed) {
            0..NOISE_SHOWN => self.notes.line(format_args!("acp: skipped {}", what())),
            NOISE_SHOWN => self
                .notes
                .line("acp: skipped more of the agent's output, which is not shown"),
            _ => {}
        }
    }
}

impl Observer for Listener {
    fn invalid_message(&self, line: &[u8], _: &str) {
        self.noise(|| {
            let start = line.get(..1000).unwrap_or(line);
            let start = one_line(&String::from_utf8_lossy(start), 120);
            format!("an invalid message on the agent's output: {start}")
        });
    }

    fn message_too_long(&self, bytes: u64) {
        self.noise(|| format!("a message of {bytes} bytes, which is more than acp reads"));
    }

    fn dropped(&self, method: &str, path: &str, reason: &str) {
        if self.verbose {
            self.notes.line(format_args!(
                "acp: left out of {method} at {path:?}: {}",
                one_line(reason, 200)
            ));
        }
    }

    fn uncorrelated_error(&self, error: &str) {
        if self.verbose {
            self.notes.line(format_args!(
                "acp: the agent complains: {}",
                one_line(error, 500)
            ));
        }
    }
}
