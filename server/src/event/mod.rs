//! The events of a session: everything that happened in it, in order and numbered.

mod batch;
mod kind;
mod notification_params;
mod raw_update;
mod times;
mod turn_facts;
mod usage;

pub use batch::Batch;
pub use kind::EventKind;
pub use notification_params::split_params;
pub use raw_update::RawUpdate;
pub(crate) use times::Times;
pub use turn_facts::{Note, StateAfter, TurnFacts};
pub use usage::TokenUsage;
pub use usage::sum;

use std::time::SystemTime;

use acp_sdk::Json;
use acp_sdk::v1::{
    CreateElicitationRequest, ElicitationAction, RequestPermissionOutcome,
    RequestPermissionRequest, SessionId, SessionUpdate, StopReason,
};
use serde::{Deserialize, Serialize};

/// An event of a session.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Event {
    /// The number: 1, 2, 3 and so on, in the session.
    pub number: u64,
    /// When it was committed, with a precision of milliseconds; `None` if that is unknown, because
    /// an earlier version of this crate stored it or [`parse`](Self::parse) read it.
    pub time: Option<SystemTime>,
    /// What happened.
    pub body: EventBody,
}

/// What happened in a session.
///
/// Messages, tool calls, plans and settings are [`SessionUpdate`]s, in the vocabulary of protocol
/// version 1; clients of another version are sent an equivalent.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "read one at a time")]
pub enum EventBody {
    /// Something that clients display.
    Update(SessionUpdate),
    /// The start or end of a turn, or a question to the user.
    Turn(TurnEvent),
    /// An event of a later version of this crate, as JSON.
    Unknown(Json),
}

/// The start or end of a turn, or a question that it asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(
    tag = "event",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
#[allow(clippy::large_enum_variant, reason = "read one at a time")]
pub enum TurnEvent {
    /// A turn began. The messages of the user that follow are its prompt.
    TurnStarted {
        /// The turn.
        turn: TurnId,
        /// The client that sent the prompt: name and version as it gave them. `None`: the program
        /// itself queued it, also for REST and `/rpc`, or the client gave no name.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        /// The name of the prompt, if its sender gave one: it finds the turn again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        prompt: Option<String>,
        /// The value of the config option of category `model`, if the agent has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// A turn ended.
    TurnEnded {
        /// The turn.
        turn: TurnId,
        /// Why it ended; `None` if it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stop_reason: Option<StopReason>,
        /// Why it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// The tokens that it used, if the answer of its prompt counts them (`usage`).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<TokenUsage>,
    },
    /// The user was asked for a permission.
    PermissionAsked {
        /// The question, unique in the session.
        question: QuestionId,
        /// What was asked.
        request: RequestPermissionRequest,
        /// The child session that asked, unless it was the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<SessionId>,
    },
    /// The user answered [`PermissionAsked`](Self::PermissionAsked), or the question was withdrawn.
    PermissionAnswered {
        /// The question.
        question: QuestionId,
        /// The answer; `None` if the question was withdrawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        outcome: Option<RequestPermissionOutcome>,
        /// What has answered in place of a person, such as a rule or a timeout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<String>,
        /// The child session that asked, unless it was the session itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        child: Option<SessionId>,
    },
    /// The user was asked to fill in a form or to open a URL.
    ElicitationAsked {
        /// The question, unique in the session.
        question: QuestionId,
        /// What was asked.
        request: CreateElicitationRequest,
    },
    /// The user answered [`ElicitationAsked`](Self::ElicitationAsked), or it was withdrawn.
    ElicitationAnswered {
        /// The question.
        question: QuestionId,
        /// The answer; `None` if the question was withdrawn.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        action: Option<ElicitationAction>,
    },
    /// A child session of the turn began.
    ChildStarted {
        /// The child session.
        child: SessionId,
        /// Its name, for people.
        title: String,
    },
    /// Something that clients display of a child session.
    ChildUpdate {
        /// The child session.
        child: SessionId,
        /// In the vocabulary of protocol version 1, as all updates.
        update: SessionUpdate,
    },
    /// A child session ended.
    ChildEnded {
        /// The child session.
        child: SessionId,
        /// Why it ended.
        stop_reason: StopReason,
    },
}

/// Names a turn within its session: the number of the event with which it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TurnId(pub u64);

/// Names a question within its session: the number of the event with which it was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct QuestionId(pub u64);

impl std::fmt::Display for TurnId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "turn {}", self.0)
    }
}

/// An event of a batch that is not read yet.
#[derive(Clone, Copy, Debug)]
pub struct StoredEvent<'a> {
    /// Its number in the session.
    pub number: u64,
    /// When it was committed, in milliseconds since 1970, if that is known.
    pub time: Option<u64>,
    /// JSON.
    pub text: &'a str,
}

