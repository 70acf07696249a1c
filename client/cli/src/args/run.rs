//! The arguments of `acp run`.

use std::path::{Path, PathBuf};

use acp_sandbox::args::SandboxArgs;
use clap::ValueEnum;
use clap::error::ErrorKind;
use serde::{Deserialize, Serialize};

use super::agent::AgentArgs;
use crate::attachments::AttachmentArgs;
use crate::selection::Selection;

#[derive(Debug, clap::Args)]
#[command(override_usage = RUN_USAGE, after_long_help = RUN_HELP)]
pub(crate) struct RunArgs {
    /// The prompt; `-` reads it from standard input, which is required for a prompt that begins with `-`
    #[arg(value_name = "PROMPT", value_parser = words)]
    pub(crate) prompt: String,

    #[arg(value_name = "PROMPT", value_parser = words, hide = true)]
    second: Option<String>,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,

    #[command(flatten)]
    pub(crate) attachments: AttachmentArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,

    /// Timeout in seconds: cancels the turn and shuts the agent down
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) timeout: Option<std::time::Duration>,
}

/// The agent, the session and the permissions of a run or chat.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct SetupArgs {
    #[command(flatten)]
    pub(crate) agent: AgentArgs,

    /// Working directory of the session [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) permissions: PermissionArgs,

    /// Apply the permission rules of this file first; see docs/permissions.md
    #[arg(long, value_name = "FILE")]
    pub(crate) rules: Option<PathBuf>,

    /// Use the session with this name; a later run with the same name, agent and directory
    /// continues it
    #[arg(long, value_name = "NAME", value_parser = words, conflicts_with = "resume")]
    pub(crate) session: Option<String>,

    /// With --session: start a new session under the name
    #[arg(long, requires = "session")]
    pub(crate) new_session: bool,

    /// Continue the session with this id
    #[arg(long, value_name = "ID", value_parser = words)]
    pub(crate) resume: Option<String>,

    #[command(flatten)]
    pub(crate) selection: Selection,

    /// Pass an MCP server to the agent: NAME=COMMAND, NAME=URL, or a JSON file with `mcpServers`;
    /// repeatable
    #[arg(long, value_name = "SERVER")]
    pub(crate) mcp_server: Vec<String>,

    /// Whether to offer terminals; without them, the agent runs commands itself
    #[arg(long, value_enum, default_value = "yes")]
    pub(crate) terminals: Offered,

    #[command(flatten)]
    pub(crate) sandbox: SandboxArgs,

    /// Wait this many seconds after a turn for updates that the agent sends too late, such as 0.1
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(crate) late_updates: Option<std::time::Duration>,

    /// Authenticate first, by the agent's method with this id
    #[arg(long, value_name = "METHOD")]
    pub(crate) auth: Option<String>,

    /// Forward the agent's standard error, and report dropped parts of its messages
    #[arg(long, short)]
    pub(crate) verbose: bool,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct PermissionArgs {
    /// Allow everything: tool calls, files and commands
    #[arg(long)]
    pub(crate) approve_all: bool,

    /// Allow what only reads; ask for everything else
    #[arg(long)]
    pub(crate) approve_reads: bool,

    /// Reject all that the agent asks for or has acp do, reading included
    #[arg(long)]
    pub(crate) deny_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Offered {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(crate) enum Format {
    /// The agent's text while it is received
    Text,
    /// One JSON object per line: events, and a final result
    Json,
    /// The agent's text after the turn; only errors on standard error
    Quiet,
}

impl RunArgs {
    /// Parses the words before `--`: a prompt, or an agent's name and a prompt.
    ///
    /// # Errors
    ///
    /// Fails when no agent is given, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        if let Some(prompt) = self.second.take() {
            if self.setup.agent.is_given() {
                let message = "expected one PROMPT beside the agent, got two words. Put the \
                    prompt between quotes";
                return Err((ErrorKind::TooManyValues, message.to_owned()));
            }
            self.setup.agent.name = Some(std::mem::replace(&mut self.prompt, prompt));
        }
        self.setup.agent.settle()?;
        self.setup.settle()
    }
}

