//! The agent's capabilities for continuing sessions on another connection.

use serde_json::Value;

use crate::reconnect::envelope::Envelope;

/// The agent's capabilities for continuing sessions.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ResumeCapabilities {
    pub(super) resume: bool,
    pub(super) prompt_result: bool,
    /// A prompt with a key runs once, also when it is sent again.
    pub(super) idempotency: bool,
    load: bool,
    /// `session/resume`, which does not replay the history.
    reopen: bool,
    /// The agent speaks version 2, where `session/resume` replays the history, too.
    pub(super) is_v2: bool,
}

/// The request that continues a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Continuation {
    /// `_acp-sdk/session/resume`: replays the events after the cursor.
    Cursor,
    /// `session/load`: replays the whole history.
    Load,
    /// `session/resume`: replays nothing.
    Reopen,
}

impl Continuation {
    /// Returns the kind of gap the client is notified of before other messages of the session.
    pub(super) fn gap(self) -> Option<&'static str> {
        match self {
            Self::Cursor => None,
            Self::Load => Some("loaded"),
            Self::Reopen => Some("resumed"),
        }
    }
}

impl ResumeCapabilities {
    pub(super) fn read(envelope: &Envelope<'_>) -> Self {
        let result = envelope.result.map_or("null", |result| result.get());
        let result: Value = serde_json::from_str(result).unwrap_or_default();
        let is_v2 = result["protocolVersion"] == 2;
        let agent = match is_v2 {
            true => &result["capabilities"],
            false => &result["agentCapabilities"],
        };
        let ours = &agent["_meta"]["acp-sdk"];
        let resume = ours["eventId"] == true && ours["session"]["resume"] == true;
        // In version 2 the end of a turn is an event. What a prompt was answered tells nothing of it.
        let prompt_result = !is_v2 && resume && ours["session"]["promptResult"] == true;
        let has_sessions = is_v2 && agent["session"].is_object();
        Self {
            resume,
            prompt_result,
            idempotency: has_sessions || !is_v2 && ours["idempotencyKey"] == true,
            load: has_sessions || agent["loadSession"] == true,
            reopen: has_sessions || agent["sessionCapabilities"]["resume"].is_object(),
            is_v2,
        }
    }

    /// Returns whether a prompt with a key is sent again on another connection.
    pub(super) fn repeats_prompts(self) -> bool {
        self.idempotency && (self.resume || self.load || self.reopen)
    }

    /// Returns the continuation with the smallest gap for a session with this cursor.
    pub(super) fn continuation(self, cursor: Option<u64>) -> Option<Continuation> {
        match self {
            Self { resume: true, .. } if cursor.is_some() => Some(Continuation::Cursor),
            Self { load: true, .. } => Some(Continuation::Load),
            Self { reopen: true, .. } => Some(Continuation::Reopen),
            _ => None,
        }
    }
}
