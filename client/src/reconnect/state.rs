//! The state of a connection.

/// Whether the connection to an agent is open.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Messages are exchanged.
    Open,
    /// The connection was lost or the agent's process has exited; a reconnect is in progress.
    Lost {
        /// The cause, as text for the user.
        reason: String,
    },
    /// The connection has ended and will not be opened again.
    Closed,
}
