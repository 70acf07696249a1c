//! The state that is kept of a connection, so that another one can replace it transparently.
//!
//! Without I/O: takes messages, returns messages for either side. A client of `acp-sdk` keeps its
//! one connection, while the connections to the server are replaced:
//!
//! - Each session has a cursor, the number of its last event (`eventId`). A new connection resumes
//!   the sessions after their cursors; an event that comes again is dropped. Where the agent has no
//!   numbers, the session is loaded or resumed, and the client is notified of the gap. Requests and
//!   notifications of the session wait for it, and it is lost unless the agent answers in time.
//! - A prompt with an idempotency key is sent again, and the agent runs it once. Another one has a name
//!   (`promptId`): its response is requested by that name, and it is never sent again.
//! - Where the agent comes back with another mode, model or option than the client has set, or in a mode
//!   in which it does not ask, the former value is set before anything else is sent.
//! - A notification that may be sent again is, once its session is continued, unless the agent is
//!   known to have received it.
//! - Other requests in flight fail. Requests of the agent are cancelled; it sends them again. A permission
//!   request that the user has answered in the same turn is answered in the same way, because the answer may
//!   be lost.

mod capabilities;
mod continuing;
mod hold;
mod messages;
mod questions;
mod repeat;
mod restore;
mod sessions;
mod settings;

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use acp_sdk::extensions::methods::{PromptResult, ResumeEvents};
use acp_sdk::extensions::{PromptResultRequest, ResumeEventsRequest};
use acp_sdk::facts::{Attachment, Login};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::time::Instant;

use self::capabilities::{Continuation, ResumeCapabilities};
use self::hold::Continuing;
use self::messages::{error, request, with_id, with_prompt_id};
use self::questions::AgentRequests;
use self::repeat::Unconfirmed;
use self::sessions::{EventStatus, Session};
use self::settings::Reported;
use super::Refused;
use super::envelope::{self, Envelope, Kind};
use super::message::answer;
use super::own::{GAP, OWN, RESTARTED, mark};
use crate::error::Result;

/// Maximum number of tracked sessions, and of requests in each direction.
const MAX_TRACKED: usize = 10_000;

/// Messages for both sides, in order.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    pub(super) to_client: VecDeque<Bytes>,
    pub(super) to_agent: VecDeque<Bytes>,
}

/// A request of the client in flight.
#[derive(Debug)]
struct PendingRequest {
    method: String,
    session: Option<String>,
    /// The `promptId` of a prompt, which is its key if it has one.
    prompt: Option<String>,
    /// The state of a prompt with an idempotency key.
    keyed: Option<Keyed>,
    /// Its place among the messages that were sent.
    number: u64,
    /// The message, for requests that are sent again on another connection.
    message: Option<Bytes>,
}

/// A prompt with an idempotency key, which may be sent again.
#[derive(Clone, Copy, Debug, Default)]
struct Keyed {
    /// The connection was lost that it was sent on last.
    is_lost: bool,
    /// It was sent again on this connection, because the agent did not know it.
    is_repeated: bool,
}

/// A request of this layer in flight.
#[derive(Debug)]
enum LayerRequest {
    /// Continues a session.
    Resume(String, Continuation),
    /// Sets the former value of a session's setting, for which the agent reports another one.
    Restore(String, Reported, Value),
    /// Requests the response to the client's request with this id, as JSON.
    Result(String),
}

/// A request that opens another connection.
#[derive(Debug)]
enum Opening {
    /// It has this id, as JSON.
    Sent(String),
    /// The response.
    Answered(Bytes),
}

#[derive(Debug, Default)]
pub(super) struct Resume {
    /// The request that opened the first connection.
    initialize: Option<Bytes>,
    authenticate: Option<Bytes>,
    capabilities: ResumeCapabilities,
    sessions: HashMap<String, Session>,
    pending: HashMap<String, PendingRequest>,
    agent_requests: AgentRequests,
    layer_requests: HashMap<String, LayerRequest>,
    /// The request that opens another connection.
    opening: Option<Opening>,
    continuing: Continuing,
    unconfirmed: Unconfirmed,
    /// Sessions that were not continued in time, each with the id of the late request, as JSON.
    abandoned: HashMap<String, String>,
    /// The counter for ids of this layer.
    last: u64,
}

