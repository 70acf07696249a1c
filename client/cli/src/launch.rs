//! The command line and variables that start an agent.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use acp_client::AgentCommand;
use acp_client::agents_file::{AgentEntry, EntrySandbox};
use acp_sandbox::Sandbox;
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
        let command = command.end_with_host();
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
        let sandbox = self.sandbox(&SandboxArgs::default(), None, &directory)?;
        Ok(command.sandbox(sandbox))
    }

    /// Prepares the sandbox of the options, or without them the one of the file of agents.
    ///
    /// # Errors
    ///
    /// Fails with the reason and the remedy if this machine does not enforce it, or a path is wrong.
    pub(super) fn sandbox(
        &self,
        args: &SandboxArgs,
        name: Option<&str>,
        directory: &Path,
    ) -> Result<Option<Sandbox>, String> {
        let entry = self.entry.as_ref().and_then(|entry| entry.sandbox.as_ref());
        let (args, origin) = match entry {
            Some(entry) if args.sandbox.is_none() => (&entry_sandbox(entry), "member `sandbox`"),
            _ => (args, "--sandbox"),
        };
        let variable = |name: &str| match self.env.get(name) {
            Some(value) => Some(value.into()),
            None => std::env::var_os(name),
        };
        let name = name.map(AsRef::as_ref);
        let command = [&self.program].into_iter().chain(&self.args);
        let words = command.map(AsRef::as_ref).chain(name);
        let prepared = args.prepare(words, variable, directory);
        prepared.map_err(|error| format!("{origin}: {error}"))
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

fn entry_sandbox(entry: &EntrySandbox) -> SandboxArgs {
    SandboxArgs {
        sandbox: Some(entry.mechanism),
        sandbox_write: entry.write.clone(),
        sandbox_no_network: !entry.network,
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
