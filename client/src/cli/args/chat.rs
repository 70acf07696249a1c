//! The arguments of `acp chat`.

use clap::error::ErrorKind;

use super::run::SetupArgs;

#[derive(Debug, clap::Args)]
#[command(override_usage = CHAT_USAGE, after_long_help = CHAT_HELP)]
pub(in crate::cli) struct ChatArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    #[command(flatten)]
    pub(in crate::cli) setup: SetupArgs,
}

impl ChatArgs {
    /// Decides which agent is meant.
    ///
    /// # Errors
    ///
    /// When there is no agent, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        self.setup.agent.settle_named(self.name.take())
    }
}

const CHAT_USAGE: &str = "\
acp chat [OPTIONS] NAME
       acp chat [OPTIONS] -- AGENT [ARGUMENT]...
       acp chat [OPTIONS] --url URL";

const CHAT_HELP: &str = "\
Keys:
  Enter sends; Alt-Enter or Ctrl-J begins a new line, as Enter does behind a backslash. Up and Down
  recall earlier prompts, Ctrl-R searches them, Tab completes commands. What is typed during a turn
  is sent after it. Ctrl-C cancels the turn; a second one ends acp, as does Ctrl-D.

Commands:
  /help lists those of acp and of the agent, among them /mode, /model, /option, /plan, /new and
  /quit.

Permissions:
  Without a flag, every question is asked: one key answers. The flags and --rules are those of
  `acp run`; `acp run --help` explains them.

Forms and pages:
  An agent may ask for values during a turn. Each field is typed and checked; Up goes back, a last Enter
  sends all, Esc declines, Ctrl-D gives no answer. A page is shown with its whole URL: o opens it in the
  browser, y agrees only. acp opens none by itself.

A terminal is needed. Scripts use `acp run`.";
