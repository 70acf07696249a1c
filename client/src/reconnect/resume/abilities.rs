//! What an agent can do about a lost connection.

use serde_json::Value;

use crate::reconnect::envelope::Envelope;

/// What the agent can do about a lost connection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Abilities {
    pub(super) resume: bool,
    pub(super) prompt_result: bool,
    load: bool,
    /// `session/resume`, without the history.
    reopen: bool,
}

/// How a session is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// After the last event.
    Cursor,
    /// With the whole history.
    Load,
    /// Without history.
    Reopen,
}

impl Way {
    /// Returns the gap that the client is notified of before anything else of the session.
    pub(super) fn gap(self) -> Option<&'static str> {
        match self {
            Self::Cursor => None,
            Self::Load => Some("loaded"),
            Self::Reopen => Some("resumed"),
        }
    }
}

impl Abilities {
    pub(super) fn read(envelope: &Envelope<'_>) -> Self {
        let result = envelope.result.map_or("null", |result| result.get());
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let agent = &result["agentCapabilities"];
        let ours = &agent["_meta"]["acp-sdk"];
        let resume = ours["eventId"] == true && ours["session"]["resume"] == true;
        Self {
            resume,
            prompt_result: resume && ours["session"]["promptResult"] == true,
            load: agent["loadSession"] == true,
            reopen: agent["sessionCapabilities"]["resume"].is_object(),
        }
    }

    /// Returns the best way to continue a session with this cursor.
    pub(super) fn way(self, cursor: Option<u64>) -> Option<Way> {
        match self {
            Self { resume: true, .. } if cursor.is_some() => Some(Way::Cursor),
            Self { load: true, .. } => Some(Way::Load),
            Self { reopen: true, .. } => Some(Way::Reopen),
            _ => None,
        }
    }
}