impl StoredEvent<'_> {
    /// Returns the kind.
    pub fn kind(&self) -> EventKind {
        EventKind::of(self.text)
    }

    /// Returns the event as types.
    pub fn parse(&self) -> Event {
        let mut event = Event::parse(self.number, self.text);
        event.time = self.time.and_then(crate::clock::system_time);
        event
    }

    /// Returns the time as ISO 8601 in UTC.
    pub fn time_text(&self) -> Option<String> {
        self.time.map(crate::clock::text)
    }

    /// Returns a text about the event with its time, if that is known.
    pub fn timed(&self, text: &str) -> String {
        match self.time_text() {
            Some(time) => format!("{text}, {time}"),
            None => text.to_owned(),
        }
    }
}

impl Event {
    /// Reads an event from the JSON text that a store keeps. Its time is that of its
    /// [batch](Batch::event).
    #[must_use]
    pub fn parse(number: u64, text: &str) -> Self {
        let body = match matches!(EventKind::of(text), EventKind::Turn | EventKind::Child) {
            true => serde_json::from_str(text).map(EventBody::Turn).ok(),
            false => serde_json::from_str(text).map(EventBody::Update).ok(),
        };
        let body = body.unwrap_or_else(|| EventBody::Unknown(unknown(text)));
        Self {
            number,
            time: None,
            body,
        }
    }
}

fn unknown(text: &str) -> Json {
    let raw = serde_json::from_str::<Box<serde_json::value::RawValue>>(text);
    // A text that is no JSON at all, which a store must not return, becomes null.
    let null = || serde_json::value::RawValue::NULL.to_owned();
    Json::from(raw.unwrap_or_else(|_| null()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(body: &EventBody, kind: EventKind) {
        let text = match body {
            EventBody::Update(update) => serde_json::to_string(update),
            EventBody::Turn(event) => serde_json::to_string(event),
            EventBody::Unknown(json) => Ok(json.get().to_owned()),
        }
        .unwrap();
        assert_eq!(EventKind::of(&text), kind, "{text}");
        assert_eq!(Event::parse(7, &text).body, *body, "{text}");
    }

    #[test]
    fn an_event_is_read_as_it_was_written() {
        let update = |text: &str| EventBody::Update(serde_json::from_str(text).unwrap());
        let message = r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"\u00fc","_meta":{"n":1e2}},"messageId":"m"}"#;
        same(&update(message), EventKind::UserMessage);
        let unknown = r#"{"more":[1.50],"sessionUpdate":"of_tomorrow"}"#;
        same(&update(unknown), EventKind::Update);
        let turn = TurnId(3);
        let ended = TurnEvent::TurnEnded {
            turn,
            stop_reason: Some(StopReason::EndTurn),
            error: None,
            usage: None,
        };
        same(&EventBody::Turn(ended), EventKind::Turn);
        let asked = r#"{"event":"permission_asked","question":9,"request":{"sessionId":"s","toolCall":{"toolCallId":"c","rawInput":{"n":1e2}},"options":[],"_meta":{"a":1}}}"#;
        let asked: TurnEvent = serde_json::from_str(asked).unwrap();
        same(&EventBody::Turn(asked), EventKind::Turn);
        let of_child = r#"{"event":"child_update","child":"c","update":{"sessionUpdate":"of_tomorrow","more":[1.50]}}"#;
        let of_child: TurnEvent = serde_json::from_str(of_child).unwrap();
        same(&EventBody::Turn(of_child), EventKind::Child);
    }

    #[test]
    fn an_event_of_a_later_version_is_kept() {
        let text = r#"{"event":"of_tomorrow","a":1}"#;
        let Event {
            body: EventBody::Unknown(json),
            ..
        } = Event::parse(1, text)
        else {
            panic!("known");
        };
        assert_eq!(json.get(), text);
    }

    /// `/rpc` passes them on by these names. serde lists them in its error about an unknown one.
    #[test]
    fn every_event_of_our_own_is_in_the_document() {
        let unknown = serde_json::from_str::<TurnEvent>(r#"{"event":"?"}"#);
        let listed = unknown.unwrap_err().to_string();
        let names: Vec<_> = listed.split('`').skip(3).step_by(2).collect();
        assert!(names.contains(&"turn_started"), "{listed}");
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rest.md");
        let document = std::fs::read_to_string(path).unwrap();
        for name in names {
            assert!(
                document.contains(&format!("`{name}`")),
                "docs/rest.md does not name the event `{name}` of `/rpc`"
            );
        }
    }
}
