//! The arguments of `acp run`.

use std::path::PathBuf;

use clap::ValueEnum;
use clap::error::ErrorKind;

use super::agent::AgentArgs;

#[derive(Debug, clap::Args)]
#[command(override_usage = RUN_USAGE, after_long_help = RUN_HELP)]
pub(in crate::cli) struct RunArgs {
    /// The prompt; `-` reads it from standard input, which a prompt that begins with `-` needs
    #[arg(value_name = "PROMPT", value_parser = words)]
    pub(in crate::cli) prompt: String,

    #[arg(value_name = "PROMPT", value_parser = words, hide = true)]
    second: Option<String>,

    #[command(flatten)]
    pub(in crate::cli) setup: SetupArgs,

    /// What to print
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(in crate::cli) format: Format,

    /// Cancel the turn after so many seconds, and end the agent
    #[arg(long, value_name = "SECONDS", value_parser = seconds)]
    pub(in crate::cli) timeout: Option<std::time::Duration>,
}

/// The agent of a run or a conversation, its session, and what it may do.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(in crate::cli) struct SetupArgs {
    #[command(flatten)]
    pub(in crate::cli) agent: AgentArgs,

    /// Where the agent works [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) cwd: Option<PathBuf>,

    #[command(flatten)]
    pub(in crate::cli) permissions: PermissionArgs,

    /// Decide by the rules in this file first; docs/permissions.md describes it
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) rules: Option<PathBuf>,

    /// Work in the session of this name; a later run with the same name, agent and directory
    /// continues it
    #[arg(long, value_name = "NAME", value_parser = words, conflicts_with = "resume")]
    pub(in crate::cli) session: Option<String>,

    /// With --session: start a new session, which takes the name
    #[arg(long, requires = "session")]
    pub(in crate::cli) new_session: bool,

    /// Continue the session of this id
    #[arg(long, value_name = "ID", value_parser = words)]
    pub(in crate::cli) resume: Option<String>,

    /// Have the agent use an MCP server: NAME=COMMAND, NAME=URL, or a JSON file with `mcpServers`;
    /// can be given several times
    #[arg(long, value_name = "SERVER")]
    pub(in crate::cli) mcp_server: Vec<String>,

    /// Whether to offer terminals; an agent without them runs commands by its own means
    #[arg(long, value_enum, default_value = "yes")]
    pub(in crate::cli) terminals: Offered,

    /// Authenticate first, by this method of the agent's
    #[arg(long, value_name = "METHOD")]
    pub(in crate::cli) auth: Option<String>,

    /// Pass the agent's standard error on, and report what is left out of its messages
    #[arg(long, short)]
    pub(in crate::cli) verbose: bool,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub(in crate::cli) struct PermissionArgs {
    /// Allow whatever the agent asks for
    #[arg(long)]
    pub(in crate::cli) approve_all: bool,

    /// Allow tool calls that only read; ask about others
    #[arg(long)]
    pub(in crate::cli) approve_reads: bool,

    /// Refuse whatever the agent asks for
    #[arg(long)]
    pub(in crate::cli) deny_all: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Offered {
    Yes,
    No,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// The agent's text as it arrives
    Text,
    /// One JSON object a line: what happens as it happens, and a result last
    Json,
    /// The agent's text when the turn has ended, and nothing on standard error but errors
    Quiet,
}

impl RunArgs {
    /// Decides what the words before `--` are: a prompt, or an agent's name and a prompt.
    ///
    /// # Errors
    ///
    /// When there is no agent, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        if let Some(prompt) = self.second.take() {
            if self.setup.agent.is_given() {
                let message = "expected one PROMPT beside the agent, got two words. Put the \
                    prompt between quotes";
                return Err((ErrorKind::TooManyValues, message.to_owned()));
            }
            self.setup.agent.name = Some(std::mem::replace(&mut self.prompt, prompt));
        }
        self.setup.agent.settle()
    }
}

const RUN_USAGE: &str = "\
acp run [OPTIONS] NAME PROMPT
       acp run [OPTIONS] PROMPT -- AGENT [ARGUMENT]...
       acp run [OPTIONS] --url URL PROMPT";

const RUN_HELP: &str = "\
Agents:
  NAME is a configured agent; `acp agents` lists them and the files that they come from. After
  `--` stands a command line instead, which no shell interprets.

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

Sessions:
  By default each run is a session of its own. acp keeps the names given with --session per agent
  and directory in its folder of data, and continues the session by session/resume, or by
  session/load, whose history is not printed. If the agent offers neither, or does not know the
  session any more, the run fails: acp never replaces a session silently. One run at a time uses
  a name.

MCP servers:
  --mcp-server 'files=npx -y server /data' is a command that the agent starts; words are split as
  a shell does, and nothing else is. NAME=https://... is a server over HTTP. A file has the form
    { \"mcpServers\": { \"files\": { \"command\": \"npx\", \"args\": [\"-y\", \"server\"], \"env\": {} },
      \"web\": { \"type\": \"http\", \"url\": \"https://...\", \"headers\": {} } } }
  with the types stdio, http and sse. What the agent does not support is an error.

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
  acp run codex 'Explain src/main.rs'
  acp run 'Explain src/main.rs' -- opencode acp
  acp run --approve-all 'Fix the failing test' -- codex-acp
  git diff | acp run --deny-all - -- opencode acp
  acp run --format json --timeout 60 Hello -- gemini --acp | jq -r 'select(.stopReason).text'
  acp run --session fix codex 'Find the bug' && acp run --session fix codex 'Mend it'
  acp run --url https://host/acp --token-file token 'Hello'
  acp run 'think' -- acp-server        (an agent without a model, to try things out)";

fn words(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("there is nothing in it to say".to_owned()),
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
        for code in crate::cli::exit::Code::ALL {
            let line = format!("\n  {:<4} ", code as u8);
            assert!(RUN_HELP.contains(&line), "{code:?}");
        }
    }
}
