//! The arguments and what `--help` teaches about them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

/// Drives agents that speak the Agent Client Protocol (ACP) from a shell.
#[derive(Debug, Parser)]
#[command(name = "acp", version, after_help = AFTER_HELP)]
pub(super) struct Args {
    #[command(subcommand)]
    pub(super) command: Command,
}

const AFTER_HELP: &str = "\
Try it:
  acp run 'What is in this directory?' -- opencode acp

`acp run --help` explains permissions, formats and exit codes.";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Start an agent, have one prompt answered, end the agent.
    ///
    /// The agent's text goes to standard output as it arrives; its thoughts, tool calls, plan
    /// and the answers to its questions go to standard error. Files and commands are served to
    /// it inside the working directory only.
    Run(RunArgs),

    /// Offer an agent as a tool to a host of the Model Context Protocol (MCP), on standard input and
    /// output.
    #[cfg(feature = "mcp")]
    Mcp(McpArgs),
}

#[cfg(feature = "mcp")]
#[derive(Debug, Parser)]
#[command(after_long_help = MCP_HELP)]
pub(super) struct McpArgs {
    /// The agent's command line; no shell looks at it
    #[arg(last = true, required = true, value_name = "AGENT")]
    pub(super) agent: Vec<OsString>,

    /// The name of the tool: letters, digits, `_` and `-` [default: that of the agent's program]
    #[arg(long, value_name = "NAME", value_parser = mcp_name)]
    pub(super) name: Option<String>,

    /// What the tool is for, in words for the host's model
    #[arg(long, value_name = "TEXT")]
    pub(super) description: Option<String>,

    /// Where the agent works [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    /// Decide by the rules in this file first; docs/permissions.md describes it
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,

    /// Allow whatever the agent asks for [default: only what reads]
    #[arg(long, conflicts_with = "deny_all")]
    pub(super) approve_all: bool,

    /// Refuse whatever the agent asks for
    #[arg(long)]
    pub(super) deny_all: bool,

    /// Whether to offer terminals; an agent without them runs commands by its own means
    #[arg(long, value_enum, default_value = "yes")]
    pub(super) terminals: Offered,

    /// Cancel a call after so many seconds; it then returns what there is so far
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<std::time::Duration>,

    /// How many calls run at the same time; others wait
    #[arg(long, value_name = "CALLS", default_value = "4", value_parser = calls)]
    pub(super) max_concurrent: usize,

    /// Pass the agent's standard error on
    #[arg(long, short)]
    pub(super) verbose: bool,
}

#[cfg(feature = "mcp")]
const MCP_HELP: &str = "\
The tool has one argument, `task`. Each call is a session of its own. The agent is started by the
first call, and again when it has died; it is ended when the host closes standard input. What it does
is reported as progress, and a request that the host cancels cancels its turn.

Permissions:
  Nobody is asked. What only reads (kinds read, search and think) is allowed, all else is refused,
  unless --rules, --approve-all or --deny-all says otherwise. As long as nothing more than reading can
  be allowed, acp refuses the agent's requests to write files and to run commands.

Examples:
  acp mcp -- opencode acp
  acp mcp --name reviewer --description 'Reviews changes' --cwd ~/project -- codex-acp";

#[cfg(feature = "mcp")]
fn mcp_name(text: &str) -> Result<String, String> {
    let accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    match text {
        "" => Err("it is empty".to_owned()),
        text if text.len() > 64 => Err("expected at most 64 characters".to_owned()),
        text if text.chars().all(accepted) => Ok(text.to_owned()),
        _ => Err("expected letters, digits, `_` and `-`".to_owned()),
    }
}

#[cfg(feature = "mcp")]
fn calls(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(calls) if calls > 0 => Ok(calls),
        _ => Err("expected a number from 1 on".to_owned()),
    }
}

#[derive(Debug, Parser)]
#[command(after_long_help = RUN_HELP)]
pub(super) struct RunArgs {
    /// What to say to the agent; `-` reads it from standard input, as what begins with `-` must be
    #[arg(value_name = "PROMPT", value_parser = words)]
    pub(super) prompt: String,

