//! Agents of protocol version 2: their messages in terms of version 1, as the rest of this crate has them.

use acp_client::internal::{Converter, End, Work, requests};
use acp_sdk::convert::{Convert, convert_logged};
use acp_sdk::json::Described;
use acp_sdk::v2::{self, AgentHandle, SessionUpdate, UpdateSessionNotification};
use acp_sdk::{HandlerError, HandlerResult, Json, Peer, Result, v1};
use acp_server::internal::raw_object::{RawObject, json_text};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::sync::oneshot;

use super::messages::{json, read};

/// Initializes an agent of version 2.
///
/// # Errors
///
/// When it refuses, or answers what has no form in version 1.
pub(super) async fn initialize(
    peer: &Peer,
    request: &v1::InitializeRequest,
) -> Result<v1::InitializeResponse> {
    let agent = AgentHandle::new(peer.clone());
    let info = agent.initialize(requests::initialize(request)).await?;
    requests::initialized(info).map_err(|error| acp_sdk::Error::Decode {
        method: "initialize".to_owned(),
        path: String::new(),
        reason: error.to_string(),
    })
}

/// Cancels the turn of a session.
///
/// # Errors
///
/// The end of the connection.
pub(super) async fn cancel(peer: &Peer, session: &v1::SessionId) -> Result<()> {
    let note = v2::CancelSessionNotification::new(session.as_str());
    AgentHandle::new(peer.clone()).cancel_session(note).await
}

/// What the messages of a session depend on: earlier ones, and the prompt whose end is awaited.
#[derive(Debug, Default)]
pub(super) struct Conversion {
    converter: Converter,
    work: Work,
    ended: Option<oneshot::Sender<End>>,
    /// The message of the last prompt, which the server has in its log.
    own: Own,
}

/// The message that the agent makes of a prompt.
#[derive(Debug, Default, PartialEq)]
enum Own {
    /// No prompt was sent.
    #[default]
    None,
    /// The agent has not said yet which it is.
    Awaited,
    Known(String),
}

impl Conversion {
    /// Prepares for a prompt that is sent next. The receiver gets the end of its turn.
    pub(super) fn begin(&mut self) -> oneshot::Receiver<End> {
        let (sender, receiver) = oneshot::channel();
        self.work.begin();
        self.own = Own::Awaited;
        self.ended = Some(sender);
        receiver
    }

    /// The agent has accepted the prompt; the end, if it came before.
    pub(super) fn accepted(&mut self, message: Option<&str>) {
        self.own = message.map_or(Own::None, |id| Own::Known(id.to_owned()));
        if let Some(end) = self.work.accepted(message) {
            self.end(end);
        }
    }

    /// The agent has refused the prompt, or its end is not awaited any more.
    pub(super) fn refused(&mut self) {
        (self.ended, self.own) = (None, Own::None);
        self.work.refused();
    }

    /// The conversation is repeated, or continues in another process.
    pub(super) fn restart(&mut self) {
        self.converter.restart();
        self.work.lost();
    }

    /// The connection was replaced. A prompt that was not answered is sent again.
    pub(super) fn reconnected(&mut self) {
        self.work.reconnected();
    }

    /// Converts the params of an update. With them comes the end of the turn, if the update is it: it
    /// counts when the updates are written.
    ///
    /// # Errors
    ///
    /// Why the params cannot be read.
    pub(super) fn update(
        &mut self,
        params: &RawObject,
    ) -> HandlerResult<(Vec<RawObject>, Option<End>)> {
        let note: UpdateSessionNotification = read(&params.to_json())?;
        let end = self.work.update(&note.update);
        if self.is_own(&note.update) {
            return Ok((Vec::new(), end));
        }
        // The server knows itself when a turn runs.
        let is_state = matches!(note.update, SessionUpdate::StateUpdate(_));
        let mut updates = Vec::new();
        for update in self.converter.update(note.update) {
            if is_state && matches!(update, v1::SessionUpdate::Unknown(..)) {
                continue;
            }
            let mut params = RawObject::default();
            params.set("sessionId", json_text(note.session_id.as_str()));
            params.set("update", json(&update)?);
            if let Some(meta) = &note.meta {
                params.set("_meta", json(meta)?);
            }
            updates.push(params);
        }
        Ok((updates, end))
    }

    /// Returns whether an update repeats the words of the prompt.
    fn is_own(&self, update: &SessionUpdate) -> bool {
        let id = match update {
            SessionUpdate::UserMessage(message) => &message.message_id,
            SessionUpdate::UserMessageChunk(chunk) => &chunk.message_id,
            _ => return false,
        };
        match &self.own {
            Own::None => false,
            Own::Awaited => true,
            Own::Known(own) => own == id.as_str(),
        }
    }

    pub(super) fn end(&mut self, end: End) {
        if let Some(sender) = self.ended.take() {
            // Nobody may wait for the turn any more.
            let _ = sender.send(end);
        }
    }
}

/// A question of an agent, and how its answer is returned.
pub(super) enum Question {
    Permission,
    Elicitation,
}

impl Question {
    pub(super) fn of(method: &str) -> Option<Self> {
        match method {
            "session/request_permission" => Some(Self::Permission),
            "elicitation/create" => Some(Self::Elicitation),
            _ => None,
        }
    }

    /// Returns the params in the form of version 1.
    ///
    /// # Errors
    ///
    /// -32602 for params that are wrong, or have no form there.
    pub(super) fn params(&self, params: &RawObject) -> HandlerResult<RawObject> {
        let none = || HandlerError::invalid_params("", "the question has no form in version 1");
        let params = params.to_json();
        let converted = match self {
            Self::Permission => {
                converted::<v2::RequestPermissionRequest, v1::RequestPermissionRequest>(&params)
            }
            Self::Elicitation => {
                converted::<v2::CreateElicitationRequest, v1::CreateElicitationRequest>(&params)
            }
        };
        let params = converted?.ok_or_else(none)?;
        RawObject::parse(params.get()).ok_or_else(none)
    }

    /// Returns the answer in the form of version 2.
    ///
    /// # Errors
    ///
    /// -32603 when it has none.
    pub(super) fn answer(&self, answer: &Json) -> HandlerResult<Json> {
        let converted = match self {
            Self::Permission => {
                converted::<v1::RequestPermissionResponse, v2::RequestPermissionResponse>(answer)
            }
            Self::Elicitation => {
                converted::<v1::CreateElicitationResponse, v2::CreateElicitationResponse>(answer)
            }
        };
        converted?.ok_or_else(|| HandlerError::internal("the answer has no form in version 2"))
    }
}

/// Returns a message in the form of the other version; `None` if it has none there.
fn converted<A, B>(message: &Json) -> HandlerResult<Option<Json>>
where
    A: DeserializeOwned + Described + Convert<B>,
    B: Serialize,
{
    let message: A = read(message)?;
    let converted: Option<B> = convert_logged(message);
    converted.map(|message| json(&message)).transpose()
}
