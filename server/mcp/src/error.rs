//! Errors of calls.

use std::time::Duration;

/// The error of a call. A tool that reports an error is a [`CallOutput`](crate::CallOutput) instead.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// No server of the session has the tool.
    #[error("no MCP server of the session has the tool `{name}`")]
    UnknownTool {
        /// The name that was called.
        name: String,
    },
    /// The server is not connected, so that it did not receive the call.
    #[error("cannot call `{tool}`: MCP server `{server}` {reason}")]
    Unavailable {
        /// The server's name.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// The server's state.
        reason: String,
    },
    /// The server ended during the call, which may have had effects.
    #[error("MCP server `{server}` ended during the call of `{tool}`: {reason}")]
    Ended {
        /// The server's name.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// Why it has ended.
        reason: String,
    },
    /// The server did not answer in time; it was notified that the call is cancelled.
    #[error("MCP server `{server}` did not answer the call of `{tool}` within {after:?}")]
    TimedOut {
        /// The server's name.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// [`Options::call_timeout`](crate::Options::call_timeout).
        after: Duration,
    },
    /// The caller cancelled the call; the server was notified of it.
    #[error("the call of `{tool}` of MCP server `{server}` was cancelled")]
    Cancelled {
        /// The server's name.
        server: String,
        /// The server's name of the tool.
        tool: String,
    },
    /// The server answered with an error, or with what is no result of a call.
    #[error("MCP server `{server}` failed the call of `{tool}`: {reason}")]
    Failed {
        /// The server's name.
        server: String,
        /// The server's name of the tool.
        tool: String,
        /// The server's message.
        reason: String,
    },
}
