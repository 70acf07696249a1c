//! Why a sandbox cannot be used.

use std::fmt;

/// Why a sandbox cannot be used. The text says what to do.
#[derive(Debug)]
pub struct SandboxError {
    kind: SandboxErrorKind,
    message: String,
}

/// The kind of a [`SandboxError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SandboxErrorKind {
    /// This machine cannot enforce what the settings ask for.
    Unenforceable,
    /// A writable path does not exist, or cannot be opened.
    Path,
    /// The temporary directory cannot be created.
    Temporary,
}

impl SandboxError {
    pub(crate) fn new(kind: SandboxErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }

    pub(crate) fn unenforceable(message: impl Into<String>) -> Self {
        Self::new(SandboxErrorKind::Unenforceable, message)
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> SandboxErrorKind {
        self.kind
    }
}

impl fmt::Display for SandboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for SandboxError {}
