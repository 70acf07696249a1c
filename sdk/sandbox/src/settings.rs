//! What a sandbox permits.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use crate::{Sandbox, SandboxError};

/// What enforces a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mechanism {
    /// The access control of Linux that needs neither a program nor privileges.
    Landlock,
    /// The program `bwrap`, which starts the process in namespaces of its own.
    Bubblewrap,
}

impl Mechanism {
    /// All mechanisms.
    pub const ALL: [Self; 2] = [Self::Landlock, Self::Bubblewrap];

    /// Returns the name, as [`from_str`](FromStr::from_str) reads it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Landlock => "landlock",
            Self::Bubblewrap => "bubblewrap",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Mechanism {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        let found = all.find(|mechanism| mechanism.name() == name);
        found.ok_or_else(|| format!("no sandbox has the name {name:?}: use landlock or bubblewrap"))
    }
}

/// What a sandbox permits, and what enforces it. Nothing is writable at first.
#[derive(Debug, Clone)]
#[must_use]
pub struct SandboxSettings {
    pub(crate) mechanism: Mechanism,
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) has_network: bool,
}

impl SandboxSettings {
    /// Creates settings that permit reading, the network, and no writing.
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            writable: Vec::new(),
            has_network: true,
        }
    }

    /// Permits writing a file, or in a directory and all below it. The path must exist; links are
    /// followed once, when the sandbox is prepared.
    pub fn writable(mut self, path: impl Into<PathBuf>) -> Self {
        self.writable.push(path.into());
        self
    }

    /// Permits no network, not even that of this machine.
    pub fn without_network(mut self) -> Self {
        self.has_network = false;
        self
    }

    /// Prepares the sandbox: opens the writable paths and creates the temporary directory.
    ///
    /// # Errors
    ///
    /// [`SandboxErrorKind::Unenforceable`](crate::SandboxErrorKind::Unenforceable) if this machine
    /// cannot enforce the settings, else what is wrong with a path.
    pub fn prepare(&self) -> Result<Sandbox, SandboxError> {
        Sandbox::prepare(self)
    }
}
