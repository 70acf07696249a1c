//! The arguments of `acp status` and `acp cancel`.

use std::path::PathBuf;

use super::agents::ListFormat;

#[derive(Debug, clap::Args)]
#[command(after_long_help = HELP)]
pub(crate) struct NamedArgs {
    /// The name, as given by --session to the running `acp run` or `acp chat`
    #[arg(long, value_name = "NAME")]
    pub(crate) session: String,

    /// The session's directory [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,

    /// Output format
    #[arg(long, value_enum, default_value_t = ListFormat::Text)]
    pub(crate) format: ListFormat,
}

const HELP: &str = "\
A process that uses a session's name listens on a Unix socket in acp's data
directory, which only your user reaches. It accepts no prompts. With JSON:
process, isRunning, and of a running turn sessionId and seconds.

Exit codes:
  0    done
  1    no acp uses the session, or no turn runs that could be cancelled
  2    wrong usage";
