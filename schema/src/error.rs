//! Why a document is not one.

/// Why a document, an overlay or a method table is not valid.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not JSON, or has two members of one name in one object.
    #[error("{name}: {}{source}", if source.is_data() { "" } else { "not JSON: " })]
    Json {
        /// The file.
        name: String,
        /// Where and why.
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
        /// What is wrong, and what to do.
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
