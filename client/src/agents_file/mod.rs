//! Files that list agents: tables `[[agents]]` in TOML.
//!
//! ```toml
//! [[agents]]
//! name = "reviewer"                  # letters, digits, `_` and `-`
//! description = "Reviews changes"
//! command = "opencode acp"           # split into words as by a shell, or a list
//! # agent = "codex"                  # instead of `command`: an agent that the program has configured
//! directory = "~/project"            # where the agent works
//! env = { OPENAI_API_KEY = "..." }   # for this agent only
//! env_remove = ["HTTP_PROXY"]
//! sandbox = "landlock"               # or a table: { mechanism, write = [PATH], network = false }
//! model = "fast"                     # what new sessions begin with
//! mode = "ask"
//! options = { thought_level = "high" }
//!
//! # Members that only a server has a use for:
//! user = "agent"                     # user of the machine that the agent runs as
//! agent_process = "session"          # or "shared": which sessions share a process
//! store = "reviewer.db"              # file that keeps its sessions
//! [agents.limits]                    # times in seconds
//! processes = 8
//! start_timeout = 60
//! answer_timeout = 50
//! terminals = 64
//! idle_timeout = 1800                # 0: never
//! max_age = 0
//! max_memory = 2048                  # MiB
//! ```
//!
//! Other tables and members at the top level are ignored: they belong to the program that the file
//! configures. A member that a program has no use for is an error ([`AgentEntry::refuse`]), so that no
//! setting is ignored.

mod error;
mod members;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use acp_sandbox::Mechanism;
use acp_sdk::text::agent_name;
use toml::{Table, Value};

pub use self::error::AgentsFileError;
use self::members::{Members, Words, duration};
use crate::text_file;

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// The members of an agent.
const MEMBERS: [&str; 16] = [
    "name",
    "description",
    "command",
    "agent",
    "directory",
    "workdir",
    "env",
    "env_remove",
    "sandbox",
    "model",
    "mode",
    "options",
    "user",
    "agent_process",
    "limits",
    "store",
];

/// A file that lists agents.
#[derive(Debug, Clone)]
pub struct AgentsFile {
    path: PathBuf,
    agents: Vec<AgentEntry>,
}

/// An agent of an [`AgentsFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentEntry {
    /// Its name, which no other agent of the file has in any case of letters.
    pub name: String,
    /// What it is for.
    pub description: Option<String>,
    /// How it is started.
    pub start: AgentStart,
    /// Where it works. A relative path is one in the current directory of the program.
    pub directory: Option<PathBuf>,
    /// Environment variables for this agent only.
    pub env: BTreeMap<String, String>,
    /// Variables that it does not inherit.
    pub env_remove: Vec<String>,
    /// What confines it.
    pub sandbox: Option<EntrySandbox>,
    /// Model of new sessions.
    pub model: Option<String>,
    /// Mode of new sessions.
    pub mode: Option<String>,
    /// Config options of new sessions.
    pub options: BTreeMap<String, String>,
    /// User of the machine that it runs as.
    pub user: Option<String>,
    /// Whether each session has a process of its own.
    pub process_per_session: Option<bool>,
    /// Bounds of its processes.
    pub limits: EntryLimits,
    /// The file that keeps its sessions.
    pub store: Option<PathBuf>,
}

/// How an agent of a file is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentStart {
    /// A command line of at least one word.
    Command(Vec<OsString>),
    /// As the agent that is configured elsewhere under this name.
    Configured(String),
}

/// What confines an agent of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntrySandbox {
    /// What enforces it.
    pub mechanism: Mechanism,
    /// Paths that are writable besides its directory and its own state.
    pub write: Vec<PathBuf>,
    /// Whether the agent has the network.
    pub network: bool,
}

/// Bounds of an agent's processes; without a value, the program's default holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntryLimits {
    /// Processes at the same time.
    pub processes: Option<usize>,
    /// Time for a process to answer `initialize`.
    pub start_timeout: Option<Duration>,
    /// Time to answer any request but a prompt.
    pub answer_timeout: Option<Duration>,
    /// Terminals of a session.
    pub terminals: Option<usize>,
    /// Time without use after which a process is ended; zero: never.
    pub idle_timeout: Option<Duration>,
    /// Age after which an unused process is ended; zero: never.
    pub max_age: Option<Duration>,
    /// MiB of memory of a process and those that it has started; zero: no limit.
    pub max_memory: Option<u64>,
}

