//! The command line and variables that start an agent.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::agents::Agents;
use super::args::AgentArgs;
use acp_client::AgentCommand;
use acp_client::agents_file::AgentEntry;
use acp_sandbox::args::SandboxArgs;

/// The command line and variables that start an agent.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Launch {
    pub(super) program: OsString,
    pub(super) args: Vec<OsString>,
    pub(super) env: BTreeMap<String, String>,
    /// Variables that are not inherited.
    pub(super) env_remove: Vec<String>,
    /// The entry of a file of agents, with what else it says.
    pub(super) entry: Option<Box<AgentEntry>>,
}

impl Launch {
    /// Returns the agent of a command's arguments, configured or not.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the remedy if the name cannot be used.
    pub(super) fn of(args: &AgentArgs) -> Result<Self, String> {
        if let Some(found) = &args.found {
            return Ok((**found).clone());
        }
        if let Some(name) = &args.name {
            return Agents::read(None)?.launch(name);
        }
        Ok(Self::of_words(args.command.iter().cloned()))
    }

    /// Returns a command line without variables.
    pub(super) fn of_words(words: impl IntoIterator<Item = OsString>) -> Self {
        let mut words = words.into_iter();
        Self {
            program: words.next().unwrap_or_default(),
            args: words.collect(),
            ..Self::default()
        }
    }

    pub(super) fn command(&self) -> AgentCommand {
        let command = AgentCommand::new(&self.program).args(&self.args);
        let removed = self.env_remove.iter();
        let command = removed.fold(command, AgentCommand::env_remove);
        let env = self.env.iter();
        env.fold(command, |command, (name, value)| command.env(name, value))
    }

    /// Returns the command in the directory and the sandbox of the file of agents, if that has them.
    ///
    /// # Errors
    ///
    /// Fails if the directory is missing, or this machine does not enforce the sandbox.
    pub(super) fn prepared(&self) -> Result<AgentCommand, String> {
        let command = self.command();
        let directory = self.directory(Path::new("."))?;
        let command = match &directory {
            Some(directory) => command.current_dir(directory),
            None => command,
        };
        let directory = directory.unwrap_or_else(|| PathBuf::from("."));
        let sandbox = super::sandbox::of_launch(&SandboxArgs::default(), self, None, &directory)?;
        Ok(command.sandbox(sandbox))
    }

    /// Returns the directory in the file of agents, relative to `base`; `None` if that has none.
    ///
    /// # Errors
    ///
    /// Fails if there is no such directory.
    pub(super) fn directory(&self, base: &Path) -> Result<Option<PathBuf>, String> {
        let Some(entry) = &self.entry else {
            return Ok(None);
        };
        let found = entry.directory_in(base);
        found.map_err(|reason| format!("agent `{}`: member `directory`: {reason}", entry.name))
    }

    /// Returns whether the program is found, without starting it.
    pub(super) fn exists(&self) -> bool {
        found(&self.program, self.env.get("PATH").map(OsStr::new)).is_some()
    }
}

/// Returns the path of a program: a path unchanged, a name as found in `folders` or else in `PATH`.
pub(super) fn found(program: &OsStr, folders: Option<&OsStr>) -> Option<PathBuf> {
    let path = Path::new(program);
    if path.components().count() > 1 || path.is_absolute() {
        return is_program(path).then(|| path.to_owned());
    }
    let folders = folders
        .map(OsStr::to_owned)
        .or_else(|| std::env::var_os("PATH"))?;
    let mut paths = std::env::split_paths(&folders).map(|folder| folder.join(path));
    paths.find(|path| is_program(path))
}

#[cfg(unix)]
fn is_program(path: &Path) -> bool {
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok() && path.is_file()
}

#[cfg(not(unix))]
fn is_program(path: &Path) -> bool {
    let with = |extension: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(extension);
        PathBuf::from(name).is_file()
    };
    ["", ".exe", ".cmd", ".bat"].into_iter().any(with)
}