impl Resume {
    /// Creates the state with the time limit for continuing sessions.
    pub(super) fn new(continue_timeout: Duration) -> Self {
        Self {
            continuing: Continuing::new(continue_timeout),
            ..Self::default()
        }
    }

    /// Returns whether `initialize` was answered, so that a lost connection can be replaced.
    pub(super) fn is_initialized(&self) -> bool {
        self.initialize.is_some() && !self.pending.values().any(PendingRequest::is_initialize)
    }

    /// Records a message of the client and returns the message to send in its place.
    pub(super) fn sent(&mut self, message: Bytes) -> Option<Bytes> {
        let envelope = Envelope::read(&message);
        match (envelope.kind(), envelope.id()) {
            (Kind::Request, Some(id)) => {
                let (id, method) = (
                    id.to_owned(),
                    envelope.method.as_deref().unwrap_or_default(),
                );
                let (method, session) = (method.to_owned(), envelope.session());
                let session = session.map(std::borrow::Cow::into_owned);
                self.record_request(id, method, session, message.clone())
            }
            (Kind::Answer, Some(id)) => {
                self.agent_requests.answered(id, &envelope, message.clone())
            }
            _ => {
                self.unconfirmed.record(&envelope, &message);
                Some(message)
            }
        }
    }

    fn record_request(
        &mut self,
        id: String,
        method: String,
        session: Option<String>,
        message: Bytes,
    ) -> Option<Bytes> {
        let mut pending = PendingRequest {
            method,
            session,
            prompt: None,
            keyed: None,
            number: self.unconfirmed.number(),
            message: None,
        };
        let mut sent = message.clone();
        match pending.method.as_str() {
            "initialize" => self.initialize = Some(message),
            "session/prompt" => {
                let session = pending.session.as_deref().unwrap_or_default();
                // They are about the turn before.
                self.unconfirmed.forget(session);
                self.agent_requests.forget(session);
                let ResumeCapabilities {
                    idempotency, is_v2, ..
                } = self.capabilities;
                let key = messages::idempotency_key(&message, is_v2).filter(|_| idempotency);
                let is_keyed = key.is_some();
                let name = match key {
                    Some(key) => key,
                    None => crate::prompt_id::new(),
                };
                let named = with_prompt_id(&message, &name);
                let named = named.filter(|_| self.capabilities.prompt_result);
                if let Some(session) = self.sessions.get_mut(session) {
                    session.prompted(named.as_ref().map(|(_, name)| name.as_str()));
                    if named.is_some() {
                        session.record_prompt(&id, &message);
                    }
                }
                if let Some((named, name)) = named {
                    sent = named;
                    pending.prompt = Some(name);
                }
                if is_keyed {
                    pending.keyed = Some(Keyed::default());
                    pending.message = Some(sent.clone());
                }
            }
            method if envelope::login(method) == Some(Login::In) => {
                pending.message = Some(message);
            }
            method if settings::is_set(method) => pending.message = Some(message),
            method => match envelope::attachment(method) {
                // Opened with the id in the response.
                Attachment::Creates => pending.message = Some(self.setup(&pending, message)),
                Attachment::Joins => {
                    let setup = self.setup(&pending, message);
                    let session = pending.session.clone().unwrap_or_default();
                    // The agent may replay its events from the first one.
                    self.open(session, Session::new(setup, None));
                }
                Attachment::Leaves | Attachment::Keeps => {}
            },
        }
        if self.pending.len() < MAX_TRACKED {
            self.pending.insert(id, pending);
        }
        Some(sent)
    }

    /// Returns the request with the settings of the session that it names, where it has none.
    fn setup(&self, request: &PendingRequest, message: Bytes) -> Bytes {
        let session = request.session.as_deref();
        let session = session.and_then(|session| self.sessions.get(session));
        session.map_or(message.clone(), |session| session.setup_for(&message))
    }

