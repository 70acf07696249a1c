//! What a client is asked, and what it asks about a session's state.

use acp_sdk::extensions::{
    CurrentSessionState, OpenQuestion, OpenQuestionKind, SessionActivity,
    SessionStateChangedNotification, methods,
};
use acp_sdk::runtime::Notification as _;
use acp_sdk::v1::methods as asked;
use acp_sdk::v1::{ClientHandle, CreateElicitationRequest, ElicitationMode, SessionId};
use acp_sdk::{Json, Peer};

use super::Client;
use crate::session::{Ask, Attached, Question, Reply};
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
    pub(crate) async fn ask(&self, ask: &Ask, child: Option<&SessionId>) -> acp_sdk::Result<Reply> {
        if self.is_v2() {
            return super::v2::ask(self, ask, child).await;
        }
        let closed = acp_sdk::Error::Closed(acp_sdk::CloseReason::Dropped);
        let peer = self.peer().ok_or(closed)?;
        Ok(match ask {
            Ask::Permission(request) => {
                let answer = peer.call::<asked::RequestPermission>(request).await?;
                Reply::Permission(answer.outcome)
            }
            Ask::Elicitation(request) => {
                let answer = peer.call::<asked::CreateElicitation>(request).await?;
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
pub fn elicitation_needs(request: &CreateElicitationRequest) -> Capability {
    match request.mode {
        ElicitationMode::Url(_) => Capability::ElicitUrl,
        _ => Capability::ElicitForm,
    }
}

/// Returns the state of a session, with questions in the form of the client's version.
pub(super) fn state(client: &Client, session: &Session) -> CurrentSessionState {
    let (turn, queued, questions) = {
        let state = session.state();
        let turn = state.queue.running().and_then(|running| running.turn);
        let questions: Vec<_> = state.questions.values().cloned().collect();
        (turn, state.queue.waiting(), questions)
    };
    // In this order: the events of an idle session are all there.
    let phase = session.phase();
    let last_event_id = session.last_event();
    let questions = questions.iter().map(|question| {
        let kind = match &question.ask {
            Ask::Permission(_) => OpenQuestionKind::Permission,
            Ask::Elicitation(_) => OpenQuestionKind::Elicitation,
        };
        OpenQuestion::new(question.id.0, kind).with_request(body(client, question))
    });
    CurrentSessionState::new(
        session.id(),
        phase.name(),
        turn.map(|turn| turn.0),
        queued as u64,
        last_event_id,
        questions.collect(),
    )
}

/// Returns a question as this client is asked it; `None` if its version cannot express it.
fn body(client: &Client, question: &Question) -> Option<Json> {
    if client.is_v2() {
        return super::v2::question(&question.ask, question.child.as_ref());
    }
    match &question.ask {
        Ask::Permission(request) => Json::new(request),
        Ask::Elicitation(request) => Json::new(request),
    }
    .ok()
}

/// Notifies a client of a session's state when a commit has failed: no event follows that would do so.
pub(crate) fn send_state_of(attached: &Attached) {
    let client = &attached.client;
    if let Some(peer) = client.peer().filter(|_| client.wants_state()) {
        // A client that has gone needs no state.
        let _ = send_state(client, peer, attached.subscription.session(), u64::MAX);
    }
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
pub(super) fn send_state(
    client: &Client,
    peer: &Peer,
    session: &Session,
    number: u64,
) -> acp_sdk::Result<()> {
    let now = state(client, session);
    let last_end = session.state().queue.last_end();
    let follows = match now.state {
        // An end that could not be committed is beyond the last event.
        SessionActivity::Idle => number < last_end && last_end <= now.last_event_id,
        // The commit of the end is on its way, or the start of a turn is.
        SessionActivity::Running => now.turn.is_none() && now.queued == 0,
        _ => false,
    };
    // An event follows after which this is called again.
    if follows {
        return Ok(());
    }
    let subscription = client.subscription(session.id());
    if subscription.is_some_and(|subscription| !subscription.notifies(&now)) {
        return Ok(());
    }
    let params = SessionStateChangedNotification(now);
    let write = |bytes: &mut Vec<u8>| {
        // Types of the protocol always have a JSON form.
        let _ = serde_json::to_writer(bytes, &params);
    };
    peer.notify_written(methods::SessionStateChanged::NAME, &write)
}
