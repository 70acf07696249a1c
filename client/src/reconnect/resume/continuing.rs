//! Continues sessions on another connection.

use super::*;
use crate::reconnect::envelope::is_truncated;
use crate::reconnect::message::cancel_request;

impl Resume {
    /// Takes a message of the client: it is sent, or waits until its session is continued.
    pub(in crate::reconnect) fn accept(&mut self, message: Bytes, out: &mut Outgoing) {
        if let Some(message) = self.continuing.hold(message)
            && let Some(message) = self.refuse_late(message, out)
        {
            let sent = self.sent(message);
            out.to_agent.extend(sent);
        }
    }

    /// Returns whether another message of the client can be taken.
    pub(in crate::reconnect) fn has_room(&self) -> bool {
        self.continuing.has_room()
    }

    /// Returns whether messages of the client wait until their sessions are continued.
    pub(in crate::reconnect) fn is_holding(&self) -> bool {
        self.continuing.is_holding()
    }

    /// Returns when [`expire`](Self::expire) is due.
    pub(in crate::reconnect) fn deadline(&self) -> Option<Instant> {
        self.continuing.deadline()
    }

    /// Excludes a time in which nothing was received from the agent.
    pub(in crate::reconnect) fn extend_deadline(&mut self, by: Duration) {
        self.continuing.extend(by);
    }

    /// Queues the requests that continue the sessions on another connection.
    pub(in crate::reconnect) fn continue_sessions(&mut self, is_restart: bool, out: &mut Outgoing) {
        let sessions: Vec<_> = self.sessions.keys().cloned().collect();
        for id in sessions {
            let cursor = self.sessions.get(&id).and_then(Session::cursor);
            let Some(continuation) = self.capabilities.continuation(cursor) else {
                self.lose(&id, "the agent cannot continue sessions", out);
                continue;
            };
            let layer_id = self.layer_id();
            let has_lost_prompt = self.has_lost_prompt(&id);
            let Some(session) = self.sessions.get_mut(&id) else {
                continue;
            };
            if continuation != Continuation::Cursor {
                self.agent_requests.forget(&id);
                if is_restart && !has_lost_prompt {
                    // The turn has ended with the process.
                    self.unconfirmed.forget(&id);
                }
            }
            if let Some(kind) = continuation.gap() {
                out.to_client.push_back(gap(&id, kind));
                session.restart();
            }
            let request = match continuation {
                Continuation::Cursor => {
                    let params = ResumeEventsRequest::new(id.as_str());
                    request::<ResumeEvents>(&params.with_since_event_id(cursor))
                }
                Continuation::Load if self.capabilities.is_v2 => session.replay_request(&id),
                Continuation::Load => session.open_request("session/load", &id),
                Continuation::Reopen => session.open_request("session/resume", &id),
            };
            if let Some(request) = with_id(request.to_string().as_bytes(), &layer_id) {
                out.to_agent.push_back(request);
                self.continuing.begin(&id);
                self.layer_requests
                    .insert(layer_id, LayerRequest::Resume(id, continuation));
            }
        }
        for message in self.continuing.connected() {
            self.accept(message, out);
        }
    }

    /// Handles the response to the request that continues a session.
    pub(super) fn continued(
        &mut self,
        id: &str,
        continuation: Continuation,
        envelope: &Envelope<'_>,
        out: &mut Outgoing,
    ) {
        if let Some(error) = envelope.error {
            let reason = format!("the agent failed to continue the session: {}", error.get());
            return self.lose(id, &reason, out);
        }
        if continuation == Continuation::Cursor && is_truncated(envelope) {
            out.to_client.push_back(gap(id, "truncated"));
        }
        let session = self.sessions.get_mut(id);
        let replayed = session.is_some_and(|session| std::mem::take(&mut session.replays));
        // A replay that an earlier connection did not finish is finished by the events after it.
        if replayed && continuation != Continuation::Reopen {
            out.to_client.push_back(gap(id, "complete"));
        }
        let settings = messages::settings(id, &envelope.value());
        out.to_client.extend(settings);
        self.request_results(id, out);
        self.restore(id, envelope, out);
    }

    /// Sends the prompts of a session again that have a key, in order, then the notifications about them.
    pub(super) fn repeat(&mut self, session: &str, out: &mut Outgoing) {
        let mut lost: Vec<_> = self
            .pending
            .values_mut()
            .filter(|pending| pending.session.as_deref() == Some(session))
            .filter(|pending| pending.keyed.is_some_and(|keyed| keyed.is_lost))
            .collect();
        lost.sort_by_key(|pending| pending.number);
        for pending in lost {
            pending.keyed = Some(Keyed::default());
            out.to_agent.extend(pending.message.clone());
        }
        out.to_agent.extend(self.unconfirmed.repeat(session));
    }

    /// Sends a prompt with a key again that the agent does not know; returns `false` if it has none.
    pub(super) fn repeat_prompt(&mut self, id: &str, out: &mut Outgoing) -> bool {
        let pending = self.pending.get_mut(id);
        let Some((keyed, message)) = pending.and_then(|pending| {
            let PendingRequest { keyed, message, .. } = pending;
            keyed.as_mut().zip(message.clone())
        }) else {
            return false;
        };
        keyed.is_repeated = true;
        out.to_agent.push_back(message);
        true
    }

