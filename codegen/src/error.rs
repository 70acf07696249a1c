//! The error type.

use std::fmt;
use std::path::PathBuf;

use acp_schema::Document;

/// A failure of generation. Messages name the place and a remedy.
///
/// `Debug` prints the message too, because Cargo shows the `Debug` form of an error that a
/// build script's `main` returns.
#[derive(thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The document, an overlay or the method table is not valid.
    #[error(transparent)]
    Schema(#[from] acp_schema::Error),
    /// A schema uses a form that has no Rust type.
    #[error("{}{pointer}: {message}; {help}", In(file))]
    Unsupported {
        /// The file, where there is one.
        file: String,
        /// JSON Pointer into the document.
        pointer: String,
        /// What was found.
        message: String,
        /// What to write instead.
        help: String,
    },
    /// A definition's name cannot be that of a generated type.
    #[error(
        "{}/$defs/{name}: the name is taken by {taken_by}; \
         rename the definition (and its `$ref`s)",
        In(file)
    )]
    NameTaken {
        /// The file, where there is one.
        file: String,
        /// The definition.
        name: String,
        /// The other user of the name.
        taken_by: String,
    },
    /// A role in `x-side` would give a Rust type a name that is in use.
    #[error("x-side: the name `{name}`, made of a role, is taken by {taken_by}; rename the role")]
    RoleTaken {
        /// The name of the generated type.
        name: String,
        /// The other user of the name.
        taken_by: String,
    },
    /// Neither of two compared documents has a role.
    #[error("no role `{role}` in the documents; expected one of {known}")]
    UnknownRole {
        /// The role that was asked for.
        role: String,
        /// The roles of the documents.
        known: String,
    },
    /// [`Builder::unstable`](crate::Builder::unstable) was called on a document that is not
    /// bundled.
    #[error(
        "{file}: `unstable` applies to the bundled documents only; \
         add the proposals with `overlay`"
    )]
    NoProposals {
        /// The document.
        file: String,
    },
    /// Rows of the override table that no part of the document uses.
    #[error("unused overrides: {}; remove the rows or correct their names", .0.join(", "))]
    UnusedOverrides(Vec<String>),
    /// A pass lacks what an earlier one should give, which is a bug of this crate.
    #[error("the generator failed: {0}; please report the document")]
    Passes(String),
    /// The generated code does not parse, which is a bug of this crate.
    #[error("generated code does not parse: {0}; please report the document")]
    Format(#[from] syn::Error),
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: std::io::Error,
    },
}

impl Error {
    pub(crate) fn unsupported(
        pointer: impl Into<String>,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self::Unsupported {
            file: String::new(),
            pointer: pointer.into(),
            message: message.into(),
            help: help.into(),
        }
    }

    pub(crate) fn io(path: &std::path::Path, source: std::io::Error) -> Self {
        let path = path.into();
        Self::Io { path, source }
    }

    /// The error with the file that its place is in.
    pub(crate) fn in_document(mut self, document: &Document) -> Self {
        match &mut self {
            Self::Unsupported { file, pointer, .. } if file.is_empty() => {
                *file = document.file(pointer).to_owned();
            }
            Self::NameTaken { file, name, .. } if file.is_empty() => {
                *file = document.file(&format!("/$defs/{name}")).to_owned();
            }
            _ => {}
        }
        self
    }

    /// The error with a name in place of the file.
    pub(crate) fn in_file(mut self, name: &str) -> Self {
        if let Self::Unsupported { file, .. } = &mut self {
            *file = name.to_owned();
        }
        self
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A file at the start of a message.
struct In<'a>(&'a str);

impl fmt::Display for In<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "" => Ok(()),
            file => write!(f, "{file}: "),
        }
    }
}
