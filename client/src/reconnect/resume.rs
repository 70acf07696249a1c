//! What is remembered of a connection, so that another one can take its place unnoticed.
//!
//! Pure: messages go in, and messages for either side come out. A client of `acp-sdk` keeps its one
//! connection, while the ones to the server come and go:
//!
//! - Each session has a cursor, the number of its last event (`eventId`). A new connection resumes
//!   the sessions after their cursors; an event that comes again is dropped. Where the agent has no
//!   numbers, the session is loaded or resumed, and the client is notified of the gap.
//! - A prompt has a name (`promptId`). Its answer is asked for by the name; it is never sent again.
//! - Other requests without an answer fail. What the agent had asked is withdrawn; it asks again.

mod abilities;
mod messages;
mod sessions;

use std::collections::{HashMap, HashSet, VecDeque};

use bytes::Bytes;
use serde_json::json;

use self::abilities::{Abilities, Way};
use self::messages::{answer, error, with_id, with_prompt_id};
use self::sessions::{Passage, Session};
use super::Refused;
use super::envelope::{self, Envelope, Kind};

/// The notification by which a client learns of a gap in a session.
pub(crate) const GAP: &str = "_acp-client/session/gap";

/// The notification by which a client learns that the agent is another process than before.
pub(crate) const RESTARTED: &str = "_acp-client/agent/restarted";

/// The member of an error's data that says that the connection is to blame.
pub(crate) const LOST: &str = "acp-client/connection-lost";

const RESUME: &str = "_acp-sdk/session/resume";
const PROMPT_RESULT: &str = "_acp-sdk/session/prompt_result";

/// The most requests, in each direction, and sessions that are remembered.
const MOST: usize = 10_000;

/// Messages for both sides, in order.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) to_client: VecDeque<Bytes>,
    pub(super) to_agent: VecDeque<Bytes>,
}

/// A request of the client without an answer.
#[derive(Debug)]
struct Asked {
    method: String,
    session: Option<String>,
    /// Of a prompt.
    prompt: Option<String>,
    /// The message, if it is said again on a new connection.
    message: Option<Bytes>,
}

/// A request of this layer.
#[derive(Debug)]
enum Own {
    /// A session is continued.
    Resume(String, Way),
    /// The answer to the client's request with this id, as JSON.
    Result(String),
}

#[derive(Debug, Default)]
pub(super) struct Resume {
    /// The request that opened the first connection.
    initialize: Option<Bytes>,
    authenticate: Option<Bytes>,
    abilities: Abilities,
    sessions: HashMap<String, Session>,
    asked: HashMap<String, Asked>,
    /// Ids of requests of the agent, as JSON.
    agent_asked: HashSet<String>,
    own: HashMap<String, Own>,
    /// The latest number of an id of this layer.
    last: u64,
    /// The start of the names of prompts, unique to this client.
    nonce: String,
}

impl Resume {
    pub(super) fn new() -> Self {
        let mut bytes = [0; 16];
        // Without randomness prompts of two processes might share names; the session differs.
        let _ = getrandom::fill(&mut bytes);
        Self {
            nonce: bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
            ..Self::default()
        }
    }

    /// Returns whether a connection can be replaced: the first one was opened.
    pub(super) fn is_initialized(&self) -> bool {
        self.initialize.is_some() && !self.asked.values().any(Asked::is_initialize)
    }

    /// Returns whether sessions are being continued. Nothing of the client is sent meanwhile,
    /// because the agent might not know the session yet.
    pub(super) fn is_resuming(&self) -> bool {
        self.own.values().any(|own| matches!(own, Own::Resume(..)))
    }

