//! The command `acp-server`.

#[cfg(unix)]
mod agent_user;
mod allowed_tools;
mod args;
mod deliver;
pub mod discovery;
mod export;
mod hosted;
mod keep;
mod log;
mod named_session;
mod nodes;
mod prompt;
mod questions;
mod remote;
pub mod sessions;
mod settings;
mod stdio;
pub mod stopping;
mod store;
mod tokens;
mod turns;
mod upkeep;
mod usage;

pub use args::Args;
pub use stdio::{LocalTools, Serve};
pub use store::StoreArgs;

use std::error::Error;
use std::io::Write as _;
use std::process::ExitCode;

use acp_reference_agent::Reference;
use acp_server::Handler;
use args::{Command, Sessions, SessionsCommand};
use log::Log;
use sessions::Format;

/// Why a command failed.
pub type Failure = Box<dyn Error + Send + Sync>;

/// Does what the arguments say, and returns the exit code. Failures are written to the log; those
/// of commands without one, and wrong usage, to standard error.
#[must_use]
pub fn main(args: Args) -> ExitCode {
    let log = match args.log().map(Log::start).transpose() {
        Ok(log) => log,
        Err(failure) => return failed(&failure, None),
    };
    let ended = runtime(&args)
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(run(args, log.as_ref())));
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure, log),
    }
}

/// Serves an agent on standard input and output as `acp-server` serves the reference agent, and returns the exit
/// code: for commands of other agents. `agent` makes it; a failure of [`usage_error`] has exit code 2.
#[must_use]
pub fn serve_agent<H: Handler>(
    args: Serve,
    agent: impl FnOnce() -> Result<H, Failure>,
) -> ExitCode {
    let log = match Log::start(&args.log) {
        Ok(log) => log,
        Err(failure) => return failed(&failure, None),
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let served = runtime
        .map_err(Failure::from)
        .and_then(|runtime| runtime.block_on(async { stdio::serve(agent()?, args).await }));
    match served {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failed(&failure, Some(log)),
    }
}

/// Returns an error of whoever started the command.
#[must_use]
pub fn usage_error(message: impl Into<String>) -> Failure {
    Box::new(usage::UsageError(message.into()))
}

async fn run(args: Args, log: Option<&Log>) -> Result<(), Failure> {
    match args.command {
        None => stdio::serve(Reference, args.serve).await,
        Some(Command::Host(args)) => {
            close_to_others()?;
            hosted::host(args).await
        }
        Some(Command::Serve(args)) => {
            close_to_others()?;
            remote::serve(args, log).await
        }
        Some(Command::Tokens(args)) => tokens::manage(args, &mut std::io::stdout().lock()),
        Some(Command::Status) => remote::status(),
        Some(Command::Stop(args)) => remote::stop(args).await,
        Some(Command::Nodes(store)) => nodes::list(&store, &mut std::io::stdout().lock()).await,
        Some(Command::Prompt(args)) => prompt::prompt(*args).await,
        Some(Command::Sessions(sessions)) => manage(sessions).await,
    }
}

/// Closes memory, environment and descriptors of this process to other processes of the user, such
/// as the agents that it starts: the tokens are there. It leaves no core dump then, either.
fn close_to_others() -> Result<(), Failure> {
    #[cfg(target_os = "linux")]
    rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable)
        .map_err(|error| format!("cannot close the process to others of its user: {error}"))?;
    Ok(())
}

/// Returns the runtime for a command: one thread, except for servers of many clients.
///
/// # Errors
///
/// When the system refuses a thread or a descriptor.
fn runtime(args: &Args) -> std::io::Result<tokio::runtime::Runtime> {
    if let Some(Command::Serve(_)) = args.command {
        return tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
    }
    // There is nothing to compute, and no message has to change threads.
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Writes why a command failed, and returns its exit code.
fn failed(failure: &Failure, log: Option<Log>) -> ExitCode {
    let is_usage = failure.is::<usage::UsageError>();
    if log.is_some() && !is_usage {
        tracing::error!("{failure}");
    }
    // What was logged comes first.
    let has_log = log.map(drop).is_some();
    if is_usage || !has_log {
        note(&failure.to_string());
    }
    match is_usage {
        true => ExitCode::from(2),
        false => ExitCode::FAILURE,
    }
}

/// Writes a line to standard error, for the user of a command.
fn note(text: &str) {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = std::path::Path::new(&program).file_stem();
    let program = program.map_or("acp-server".into(), |name| name.to_string_lossy());
    // `eprintln!` would panic where nobody listens.
    let _ = writeln!(std::io::stderr(), "{program}: {text}");
}

async fn manage(sessions: Sessions) -> Result<(), Failure> {
    let output = &mut std::io::stdout().lock();
    let format = |json| if json { Format::Json } else { Format::Text };
    match &sessions.command {
        SessionsCommand::Backup { file } => {
            return upkeep::backup(&sessions.store.file()?, file, output);
        }
        SessionsCommand::Check => return upkeep::check(&sessions.store.file()?, output),
        _ => {}
    }
    let store = &*sessions.store.open(store::StoreUse::default()).await?;
    match sessions.command {
        SessionsCommand::List { cwd, usage, json } => {
            // Sessions have absolute directories, perhaps of another machine.
            let cwd = cwd.map(|cwd| match std::fs::canonicalize(&cwd) {
                Ok(path) => path.to_string_lossy().into_owned(),
                Err(_) => cwd,
            });
            let what = sessions::Listed { cwd, usage };
            sessions::list(store, what, format(json), output).await?;
        }
        SessionsCommand::Show { session, json } => {
            sessions::show(store, &session, format(json), output).await?;
        }
        SessionsCommand::Turns { session, json } => {
            sessions::turns(store, &session, format(json), output).await?;
        }
        SessionsCommand::Export { session, json } => {
            sessions::export(store, &session, format(json), output).await?;
        }
        SessionsCommand::Fork { session, at } => {
            sessions::fork(store, &session, at, output).await?;
        }
        SessionsCommand::Delete { session } => sessions::delete(store, &session, output).await?,
        SessionsCommand::Backup { .. } | SessionsCommand::Check => {}
    }
    Ok(())
}

/// Compiles the examples of the guide to the network, which are about both sides.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/remote.md")]
struct RemoteGuide;
