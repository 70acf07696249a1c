//! The steps that checks consist of: calls, answers, and what must not come.

use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::{Conn, Entry, Outcome, Stop, fail};
use crate::wire::{Kind, Party, error_code, sets_up};

/// A request that no agent knows. Its answer says that everything sent before it
/// was read.
pub(super) const BARRIER: &str = "_acp-conformance/barrier";

/// How much later than the answer to a later request an answer may come.
const LATER: Duration = Duration::from_secs(5);

/// An answer, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its place in the recording.
    pub index: usize,
    /// The result, or the error object.
    pub answer: Result<Value, Value>,
}

impl Reply {
    /// The error's code, if it is an error.
    #[must_use]
    pub fn code(&self) -> Option<ErrorCode> {
        error_code(self.answer.as_ref().err()?)
    }
}

impl Conn {
    /// Waits for the answer to the request at this place.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn reply(&mut self, request: usize) -> Outcome<Reply> {
        self.reply_within(request, self.env.timeout)
    }

    /// Waits for an answer as long as is said.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn reply_within(&mut self, request: usize, limit: Duration) -> Outcome<Reply> {
        let entry = self.recording().entries.get(request);
        let method = entry.and_then(|entry| entry.method.clone());
        let sent = entry.map(Entry::excerpt);
        let method = method.as_deref().unwrap_or("the message");
        let what = format!("an answer to {method}");
        let env = self.env.clone();
        if env.unresponsive.is_hopeless(method) {
            return fail(format!(
                "expected {what}, got none; the agent has never answered it, so this is not waited for"
            ));
        }
        let answers = |entry: &Entry| entry.request == Some(request);
        let found = self.wait_on(Some(request), request, &what, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            answers(entry).then(|| (index, entry.answer()))
        });
        let (index, answer) = found.map_err(|stop| match stop {
            Stop::Fail(mut failure) => {
                // Shorter waits say little.
                let in_vain = !self.has_ended() && !self.is_unanswered(request);
                if limit >= env.timeout && in_vain {
                    env.unresponsive.waited(method);
                }
                failure.sent.clone_from(&sent);
                Stop::Fail(failure)
            }
            other => other,
        })?;
        env.unresponsive.answered(method);
        Ok(Reply { index, answer })
    }

    /// Waits for the message since `mark` that `answers` recognizes, where an agent may ignore what was
    /// sent. Yields its place.
    ///
    /// An ordinary request follows. The message may come after the answer to it: it has as long again,
    /// and at least [`LATER`].
    ///
    /// # Errors
    /// A failure that names `what` when it does not come in time.
    pub(crate) fn answered(
        &mut self,
        mark: usize,
        what: &str,
        answers: impl Fn(&Entry) -> bool,
    ) -> Outcome<usize> {
        let (started, limit) = (Instant::now(), self.env.start_timeout());
        let params = self.setup(None);
        let probe = self.request("session/new", params);
        let (index, first) = self.wait_on(Some(mark), mark, what, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            let due = answers(entry);
            (due || entry.request == Some(probe)).then_some((index, due))
        })?;
        if first {
            self.reply_within(probe, limit)?;
            return Ok(index);
        }
        let least = LATER.min(self.env.timeout);
        let patience = started.elapsed().max(least).min(limit);
        let found = self.wait_on(Some(mark), mark, what, patience, |recording, index| {
            answers(recording.entries.get(index)?).then_some(index)
        });
        match found {
            Err(Stop::Fail(mut failure)) if self.recording().answer(probe).is_some() => {
                let wrong = self
                    .since(mark)
                    .find(|(_, entry)| entry.from == Party::Agent && entry.kind == Kind::Error);
                let wrong = wrong.map(|(_, entry)| entry.excerpt());
                let nothing = || "nothing, though a request after it was answered".to_owned();
                failure.came = Some(wrong.unwrap_or_else(nothing));
                failure.sent = self.since(mark).next().map(|(_, entry)| entry.excerpt());
                Err(Stop::Fail(failure))
            }
            other => other,
        }
    }

    /// Sends a request and waits for its answer; as long as for a start where the agent may
    /// still be starting.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn call(&mut self, method: &str, params: Value) -> Outcome<Reply> {
        let request = self.request(method, params);
        // Itself, or what the session needs.
        let logs_in = method == self.login_methods().0;
        match method == "initialize" || logs_in || sets_up(method) {
            true => self.reply_within(request, self.env.start_timeout()),
            false => self.reply(request),
        }
    }

    /// Sends a request that must succeed.
    ///
    /// # Errors
    /// When it is refused or not answered.
    pub fn result(&mut self, method: &str, params: Value) -> Outcome<Value> {
        let reply = self.call(method, params)?;
        self.success(method, reply)
    }

    /// Returns the result of a reply, which must not be an error.
    pub(super) fn success(&self, method: &str, reply: Reply) -> Outcome<Value> {
        let reason = || format!("expected a result of {method}, got an error");
        reply.answer.map_err(|_| self.at(reply.index, reason()))
    }

    /// Fails unless the result at this place of the recording has no members but `_meta`.
    pub(crate) fn is_empty_object(&self, index: usize, result: &Value) -> Outcome {
        match result.as_object() {
            Some(members) if members.keys().all(|name| name == "_meta") => Ok(()),
            _ => Err(self.at(index, "expected an empty object, got another result")),
        }
    }

    /// Sends a request that must be refused. Yields the error's code.
    ///
    /// # Errors
    /// When it succeeds or is not answered.
    pub fn refusal(&mut self, method: &str, params: Value) -> Outcome<Reply> {
        let reply = self.call(method, params)?;
        match reply.answer {
            Ok(_) => Err(self.at(
                reply.index,
                format!("expected an error for {method}, got a result"),
            )),
            Err(_) => Ok(reply),
        }
    }

    /// The error of this reply must have this code.
    ///
    /// # Errors
    /// When it has another.
    pub fn has_code(&self, reply: &Reply, code: ErrorCode) -> Outcome {
        match reply.code() {
            Some(found) if found == code => Ok(()),
            Some(found) => Err(self.at(reply.index, format!("expected error {code}, got {found}"))),
            None => Err(self.at(reply.index, format!("expected error {code}, got none"))),
        }
    }

    /// A failure at the message of this place.
    #[must_use]
    pub fn at(&self, index: usize, reason: impl Into<String>) -> Stop {
        Stop::at(self.recording(), index, reason)
    }

    /// Waits until the agent has read all that was sent, as far as that can be observed,
    /// so that what has not come by then does not come.
    ///
    /// # Errors
    /// When the agent ends meanwhile.
    pub fn settle(&mut self) -> Outcome {
        if self.barrier_ignored {
            self.listen(self.env.quiet);
            return Ok(());
        }
        let barrier = self.request(BARRIER, json!({}));
        let limit = self.env.timeout.min(Duration::from_secs(1));
        let deadline = Instant::now() + limit;
        while self.recording().answer(barrier).is_none() {
            match self.pump(deadline) {
                super::Waiting::Entry(_) => {}
                super::Waiting::Unanswered if !self.is_unanswered(barrier) => {}
                super::Waiting::Unanswered | super::Waiting::Timeout => {
                    self.barrier_ignored = true;
                    return Ok(());
                }
                super::Waiting::Ended => {
                    self.reply(barrier)?;
                }
            }
        }
        Ok(())
    }

    /// No answer that belongs to no request must have come since this mark.
    ///
    /// # Errors
    /// When one has.
    pub fn nothing_answered_since(&self, mark: usize) -> Outcome {
        let stray = self.since(mark).find(|(_, entry)| {
            let answer = matches!(entry.kind, Kind::Result | Kind::Error);
            entry.from == Party::Agent && answer && entry.request.is_none()
        });
        match stray {
            Some((index, _)) => {
                Err(self.at(index, "expected no answer to what is no request, got one"))
            }
            None => Ok(()),
        }
    }

    /// The id of the request at this place.
    #[must_use]
    pub fn id_of(&self, request: usize) -> Value {
        let entry = self.recording().entries.get(request);
        let id = entry.and_then(|entry| entry.value.get("id"));
        id.cloned().unwrap_or_default()
    }
}
