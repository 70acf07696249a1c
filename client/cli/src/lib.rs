//! The command `acp`: drives an agent from a shell.
//!
//! Standard output contains only the result; all other output goes to standard error. Text of the agent
//! is bounded and sanitized for terminals.

#![cfg_attr(
    test,
    allow(clippy::unwrap_used, reason = "a test that cannot go on fails")
)]

mod agents;
mod answers;
mod args;
mod attachments;
mod chat;
#[cfg(feature = "proxy")]
mod conduct;
mod connect;
mod control;
mod exit;
mod folders;
mod json;
mod kept;
mod launch;
mod login;
mod manual;
#[cfg(feature = "mcp")]
mod mcp;
#[cfg(feature = "mcp")]
mod mcp_agents;
#[cfg(feature = "mcp")]
mod mcp_http;
mod mcp_servers;
mod notes;
mod open;
mod opening;
mod opening_failure;
mod output;
mod record;
#[cfg(feature = "remote")]
mod remote;
mod run;
mod sandbox;
mod selection;
mod sessions;
mod stdin;
mod stop;
mod task;
mod text;
mod text_file;

use std::ffi::OsString;
use std::fmt::Display;
use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;

use self::args::{AgentsArgs, AgentsCommand, Args, Command};
use self::exit::Code;
use self::task::{Results, until_stopped};

/// Runs the command with its arguments, the program's name first.
///
/// ```no_run
/// fn main() -> std::process::ExitCode {
///     acp_cli::main(std::env::args_os())
/// }
/// ```
pub fn main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::parse_from(args) {
        Ok(args) => args,
        Err(error) => {
            // A failure cannot be reported.
            let _ = error.print();
            return if error.use_stderr() {
                exit::Code::Usage.into()
            } else {
                exit::Code::EndTurn.into()
            };
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(format_args!("acp: cannot start: {error}"));
            return exit::Code::Failed.into();
        }
    };
    let code = match args.command {
        Command::Run(args) => runtime.block_on(run::run(*args)),
        Command::Chat(args) => runtime.block_on(chat::chat(*args)),
        Command::Agents(args) => runtime.block_on(agents_command(args)),
        Command::Login(args) => {
            let run = async |results: &mut Results| login::login(&args, results).await;
            runtime.block_on(until_stopped(run))
        }
        Command::Sessions(args) => {
            let run = async |results: &mut Results| sessions::sessions(&args, results).await;
            runtime.block_on(until_stopped(run))
        }
        Command::Status(args) => {
            let run = async |results: &mut Results| control::status(&args, results).await;
            runtime.block_on(until_stopped(run))
        }
        Command::Cancel(args) => {
            let run = async |results: &mut Results| control::cancel(&args, results).await;
            runtime.block_on(until_stopped(run))
        }
        Command::Prompt(args) => {
            let run = async |results: &mut Results| control::prompt(&args, results).await;
            runtime.block_on(until_stopped(run))
        }
        Command::Record(args) => {
            let code = runtime.block_on(record::record(args));
            runtime.shutdown_background();
            return code;
        }
        #[cfg(feature = "proxy")]
        Command::Conduct(args) => runtime.block_on(conduct::conduct(args)),
        #[cfg(feature = "proxy")]
        Command::McpBridge { address } => runtime.block_on(conduct::mcp_bridge(&address)),
        Command::Doctor => runtime.block_on(until_stopped(sandbox::doctor)),
        Command::Completions { shell } => {
            let print = async |results: &mut Results| manual::completions(shell, results).await;
            runtime.block_on(until_stopped(print))
        }
        Command::Man { folder } => {
            let print = async |results: &mut Results| manual::man(folder.as_deref(), results).await;
            runtime.block_on(until_stopped(print))
        }
        #[cfg(feature = "mcp")]
        Command::Mcp(args) => runtime.block_on(mcp::mcp(*args)),
    };
    // A blocked write to an output stream must not delay the exit.
    runtime.shutdown_background();
    code.into()
}

async fn agents_command(args: AgentsArgs) -> Code {
    until_stopped(async |results| match &args.command {
        Some(AgentsCommand::Update { url }) => agents::update::update(url).await,
        Some(AgentsCommand::Install(args)) => agents::install::install(args, results).await,
        None => agents::list::agents(&args, results).await,
    })
    .await
}

/// Writes a line to standard error, to a terminal without what would control it. Ignores errors;
/// `eprintln!` would panic if it is closed.
fn complain(line: impl Display) {
    let mut stderr = std::io::stderr();
    let _ = match stderr.is_terminal() {
        true => writeln!(stderr, "{}", acp_sdk::text::printable(&line.to_string())),
        false => writeln!(stderr, "{line}"),
    };
}
