//! What a client is asked, and what it asks about a session's state.

use acp_sdk::Json;
use acp_sdk::v1::{ClientHandle, CreateElicitationRequest, ElicitationMode};
use serde::Serialize;
use serde_json::value::RawValue;

use super::Client;
use crate::event::TurnId;
use crate::session::{Ask, Phase, Reply};
use crate::{Capability, Session};

impl Client {
    /// Returns whether the client has what a question needs.
    pub(crate) fn can_answer(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Permission(_) => self.is_asked(),
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

/// The state of which a client was notified last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Notified {
    phase: Phase,
    turn: Option<TurnId>,
    queued: usize,
    last_event_id: u64,
    questions: Vec<u64>,
}

/// Returns the state of a session as JSON, with questions in the form of the client's version.
pub(super) fn state(client: &Client, session: &Session) -> Option<Json> {
    Some(current(client, session)?.0)
}

fn current(client: &Client, session: &Session) -> Option<(Json, Notified)> {
    let last_event_id = session.last_event();
    let (phase, turn, queued, questions) = {
        let state = session.state();
        let turn = state.queue.running().and_then(|running| running.turn);
        let questions: Vec<_> = state.questions.values().cloned().collect();
        (state.queue.phase(), turn, state.queue.waiting(), questions)
    };
    let notified = Notified {
        phase,
        turn,
        queued,
        last_event_id,
        questions: questions.iter().map(|question| question.id.0).collect(),
    };
    let questions = questions.iter().map(|question| OpenQuestion {
        event_id: question.id.0,
        kind: match &question.ask {
            Ask::Permission(_) => "permission",
            Ask::Elicitation(_) => "elicitation",
        },
        request: body(client, &question.ask),
    });
    let state = SessionState {
        session_id: session.id().as_str(),
        state: phase.name(),
        turn: turn.map(|turn| turn.0),
        queued,
        last_event_id,
        questions: questions.collect(),
    };
    Some((Json::new(&state).ok()?, notified))
}

/// Returns a question as this client is asked it; `None` if its version cannot express it.
fn body(client: &Client, ask: &Ask) -> Option<Box<RawValue>> {
    #[cfg(feature = "v2")]
    if client.is_v2() {
        return super::v2::question(ask);
    }
    let _ = client;
    let text = match ask {
        Ask::Permission(request) => serde_json::to_string(request),
        Ask::Elicitation(request) => serde_json::to_string(request),
    };
    super::wire::raw(&text.ok()?)
}

/// Notifies a client of a session's state, after the event `number`; unless it is the one that it was
/// notified of last: the state is that of now, and several events can be sent after the same change.
///
/// A session is idle only after the client was sent the whole last turn: the end of that turn is an
/// event too, after which this is called again.
///
/// # Errors
///
/// When the connection has ended.
pub(super) async fn send_state(
    client: &Client,
    session: &Session,
    number: u64,
) -> acp_sdk::Result<()> {
    let (Some(peer), Some((state, now))) = (client.peer(), current(client, session)) else {
        return Ok(());
    };
    let last_end = session.state().queue.last_end();
    // An end that could not be committed is beyond the last event.
    if now.phase == Phase::Idle && number < last_end && last_end <= now.last_event_id {
        return Ok(());
    }
    let subscription = client.subscription(session.id());
    if subscription.is_some_and(|subscription| !subscription.notifies(now)) {
        return Ok(());
    }
    peer.notify_ext("_acp-sdk/session/state_changed", Some(&state))
        .await
}
