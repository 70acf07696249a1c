//! Agents that are configured by name, in the files of `acp` and of editors.
//!
//! A file that cannot be read is reported, and an invalid entry is listed with the reason. Neither
//! affects the others.

mod agents_toml;
mod archive;
#[cfg(feature = "remote")]
mod download;
pub(super) mod install;
mod installed;
pub(super) mod list;
mod registry;
mod settings;
#[cfg_attr(not(feature = "remote"), path = "no_update.rs")]
pub(super) mod update;

use std::path::{Path, PathBuf};

use super::launch::Launch;
use super::{complain, folders, text_file};

use self::registry::{Archive, Registry};

/// The registry's index.
pub(super) const REGISTRY_URL: &str =
    "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";

/// Maximum size of a configuration file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// Maximum number of names in an error message.
const NAMES_SHOWN: usize = 20;

/// The source of an agent's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    /// The file of --agents.
    File,
    Acp,
    Zed,
    JetBrains,
    Registry,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Acp => "acp",
            Self::Zed => "zed",
            Self::JetBrains => "jetbrains",
            Self::Registry => "registry",
        }
    }
}

/// An entry of a file.
#[derive(Debug, Clone)]
pub(super) struct Configured {
    name: String,
    source: Source,
    file: PathBuf,
    /// The version in the entry.
    version: Option<String>,
    /// The installed version.
    installed: Option<String>,
    /// The archive of an entry of the registry.
    archive: Option<Archive>,
    description: Option<String>,
    /// The start command, or the reason why there is none.
    launch: Result<Launch, String>,
}

/// All configured agents, in the order of precedence.
#[derive(Debug, Default)]
pub(super) struct Agents {
    entries: Vec<Configured>,
    /// The defects of files that could not be used.
    problems: Vec<String>,
}

impl Agents {
    /// Reads the files that exist; the agents of `file` come first.
    ///
    /// # Errors
    ///
    /// Fails when `file` cannot be used.
    pub(super) fn read(file: Option<&Path>) -> Result<Self, String> {
        let mut agents = Self::default();
        let installed = folders::data().map(|data| data.join("agents"));
        let registry = Registry::read(
            registry_folder().as_deref(),
            installed.as_deref(),
            &mut agents.problems,
        );
        for (source, file) in files() {
            agents.add(source, &file, &registry);
        }
        agents.entries.extend(registry.into_entries());
        if let Some(file) = file {
            let first = agents_toml::entries(file, &agents)?;
            agents.entries.splice(0..0, first);
        }
        Ok(agents)
    }

    /// Returns the names of the agents of the file that was given.
    #[cfg(feature = "mcp")]
    pub(super) fn of_file(&self) -> impl Iterator<Item = &str> {
        let entries = self.entries.iter();
        let entries = entries.filter(|entry| entry.source == Source::File);
        entries.map(|entry| &*entry.name)
    }

    fn add(&mut self, source: Source, file: &Path, registry: &Registry) {
        let read = match text(file) {
            Ok(None) => return,
            Ok(Some(text)) => settings::entries(&text, source, file, registry),
            Err(reason) => Err(reason),
        };
        match read {
            Ok(entries) => self.entries.extend(entries),
            Err(reason) => {
                let problem = format!("cannot use {}: {reason}", file.display());
                self.problems.push(problem);
            }
        }
    }

    /// Returns the start command of the agent with a name.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the remedy.
    pub(super) fn launch(&self, name: &str) -> Result<Launch, String> {
        for problem in &self.problems {
            complain(format_args!("acp: {problem}"));
        }
        let entry = self.find(name)?;
        let launch = entry.launch.as_ref();
        launch.cloned().map_err(|reason| {
            let file = entry.file.display();
            format!("cannot start the agent `{name}` of {file}: {reason}")
        })
    }

    /// Returns the first entry with this name, else the first whose name differs in case only.
    fn find(&self, name: &str) -> Result<&Configured, String> {
        let exact = self.entries.iter().find(|entry| entry.name == name);
        let folded = || {
            let mut same = self.entries.iter();
            same.find(|entry| entry.name.eq_ignore_ascii_case(name))
        };
        exact.or_else(folded).ok_or_else(|| self.unknown(name))
    }

    fn unknown(&self, name: &str) -> String {
        let mut names: Vec<&str> = self.entries.iter().map(|entry| &*entry.name).collect();
        names.dedup();
        if names.is_empty() {
            return format!(
                "no agent is configured as `{name}`, nor any other. `acp agents --help` names \
                 the files; a command line goes after `--`"
            );
        }
        let more = names.len().saturating_sub(NAMES_SHOWN);
        names.truncate(NAMES_SHOWN);
        let names = names.join(", ");
        let more = match more {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("no agent is configured as `{name}`. Configured are: {names}{more}")
    }
}

/// Returns the settings files, in the order of precedence.
fn files() -> Vec<(Source, PathBuf)> {
    let mut files = Vec::new();
    if let Some(config) = folders::config() {
        files.push((Source::Acp, config.join("acp").join("agents.json")));
        let zed = if cfg!(windows) { "Zed" } else { "zed" };
        files.push((Source::Zed, config.join(zed).join("settings.json")));
    }
    if let Some(home) = folders::home() {
        let file = home.join(".jetbrains").join("acp.json");
        files.push((Source::JetBrains, file));
    }
    files
}

/// Returns the folder with the registry's entries.
fn registry_folder() -> Option<PathBuf> {
    match std::env::var_os("ACP_REGISTRY") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => Some(folders::data()?.join("registry")),
    }
}

/// Reads a configuration file; `None` if it does not exist.
fn text(file: &Path) -> Result<Option<String>, String> {
    text_file::read(file, LARGEST_FILE)
}
