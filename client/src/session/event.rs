//! The events of a session.

use std::sync::Arc;

use acp_sdk::Meta;
use acp_sdk::conversation::{Changes, Conversation};
use acp_sdk::v1::{
    ContentBlock, PermissionOption, PermissionOptionKind, RequestPermissionOutcome, SessionUpdate,
    StopReason,
};
use serde::Deserialize;

use super::children::ChildUpdate;
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
    /// The id of the prompt that the event belongs to, if the agent names it
    /// (`_meta["acp-sdk"].promptId`): of this client's, of another client's, or of the agent's own.
    /// From an agent that names prompts, an event of another prompt or of none belongs to no turn of
    /// this client.
    pub prompt_id: Option<Arc<str>>,
}

impl SessionEvent {
    /// Returns whether the event belongs to a prompt of another client or of the agent's own.
    ///
    /// `false` for all events of an agent that does not name prompts, and for replayed ones.
    #[must_use]
    pub fn is_of_another_prompt(&self) -> bool {
        self.phase == Phase::Live && self.turn.is_none() && self.prompt_id.is_some()
    }

    /// Creates a live event, for the tests of an application.
    pub fn live(event: Event, turn: Option<u64>) -> Self {
        Self {
            event,
            phase: Phase::Live,
            turn,
            number: None,
            prompt_id: None,
        }
    }

    /// Creates the event of a gap.
    pub(super) fn missed(count: u64) -> Self {
        Self::live(Event::Missed(count), None)
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
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all events are updates, which a box would make slower"
)]
#[non_exhaustive]
pub enum Event {
    /// The agent reported progress.
    Update(SessionUpdate),
    /// A child session of the agent, such as that of a subagent, reported progress.
    ///
    /// It is not part of the [`Outcome`](crate::Outcome). A user interface has a [`Conversation`] for each
    /// child session.
    ChildSession(Box<ChildUpdate>),
    /// A permission request was answered.
    Permission(Box<Answered>),
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

impl Event {
    /// Applies the event to a conversation. Returns what a user interface must redraw.
    ///
    /// Answered permission requests and updates of child sessions are not part of a conversation.
    ///
    /// ```no_run
    /// use acp_sdk::conversation::Conversation;
    ///
    /// # async fn example(session: acp_client::Session) {
    /// let mut conversation = Conversation::new();
    /// let mut events = session.events();
    /// while let Some(event) = events.next().await {
    ///     for change in event.event.apply_to(&mut conversation) {
    ///         let item = change.item().and_then(|id| conversation.item(id));
    ///         println!("redraw {change:?}: {item:?}");
    ///     }
    /// }
    /// # }
    /// ```
    pub fn apply_to(&self, conversation: &mut Conversation) -> Changes {
        match self {
            Self::Update(update) => conversation.apply(update),
            Self::TurnStarted { prompt } => conversation.prompt(prompt),
            Self::TurnEnded { stop_reason } => conversation.end_turn(stop_reason.clone()),
            Self::HistoryEnd => {
                conversation.end_history();
                Changes::default()
            }
            Self::Missed(count) => conversation.missed(Some(*count)),
            // The whole history follows.
            Self::Gap(Gap::Loaded) => conversation.restart(),
            Self::Gap(Gap::Resumed | Gap::Truncated) => conversation.missed(None),
            Self::Gap(Gap::Lost) | Self::Permission(_) | Self::ChildSession(_) => {
                Changes::default()
            }
        }
    }
}

/// The state of a session whose connection was lost and which could not be continued without a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
    /// The reason, unless a person or the program's handler decided without one.
    pub reason: Option<Box<Reason>>,
}

impl Answered {
    /// Creates an answer without a reason, for the tests of an application.
    pub fn new(question: PermissionRequest, outcome: RequestPermissionOutcome) -> Self {
        Self {
            question,
            outcome,
            reason: None,
        }
    }

    /// Returns the option that was selected; `None` if the answer is `cancelled`.
    pub fn option(&self) -> Option<&PermissionOption> {
        let RequestPermissionOutcome::Selected(selected) = &self.outcome else {
            return None;
        };
        self.question.option(&selected.option_id)
    }

    /// Returns whether the call was allowed.
    #[must_use]
    pub fn is_allowed(&self) -> bool {
        use PermissionOptionKind::{AllowAlways, AllowOnce};
        self.option()
            .is_some_and(|option| matches!(option.kind, AllowOnce | AllowAlways))
    }
}

/// What an agent says of an update: its number, and the prompt that it belongs to.
#[derive(Clone, Debug, Default)]
pub(crate) struct Origin {
    pub(super) number: Option<u64>,
    pub(super) prompt_id: Option<Arc<str>>,
}

impl Origin {
    /// Reads the origin of an update from its `_meta`.
    pub(crate) fn of(meta: Option<&Meta>) -> Self {
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "camelCase", default)]
        struct Ours {
            event_id: Option<u64>,
            prompt_id: Option<String>,
        }
        let ours: Option<Ours> = meta.and_then(|meta| meta.get("acp-sdk"));
        let Ours {
            event_id,
            prompt_id,
        } = ours.unwrap_or_default();
        Self {
            number: event_id,
            prompt_id: prompt_id.map(Arc::from),
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::conversation::{Change, ItemKind};
    use acp_sdk::v1::ContentChunk;

    use super::*;

    #[test]
    fn events_become_a_conversation() {
        let said = || {
            let chunk = ContentChunk::new(ContentBlock::from("Hello."));
            Event::Update(SessionUpdate::AgentMessageChunk(chunk))
        };
        let prompt = vec![ContentBlock::from("Hi")];
        let stop_reason = Some(StopReason::EndTurn);
        let mut conversation = Conversation::new();
        for event in [
            said(),
            Event::HistoryEnd,
            said(),
            Event::TurnStarted { prompt },
            said(),
            Event::TurnEnded { stop_reason },
            Event::Missed(2),
            Event::Gap(Gap::Resumed),
        ] {
            let _ = event.apply_to(&mut conversation);
        }
        let words: Vec<_> = conversation
            .items()
            .map(|item| match &item.kind {
                ItemKind::Message(message) => message.text().into_owned(),
                ItemKind::TurnEnd { .. } => "end".to_owned(),
                ItemKind::Missed { count } => format!("missed {count:?}"),
                other => format!("{other:?}"),
            })
            .collect();
        let expected = [
            "Hello.",
            "Hello.",
            "Hi",
            "Hello.",
            "end",
            "missed Some(2)",
            "missed None",
        ];
        assert_eq!(words, expected);
        let last = conversation.items().last().unwrap().id;
        let loaded = Event::Gap(Gap::Loaded).apply_to(&mut conversation);
        assert!(loaded.into_iter().eq([Change::Removed(last)]));
    }
}
