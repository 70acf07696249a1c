//! The command `acp-conformance`: arguments in, result on standard output, exit code out.
//!
//! Exit codes: 0 conformant, 1 not conformant, 2 the suite could not do its work
//! (usage, files, a command that does not start), 3 incomplete: too little could be judged, or the run
//! was interrupted.

mod agent;
mod check;
mod client;
mod compare;
#[cfg(unix)]
mod interruption;
mod list;
#[cfg(unix)]
mod orphan_reaper;
mod outputs;
mod progress;
#[cfg(unix)]
mod proxy;
mod reference_agent;
mod reference_client;
mod remote;
mod report;
#[cfg(unix)]
mod script;
mod specification;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use serde::Serialize;

use acp_conformance::report::Conformity;
use acp_conformance::wire::Version;
use acp_conformance::{Error, Result};

/// Checks agents, and recorded traffic, against the Agent Client Protocol.
#[derive(Debug, Parser)]
#[command(name = "acp-conformance", version, after_help = EXIT_CODES)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

const EXIT_CODES: &str = "Exit codes: 0 conformant, 1 not conformant, 2 usage or failure, \
                          3 incomplete (too little could be judged, or the run was interrupted)";

#[derive(Debug, Subcommand)]
enum Command {
    Agent(Box<agent::Args>),
    Check(check::Args),
    Client(Box<client::Args>),
    Compare(compare::Args),
    List(list::Args),
    Report(report::Args),
    Specification(specification::Args),
    #[cfg(unix)]
    Proxy(proxy::Args),
    /// End the agents of a process that was killed
    #[cfg(unix)]
    #[command(hide = true)]
    Guard(orphan_reaper::Args),
    #[command(hide = true)]
    Act(client::ActArgs),
    #[command(hide = true)]
    BrokenClient(client::BrokenArgs),
    #[cfg(unix)]
    #[command(hide = true)]
    OnTerminal(client::TerminalArgs),
    #[command(hide = true)]
    V2Client(client::V2Args),
    /// Be the bundled client
    #[command(hide = true, disable_help_flag = true)]
    ReferenceClient {
        /// The arguments of `acp`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<OsString>,
    },
    #[cfg(unix)]
    Script(script::Args),
    /// Serve as the bundled reference agent on standard input and output
    #[command(hide = true)]
    ReferenceAgent(reference_agent::Args),
}

/// Whether the target passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Conformant,
    NotConformant,
    Incomplete,
}

/// Runs the command line of this process.
fn main() -> ExitCode {
    let args = Args::parse();
    if let Command::ReferenceClient { arguments } = args.command {
        let arguments = std::iter::once("acp".into()).chain(arguments);
        return acp_cli::main(arguments);
    }
    let mut out = io::stdout().lock();
    let code = run(&args.command, &mut out);
    let flushed = out.flush().map_err(Error::Output);
    let error = match (code, flushed) {
        (Ok(code), Ok(())) => return code,
        (Ok(_), Err(error)) => error.into(),
        (Err(error), _) => error,
    };
    let is_unread = error.downcast_ref().is_some_and(Error::is_broken_pipe);
    // Whoever read a part of the list, as `head` does, has what they want. A verdict that could not
    // be written is not a good one, though.
    if is_unread && matches!(args.command, Command::List(_)) {
        return ExitCode::SUCCESS;
    }
    // Nobody reads the output any more; there is nobody to tell either.
    if !is_unread {
        let _ = writeln!(io::stderr(), "acp-conformance: {error}");
    }
    ExitCode::from(2)
}

/// Why a command could not do its work.
type Failure = Box<dyn std::error::Error>;

fn run(command: &Command, out: &mut dyn Write) -> Result<ExitCode, Failure> {
    let verdict = match command {
        Command::Agent(args) => agent::run(args, out)?,
        Command::Check(args) => check::run(args, out)?,
        Command::Client(args) => client::run(args, out)?,
        Command::Compare(args) => compare::run(args, out)?,
        Command::Act(args) => client::act(args)?,
        Command::BrokenClient(args) => client::broken(args)?,
        #[cfg(unix)]
        Command::OnTerminal(args) => client::on_terminal(args)?,
        Command::V2Client(args) => client::v2_client(args)?,
        Command::ReferenceClient { .. } => Verdict::Conformant,
        Command::List(args) => list::run(args, out)?,
        Command::Report(args) => report::run(args, out)?,
        Command::Specification(args) => specification::run(args, out)?,
        #[cfg(unix)]
        Command::Proxy(args) => return proxy::run(args),
        #[cfg(unix)]
        Command::Guard(args) => return Ok(orphan_reaper::run(args)),
        #[cfg(unix)]
        Command::Script(args) => return script::run(args),
        Command::ReferenceAgent(args) => reference_agent::run(args)?,
    };
    Ok(match verdict {
        Verdict::Conformant => ExitCode::SUCCESS,
        Verdict::NotConformant => ExitCode::from(1),
        Verdict::Incomplete => ExitCode::from(3),
    })
}

impl Verdict {
    fn of(conformant: bool) -> Self {
        if conformant {
            Self::Conformant
        } else {
            Self::NotConformant
        }
    }
}

impl From<Conformity> for Verdict {
    fn from(conformity: Conformity) -> Self {
        match conformity {
            Conformity::Conformant => Self::Conformant,
            Conformity::NotConformant => Self::NotConformant,
            Conformity::Incomplete => Self::Incomplete,
        }
    }
}

/// A version of the protocol by its number.
fn version(text: &str) -> Result<Version, String> {
    let all = [Version::V1, Version::V2];
    let found = all.into_iter().find(|version| version.as_str() == text);
    found.ok_or_else(|| "a version of the protocol: 1 or 2".to_owned())
}

/// A line of JSON.
fn json(value: &impl Serialize) -> Result<String> {
    let line = serde_json::to_string(value).map_err(|error| Error::Output(error.into()))?;
    Ok(line + "\n")
}

fn write_json(out: &mut dyn Write, value: &impl Serialize) -> Result<()> {
    outputs::print(out, &json(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Command lines in a text, each of whose first word is the command.
    fn commands(text: &str) -> Vec<String> {
        let text = text.replace("\\\n", " ");
        let lines = text.lines().map(str::trim);
        let lines = lines.filter(|line| line.starts_with("acp-conformance "));
        let lines = lines.map(|line| line.split(" # ").next().unwrap_or_default());
        // The shell's part.
        let lines = lines.map(|line| line.split(" > ").next().unwrap_or_default());
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn documented_commands_are_understood() {
        let readme = commands(include_str!("../../README.md"));
        // The user's arguments can be any.
        let action = include_str!("../../action.yml").replace("\"${arguments[@]}\"", "--quick");
        let action = commands(&action);
        assert!(
            readme.len() > 8 && action.len() == 1,
            "{readme:?} {action:?}"
        );
        for line in readme.iter().chain(&action) {
            let parsed = Args::try_parse_from(line.split_whitespace());
            assert!(parsed.is_ok(), "{line}: {}", parsed.unwrap_err());
        }
    }
}