impl AgentsFile {
    /// Reads a file. Blocks.
    ///
    /// # Errors
    ///
    /// When it cannot be read, has no agent, or an agent or a member is not valid. The error names them.
    pub fn read(path: impl AsRef<Path>) -> Result<Self, AgentsFileError> {
        let path = path.as_ref();
        let text =
            text_file::read(path, LARGEST).map_err(|reason| AgentsFileError::file(path, reason))?;
        Self::parse(path, &text)
    }

    /// Parses the text of a file. Errors name the path, which is not read.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn parse(path: impl AsRef<Path>, text: &str) -> Result<Self, AgentsFileError> {
        let path = path.as_ref();
        let wrong = |reason: String| AgentsFileError::file(path, reason);
        let mut document: Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.to_string()))?;
        let tables = match document.remove("agents") {
            Some(Value::Array(tables)) if !tables.is_empty() => tables,
            _ => return Err(wrong("it has no table [[agents]]".to_owned())),
        };
        let mut agents: Vec<AgentEntry> = Vec::new();
        for (index, table) in tables.into_iter().enumerate() {
            let Value::Table(table) = table else {
                return Err(wrong(format!("agent {}: expected a table", index + 1)));
            };
            let shown = match table.get("name") {
                Some(Value::String(name)) => format!("`{}`", acp_sdk::text::one_line(name, 80)),
                _ => (index + 1).to_string(),
            };
            let entry = AgentEntry::of(table)
                .map_err(|(member, reason)| AgentsFileError::agent(path, &shown, member, reason))?;
            let is_same = |other: &AgentEntry| other.name.eq_ignore_ascii_case(&entry.name);
            if agents.iter().any(is_same) {
                let reason = format!(
                    "two agents have the name `{}`; upper and lower case are the same",
                    entry.name
                );
                return Err(wrong(reason));
            }
            agents.push(entry);
        }
        Ok(Self {
            path: path.to_owned(),
            agents,
        })
    }

    /// Returns the agents in the order of the file; there is at least one.
    #[must_use]
    pub fn agents(&self) -> &[AgentEntry] {
        &self.agents
    }

    /// Returns the error that a member of an agent cannot be used, for a reason.
    #[must_use]
    pub fn error(
        &self,
        agent: &AgentEntry,
        member: &'static str,
        reason: impl Into<String>,
    ) -> AgentsFileError {
        let name = format!("`{}`", agent.name);
        AgentsFileError::agent(&self.path, &name, Some(member.to_owned()), reason.into())
    }
}

impl AgentEntry {
    fn of(table: Table) -> Result<Self, (Option<String>, String)> {
        let mut members = Members::new(table, String::new(), &MEMBERS)?;
        let name: String = members.required("name")?;
        agent_name::check(&name).map_err(|reason| (Some("name".to_owned()), reason))?;
        let command: Option<Words> = members.take("command")?;
        let configured: Option<String> = members.take("agent")?;
        let start = match (command, configured) {
            (Some(words), None) => {
                let words = words.split();
                AgentStart::Command(words.map_err(|reason| (Some("command".to_owned()), reason))?)
            }
            (None, Some(name)) => AgentStart::Configured(name),
            _ => return Err((None, "expected either `command` or `agent`".to_owned())),
        };
        let directory = match (members.take("directory")?, members.take("workdir")?) {
            (Some(_), Some(_)) => {
                let reason = "it is another name of `directory`; expected one of them";
                return Err((Some("workdir".to_owned()), reason.to_owned()));
            }
            (directory, workdir) => directory.or(workdir),
        };
        Ok(Self {
            name,
            description: members.take("description")?,
            start,
            directory: directory.map(|path: String| expanded(&path)),
            env: members.variables("env")?,
            env_remove: members.take("env_remove")?.unwrap_or_default(),
            sandbox: EntrySandbox::of(&mut members)?,
            model: members.take("model")?,
            mode: members.take("mode")?,
            options: members.take("options")?.unwrap_or_default(),
            user: members.take("user")?,
            process_per_session: members
                .one_of("agent_process", &["shared", "session"])?
                .map(|which| which == "session"),
            limits: EntryLimits::of(&mut members)?,
            store: members.take("store")?.map(|path: String| expanded(&path)),
        })
    }