impl SetupArgs {
    /// Takes what the file of agents says, where no option says otherwise.
    ///
    /// # Errors
    ///
    /// Fails when the directory is missing.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        let Some(found) = &self.agent.found else {
            return Ok(());
        };
        let directory = found.directory(Path::new("."));
        let directory = directory.map_err(|message| (ErrorKind::ValueValidation, message))?;
        self.cwd = self.cwd.take().or(directory);
        if let Some(entry) = &found.entry {
            self.selection.complete(entry);
        }
        Ok(())
    }
}

const RUN_USAGE: &str = "\
acp run [OPTIONS] NAME PROMPT
       acp run [OPTIONS] PROMPT -- AGENT [ARGUMENT]...
       acp run [OPTIONS] --agents FILE NAME PROMPT
       acp run [OPTIONS] --url URL PROMPT";

const RUN_HELP: &str = "\
Agents:
  NAME is a configured agent; `acp agents` lists them and the files that they
  come from. With --agents FILE it may be an agent of that file, with the
  directory, the sandbox and the settings that stand there. A command line
  after `--` is run without a shell. With --dialect chimera the agent is one for
  Chimera's ACP client. It asks for nothing, so its tool calls count as not
  allowed without --approve-all or --rules.

Permissions:
  One decision for everything: tool calls that the agent asks about, and files
  and commands that acp reads, writes and runs for it. Without a flag, acp
  asks on the terminal, or rejects if there is none; files in the working
  directory are read without a question. --approve-reads also allows tool
  calls of kind read, search and think. --deny-all rejects everything, reading
  included. An option is selected by its kind: allow_once before allow_always,
  reject_once before reject_always. --rules FILE has precedence: rules in TOML
  that allow or deny by kind, path and command; the first match decides. What
  was allowed before a tool call is not asked again when the agent has acp do
  it.
  Unless everything is allowed, acp chooses the agent's mode in which it asks
  (such as `default`), and starts no session where there is none. A tool call
  that changed something although nobody allowed it is shown; unless it is
  allowed afterwards, the turn ends with exit code 6. None of this confines
  the agent's process, which has the rights of its user.

Remote agents:
  --url connects to an agent that is served over HTTP or WebSocket, such as by
  `acp-server serve`. The working directory is on the server's machine, but
  files and commands are served to the agent from this machine. A lost
  connection is opened again.

Sessions:
  By default each run starts a session. acp stores the names of --session per
  agent and directory in its data directory, and continues the session by
  session/resume, or by session/load without printing the history. If the
  agent supports neither, or does not know the session any more, the run
  fails: acp never replaces a session silently. Only one run at a time can use
  a name. Meanwhile `acp status --session NAME` and `acp cancel --session NAME`
  in another shell say whether its turn runs, and cancel it. `acp prompt` sends
  a prompt to the session of an `acp chat`.

MCP servers:
  --mcp-server 'files=npx -y server /data' is a command that the agent starts;
  it is split into words as by a shell, without expansions. NAME=https://...
  is a server over HTTP. A file has the form
    { \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"server\"], \"env\": {} },
      \"web\": { \"type\": \"http\", \"url\": \"https://...\", \"headers\": {} } } }
  with the types stdio, http and sse. A type that the agent does not support
  is an error.

Interrupting:
  Ctrl-C cancels the turn: pending permission requests are answered with
  `cancelled`, and the agent has 10 seconds to end the turn. A second Ctrl-C
  terminates the agent.

Format json, one object per line, with the member \"type\":
  session     sessionId, cwd, and agent: its response to initialize
  update      sessionId, and update: as in the protocol's session/update
  permission  sessionId, toolCall, kind, options, asker: agent (before a tool
              call), client (before acp serves a file or a command) or
              afterwards (nobody had allowed the call), outcome: the answer,
              and reason: what decided, if it was no person
  gap         the connection to a remote agent was lost, and updates are
              missing: loaded (the conversation follows from its beginning),
              truncated, or lost
  result      the last line, always: exitCode; once the turn has begun text,
              thoughts, toolCalls (with their updates merged in), plan, usage
              (of the session), tokens and turnCost (of the turn), truncated,
              notAllowed (what nobody had allowed); then stopReason, or error:
              kind, message, and code of the agent's error response

Exit codes:
  0    the agent ended its turn
  1    the agent answered with an error, or violated the protocol; or the
       output cannot be written
  2    wrong usage
  3    the agent could not be started or reached, or exited too early
  4    the agent refused the prompt, or requires authentication
  5    a limit was reached: tokens, requests of the turn, or time
  6    the turn was ended because the agent did what nobody allowed, or it has
       no mode in which it asks
  130  cancelled: by Ctrl-C, by a signal, by the agent, or because standard
       output was closed

Examples:
  acp run codex 'Explain src/main.rs'
  acp run 'Explain src/main.rs' -- opencode acp
  acp run --approve-all 'Fix the failing test' -- codex-acp
  acp run --model fast --file src/main.rs 'Explain this' -- opencode acp
  git diff | acp run --deny-all - -- opencode acp
  acp run --format json --timeout 60 Hello -- gemini --acp | jq -r 'select(.stopReason).text'
  acp run --session fix codex 'Find the bug' && acp run --session fix codex 'Mend it'
  acp run --url https://host/acp --token-file token 'Hello'
  acp run 'think' -- acp-server        (an agent without a model, for tests)";

pub(super) fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty".to_owned()),
        _ => Ok(text.to_owned()),
    }
}

