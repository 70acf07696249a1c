//! Facts about the agent that hold for all connections of a run, and permissions of its user.

use std::time::Duration;

use super::Interruption;

/// What the preflight has found, and what the run may do.
#[derive(Clone, Debug, Default)]
pub struct Conditions {
    /// Why no session can be opened; `None` if one can, or it was not tried.
    pub no_session: Option<String>,
    /// Why no prompt can be answered; `None` if one can, or it was not tried.
    pub no_turn: Option<String>,
    /// Whether the agent has answered `initialize` of a client with all capabilities before.
    pub has_started: bool,
    /// How long the agent may take to start, up to its first session; as long as a turn if that is
    /// not said.
    pub start_timeout: Option<Duration>,
    /// Whether `session/new` is refused without a login.
    pub needs_login: bool,
    /// Whether modes that bypass permissions, and other models, may be selected.
    pub allow_privileged: bool,
    /// Whether explorations say `hello`, `slow` and `tool` only.
    pub few_words: bool,
    /// Whether sessions are closed or deleted at the end of a connection.
    pub cleans_up: bool,
    /// Whether the run is to end before its time.
    pub interruption: Interruption,
}