    fn has_lost_prompt(&self, session: &str) -> bool {
        self.pending.values().any(|pending| {
            let is_lost = pending.keyed.is_some_and(|keyed| keyed.is_lost);
            is_lost && pending.session.as_deref() == Some(session)
        })
    }

    /// Ends a session that is not continued: notifies the client, and fails what depends on it.
    pub(super) fn lose(&mut self, id: &str, reason: &str, out: &mut Outgoing) {
        out.to_client.push_back(gap(id, "lost"));
        self.fail_prompts(id, reason, |_| true, out);
        self.sessions.remove(id);
        self.unconfirmed.forget(id);
        self.agent_requests.forget(id);
        let mut messages = self.continuing.end(id).into_iter();
        for message in messages.by_ref() {
            let envelope = Envelope::read(&message);
            if opens(&envelope) {
                // The client opens it again by itself.
                self.abandoned.remove(id);
                let sent = self.sent(message);
                out.to_agent.extend(sent);
                break;
            }
            fail_unsent(&envelope, reason, out);
        }
        for message in messages {
            let sent = self.sent(message);
            out.to_agent.extend(sent);
        }
    }

    /// Loses the sessions that the agent has not continued in time. What it sends of them later is
    /// dropped.
    pub(in crate::reconnect) fn expire(&mut self, out: &mut Outgoing) {
        let limit = self.continuing.timeout().as_secs_f32();
        let reason = format!("the agent did not continue the session within {limit} s");
        for (request, session) in self.unanswered() {
            self.layer_requests.remove(&request);
            out.to_agent.push_back(cancel_request(&request));
            // It may wait for several values.
            if self.sessions.contains_key(&session) {
                self.abandoned.insert(session.clone(), request);
                self.lose(&session, &reason, out);
            }
        }
    }

    /// Returns the requests that continue sessions and are not answered, with these sessions.
    fn unanswered(&self) -> Vec<(String, String)> {
        let of = |(id, request): (&String, &LayerRequest)| match request {
            LayerRequest::Resume(session, _) | LayerRequest::Restore(session, ..) => {
                Some((id.clone(), session.clone()))
            }
            LayerRequest::Result(_) => None,
        };
        self.layer_requests.iter().filter_map(of).collect()
    }

    /// Fails messages of a session that the agent has not continued in time, and may still be
    /// opening. Returns any other message.
    fn refuse_late(&mut self, message: Bytes, out: &mut Outgoing) -> Option<Bytes> {
        if self.abandoned.is_empty() {
            return Some(message);
        }
        let envelope = Envelope::read(&message);
        let is_late = |session: &str| self.abandoned.contains_key(session);
        let Some(session) = envelope.session().filter(|session| is_late(session)) else {
            return Some(message);
        };
        if opens(&envelope) {
            self.abandoned.remove(session.as_ref());
            return Some(message);
        }
        fail_unsent(&envelope, "the agent did not continue the session", out);
        None
    }

    /// Requests the responses to a continued session's prompts. Those with a key are sent again once the
    /// settings are restored.
    fn request_results(&mut self, session: &str, out: &mut Outgoing) {
        let of = |pending: &PendingRequest| {
            pending.session.as_deref() == Some(session) && pending.keyed.is_none()
        };
        let prompts = self.pending.iter().filter(|(_, pending)| of(pending));
        let prompts: Vec<_> = prompts
            .filter_map(|(id, pending)| Some((id.clone(), pending.prompt.clone()?)))
            .collect();
        if !self.capabilities.prompt_result {
            let reason = "the agent cannot report whether the turn continues";
            return self.fail_prompts(session, reason, |pending| pending.keyed.is_none(), out);
        }
        for (id, name) in prompts {
            self.request_result(id, session, &name, out);
        }
    }

    pub(super) fn request_result(
        &mut self,
        id: String,
        session: &str,
        name: &str,
        out: &mut Outgoing,
    ) {
        let layer_id = self.layer_id();
        let request = request::<PromptResult>(&PromptResultRequest::new(session, name));
        if let Some(request) = with_id(request.to_string().as_bytes(), &layer_id) {
            out.to_agent.push_back(request);
            self.layer_requests
                .insert(layer_id, LayerRequest::Result(id));
        }
    }

    fn fail_prompts(
        &mut self,
        session: &str,
        reason: &str,
        is_meant: impl Fn(&PendingRequest) -> bool,
        out: &mut Outgoing,
    ) {
        let of = |pending: &PendingRequest| pending.session.as_deref() == Some(session);
        let failed = self
            .pending
            .extract_if(|_, pending| of(pending) && pending.is_prompt() && is_meant(pending));
        for (id, pending) in failed {
            let mut message = format!("the connection was lost, and {reason}");
            if has_begun(&self.sessions, &pending) {
                message = format!("{message}; {BEGUN}");
            }
            out.to_client.push_back(failure(&id, &message));
        }
    }
}

/// Returns whether a message opens the session that it names.
fn opens(envelope: &Envelope<'_>) -> bool {
    let method = envelope.method.as_deref().unwrap_or_default();
    envelope::attachment(method) == Attachment::Joins
}

/// Fails a request that was not sent; a notification is dropped.
fn fail_unsent(envelope: &Envelope<'_>, reason: &str, out: &mut Outgoing) {
    if let (Some(id), Some(method)) = (envelope.id(), &envelope.method) {
        let message = format!("the connection was lost, and {reason}; {method} was not sent");
        out.to_client.push_back(failure(id, &message));
    }
}
