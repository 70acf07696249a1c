//! What a client is asked, and what it asks about a session's state.

use acp_sdk::Json;
use acp_sdk::v1::{ClientHandle, CreateElicitationRequest, ElicitationMode};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Client;
use crate::session::{Ask, Phase, Reply};
use crate::{Capability, Session};

impl Client {
    /// Returns whether the client has what a question needs.
    pub(crate) fn can_answer(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Permission(_) => true,
            Ask::Elicitation(request) => self.offers(elicitation_needs(request)),
        }
    }

    /// Asks the client. Dropping the future cancels the request.
    ///
    /// # Errors
    ///
    /// When the client refuses, or the connection ends.
    pub(crate) async fn ask(&self, ask: &Ask) -> acp_sdk::Result<Reply> {
        #[cfg(feature = "v2")]
        if self.is_v2() {
            return super::v2::ask(self, ask).await;
        }
        let Some(handle) = self.handle() else {
            return Err(acp_sdk::Error::Closed(acp_sdk::CloseReason::Dropped));
        };
        Ok(match ask {
            Ask::Permission(request) => {
                let answer = handle.request_permission(request.clone()).await?;
                Reply::Permission(answer.outcome)
            }
            Ask::Elicitation(request) => {
                let answer = handle.create_elicitation(request.clone()).await?;
                Reply::Elicitation(answer.action)
            }
        })
    }

    /// Returns the typed caller, from `initialize` on.
    pub(crate) fn handle(&self) -> Option<ClientHandle> {
        Some(ClientHandle::new(self.peer()?.clone()))
    }
}

/// Returns the capability that an elicitation needs.
pub(crate) fn elicitation_needs(request: &CreateElicitationRequest) -> Capability {
    match request.mode {
        ElicitationMode::Url(_) => Capability::ElicitUrl,
        _ => Capability::ElicitForm,
    }
}

/// The state of a session, as `_acp-sdk/session/state` returns it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SessionState<'a> {
    session_id: &'a str,
    state: &'static str,
    /// The number of the event with which the running turn began.
    turn: Option<u64>,
    queued: usize,
    last_event_id: u64,
    questions: Vec<OpenQuestion>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OpenQuestion {
    event_id: u64,
    kind: &'static str,
    request: Option<Box<RawValue>>,
}

/// Returns the state of a session as JSON.
pub(super) fn state(session: &Session) -> Option<Json> {
    let last_event_id = session.last_event();
    let (phase, turn, queued, questions) = {
        let state = session.state();
        let turn = state.queue.running().and_then(|running| running.turn);
        let questions: Vec<_> = state.questions.values().cloned().collect();
        (state.queue.phase(), turn, state.queue.waiting(), questions)
    };
    let questions = questions.iter().map(|question| {
        let (kind, text) = match &question.ask {
            Ask::Permission(request) => ("permission", serde_json::to_string(request)),
            Ask::Elicitation(request) => ("elicitation", serde_json::to_string(request)),
        };
        OpenQuestion {
            event_id: question.id.0,
            kind,
            request: text.ok().as_deref().and_then(super::wire::raw),
        }
    });
    let state = SessionState {
        session_id: session.id().as_str(),
        state: match phase {
            Phase::Idle => "idle",
            Phase::Running => "running",
            Phase::Cancelling => "cancelling",
            Phase::Closed => "closed",
        },
        turn: turn.map(|turn| turn.0),
        queued,
        last_event_id,
        questions: questions.collect(),
    };
    Json::new(&state).ok()
}

/// Notifies a client of a session's state.
///
/// # Errors
///
/// When the connection has ended.
pub(super) async fn send_state(client: &Client, session: &Session) -> acp_sdk::Result<()> {
    let (Some(peer), Some(state)) = (client.peer(), state(session)) else {
        return Ok(());
    };
    peer.notify_ext("_acp-sdk/session/state_changed", Some(&state))
        .await
}
