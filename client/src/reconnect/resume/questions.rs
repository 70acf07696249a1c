//! Requests of the agent, which it sends again on another connection.

use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};

use acp_sdk::runtime::Method as _;
use acp_sdk::v1::methods::RequestPermission;
use bytes::Bytes;
use serde_json::value::RawValue;

use super::MAX_TRACKED;
use super::messages::with_id;
use crate::reconnect::envelope::Envelope;
use crate::reconnect::message::{answer, cancel_request};

/// The agent's requests that the client has not answered, and answers that may be lost.
#[derive(Debug, Default)]
pub(super) struct AgentRequests {
    /// Requests in flight, by the id under which the client has them, as JSON.
    open: HashMap<String, Request>,
    /// Cancelled requests of earlier connections that the client has yet to answer, by their id.
    /// Another request with this id gets another one.
    withdrawn: HashMap<String, Request>,
    /// The user's answers of the running turns. The user is not asked the same again.
    answers: HashMap<Question, Answer>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Request {
    /// The agent's id, as JSON.
    id: String,
    question: Option<Question>,
}

/// A permission request: what is asked, including the id of the tool call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Question {
    session: String,
    /// A hash of the params.
    params: u64,
}

#[derive(Debug)]
struct Answer {
    /// The result, as JSON.
    result: String,
    /// Whether its connection was lost, so that the agent may not have received it.
    may_be_lost: bool,
}

impl AgentRequests {
    /// Returns whether a request is in flight.
    pub(super) fn is_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the response to a question that the user has answered on an earlier connection.
    pub(super) fn repeated_answer(&mut self, id: &str, envelope: &Envelope<'_>) -> Option<Bytes> {
        let answered = self.answers.get_mut(&question(&self.hasher, envelope)?)?;
        // The agent may ask twice on purpose, but not by accident on one connection.
        let was_lost = std::mem::take(&mut answered.may_be_lost);
        was_lost.then(|| answer(id, "result", &answered.result))
    }

    /// Records a request, and returns the message for the client. `unused` returns an unused id, as
    /// JSON.
    pub(super) fn record(
        &mut self,
        id: &str,
        envelope: &Envelope<'_>,
        message: &Bytes,
        unused: impl FnOnce() -> String,
    ) -> Bytes {
        let request = Request {
            id: id.to_owned(),
            question: question(&self.hasher, envelope),
        };
        let renamed = self.withdrawn.contains_key(id).then(unused);
        let renamed = renamed.and_then(|other| Some((with_id(message, &other)?, other)));
        let (message, id) = renamed.unwrap_or_else(|| (message.clone(), id.to_owned()));
        if self.open.len() < MAX_TRACKED {
            self.open.insert(id, request);
        }
        message
    }

    /// Returns the agent's cancellation of a request, if the client has it under another id.
    pub(super) fn renamed_cancellation(&self, envelope: &Envelope<'_>) -> Option<Bytes> {
        let cancelled = envelope.cancelled_request()?;
        let mut open = self.open.iter();
        let (id, _) = open.find(|(id, request)| request.id == cancelled && **id != cancelled)?;
        Some(cancel_request(id))
    }

    /// Records a response of the client, and returns the message for the agent; `None` if the request
    /// is one of an earlier connection.
    pub(super) fn answered(
        &mut self,
        id: &str,
        envelope: &Envelope<'_>,
        message: Bytes,
    ) -> Option<Bytes> {
        let open = self.open.remove(id);
        let may_be_lost = open.is_none();
        let request = open.or_else(|| self.withdrawn.remove(id))?;
        if let Some(question) = request.question
            && let Some(result) = envelope.result.filter(|result| is_selected(result))
            && self.answers.len() < MAX_TRACKED
        {
            let result = result.get().to_owned();
            let answer = Answer {
                result,
                may_be_lost,
            };
            self.answers.insert(question, answer);
        }
        match may_be_lost {
            true => None,
            false if request.id == id => Some(message),
            false => with_id(&message, &request.id),
        }
    }

    /// Withdraws all requests in flight. Returns the notifications that cancel them.
    pub(super) fn lost(&mut self) -> Vec<Bytes> {
        for answer in self.answers.values_mut() {
            answer.may_be_lost = true;
        }
        let cancelled = self.open.keys().map(|id| cancel_request(id)).collect();
        self.withdrawn.extend(self.open.drain());
        cancelled
    }

    /// Removes the answers of a session, because its turn has ended or another one begins.
    pub(super) fn forget(&mut self, session: &str) {
        self.answers
            .retain(|question, _| question.session != session);
    }
}

fn question(hasher: &RandomState, envelope: &Envelope<'_>) -> Option<Question> {
    if envelope.method.as_deref() != Some(RequestPermission::NAME) {
        return None;
    }
    Some(Question {
        session: envelope.session()?.into_owned(),
        params: hasher.hash_one(envelope.params?.get()),
    })
}

/// Returns whether the user has selected an option.
fn is_selected(result: &RawValue) -> bool {
    let result: serde_json::Value = serde_json::from_str(result.get()).unwrap_or_default();
    result["outcome"]["outcome"] == "selected"
}
