//! The error type.

/// An invalid document, overlay or method table.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON, or has two members of one name in one object.
    #[error("{name}: {}{source}", if source.is_data() { "" } else { "not JSON: " })]
    Json {
        /// The file.
        name: String,
        /// The place and the reason.
        source: serde_json::Error,
    },
    /// A name that no side can have.
    #[error(
        "`{name}` is not the name of a side; use up to 32 lower-case letters, digits, `-` \
         and `_`, a letter first"
    )]
    Side {
        /// The name.
        name: String,
    },
    /// The document breaks a rule of schema documents.
    #[error("{name}: {pointer}: {message}")]
    Invalid {
        /// The file.
        name: String,
        /// JSON Pointer to the place.
        pointer: String,
        /// The fault and its remedy.
        message: String,
    },
}

impl Error {
    pub(crate) fn invalid(name: &str, pointer: &str, message: impl Into<String>) -> Self {
        Self::Invalid {
            name: name.into(),
            pointer: pointer.into(),
            message: message.into(),
        }
    }
}
