//! The events of a session.

use acp_sdk::Meta;
use acp_sdk::v1::{ContentBlock, RequestPermissionOutcome, SessionUpdate, StopReason};
use serde::Deserialize;

use crate::permission::{PermissionRequest, Reason};

/// An event of a session, with its phase and turn.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SessionEvent {
    /// The event.
    pub event: Event,
    /// Whether the event is live or replayed.
    pub phase: Phase,
    /// The number of the turn that the event belongs to; the first of this
    /// [`Session`](crate::Session) is 1. `None` outside of turns, which includes the turns of other
    /// clients.
    pub turn: Option<u64>,
    /// The agent's number of the event, from 1 in each session, if the agent numbers its events
    /// (`_meta["acp-sdk"].eventId`).
    pub number: Option<u64>,
}

impl SessionEvent {
    /// Creates the event of a gap.
    pub(super) fn missed(count: u64) -> Self {
        Self {
            event: Event::Missed(count),
            phase: Phase::Live,
            turn: None,
            number: None,
        }
    }
}

/// Whether an event is live or replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Phase {
    /// The event is live.
    Live,
    /// The event is part of the history of a loaded session.
    Replayed,
}

/// The kind of an event and its data.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// The agent reported progress.
    Update(SessionUpdate),
    /// A permission request was answered.
    Permission(Answered),
    /// The history of a loaded session is complete. Later events are live.
    HistoryEnd,
    /// A turn has started.
    TurnStarted {
        /// The prompt.
        prompt: Vec<ContentBlock>,
    },
    /// The turn has ended. Later updates of the agent belong to no turn.
    TurnEnded {
        /// The stop reason; `None` if the turn failed with the error that
        /// [`Turn::outcome`](crate::Turn::outcome) returns.
        stop_reason: Option<StopReason>,
    },
    /// The connection to the agent was lost, and updates may be missing here.
    Gap(Gap),
    /// This many events were dropped, because the reader was too slow. See
    /// [`ClientBuilder::reader_timeout`](crate::ClientBuilder::reader_timeout).
    Missed(u64),
}

/// The state of a session whose connection was lost and which could not be continued without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Gap {
    /// The session was loaded: its whole history follows, up to [`Event::HistoryEnd`].
    Loaded,
    /// The session was resumed without its history: updates before this event may be missing.
    Resumed,
    /// The agent no longer has the oldest updates: some are missing.
    Truncated,
    /// The agent cannot open the session again. No events follow.
    Lost,
}

/// A permission request and its answer.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Answered {
    /// The request.
    pub question: PermissionRequest,
    /// The answer.
    pub outcome: RequestPermissionOutcome,
    /// The reason, unless a policy or the user decided without one.
    pub reason: Option<Box<Reason>>,
}

/// Returns the number that an agent assigned to an update.
pub(crate) fn number(meta: Option<&Meta>) -> Option<u64> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Ours {
        event_id: u64,
    }
    let ours: Ours = meta?.get("acp-sdk")?;
    Some(ours.event_id)
}
