//! What happens in a session.

use acp_sdk::Meta;
use acp_sdk::v1::{ContentBlock, RequestPermissionOutcome, SessionUpdate, StopReason};
use serde::Deserialize;

use crate::permission::{PermissionRequest, Reason};

/// Something that happened in a session, and where it stands in it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionEvent {
    /// What happened.
    pub event: Event,
    /// Whether it happens now.
    pub phase: Phase,
    /// The prompt that it belongs to: the first of this [`Session`](crate::Session) is 1. `None`
    /// outside of turns, which includes the turns of other clients.
    pub turn: Option<u64>,
    /// The agent's number of the event, counted from 1 in the session, where the agent gives one
    /// (`_meta["acp-sdk"].eventId`).
    pub number: Option<u64>,
}

impl SessionEvent {
    /// Events are missing here.
    pub(super) fn missed(count: u64) -> Self {
        Self {
            event: Event::Missed(count),
            phase: Phase::Live,
            turn: None,
            number: None,
        }
    }
}

/// Whether an event happens now or is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// It happens now.
    Live,
    /// It is part of the history of a session that was loaded.
    Replayed,
}

/// Something that happened in a session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The agent reported progress.
    Update(SessionUpdate),
    /// The agent asked for permission and has its answer.
    Permission(Answered),
    /// The history of a loaded session is complete. What follows is live.
    HistoryEnd,
    /// A prompt was sent to the agent: the turn begins.
    TurnStarted {
        /// The prompt.
        prompt: Vec<ContentBlock>,
    },
    /// The turn has ended. What the agent does after it belongs to no turn.
    TurnEnded {
        /// Why it ended; `None` if it failed, for the reason that
        /// [`Turn::outcome`](crate::Turn::outcome) returns.
        stop_reason: Option<StopReason>,
    },
    /// The connection to the agent was lost, and updates may be missing here.
    Gap(Gap),
    /// This reader was left behind: so many events are missing here. See
    /// [`ClientBuilder::reader_timeout`](crate::ClientBuilder::reader_timeout).
    Missed(u64),
}

/// What becomes of a session whose connection was lost and which cannot be continued where it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The session was loaded: the whole conversation follows, from its beginning to
    /// [`Event::HistoryEnd`].
    Loaded,
    /// The session goes on without its history: updates before this event may be missing.
    Resumed,
    /// The agent does not keep its oldest updates: some are missing.
    Truncated,
    /// The agent cannot open the session again. Nothing more comes.
    Lost,
}

/// A question for permission and its answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answered {
    /// What the agent asked.
    pub question: PermissionRequest,
    /// What it was answered.
    pub outcome: RequestPermissionOutcome,
    /// Why, where there is more to say than that a policy or a person has decided.
    pub reason: Option<Box<Reason>>,
}

/// Returns the number that an agent gives an update.
pub(crate) fn number(meta: Option<&Meta>) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ours {
        event_id: u64,
    }
    let ours: Ours = meta?.get("acp-sdk")?;
    Some(ours.event_id)
}