    fn open(&mut self, id: String, session: Session) {
        if self.sessions.len() < MAX_TRACKED || self.sessions.contains_key(&id) {
            self.sessions.insert(id, session);
        }
    }

    /// Records a message of the agent and forwards it unless the client already has it.
    pub(super) fn received(&mut self, message: Bytes, out: &mut Outgoing) {
        let envelope = Envelope::read(&message);
        let forwarded = match (envelope.kind(), envelope.id()) {
            (Kind::Answer, Some(id)) if self.is_opened_by(id) => {
                self.opening = Some(Opening::Answered(message));
                return;
            }
            (Kind::Answer, Some(id)) => match self.layer_requests.remove(id) {
                Some(request) => return self.layer_response(request, &envelope, out),
                None => self.answered(id, &envelope).then_some(message),
            },
            (Kind::Request, Some(id)) => {
                let session = envelope.session();
                let session = session.and_then(|session| self.sessions.get_mut(session.as_ref()));
                session.into_iter().for_each(Session::asked);
                if let Some(answer) = self.agent_requests.repeated_answer(id, &envelope) {
                    return out.to_agent.push_back(answer);
                }
                let last = &mut self.last;
                let unused = || next_id(last);
                Some(self.agent_requests.record(id, &envelope, &message, unused))
            }
            (Kind::Notification, _) => {
                let renamed = self.agent_requests.renamed_cancellation(&envelope);
                let is_new = self.notified(&envelope);
                is_new.then(|| renamed.unwrap_or(message))
            }
            _ => Some(message),
        };
        out.to_client.extend(forwarded);
    }

    /// Records a response; returns `false` if the client already has it.
    fn answered(&mut self, id: &str, envelope: &Envelope<'_>) -> bool {
        let Some(pending) = self.pending.remove(id) else {
            self.abandoned.retain(|_, late| late != id);
            return false;
        };
        self.unconfirmed.answered(pending.number);
        let failed = envelope.error.is_some();
        match envelope::login(&pending.method).filter(|_| !failed) {
            Some(Login::In) => self.authenticate = pending.message.clone(),
            Some(Login::Out) => self.authenticate = None,
            None => {}
        }
        match pending.method.as_str() {
            "initialize" => self.capabilities = ResumeCapabilities::read(envelope),
            "session/prompt" => self.prompt_answered(&pending, id),
            method if settings::is_set(method) && !failed => {
                if let (Some(session), Some(request)) = (self.session(&pending), &pending.message) {
                    session.settings.set(method, request, &envelope.value());
                }
            }
            method => match (envelope::attachment(method), failed) {
                (Attachment::Creates, false) => {
                    let created = envelope.new_session().zip(pending.message.clone());
                    if let Some((id, setup)) = created {
                        // A copy has the events of its source, whose numbers are unknown.
                        let cursor = pending.session.is_none().then_some(0);
                        let mut session = Session::new(setup, cursor);
                        session.settings.report(Reported::all(&envelope.value()));
                        self.open(id.into_owned(), session);
                    }
                }
                (Attachment::Joins, false) => {
                    if let Some(session) = self.session(&pending) {
                        session.settings.report(Reported::all(&envelope.value()));
                    }
                }
                (Attachment::Joins, true) | (Attachment::Leaves, false) => self.forget(&pending),
                _ => {}
            },
        }
        true
    }

    /// Returns the session that a request names.
    fn session(&mut self, pending: &PendingRequest) -> Option<&mut Session> {
        self.sessions.get_mut(pending.session.as_deref()?)
    }

    fn prompt_answered(&mut self, pending: &PendingRequest, id: &str) {
        // In version 2 the turn goes on.
        if !self.capabilities.is_v2 {
            let session = pending.session.as_deref().unwrap_or_default();
            self.unconfirmed.forget(session);
            self.agent_requests.forget(session);
        }
        if let Some(session) = self.session(pending) {
            session.prompt_answered(id);
        }
    }

    fn forget(&mut self, pending: &PendingRequest) {
        if let Some(session) = &pending.session {
            self.sessions.remove(session);
            self.unconfirmed.forget(session);
            self.agent_requests.forget(session);
        }
    }

