//! Slash commands from Markdown files.
//!
//! A command is a file with a prompt, below `.acp/commands` or `.opencode/command` of the project
//! or in a [folder of the user](user_folders). Its name is that of the file without `.md`, with
//! its folder before it (`git/tidy.md` is `/git:tidy`). The project's win over the user's, and
//! `.acp` over `.opencode`.
//!
//! ```text
//! ---
//! description: Reviews a file
//! argument-hint: FILE
//! ---
//! Review $1 with an eye on $FOCUS.
//! ```
//!
//! Frontmatter is optional: `description`, `argument-hint`, `model` and `agent`. In the text,
//! `$ARGUMENTS` is what was typed behind the name, `$1` to `$9` are its words, split as a shell does,
//! and `$NAME` is the value of a word `name=value`, in any case. What is missing is empty, and `$$` is
//! a dollar sign. The arguments of a text without places follow it. Nothing in an argument is
//! replaced again.
//!
//! ```
//! use std::sync::Arc;
//!
//! use acp_agent::commands::{Commands, user_folders};
//! use acp_sdk::v1::StopReason;
//! use acp_server::{Handler, HandlerResult, Opening, Settings, Turn};
//! use tokio::sync::watch::Receiver;
//!
//! struct Agent;
//!
//! impl Handler for Agent {
//!     type State = Option<Receiver<Arc<Commands>>>;
//!
//!     async fn open(&self, state: &mut Self::State, opening: &Opening) -> HandlerResult<Settings> {
//!         let commands = Commands::load(opening.session.cwd(), user_folders()).await;
//!         let settings = Settings::new().commands(commands.available());
//!         // Changes are announced to the clients until the session ends.
//!         *state = Some(commands.watch(&opening.session));
//!         Ok(settings)
//!     }
//!
//!     async fn prompt(&self, state: &mut Self::State, turn: Turn) -> HandlerResult<StopReason> {
//!         let commands = state.as_ref().map(|state| state.borrow().clone()).unwrap_or_default();
//!         let prompt = match commands.expand(turn.prompt())? {
//!             Some(expanded) => expanded.prompt,
//!             None => turn.prompt().to_vec(),
//!         };
//!         turn.send_text(format!("{} blocks for the model", prompt.len())).await?;
//!         Ok(StopReason::EndTurn)
//!     }
//! }
//! ```
//!
//! At most 512 files of 64 KiB are read. Symbolic links are followed inside of the project or the
//! user's folder only. A file that defines no command is one of the [problems](Commands::problems),
//! and harms no other.
//!
//! Spec: <https://agentclientprotocol.com/protocol/v1/slash-commands>

mod file;
mod folders;
mod template;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use acp_sdk::Meta;
use acp_sdk::v1::{
    AvailableCommand, AvailableCommandInput, ContentBlock, UnstructuredCommandInput,
};
use acp_server::{HandlerError, HandlerResult};
use serde_json::json;

use file::Definition;
pub use folders::user_folders;
use folders::{Fingerprint, Folder, Reader};
use template::Template;

/// Slash commands of a session.
#[derive(Clone, Debug, Default)]
pub struct Commands {
    origin: Origin,
    /// By the name that clients see.
    commands: BTreeMap<String, Command>,
    problems: Vec<Problem>,
}

/// Where commands come from, to read them again.
#[derive(Clone, Debug, Default)]
struct Origin {
    project: Option<PathBuf>,
    user: Vec<PathBuf>,
    prefix: Option<String>,
    builtin: Vec<(String, Definition)>,
}

/// A slash command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    source: Source,
    path: Option<PathBuf>,
    definition: Definition,
}

/// Who has defined a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A file of the project.
    Project,
    /// A file of the user.
    User,
    /// The agent.
    Builtin,
}

/// A file or folder that defines no command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Its path.
    pub path: PathBuf,
    /// The reason.
    pub reason: String,
}

/// A prompt that was a command.
#[derive(Clone, Debug, PartialEq)]
pub struct Expanded<'a> {
    /// The command.
    pub command: &'a Command,
    /// The prompt for the model: the command's text in place of the first block, then the others.
    pub prompt: Vec<ContentBlock>,
}

impl Source {
    /// Returns `project`, `user` or `builtin`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Builtin => "builtin",
        }
    }
}

impl Command {
    /// Returns who has defined it.
    #[must_use]
    pub fn source(&self) -> Source {
        self.source
    }

    /// Returns the file that defines it.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the description.
    #[must_use]
    pub fn description(&self) -> &str {
        &self.definition.description
    }

    /// Returns the model that its file asks for.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.definition.model.as_deref()
    }

    /// Returns the agent or mode that its file asks for.
    #[must_use]
    pub fn agent(&self) -> Option<&str> {
        self.definition.agent.as_deref()
    }

    /// Returns what clients are told. `_meta["acp-sdk"]` has the `source`, and that `arguments` are
    /// split as a `shell` does, for those who put them together from a list.
    fn announced(&self, name: &str) -> AvailableCommand {
        let meta = json!({ "source": self.source.as_str(), "arguments": "shell" });
        let definition = &self.definition;
        let hint = definition.argument_hint.clone();
        let hint = hint.or_else(|| {
            let takes = definition.template.takes_arguments();
            takes.then(|| "arguments".to_owned())
        });
        let description = match definition.description.as_str() {
            "" => name,
            description => description,
        };
        let mut command = AvailableCommand::new(name, description);
        command.input = hint
            .map(|hint| AvailableCommandInput::Unstructured(UnstructuredCommandInput::new(hint)));
        command.with_meta(Meta::new().with("acp-sdk", &meta))
    }
}

