//! Events of a session as notifications with the payloads of server-sent events.

use acp_dialects::otter_http_acp::{
    ClientHandle, ErrorNotification, EventPayload, TextDeltaNotification, ToolCallNotification,
    ToolResultNotification, TurnEndNotification,
};
use acp_sdk::Json;
use acp_sdk::v1::{PermissionOption, SessionId};
use acp_server::Session;
use acp_server::event::{Event, EventBody, QuestionId};
use acp_server::internal::clock;

use crate::feed::Encode;
use crate::fold::Step;
use crate::permission::{self, Reply};

/// Sends `textDelta`, `toolCall` and so on.
pub(super) struct Notifications(pub(super) ClientHandle);

/// An event, as its payloads show it.
pub(super) struct Source {
    id: String,
    metadata: Json,
    time: Option<String>,
    /// The name of an event of a turn.
    name: &'static str,
}

impl Source {
    pub(super) fn of(event: &Event) -> Self {
        let (name, metadata) = match &event.body {
            EventBody::Update(update) => ("", Json::new(update)),
            EventBody::Turn(turn) => (turn.facts().name, Json::new(turn)),
            EventBody::Unknown(json) => ("", Ok(json.clone())),
        };
        Self {
            id: format!("evt-{}", event.number),
            // What was read from JSON can be written.
            metadata: metadata.unwrap_or_else(|_| serde_json::Value::Null.into()),
            time: event.time.map(clock::text_of),
            name,
        }
    }
}

/// A notification by its method.
#[derive(Clone, Copy)]
pub(super) enum Kind {
    TextDelta,
    ToolCall,
    ToolResult,
    TurnEnd,
    Error,
}

pub(super) enum Update {
    Sent(Kind, EventPayload),
    /// A permission that nobody can be asked for.
    Refused(QuestionId, Vec<PermissionOption>),
}

/// Returns a step as a notification; `None` if the dialect has none for it.
pub(super) fn encode(session: &SessionId, source: &Source, step: Step) -> Option<Update> {
    let (kind, name) = match step {
        Step::Text(_) => (Kind::TextDelta, "text_delta"),
        Step::CallStarted(_) => (Kind::ToolCall, "tool_call"),
        Step::CallEnded(_) => (Kind::ToolResult, "tool_result"),
        Step::TurnEnded(_, Some(_)) => (Kind::Error, source.name),
        Step::TurnEnded(_, None) => (Kind::TurnEnd, source.name),
        Step::PermissionAsked(question, request) => {
            return Some(Update::Refused(question, request.options));
        }
        Step::TurnStarted | Step::Thought(_) | Step::Cancelled(_) => return None,
        Step::Usage(_) | Step::Tokens(_) => return None,
        Step::Plan(_) | Step::Commands(_) => return None,
    };
    let metadata = source.metadata.clone();
    let mut payload = EventPayload::new(session.clone(), source.id.as_str(), name, metadata);
    payload.ts.clone_from(&source.time);
    Some(Update::Sent(kind, payload))
}

impl Encode for Notifications {
    type Update = Update;
    type Source = Source;

    fn source(&self, event: &Event) -> Source {
        Source::of(event)
    }

    fn encode(&self, session: &SessionId, source: &Source, step: Step) -> Option<Update> {
        encode(session, source, step)
    }

    async fn send(&self, session: &Session, _: u64, update: Update) -> acp_sdk::Result<()> {
        let client = &self.0;
        match update {
            Update::Sent(kind, payload) => match kind {
                Kind::TextDelta => client.text_delta(TextDeltaNotification(payload)).await,
                Kind::ToolCall => client.tool_call(ToolCallNotification(payload)).await,
                Kind::ToolResult => client.tool_result(ToolResultNotification(payload)).await,
                Kind::TurnEnd => client.turn_end(TurnEndNotification(payload)).await,
                Kind::Error => client.error(ErrorNotification(payload)).await,
            },
            Update::Refused(question, options) => {
                // Another answer may have been first.
                let _ =
                    permission::answer(session, question, Reply::Deny, &options, "otter-http-acp");
                Ok(())
            }
        }
    }
}