    /// Records a notification; returns `false` if the client already has it.
    fn notified(&mut self, envelope: &Envelope<'_>) -> bool {
        if envelope.method.as_deref() != Some("session/update") {
            return true;
        }
        let Some(id) = envelope.event_session() else {
            return true;
        };
        match self.sessions.get_mut(id.as_ref()) {
            Some(session) => session.event(envelope) == EventStatus::New,
            None => !self.abandoned.contains_key(id.as_ref()),
        }
    }

    /// Handles the loss of the connection: fails all requests that cannot be continued.
    pub(super) fn lost(&mut self, reason: &str, out: &mut Outgoing) {
        self.opening = None;
        self.layer_requests.clear();
        self.abandoned.clear();
        out.to_client.extend(self.agent_requests.lost());
        let capabilities = self.capabilities;
        let continues = |pending: &mut PendingRequest| match &mut pending.keyed {
            Some(keyed) if capabilities.repeats_prompts() => {
                *keyed = Keyed {
                    is_lost: true,
                    is_repeated: false,
                };
                true
            }
            _ => pending.prompt.is_some() && capabilities.resume,
        };
        let failed = self.pending.extract_if(|_, pending| !continues(pending));
        for (id, pending) in failed {
            let message = match has_begun(&self.sessions, &pending) {
                true => format!("{reason}; {BEGUN}"),
                false => format!(
                    "{reason}; whether the agent has executed {} is unknown",
                    pending.method
                ),
            };
            out.to_client.push_back(failure(&id, &message));
        }
    }

    /// Returns the first requests of another connection. Each is answered before the next is sent.
    /// Until the sessions are continued, only answers of the client are sent.
    pub(super) fn opening_requests(&mut self) -> Vec<(String, Bytes)> {
        self.continuing.wait_for_connection();
        let messages = [self.initialize.clone(), self.authenticate.clone()];
        let messages = messages.into_iter().flatten();
        let mut requests = Vec::new();
        for message in messages {
            let id = self.layer_id();
            requests.extend(with_id(&message, &id).map(|message| (id, message)));
        }
        requests
    }

    /// Records that the opening request with this id is sent.
    pub(super) fn expect_opening(&mut self, id: String) {
        self.opening = Some(Opening::Sent(id));
    }

    /// Returns the response to the opening request, once.
    pub(super) fn take_opening_response(&mut self) -> Option<Bytes> {
        match self.opening.take() {
            Some(Opening::Answered(response)) => Some(response),
            other => {
                self.opening = other;
                None
            }
        }
    }

    /// Returns whether an opening request is in flight.
    pub(super) fn is_opening(&self) -> bool {
        self.opening.is_some()
    }

    fn is_opened_by(&self, id: &str) -> bool {
        matches!(&self.opening, Some(Opening::Sent(request)) if request == id)
    }

    /// Returns whether a request of the agent is in flight.
    pub(super) fn is_asked(&self) -> bool {
        self.agent_requests.is_open()
    }

    /// Records the response to `initialize` on another connection.
    pub(super) fn reopened(&mut self, answer: &Envelope<'_>) {
        self.capabilities = ResumeCapabilities::read(answer);
        if !self.capabilities.idempotency {
            for pending in self.pending.values_mut() {
                pending.keyed = None;
            }
        }
    }

    /// Handles the response to a request of this layer.
    fn layer_response(
        &mut self,
        request: LayerRequest,
        envelope: &Envelope<'_>,
        out: &mut Outgoing,
    ) {
        match (request, envelope.error) {
            (LayerRequest::Resume(id, continuation), _) => {
                self.continued(&id, continuation, envelope, out);
            }
            (LayerRequest::Restore(id, reported, former), _) => {
                self.restored(&id, reported, &former, envelope, out);
            }
            (LayerRequest::Result(id), Some(error))
                if messages::is_not_found(error) && self.repeat_prompt(&id, out) => {}
            (LayerRequest::Result(id), _) => {
                let Some(pending) = self.pending.remove(&id) else {
                    return;
                };
                let begun = has_begun(&self.sessions, &pending);
                self.prompt_answered(&pending, &id);
                out.to_client
                    .push_back(match (envelope.result, envelope.error) {
                        (Some(result), _) => answer(&id, "result", result.get()),
                        (_, Some(error)) if messages::is_not_found(error) => {
                            let known = if begun { BEGUN } else { NOT_BEGUN };
                            let reason =
                                format!("the connection was lost, and the agent does not know the prompt; {known}");
                            failure(&id, &reason)
                        }
                        (_, Some(error)) => answer(&id, "error", error.get()),
                        (None, None) => {
                            failure(&id, "the agent's response has neither result nor error")
                        }
                    });
            }
        }
    }

