//! The parts of a message that routing needs.

use acp_sdk::extensions::ResumeEventsResponse;
use acp_sdk::facts::{self, Attachment, Login};
use acp_sdk::json;

pub(super) use acp_sdk::envelope::CANCEL_REQUEST;
pub use acp_sdk::envelope::{Envelope, Kind};

/// Returns whether a result marks older events as unavailable.
pub(super) fn is_truncated(envelope: &Envelope<'_>) -> bool {
    let resumed = envelope.result.map(|result| json::from_str(result.get()));
    resumed
        .is_some_and(|resumed| resumed.is_ok_and(|resumed: ResumeEventsResponse| resumed.truncated))
}

/// Returns how a method changes the attachment of this connection to a session.
pub fn attachment(method: &str) -> Attachment {
    facts::of_agent(method).map_or(Attachment::Keeps, |facts| facts.joins)
}

/// Returns whether a method logs the user in or out.
pub fn login(method: &str) -> Option<Login> {
    facts::of_agent(method)?.login
}
