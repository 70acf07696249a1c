//! What becomes of a connection.

/// Whether an agent can be reached at this moment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Messages are exchanged.
    Open,
    /// The connection was lost, or the agent's process has ended. It is being opened again.
    Lost {
        /// What happened, for people.
        reason: String,
    },
    /// The connection has ended for good.
    Closed,
}
