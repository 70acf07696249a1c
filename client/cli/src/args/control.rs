//! The arguments of `acp status`, `acp cancel` and `acp prompt`.

use std::path::PathBuf;

use super::agents::ListFormat;
use super::run::{Format, words};

#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct NamedArgs {
    #[command(flatten)]
    pub(crate) named: Named,

    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

#[derive(Debug, clap::Args)]
#[command(after_long_help = PROMPT_HELP)]
pub(crate) struct PromptArgs {
    /// The prompt; `-` reads it from standard input, which is required for a prompt that begins with `-`
    #[arg(value_name = "PROMPT", value_parser = words)]
    pub(crate) prompt: String,

    #[command(flatten)]
    pub(crate) named: Named,

    /// Exit as soon as the prompt is accepted, and print its id
    #[arg(long)]
    pub(crate) no_wait: bool,

    /// Output format, as of `acp run`
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
}

/// A session that another `acp` uses.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub(crate) struct Named {
    /// The name, as given by --session to the running `acp run` or `acp chat`
    #[arg(long, value_name = "NAME")]
    pub(crate) session: String,

    /// The session's directory [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

const HELP: &str = "\
A process that uses a session's name listens on a Unix socket in acp's data
directory, which only your user reaches. With JSON: process, isRunning, and of a
running turn sessionId and seconds.

Exit codes:
  0    done
  1    no acp uses the session, or no turn runs that could be cancelled
  2    wrong usage";

const PROMPT_HELP: &str = "\
The `acp chat` that uses the session runs the prompt after those that wait, up
to 10, and shows it. The line that is being typed there stays. Permission flags,
rules and questions are those of the chat: it asks there. The text is sent as it
is: no file after @ is attached, and no command of the chat is executed.
`acp run` ends with its turn and refuses prompts. If nobody uses the session,
`acp run --session NAME AGENT PROMPT` continues it.

The output is that of `acp run`. Ctrl-C ends the waiting and not the turn, which
`acp cancel --session NAME` cancels. With --no-wait and the format json: type
(accepted) and promptId.

A prompt is a file in acp's data directory, which only your user reaches. An
agent that --sandbox confines cannot create it, so it cannot prompt another
session, unless it may write acp's data directory.

Exit codes are those of `acp run`, and
  0    with --no-wait: the prompt is accepted
  1    no acp uses the session, or it takes no prompt";