pub(super) fn seconds(text: &str) -> Result<std::time::Duration, String> {
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
    use super::super::{Args, Command};
    use super::*;

    fn parse(line: &[&str]) -> Result<RunArgs, String> {
        let args = Args::parse_from(line.iter().map(Into::into));
        match args.map_err(|error| error.to_string())?.command {
            Command::Run(run) => Ok(*run),
            other => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn what_follows_the_dashes_is_the_agent() {
        let run = parse(&[
            "acp", "run", "--format", "json", "hi", "--", "agent", "--", "-x",
        ]);
        let run = run.unwrap();
        assert_eq!(run.prompt, "hi");
        assert_eq!(run.setup.agent.command, ["agent", "--", "-x"]);
        assert_eq!(run.format, Format::Json);
        assert!(parse(&["acp", "run", "hi"]).is_err());
        assert!(parse(&["acp", "run", "hi", "there", "--", "agent"]).is_err());
        assert_eq!(parse(&["acp", "run", "-", "--", "a"]).unwrap().prompt, "-");
    }

    #[test]
    fn a_url_stands_for_the_agent() {
        let run = parse(&["acp", "run", "--url", "ws://h/acp", "hi"]).unwrap();
        assert_eq!(run.setup.agent.remote.url.as_deref(), Some("ws://h/acp"));
        assert!(parse(&["acp", "run", "--url", "ws://h/acp", "hi", "--", "a"]).is_err());
        assert!(parse(&["acp", "run", "--token-file", "t", "hi", "--", "a"]).is_err());
    }

    #[test]
    fn of_two_words_the_first_is_the_agents_name() {
        let run = parse(&["acp", "run", "codex", "hi"]).unwrap();
        assert_eq!(run.setup.agent.name.as_deref(), Some("codex"));
        assert_eq!(run.prompt, "hi");
        let run = parse(&["acp", "run", "--agent", "codex", "hi"]).unwrap();
        assert_eq!(run.setup.agent.name.as_deref(), Some("codex"));
        assert_eq!(run.prompt, "hi");
        for line in [
            &["acp", "run", "--agent", "codex", "hi", "there"][..],
            &["acp", "run", "codex", "say", "hi"],
            &["acp", "run", "--agent", "codex", "hi", "--", "a"],
            &[
                "acp",
                "run",
                "--agent",
                "codex",
                "--url",
                "ws://h/acp",
                "hi",
            ],
        ] {
            assert!(parse(line).is_err(), "{line:?}");
        }
        let error = parse(&["acp", "run", "hi"]).unwrap_err();
        assert!(error.contains("no agent is given"), "{error}");
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
        for code in crate::exit::Code::ALL {
            let line = format!("\n  {:<4} ", code as u8);
            assert!(RUN_HELP.contains(&line), "{code:?}");
        }
    }
}