impl Commands {
    /// Creates a set without commands.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Reads the commands of a project, whose root is usually the session's working directory, and
    /// those of the user, whose first folder wins; see [`user_folders`].
    pub async fn load(
        project: impl Into<PathBuf>,
        user: impl IntoIterator<Item = PathBuf>,
    ) -> Self {
        let origin = Origin {
            project: Some(project.into()),
            user: user.into_iter().collect(),
            ..Origin::default()
        };
        origin.load().await
    }

    /// Adds a command of the agent's own, which no file replaces.
    #[must_use]
    pub fn builtin(
        mut self,
        name: impl Into<String>,
        description: impl Into<String>,
        text: &str,
    ) -> Self {
        let definition = Definition {
            description: description.into(),
            argument_hint: None,
            model: None,
            agent: None,
            template: Template::parse(text),
        };
        let (name, command) = (name.into(), of_agent(&definition));
        self.origin.builtin.push((name.clone(), definition));
        let name = self.origin.prefixed(&name);
        if let Some(Command {
            path: Some(path), ..
        }) = self.commands.insert(name, command)
        {
            self.problems.push(replaced(path));
        }
        self
    }

    /// Puts a prefix before all names, against conflicts with those of other agents in one editor:
    /// `/PREFIX:review`.
    #[must_use]
    pub fn with_prefix(mut self, prefix: impl Into<String>) -> Self {
        let before = self.origin.prefix.replace(prefix.into());
        let before = before.map_or(0, |prefix| prefix.len() + 1);
        let commands = std::mem::take(&mut self.commands).into_iter();
        self.commands = commands
            .map(|(name, command)| (self.origin.prefixed(&name[before..]), command))
            .collect();
        self
    }

    /// Returns the commands for [`Settings::commands`](acp_server::Settings::commands) and
    /// [`Turn::set_commands`](acp_server::Turn::set_commands), by name.
    #[must_use]
    pub fn available(&self) -> Vec<AvailableCommand> {
        let commands = self.commands.iter();
        commands
            .map(|(name, command)| command.announced(name))
            .collect()
    }

    /// Returns a command by the name that clients see.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Command> {
        self.commands.get(name)
    }

    /// Returns the files that define no command.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Expands a prompt that begins with a command; `None` for every other one.
    ///
    /// # Errors
    ///
    /// Invalid params if the text has more than 1 MiB with its arguments.
    pub fn expand(&self, prompt: &[ContentBlock]) -> HandlerResult<Option<Expanded<'_>>> {
        let Some((ContentBlock::Text(first), others)) = prompt.split_first() else {
            return Ok(None);
        };
        let Some(typed) = first.text.trim_start().strip_prefix('/') else {
            return Ok(None);
        };
        let (name, arguments) = typed.split_once(char::is_whitespace).unwrap_or((typed, ""));
        let Some(command) = self.commands.get(name) else {
            return Ok(None);
        };
        let text = command.definition.template.expand(arguments);
        let text = text.ok_or_else(|| {
            let most = template::LONGEST_EXPANSION;
            let reason =
                format!("/{name} has more than {most} bytes with its arguments; shorten them");
            HandlerError::invalid_params("/prompt/0/text", reason)
        })?;
        let mut first = first.clone();
        first.text = text;
        let mut prompt = vec![ContentBlock::Text(first)];
        prompt.extend_from_slice(others);
        Ok(Some(Expanded { command, prompt }))
    }
}

impl Origin {
    fn prefixed(&self, name: &str) -> String {
        match &self.prefix {
            Some(prefix) => format!("{prefix}:{name}"),
            None => name.to_owned(),
        }
    }

    async fn load(&self) -> Commands {
        let origin = self.clone();
        let loaded = tokio::task::spawn_blocking(move || origin.load_blocking()).await;
        // Only a panic or the end of the runtime fails it.
        loaded.unwrap_or_else(|_| Commands {
            origin: self.clone(),
            ..Commands::default()
        })
    }

    fn load_blocking(self) -> Commands {
        let mut reader = Reader::new();
        let mut commands = BTreeMap::new();
        let mut builtin: BTreeMap<_, _> = self.builtin.iter().cloned().collect();
        for (source, folder) in self.folders() {
            for found in reader.read(&folder) {
                if builtin.contains_key(&found.name) {
                    reader.problems.push(replaced(found.path));
                    continue;
                }
                let name = self.prefixed(&found.name);
                commands.entry(name).or_insert_with(|| Command {
                    source,
                    path: Some(found.path),
                    definition: found.definition,
                });
            }
        }
        while let Some((name, definition)) = builtin.pop_first() {
            commands.insert(self.prefixed(&name), of_agent(&definition));
        }
        Commands {
            problems: reader.problems,
            commands,
            origin: self,
        }
    }

    fn fingerprint_blocking(&self) -> Fingerprint {
        let mut reader = Reader::new();
        let mut state = Fingerprint::default();
        for (_, folder) in self.folders() {
            reader.fingerprint(&folder, &mut state);
        }
        state
    }

    /// Returns the folders, the first one wins.
    fn folders(&self) -> impl Iterator<Item = (Source, Folder<'_>)> {
        let project = self.project.iter();
        let project = project.flat_map(|root| Folder::of_project(root));
        let user = self.user.iter().map(|path| Folder::User(path));
        let project = project.map(|folder| (Source::Project, folder));
        project.chain(user.map(|folder| (Source::User, folder)))
    }
}

fn of_agent(definition: &Definition) -> Command {
    Command {
        source: Source::Builtin,
        path: None,
        definition: definition.clone(),
    }
}

fn replaced(path: PathBuf) -> Problem {
    let reason = "the agent has a command with this name; rename the file".to_owned();
    Problem { path, reason }
}