    /// Returns whether the entry has a member that a program may have no use for.
    fn has(&self, member: &str) -> bool {
        match member {
            "agent" => matches!(self.start, AgentStart::Configured(_)),
            "directory" => self.directory.is_some(),
            "env" => !self.env.is_empty(),
            "env_remove" => !self.env_remove.is_empty(),
            "sandbox" => self.sandbox.is_some(),
            "model" => self.model.is_some(),
            "mode" => self.mode.is_some(),
            "options" => !self.options.is_empty(),
            "user" => self.user.is_some(),
            "agent_process" => self.process_per_session.is_some(),
            "limits" => self.limits != EntryLimits::default(),
            "store" => self.store.is_some(),
            _ => false,
        }
    }

    /// Returns the absolute path of its directory, relative to `base`; `None` if it names none.
    ///
    /// # Errors
    ///
    /// When there is no such directory.
    pub fn directory_in(&self, base: &Path) -> Result<Option<PathBuf>, String> {
        let path = self.directory.as_ref();
        path.map(|path| directory(&base.join(path))).transpose()
    }

    /// Returns the first of these members that the entry has. The caller has no use for it and must
    /// report it rather than ignore it.
    #[must_use]
    pub fn refuse<'a>(&self, members: &[&'a str]) -> Option<&'a str> {
        members.iter().copied().find(|member| self.has(member))
    }
}

/// The members that only a server has a use for, for [`AgentEntry::refuse`].
pub const SERVER_MEMBERS: [&str; 4] = ["user", "agent_process", "limits", "store"];

impl EntrySandbox {
    fn of(members: &mut Members) -> Result<Option<Self>, (Option<String>, String)> {
        let mechanism = |name: &str| {
            name.parse()
                .map_err(|reason| (Some("sandbox".to_owned()), reason))
        };
        if let Some(name) = members.text_of("sandbox") {
            return Ok(Some(Self {
                mechanism: mechanism(&name)?,
                write: Vec::new(),
                network: true,
            }));
        }
        let Some(mut sandbox) = members.table("sandbox", &["mechanism", "write", "network"])?
        else {
            return Ok(None);
        };
        let name: Option<String> = sandbox.take("mechanism")?;
        let write: Vec<String> = sandbox.take("write")?.unwrap_or_default();
        let network = sandbox.take("network")?.unwrap_or(true);
        Ok(Some(Self {
            mechanism: mechanism(name.as_deref().unwrap_or(Mechanism::Landlock.name()))?,
            write: write.iter().map(|path| expanded(path)).collect(),
            network,
        }))
    }
}

impl EntryLimits {
    fn of(members: &mut Members) -> Result<Self, (Option<String>, String)> {
        let known = [
            "processes",
            "start_timeout",
            "answer_timeout",
            "terminals",
            "idle_timeout",
            "max_age",
            "max_memory",
        ];
        let Some(mut limits) = members.table("limits", &known)? else {
            return Ok(Self::default());
        };
        Ok(Self {
            processes: limits.count("processes")?,
            start_timeout: duration(&mut limits, "start_timeout")?,
            answer_timeout: duration(&mut limits, "answer_timeout")?,
            terminals: limits.count("terminals")?,
            idle_timeout: limits.take("idle_timeout")?.map(Duration::from_secs),
            max_age: limits.take("max_age")?.map(Duration::from_secs),
            max_memory: limits.take("max_memory")?,
        })
    }
}

/// Returns a path with `~/` replaced by the user's home.
fn expanded(path: &str) -> PathBuf {
    expanded_in(path, std::env::var_os("HOME").map(PathBuf::from))
}

/// Returns a path with `~/` replaced by this home.
pub fn expanded_in(path: &str, home: Option<PathBuf>) -> PathBuf {
    match (path.strip_prefix("~/"), home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(path),
    }
}

/// Returns the absolute path of a directory.
///
/// # Errors
///
/// When there is none.
pub fn directory(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(directory) if directory.is_dir() => Ok(directory),
        Ok(_) => Err(format!("{} is not a directory", path.display())),
        Err(error) => Err(format!("cannot use {}: {error}", path.display())),
    }
}

#[cfg(test)]
mod tests;
