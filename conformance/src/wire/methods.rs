//! Facts of the protocol's methods, as its documents state them.

use acp_sdk::facts::{self, Attachment};

/// Returns how a method of the protocol changes the client's attachment to a session.
#[must_use]
pub(crate) fn attachment(method: &str) -> Attachment {
    // Extension methods are an agent's own, and no requirement is about them.
    let facts = facts::of_agent(method).filter(|_| !method.starts_with('_'));
    facts.map_or(Attachment::Keeps, |facts| facts.joins)
}

/// Returns whether a method of the client sets a session up.
#[must_use]
pub(crate) fn sets_up(method: &str) -> bool {
    matches!(attachment(method), Attachment::Creates | Attachment::Joins)
}