    /// Notes a message of the client; returns what is sent in its place.
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
                self.asks(id, method, session, message.clone())
            }
            // The answer to a request of a connection that is no more.
            (Kind::Answer, Some(id)) => self.agent_asked.remove(id).then_some(message),
            _ => Some(message),
        }
    }

    fn asks(
        &mut self,
        id: String,
        method: String,
        session: Option<String>,
        message: Bytes,
    ) -> Option<Bytes> {
        let mut asked = Asked {
            method,
            session,
            prompt: None,
            message: None,
        };
        let mut sent = message.clone();
        match asked.method.as_str() {
            "initialize" => self.initialize = Some(message),
            "authenticate" | "session/new" => asked.message = Some(message),
            "session/load" | "session/resume" => {
                let session = asked.session.clone().unwrap_or_default();
                // Its events may come from the beginning.
                self.open(session, &message);
            }
            "session/prompt" if self.abilities.prompt_result => {
                self.last += 1;
                let name = format!("{}-{}", self.nonce, self.last);
                if let Some(named) = with_prompt_id(&message, &name) {
                    sent = named;
                    let session = asked.session.as_deref().unwrap_or_default();
                    if let Some(session) = self.sessions.get_mut(session) {
                        session.prompted(&id, &message);
                    }
                    asked.prompt = Some(name);
                }
            }
            _ => {}
        }
        if self.asked.len() < MOST {
            self.asked.insert(id, asked);
        }
        Some(sent)
    }

    fn open(&mut self, id: String, setup: &Bytes) {
        if self.sessions.len() < MOST || self.sessions.contains_key(&id) {
            self.sessions.insert(id, Session::new(setup));
        }
    }

    /// Notes a message of the agent, and passes it on if the client does not have it yet.
    pub(super) fn received(&mut self, message: Bytes, out: &mut Out) {
        let envelope = Envelope::read(&message);
        let passed = match (envelope.kind(), envelope.id()) {
            (Kind::Answer, Some(id)) => match self.own.remove(id) {
                Some(own) => return self.own_answered(own, &envelope, out),
                None => self.answered(id, &envelope),
            },
            (Kind::Request, Some(id)) => {
                if self.agent_asked.len() < MOST {
                    self.agent_asked.insert(id.to_owned());
                }
                true
            }
            (Kind::Notification, _) => self.notified(&envelope),
            _ => true,
        };
        if passed {
            out.to_client.push_back(message);
        }
    }

    /// Notes an answer; `false` if the client has it already.
    fn answered(&mut self, id: &str, envelope: &Envelope<'_>) -> bool {
        let Some(asked) = self.asked.remove(id) else {
            return false;
        };
        let failed = envelope.error.is_some();
        match asked.method.as_str() {
            "initialize" => self.abilities = Abilities::read(envelope),
            "authenticate" if !failed => self.authenticate = asked.message,
            "logout" => self.authenticate = None,
            "session/new" | "session/fork" => {
                if let (Some(session), Some(message)) = (envelope.new_session(), &asked.message) {
                    self.open(session.into_owned(), message);
                }
            }
            "session/load" | "session/resume" if failed => self.forget(&asked),
            method if envelope::leaves_session(method) && !failed => self.forget(&asked),
            "session/prompt" => {
                let session = asked.session.as_deref().unwrap_or_default();
                if let Some(session) = self.sessions.get_mut(session) {
                    session.prompt_answered(id);
                }
            }
            _ => {}
        }
        true
    }

    fn forget(&mut self, asked: &Asked) {
        if let Some(session) = &asked.session {
            self.sessions.remove(session);
        }
    }

    /// Notes a notification; `false` if the client has it already.
    fn notified(&mut self, envelope: &Envelope<'_>) -> bool {
        if envelope.method.as_deref() != Some("session/update") {
            return true;
        }
        let session = envelope.session();
        let session = session.and_then(|session| self.sessions.get_mut(session.as_ref()));
        match session {
            Some(session) => session.event(envelope) == Passage::New,
            None => true,
        }
    }

    /// The connection is lost: what cannot be continued fails.
    pub(super) fn lost(&mut self, reason: &str, out: &mut Out) {
        self.own.clear();
        let gone: Vec<_> = self.agent_asked.drain().collect();
        for id in gone {
            let cancel = format!(
                r#"{{"jsonrpc":"2.0","method":"$/cancel_request","params":{{"requestId":{id}}}}}"#
            );
            out.to_client.push_back(cancel.into());
        }
        let abilities = self.abilities;
        let goes_on = |asked: &Asked| asked.prompt.is_some() && abilities.resume;
        let failed = self.asked.extract_if(|_, asked| !goes_on(asked));
        for (id, asked) in failed {
            let message = format!(
                "{reason}; whether the agent has carried out {} is unknown",
                asked.method
            );
            out.to_client.push_back(failure(&id, &message));
        }
    }

    /// Returns the requests that open another connection. Each is answered before the next is sent.
    pub(super) fn hello(&mut self) -> Vec<(String, Bytes)> {
        let messages = [self.initialize.clone(), self.authenticate.clone()];
        let messages = messages.into_iter().flatten();
        let mut hello = Vec::new();
        for message in messages {
            let id = self.own_id();
            hello.extend(with_id(&message, &id).map(|message| (id, message)));
        }
        hello
    }

    /// Notes the answer to the `initialize` of another connection.
    pub(super) fn reopened(&mut self, answer: &Envelope<'_>) {
        self.abilities = Abilities::read(answer);
    }

    /// Continues the sessions on another connection.
    pub(super) fn continue_sessions(&mut self, is_restart: bool, out: &mut Out) {
        if is_restart {
            let note = json!({"jsonrpc": "2.0", "method": RESTARTED});
            out.to_client.push_back(note.to_string().into());
        }
        let sessions: Vec<_> = self.sessions.keys().cloned().collect();
        for id in sessions {
            let cursor = self.sessions.get(&id).and_then(Session::cursor);
            let Some(way) = self.abilities.way(cursor) else {
                out.to_client.push_back(gap(&id, "lost"));
                self.sessions.remove(&id);
                self.fail_prompts(&id, "the agent cannot continue sessions", out);
                continue;
            };
            let own = self.own_id();
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if let Some(kind) = way.gap() {
                out.to_client.push_back(gap(&id, kind));
                session.restart();
            }
            let request = match way {
                Way::Cursor => {
                    let params = json!({"sessionId": id, "sinceEventId": cursor});
                    json!({"jsonrpc": "2.0", "id": null, "method": RESUME, "params": params})
                }
                Way::Load => session.open_request("session/load", &id),
                Way::Reopen => session.open_request("session/resume", &id),
            };
            if let Some(request) = with_id(request.to_string().as_bytes(), &own) {
                out.to_agent.push_back(request);
                self.own.insert(own, Own::Resume(id, way));
            }
        }
    }

    /// Notes the answer to a request of this layer.
    fn own_answered(&mut self, own: Own, envelope: &Envelope<'_>, out: &mut Out) {
        match (own, envelope.error) {
            (Own::Resume(id, way), None) => {
                match way {
                    Way::Cursor if envelope.is_truncated() => {
                        out.to_client.push_back(gap(&id, "truncated"));
                    }
                    Way::Load => out.to_client.push_back(gap(&id, "complete")),
                    _ => {}
                }
                out.to_client
                    .extend(messages::settings(&id, envelope.result));
                self.ask_for_results(&id, out);
            }
            (Own::Resume(id, _), Some(error)) => {
                out.to_client.push_back(gap(&id, "lost"));
                self.sessions.remove(&id);
                let reason = format!("the agent cannot continue the session: {}", error.get());
                self.fail_prompts(&id, &reason, out);
            }
            (Own::Result(id), _) => {
                let Some(asked) = self.asked.remove(&id) else {
                    return;
                };
                let session = asked.session.as_deref().unwrap_or_default();
                if let Some(session) = self.sessions.get_mut(session) {
                    session.prompt_answered(&id);
                }
                out.to_client
                    .push_back(match (envelope.result, envelope.error) {
                        (Some(result), _) => answer(&id, "result", result.get()),
                        (_, Some(error)) if messages::is_not_found(error) => {
                            let reason = "the connection was lost before the agent had the prompt";
                            failure(&id, reason)
                        }
                        (_, Some(error)) => answer(&id, "error", error.get()),
                        (None, None) => {
                            failure(&id, "the agent's answer is neither result nor error")
                        }
                    });
            }
        }
    }

    /// Asks for the answers to a session's prompts, after the session was continued.
    fn ask_for_results(&mut self, session: &str, out: &mut Out) {
        let of = |asked: &Asked| asked.session.as_deref() == Some(session);
        let prompts = self.asked.iter().filter(|(_, asked)| of(asked));
        let prompts: Vec<_> = prompts
            .filter_map(|(id, asked)| Some((id.clone(), asked.prompt.clone()?)))
            .collect();
        if !self.abilities.prompt_result {
            let reason = "whether the turn goes on is unknown, because the agent cannot say it";
            return self.fail_prompts(session, reason, out);
        }
        for (id, name) in prompts {
            self.ask_for_result(id, session, &name, out);
        }
    }

    fn ask_for_result(&mut self, id: String, session: &str, name: &str, out: &mut Out) {
        let own = self.own_id();
        let params = json!({"sessionId": session, "promptId": name});
        let request =
            json!({"jsonrpc": "2.0", "id": null, "method": PROMPT_RESULT, "params": params});
        if let Some(request) = with_id(request.to_string().as_bytes(), &own) {
            out.to_agent.push_back(request);
            self.own.insert(own, Own::Result(id));
        }
    }

    fn fail_prompts(&mut self, session: &str, reason: &str, out: &mut Out) {
        let of = |asked: &Asked| asked.session.as_deref() == Some(session);
        let failed = self
            .asked
            .extract_if(|_, asked| of(asked) && asked.prompt.is_some());
        for (id, _) in failed {
            let message = format!("the connection was lost, and {reason}");
            out.to_client.push_back(failure(&id, &message));
        }
    }

    /// Notes that the server did not accept a request.
    pub(super) fn refused(&mut self, refused: &Refused, out: &mut Out) {
        let Some(id) = &refused.request else { return };
        self.own.remove(id);
        let Some(asked) = self.asked.get(id) else {
            return;
        };
        if refused.is_uncertain
            && let (Some(session), Some(name)) = (asked.session.clone(), asked.prompt.clone())
        {
            // The server may have it all the same.
            return self.ask_for_result(id.clone(), &session, &name, out);
        }
        self.asked.remove(id);
        let body = refused.body.as_deref().map(Envelope::read);
        out.to_client
            .push_back(match body.and_then(|body| body.error) {
                Some(error) => answer(id, "error", error.get()),
                None if refused.is_uncertain => {
                    let message = format!("{}; the agent may have carried it out", refused.error);
                    failure(id, &message)
                }
                None => failure(id, &refused.error.to_string()),
            });
    }

    /// Returns an id that no request of the client has, as JSON.
    fn own_id(&mut self) -> String {
        self.last += 1;
        format!("\"acp-client-{}\"", self.last)
    }
}

impl Asked {
    fn is_initialize(&self) -> bool {
        self.method == "initialize"
    }
}

/// Returns an error of this layer as the answer to a request.
fn failure(id: &str, message: &str) -> Bytes {
    answer(id, "error", &error(message).to_string())
}

fn gap(session: &str, kind: &str) -> Bytes {
    let params = json!({"sessionId": session, "kind": kind});
    let note = json!({"jsonrpc": "2.0", "method": GAP, "params": params});
    note.to_string().into()
}

#[cfg(test)]
mod tests;
