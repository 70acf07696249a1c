//! Agents that are configured by name, in the files of `acp` and of editors.
//!
//! A file that cannot be read, and an entry that cannot be used, spoil nothing else: the one is
//! reported, the other is listed with the reason.

mod archive;
#[cfg(feature = "remote")]
mod download;
mod install;
mod installed;
mod list;
mod registry;
mod settings;
#[cfg(feature = "remote")]
mod update;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

#[cfg(not(feature = "remote"))]
use super::exit::Code;
use super::launch::Launch;
#[cfg(not(feature = "remote"))]
use super::task::Failure;
use super::{complain, folders};

pub(super) use self::install::install;
pub(super) use self::list::agents;
use self::registry::{Archive, Registry};
#[cfg(feature = "remote")]
pub(super) use self::update::update;

/// The registry's index.
pub(super) const REGISTRY_URL: &str =
    "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json";

/// The largest configuration file, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// Names that an error lists.
const NAMES_SHOWN: usize = 20;

/// Where an agent is configured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Source {
    Acp,
    Zed,
    JetBrains,
    Registry,
}

impl Source {
    fn name(self) -> &'static str {
        match self {
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
    /// The version that the entry speaks of.
    version: Option<String>,
    /// The version that `acp` has installed.
    installed: Option<String>,
    /// What can be installed, of an entry of the registry.
    archive: Option<Archive>,
    description: Option<String>,
    /// How it is started, or why it cannot be.
    launch: Result<Launch, String>,
}

/// All configured agents, in the order in which a name is looked up.
#[derive(Debug, Default)]
pub(super) struct Agents {
    entries: Vec<Configured>,
    /// What is wrong with files that could not be used.
    problems: Vec<String>,
}

impl Agents {
    /// Reads the files that exist.
    pub(super) fn read() -> Self {
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
        agents
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

    /// Returns how the agent of a name is started.
    ///
    /// # Errors
    ///
    /// Why it cannot be, and what to do.
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

    /// Returns the first entry of a name; case counts only where names differ in nothing else.
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

/// Refuses a download: this build has no HTTP.
#[cfg(not(feature = "remote"))]
pub(super) async fn update(url: &str) -> Result<Code, Failure> {
    Err(Failure::usage(format!(
        "cannot download {url}: this acp was built without its feature `remote`; install it by \
         `cargo install acp-client --features cli,remote`"
    )))
}

/// The files of settings, in the order in which a name is looked up.
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

/// The folder with the registry's entries.
fn registry_folder() -> Option<PathBuf> {
    match std::env::var_os("ACP_REGISTRY") {
        Some(folder) if !folder.is_empty() => Some(folder.into()),
        _ => Some(folders::data()?.join("registry")),
    }
}

/// Reads a file of configuration; `None` if there is none.
fn text(file: &Path) -> Result<Option<String>, String> {
    text_up_to(file, LARGEST_FILE)
}

/// Reads a file of less than `most` bytes; `None` if there is none.
pub(super) fn text_up_to(file: &Path, most: u64) -> Result<Option<String>, String> {
    match file.metadata() {
        // Reading a pipe would wait.
        Ok(metadata) if !metadata.is_file() => return Err("it is not a file".to_owned()),
        Ok(_) => {}
        Err(error) if is_absent(&error) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    }
    let mut text = String::new();
    let read = File::open(file).and_then(|file| file.take(most).read_to_string(&mut text));
    match read {
        Ok(_) if text.len() as u64 == most => Err(format!("it has {most} bytes or more")),
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(error.to_string()),
    }
}

fn is_absent(error: &std::io::Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}
