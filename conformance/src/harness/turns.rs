//! The steps that checks consist of: prompts, turns, and their end.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{Conn, Outcome, Reply, Stop, inconclusive, skip};
use crate::wire::{Party, is_output};

/// A prompt turn that has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The place of the prompt.
    pub request: usize,
    /// The place of its answer.
    pub end: usize,
    /// The stop reason.
    pub stop: String,
}

impl Conn {
    /// The first of these words that the profile has.
    ///
    /// # Errors
    /// A skip when it has none of them.
    pub fn word<'a>(&self, words: &[&'a str]) -> Outcome<&'a str> {
        let known = |word: &&&str| self.env.profile.prompts.contains_key(**word);
        match words.iter().find(known) {
            Some(word) => Ok(word),
            None => skip(format!(
                "the profile has no prompt `{}`",
                words.join("` or `")
            )),
        }
    }

    /// Sends a prompt by its word. Yields the place of the request.
    ///
    /// # Errors
    /// A skip when the profile does not have the word.
    pub fn begin(&mut self, session: &str, word: &str) -> Outcome<usize> {
        let Some(text) = self.env.profile.prompt(word, &self.env.folder) else {
            return skip(format!("the profile has no prompt `{word}`"));
        };
        self.begin_text(session, &text)
    }

    /// Sends a prompt of this text. Yields the place of the request.
    ///
    /// # Errors
    /// Blocked when no turn is possible.
    pub fn begin_text(&mut self, session: &str, text: &str) -> Outcome<usize> {
        self.begin_with(session, json!([{"type": "text", "text": text}]))
    }

    /// Sends a prompt of these blocks. Yields the place of the request.
    ///
    /// # Errors
    /// As [`Conn::begin_text`].
    pub fn begin_with(&mut self, session: &str, blocks: Value) -> Outcome<usize> {
        self.needs_turn()?;
        let params = json!({"sessionId": session, "prompt": blocks});
        Ok(self.request("session/prompt", params))
    }

    /// The check needs a turn.
    ///
    /// # Errors
    /// Blocked when none is possible.
    pub fn needs_turn(&self) -> Outcome {
        match &self.env.conditions.no_turn {
            Some(reason) => Err(Stop::Blocked(reason.clone())),
            None => Ok(()),
        }
    }

    /// Waits until a prompt is accepted, in the versions that say so before the turn ends. What comes before
    /// the insertion, such as a hook, may take as long as a turn.
    ///
    /// # Errors
    /// When it is refused, not answered, or answered after the end of its turn.
    pub fn accepted(&mut self, request: usize) -> Outcome {
        if !self.adapter().answers_early {
            return Ok(());
        }
        let reply = self.reply_within(request, self.env.turn_timeout)?;
        let reason = "expected the prompt to be accepted, got an error";
        reply.answer.map_err(|_| self.at(reply.index, reason))?;
        match self.turn_end(request) {
            Some(end) if end < reply.index => Err(self.at(
                end,
                "expected an answer to session/prompt before the end of the work, got the end",
            )),
            _ => Ok(()),
        }
    }

    /// Returns the place where the turn of the prompt at `request` has ended, if it has.
    #[must_use]
    pub fn turn_end(&self, request: usize) -> Option<usize> {
        let adapter = self.adapter();
        let ends = |index: &usize| (adapter.turn_end)(self.recording(), request, *index).is_some();
        (request..self.mark()).find(ends)
    }

    /// Waits for the end of a turn, whatever it is. The answer is an object with the stop reason,
    /// or an error.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn turn_reply(&mut self, request: usize) -> Outcome<Reply> {
        self.turn_reply_within(request, self.env.turn_timeout)
    }

    /// Waits for the end of a turn as long as is said.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn turn_reply_within(&mut self, request: usize, limit: Duration) -> Outcome<Reply> {
        let adapter = self.adapter();
        let started = Instant::now();
        let reply = self.reply_within(request, limit)?;
        if !adapter.answers_early || reply.answer.is_err() {
            return Ok(reply);
        }
        let rest = limit.saturating_sub(started.elapsed());
        self.wait(request, "the end of the turn", rest, |recording, index| {
            let answer = (adapter.turn_end)(recording, request, index)?;
            Some(Reply { index, answer })
        })
    }

    /// Waits for the end of a turn, which must not be an error.
    ///
    /// # Errors
    /// When it does not end in time, or in an error (in v2 the stop reason `error`) or, in v1, without a
    /// stop reason.
    pub fn finish(&mut self, request: usize) -> Outcome<Turn> {
        let reply = self.turn_reply(request)?;
        let reason = "expected a turn without an error, got one";
        let result = reply.answer.map_err(|_| self.at(reply.index, reason))?;
        let stop = result.get("stopReason").and_then(Value::as_str);
        match stop {
            None if !self.adapter().answers_early => Err(self.at(
                reply.index,
                "expected a stop reason at the end of the turn, got none",
            )),
            // Version 2 reports a failure by the reason.
            Some("error") if self.adapter().answers_early => Err(self.at(
                reply.index,
                "expected a turn without an error, got the stop reason error",
            )),
            stop => Ok(Turn {
                request,
                end: reply.index,
                stop: stop.unwrap_or_default().to_owned(),
            }),
        }
    }

    /// Waits for the end of a turn in which the agent may wait for what nobody does here, such as following a
    /// link. Cancels the turn if it has not ended in time.
    ///
    /// # Errors
    /// Inconclusive when it does not end then either; otherwise when the agent ends.
    pub fn end_turn(&mut self, session: &str, request: usize) -> Outcome {
        let mut reply = self.turn_reply(request);
        if matches!(reply, Err(Stop::Fail(_))) && !self.has_ended() {
            self.cancel(session);
            reply = self.turn_reply(request);
        }
        match reply {
            Err(Stop::Fail(_)) if !self.has_ended() => {
                inconclusive("the turn did not end, even when it was cancelled")
            }
            reply => reply.map(drop),
        }
    }

    /// A whole turn by the word of its prompt.
    ///
    /// # Errors
    /// As [`Conn::begin`] and [`Conn::finish`].
    pub fn prompt(&mut self, session: &str, word: &str) -> Outcome<Turn> {
        let request = self.begin(session, word)?;
        self.finish(request)
    }

    /// Starts the prompt `slow` and waits for its first output, if that comes in the time of a turn. No
    /// page demands any: a turn that has not ended then runs as well.
    ///
    /// # Errors
    /// When the prompt is refused or the agent ends. Inconclusive when the turn ends before anything of it
    /// was seen.
    pub fn begin_slow(&mut self, session: &str) -> Outcome<usize> {
        let request = self.begin(session, "slow")?;
        self.accepted(request)?;
        let (adapter, limit) = (self.adapter(), self.env.turn_timeout);
        let what = "an update of the turn";
        let seen = self.wait_on(Some(request), request, what, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            let kind = entry.params().pointer("/update/sessionUpdate");
            let output = kind.and_then(Value::as_str).is_some_and(is_output);
            let ended = (adapter.turn_end)(recording, request, index).is_some();
            let ours = output && entry.session() == Some(session);
            (ended || ours).then_some(ours)
        });
        let seen = match seen {
            Err(Stop::Fail(_)) if !self.has_ended() && !self.is_unanswered(request) => true,
            seen => seen?,
        };
        // A short turn may be over although its end is still on its way: what is done
        // to it then would prove nothing.
        self.listen(self.env.quiet);
        if seen && self.turn_end(request).is_none() {
            Ok(request)
        } else {
            inconclusive("the turn of the prompt `slow` ended at once")
        }
    }

    /// Cancels the session's turn, as a client must: what it was asked and has not
    /// answered is answered.
    pub fn cancel(&mut self, session: &str) -> usize {
        let index = self.notify("session/cancel", json!({"sessionId": session}));
        self.answer_held();
        index
    }

    /// Waits for the next request of the agent with this method.
    ///
    /// # Errors
    /// When none comes in time. When the turn ends without: a skip for a permission and for the client's
    /// files and terminals, which an agent may never use; otherwise inconclusive, because the prompt is there to cause the
    /// request.
    pub fn asked(&mut self, request: usize, method: &str) -> Outcome<usize> {
        let (adapter, limit) = (self.adapter(), self.env.turn_timeout);
        let found = self.wait_on(Some(request), request, method, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            if (adapter.turn_end)(recording, request, index).is_some() {
                return Some(None);
            }
            entry.calls(Party::Agent, method).then_some(Some(index))
        })?;
        match found {
            Some(index) => Ok(index),
            None => {
                let reason = format!("the agent did not call {method} in this turn");
                let optional = ["session/request_permission", "fs/", "terminal/"];
                let is_optional = optional.iter().any(|start| method.starts_with(start));
                match is_optional {
                    true => skip(reason),
                    false => inconclusive(reason),
                }
            }
        }
    }
}
