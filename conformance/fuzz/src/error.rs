//! Why no messages can be sent.

/// Why no messages can be sent. What the agent fails is not an error.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FuzzError {
    /// The protocol's document is not valid.
    #[error(transparent)]
    Conformance(#[from] acp_conformance::Error),
    /// The agent opens no session, for this reason.
    #[error("the agent does not speak the protocol: {0}")]
    NoSession(String),
}