    /// Handles a request that the server rejected.
    ///
    /// # Errors
    ///
    /// Fails if a request of this layer may succeed on another connection. Sessions and prompts
    /// depend on its response, and another connection repeats it after a wait.
    pub(super) fn refused(&mut self, refused: &Refused, out: &mut Outgoing) -> Result<()> {
        let Some(id) = &refused.request else {
            return Ok(());
        };
        if self.is_opened_by(id) {
            return Err(refused.error.clone());
        }
        let body = refused.body.as_deref().map(Envelope::read);
        if let Some(request) = self.layer_requests.remove(id) {
            if refused.is_uncertain || refused.error.is_temporary() {
                return Err(refused.error.clone());
            }
            let failed = failure(id, &refused.error.to_string());
            let response = body.filter(|body| body.error.is_some());
            let response = response.unwrap_or_else(|| Envelope::read(&failed));
            self.layer_response(request, &response, out);
            return Ok(());
        }
        let Some(pending) = self.pending.get(id) else {
            return Ok(());
        };
        if refused.is_uncertain
            && let (Some(session), Some(name)) = (pending.session.clone(), pending.prompt.clone())
        {
            // The server may have received it.
            if pending.keyed.is_some_and(|keyed| keyed.is_repeated) {
                return Err(refused.error.clone());
            }
            self.request_result(id.clone(), &session, &name, out);
            return Ok(());
        }
        if refused.is_uncertain && pending.keyed.is_some() && self.capabilities.repeats_prompts() {
            // It is sent again on another connection, after a wait.
            return Err(refused.error.clone());
        }
        self.pending.remove(id);
        out.to_client
            .push_back(match body.and_then(|body| body.error) {
                Some(error) => answer(id, "error", error.get()),
                None if refused.is_uncertain => {
                    let message = format!("{}; the agent may have executed it", refused.error);
                    failure(id, &message)
                }
                None => failure(id, &refused.error.to_string()),
            });
        Ok(())
    }

    /// Returns an unused request id, as JSON.
    fn layer_id(&mut self) -> String {
        next_id(&mut self.last)
    }
}

impl PendingRequest {
    fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }

    fn is_prompt(&self) -> bool {
        self.method == "session/prompt"
    }
}

fn next_id(last: &mut u64) -> String {
    *last += 1;
    format!("\"acp-client-{last}\"")
}

/// Notifies the client that the connection is to another process. What that asks comes later.
pub(super) fn restarted(out: &mut Outgoing) {
    let note = json!({"jsonrpc": "2.0", "method": RESTARTED, "params": {OWN: mark()}});
    out.to_client.push_back(note.to_string().into());
}

/// What is known of a turn.
const BEGUN: &str = "the agent had begun the turn and may have executed some of it";
const NOT_BEGUN: &str = "it had sent nothing of the turn";

/// Returns whether this is a prompt, and the agent has begun its turn.
fn has_begun(sessions: &HashMap<String, Session>, pending: &PendingRequest) -> bool {
    let session = pending.session.as_deref().and_then(|id| sessions.get(id));
    pending.is_prompt() && session.is_some_and(Session::has_begun)
}

/// Returns an error response of this layer.
fn failure(id: &str, message: &str) -> Bytes {
    answer(id, "error", &error(message).to_string())
}

fn gap(session: &str, kind: &str) -> Bytes {
    let params = json!({"sessionId": session, "kind": kind, OWN: mark()});
    let note = json!({"jsonrpc": "2.0", "method": GAP, "params": params});
    note.to_string().into()
}

#[cfg(test)]
mod tests;
