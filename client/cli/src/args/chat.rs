//! The arguments of `acp chat`.

use clap::ValueEnum;
use clap::error::ErrorKind;

use super::run::SetupArgs;

#[derive(Debug, clap::Args)]
#[command(override_usage = CHAT_USAGE, after_long_help = CHAT_HELP)]
pub(crate) struct ChatArgs {
    /// A configured agent; `acp agents` lists them
    #[arg(value_name = "NAME")]
    name: Option<String>,

    /// Chat with an agent inside of acp that shows what a chat can display
    #[arg(long, conflicts_with_all = ["name", "agent", "agent_name", "agents", "url"])]
    demo: bool,

    /// Where /undo brings back what a turn has changed: snapshots before and after each turn need
    /// the program git
    #[arg(long, value_enum, default_value = "repositories")]
    pub(crate) undo: UndoIn,

    /// Do not ring the terminal's bell when the agent asks
    #[arg(long)]
    pub(crate) no_bell: bool,

    /// Keys of the line editor [default: `set editing-mode` of ~/.inputrc, else emacs]
    #[arg(long, value_enum, value_name = "KEYS")]
    pub(crate) editing_mode: Option<Editing>,

    /// Choose one of the agent's sessions of this directory, and continue it
    #[arg(long, conflicts_with_all = ["session", "resume"])]
    pub(crate) choose_session: bool,

    #[command(flatten)]
    pub(crate) setup: SetupArgs,
}

/// The directories in which turns can be undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum UndoIn {
    /// Roots of git repositories
    Repositories,
    /// Every directory; all of its files are copied to a temporary folder
    Always,
    /// No directory
    Never,
}

/// The keys of the line editor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Editing {
    Emacs,
    /// Esc leaves the insert mode; `:` stands before the line then
    Vi,
}

impl ChatArgs {
    /// Validates the selected agent.
    ///
    /// # Errors
    ///
    /// Fails when no agent is given, or more than one.
    pub(super) fn settle(&mut self) -> Result<(), (ErrorKind, String)> {
        self.setup.agent.demo = self.demo;
        self.setup.agent.settle_named(self.name.take())?;
        self.setup.settle()
    }
}

const CHAT_USAGE: &str = "\
acp chat [OPTIONS] NAME
       acp chat [OPTIONS] -- AGENT [ARGUMENT]...
       acp chat [OPTIONS] --url URL
       acp chat --demo";

const CHAT_HELP: &str = "\
Keys:
  Enter sends. Alt-Enter, Ctrl-J, or Enter after a backslash starts a new
  line. Up and Down recall earlier prompts, Ctrl-R searches them, Tab
  completes commands, and files after @, which are attached. Ctrl-X Ctrl-E
  writes the prompt in $VISUAL or $EDITOR. Ctrl-O shows the whole output of
  the last tool call that was cut. Shift-Tab changes to the next mode of the
  agent. Input during a turn is sent after it. Esc or Ctrl-C cancels the turn
  and returns such input to the line. A second Ctrl-C, or Ctrl-D, quits acp.

Commands:
  /help lists the commands of acp and of the agent, such as /mode, /model,
  /option, /sessions, /switch, /plan, /new and /quit.

Permissions:
  Without a flag, acp asks for each request, and one key answers. The flags
  and --rules are the same as for `acp run`; see `acp run --help`.

Forms and pages:
  An agent may send a form during a turn. Each field is validated. Up returns
  to the field before, a last Enter submits, Esc declines, Ctrl-D cancels. For
  a page, acp shows its complete URL: o accepts and opens it in the browser, y
  only accepts. acp never opens a page by itself.

Requires a terminal. In scripts, use `acp run`.";