    /// The agent's command line; no shell looks at it
    #[arg(
        last = true,
        required_unless_present = "url",
        conflicts_with = "url",
        value_name = "AGENT"
    )]
    pub(super) agent: Vec<OsString>,

    #[command(flatten)]
    pub(super) remote: RemoteArgs,

    /// Where the agent works [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(super) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(super) permissions: PermissionArgs,

    /// Decide by the rules in this file first; docs/permissions.md describes it
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(super) format: Format,

    /// Whether to offer terminals; an agent without them runs commands by its own means
    #[arg(long, value_enum, default_value = "yes")]
    pub(super) terminals: Offered,

    /// Cancel the turn after so many seconds, and end the agent
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(super) timeout: Option<std::time::Duration>,

    /// Authenticate first, by this method of the agent's
    #[arg(long, value_name = "METHOD")]
    pub(super) auth: Option<String>,

    /// Pass the agent's standard error on, and report what is left out of its messages
    #[arg(long, short)]
    pub(super) verbose: bool,
}

/// Where a remote agent is, and what it wants to see.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(super) struct RemoteArgs {
    /// Use the agent at this URL instead of a command: http, https, ws or wss
    #[arg(long, value_name = "URL")]
    pub(super) url: Option<String>,

    /// Read the server's token from this file [default: the variable ACP_TOKEN]
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "agent")]
    pub(super) token_file: Option<PathBuf>,

    /// Send this header with every request
    #[arg(
        long,
        value_name = "NAME:VALUE",
        requires = "url",
        conflicts_with = "agent"
    )]
    pub(super) header: Vec<String>,

    /// Trust the certificate authorities in this PEM file instead of the system's
    #[arg(long, value_name = "FILE", requires = "url", conflicts_with = "agent")]
    pub(super) ca_file: Option<PathBuf>,

    /// Trust the certificate with this SHA-256, and no other
    #[arg(
        long,
        value_name = "SHA256",
        requires = "url",
        conflicts_with = "ca_file"
    )]
    pub(super) fingerprint: Option<String>,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(super) struct PermissionArgs {
    /// Allow whatever the agent asks for
    #[arg(long)]
    pub(super) approve_all: bool,

    /// Allow tool calls that only read; ask about others
    #[arg(long)]
    pub(super) approve_reads: bool,

    /// Refuse whatever the agent asks for
    #[arg(long)]
    pub(super) deny_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Offered {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The agent's text as it arrives
    Text,
    /// One JSON object a line: what happens as it happens, and a result last
    Json,
    /// The agent's text when the turn has ended, and nothing on standard error but errors
    Quiet,
}

const RUN_HELP: &str = "\
Permissions:
  Without a flag, acp asks on the terminal, and refuses if there is none. --approve-reads
  allows tool calls of kind read, search and think, and asks about the rest likewise. An
  option is chosen by its kind: allow_once before allow_always, reject_once before
  reject_always. Where nobody can approve more than reading, acp refuses the agent's requests
  to write files and to run commands. --rules FILE is judged before all that: rules in TOML that
  allow or deny by kind, path and command, the first that matches. The agent is a process of yours all the same: these
  flags answer its questions, they do not confine it.

Remote agents:
  --url connects to an agent that is served over HTTP or WebSocket, such as by `acp-server
  serve`. The working directory is one of the server's machine. Files and commands are served
  to the agent from this machine all the same. A lost connection is opened again.

Interrupting:
  Ctrl-C cancels the turn: the agent's open questions are answered with `cancelled`, and it
  is given 10 seconds to end the turn. A second Ctrl-C ends the agent.

Format json, one object a line, told apart by \"type\":
  session     sessionId, cwd, and agent: what the agent said of itself
  update      sessionId, and update: as in the protocol's session/update
  permission  sessionId, toolCall, kind, options, outcome: what was answered, and reason:
              which rule decided, if one did
  gap         the connection to a remote agent was lost, and updates are missing: loaded (the
              conversation follows from its beginning), truncated, or lost
  result      the last line, always: exitCode; once the turn has begun text, thoughts,
              toolCalls (with their updates merged in), plan, usage, truncated; then
              stopReason, or error: kind, message, and code if the agent answered with one

Exit codes:
  0    the agent ended its turn
  1    the agent answered with an error, or broke the protocol; or the output cannot be written
  2    wrong usage
  3    the agent could not be started or reached, or ended too early
  4    the agent refused, or wants you to authenticate first
  5    a limit was reached: tokens, requests of the turn, or time
  130  cancelled: by Ctrl-C, by a signal, by the agent, or because nobody reads the output

Examples:
  acp run 'Explain src/main.rs' -- opencode acp
  acp run --approve-all 'Fix the failing test' -- codex-acp
  git diff | acp run --deny-all - -- opencode acp
  acp run --format json --timeout 60 Hello -- gemini --acp | jq -r 'select(.stopReason).text'
  acp run --url https://host/acp --token-file token 'Hello'
  acp run 'think' -- acp-server        (an agent without a model, to try things out)";

fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("there is nothing in it to say".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

fn seconds(text: &str) -> Result<std::time::Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "expected a number of seconds".to_owned())?;
    if seconds <= 0.0 {
        return Err("expected more than 0 seconds".to_owned());
    }
    std::time::Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &[&str]) -> Result<RunArgs, String> {
        let args = Args::try_parse_from(line).map_err(|error| error.to_string())?;
        match args.command {
            Command::Run(run) => Ok(run),
            #[cfg(feature = "mcp")]
            Command::Mcp(_) => Err("expected `run`".to_owned()),
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn what_follows_the_dashes_is_the_agent() {
        let run = parse(&[
            "acp", "run", "--format", "json", "hi", "--", "agent", "--", "-x",
        ]);
        let run = run.unwrap();
        assert_eq!(run.prompt, "hi");
        assert_eq!(run.agent, ["agent", "--", "-x"]);
        assert_eq!(run.format, Format::Json);
        assert!(parse(&["acp", "run", "hi"]).is_err());
        assert!(parse(&["acp", "run", "hi", "agent"]).is_err());
        assert_eq!(parse(&["acp", "run", "-", "--", "a"]).unwrap().prompt, "-");
    }

    #[test]
    fn a_url_stands_for_the_agent() {
        let run = parse(&["acp", "run", "--url", "ws://h/acp", "hi"]).unwrap();
        assert_eq!(run.remote.url.as_deref(), Some("ws://h/acp"));
        assert!(parse(&["acp", "run", "--url", "ws://h/acp", "hi", "--", "a"]).is_err());
        assert!(parse(&["acp", "run", "--token-file", "t", "hi", "--", "a"]).is_err());
    }

    #[test]
    fn a_mistyped_option_is_no_prompt() {
        for line in [
            &["acp", "run", "--aprove-all", "--", "a"][..],
            &["acp", "run", "--aprove-all", "hi", "--", "a"],
        ] {
            let error = parse(line).unwrap_err();
            assert!(error.contains("'--aprove-all'"), "{error}");
            assert!(
                error.contains("similar argument exists: '--approve-all'"),
                "{error}"
            );
        }
    }

    #[test]
    fn policies_exclude_each_other() {
        let both = ["acp", "run", "--approve-all", "--deny-all", "hi", "--", "a"];
        assert!(parse(&both).unwrap_err().contains("cannot be used with"));
    }

    #[test]
    fn a_timeout_is_a_positive_number() {
        let timeout = |text| parse(&["acp", "run", "--timeout", text, "hi", "--", "a"]);
        assert_eq!(timeout("1.5").unwrap().timeout.unwrap().as_millis(), 1500);
        for text in ["0", "-1", "x", "inf", "nan", "1e300"] {
            assert!(timeout(text).is_err(), "{text}");
        }
    }

    #[test]
    fn every_exit_code_is_explained() {
        for code in super::super::exit::Code::ALL {
            let line = format!("\n  {:<4} ", code as u8);
            assert!(RUN_HELP.contains(&line), "{code:?}");
        }
    }
}
