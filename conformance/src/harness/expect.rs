//! The steps that checks are made of: calls, sessions, turns.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Caps, Conn, Entry, Outcome, Stop, fail, inconclusive, skip};
use crate::wire::{Kind, Party};

/// A request that no agent knows. Its answer says that everything sent before it
/// was read.
pub(super) const BARRIER: &str = "_acp-conformance/barrier";

/// An answer, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    /// Its place in the recording.
    pub index: usize,
    /// The result, or the error object.
    pub answer: Result<Value, Value>,
}

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

impl Reply {
    /// The error's code, if it is an error.
    #[must_use]
    pub fn code(&self) -> Option<i64> {
        self.answer.as_ref().err()?.get("code")?.as_i64()
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
        let what = format!("answer to {method}");
        let env = self.env.clone();
        if env.silence.is_hopeless(method) {
            return fail(format!(
                "no {what}; the agent has never answered it, so this is not waited for"
            ));
        }
        let answers = |entry: &Entry| entry.request == Some(request);
        let found = self.wait_on(Some(request), request, &what, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            answers(entry).then(|| (index, entry.value.clone()))
        });
        let (index, value) = found.map_err(|stop| match stop {
            Stop::Fail(mut failure) => {
                // Shorter waits say little.
                let in_vain = !self.has_ended() && !self.is_unanswered(request);
                if limit >= env.timeout && in_vain {
                    env.silence.waited(method);
                }
                failure.sent.clone_from(&sent);
                Stop::Fail(failure)
            }
            other => other,
        })?;
        env.silence.answered(method);
        let answer = match (value.get("error"), value.get("result")) {
            (Some(error), _) => Err(error.clone()),
            (None, result) => Ok(result.cloned().unwrap_or_default()),
        };
        Ok(Reply { index, answer })
    }

    /// Sends a request and waits for its answer; as long as for a turn where the agent may
    /// still be starting.
    ///
    /// # Errors
    /// When none comes in time.
    pub fn call(&mut self, method: &str, params: Value) -> Outcome<Reply> {
        let request = self.request(method, params);
        match method {
            // Itself, or what the session needs.
            "initialize" | "session/new" | "session/load" | "session/resume" => {
                self.reply_within(request, self.env.turn_timeout)
            }
            _ => self.reply(request),
        }
    }

    /// Sends a request that must succeed.
    ///
    /// # Errors
    /// When it is refused or not answered.
    pub fn result(&mut self, method: &str, params: Value) -> Outcome<Value> {
        let reply = self.call(method, params)?;
        match reply.answer {
            Ok(result) => Ok(result),
            Err(_) => Err(self.at(reply.index, format!("{method} was refused"))),
        }
    }

    /// Sends a request that must be refused. Yields the error's code.
    ///
    /// # Errors
    /// When it succeeds or is not answered.
    pub fn refusal(&mut self, method: &str, params: Value) -> Outcome<Reply> {
        let reply = self.call(method, params)?;
        match reply.answer {
            Ok(_) => Err(self.at(reply.index, format!("{method} was not refused"))),
            Err(_) => Ok(reply),
        }
    }

    /// The error of this reply must have this code.
    ///
    /// # Errors
    /// When it has another.
    pub fn has_code(&self, reply: &Reply, code: i64) -> Outcome {
        match reply.code() {
            Some(found) if found == code => Ok(()),
            Some(found) => Err(self.at(
                reply.index,
                format!("the error has the code {found}, not {code}"),
            )),
            None => Err(self.at(reply.index, format!("no error; it should be {code}"))),
        }
    }

    /// A failure at the message of this place.
    #[must_use]
    pub fn at(&self, index: usize, reason: impl Into<String>) -> Stop {
        Stop::at(self.recording(), index, reason)
    }

    /// Waits until the agent has read all that was sent, as far as that can be told,
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
        let deadline = std::time::Instant::now() + limit;
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

    /// Initializes the connection. Yields the agent's answer.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn initialize(&mut self, caps: &Caps) -> Outcome<Value> {
        let result = self.result("initialize", caps.initialize())?;
        self.agent = Some(result.clone());
        Ok(result)
    }

    /// Initializes, and authenticates when the profile says how.
    ///
    /// # Errors
    /// When the agent refuses or does not answer.
    pub fn open(&mut self, caps: &Caps) -> Outcome {
        self.initialize(caps)?;
        if let Some(method) = self.env.profile.auth_method.clone() {
            let request = self.request("authenticate", json!({"methodId": method}));
            let reply = self.reply_within(request, self.env.turn_timeout)?;
            if reply.answer.is_err() {
                return Err(self.at(reply.index, "the agent refuses to authenticate"));
            }
        }
        Ok(())
    }

    /// What the agent declares at this place of its capabilities: neither absent nor
    /// `null` nor `false`.
    #[must_use]
    pub fn capability(&self, pointer: &str) -> Option<&Value> {
        let capabilities = self.agent.as_ref()?.get("agentCapabilities")?;
        let value = capabilities.pointer(pointer)?;
        (!value.is_null() && value != &Value::Bool(false)).then_some(value)
    }

    /// The check is about this capability.
    ///
    /// # Errors
    /// A skip when the agent does not declare it.
    pub fn needs(&self, pointer: &str) -> Outcome {
        if self.capability(pointer).is_some() {
            return Ok(());
        }
        let name = pointer.trim_start_matches('/').replace('/', ".");
        skip(format!("the agent does not declare `{name}`"))
    }

    /// Params of a request that sets a session up.
    #[must_use]
    pub fn setup(&self, session: Option<&str>) -> Value {
        let mut params = json!({"cwd": self.env.folder, "mcpServers": []});
        if let Some(session) = session {
            params["sessionId"] = json!(session);
        }
        params
    }

    /// Opens a session. Yields its id and the whole result.
    ///
    /// # Errors
    /// When the agent refuses, does not answer or names no session.
    pub fn new_session(&mut self) -> Outcome<(String, Value)> {
        let params = self.setup(None);
        self.session_with(params)
    }

    /// Opens a session by these params. Yields its id and the whole result.
    ///
    /// # Errors
    /// As [`Conn::new_session`].
    pub fn session_with(&mut self, params: Value) -> Outcome<(String, Value)> {
        let request = self.request("session/new", params);
        let reply = self.reply_within(request, self.env.turn_timeout)?;
        let result = match reply.answer {
            Ok(result) => result,
            Err(error) if error.get("code") == Some(&json!(-32000)) => {
                let reason = "no session: the agent wants authentication; --auth-method names one";
                return Err(self.at(reply.index, reason));
            }
            Err(_) => return Err(self.at(reply.index, "no session: session/new was refused")),
        };
        match result.get("sessionId").and_then(Value::as_str) {
            Some(id) if !id.is_empty() => Ok((id.to_owned(), result)),
            _ => Err(self.at(reply.index, "session/new names no session")),
        }
    }

    /// Opens a session of which only the id matters.
    ///
    /// # Errors
    /// As [`Conn::new_session`].
    pub fn session(&mut self) -> Outcome<String> {
        Ok(self.new_session()?.0)
    }

    /// Resumes a session in which no turn was. Yields its state.
    ///
    /// # Errors
    /// Inconclusive when the agent refuses, for nothing obliges it to keep such a
    /// session; otherwise when it does not answer.
    pub fn resumed(&mut self, session: &str) -> Outcome<Value> {
        let params = self.setup(Some(session));
        let request = self.request("session/resume", params);
        let reply = self.reply_within(request, self.env.turn_timeout)?;
        match reply.answer {
            Ok(state) => Ok(state),
            Err(_) => inconclusive("the agent does not resume a session that had no turn"),
        }
    }

    /// Sends a prompt by its word. Yields the place of the request.
    ///
    /// # Errors
    /// Inconclusive when the profile does not have the word.
    pub fn begin(&mut self, session: &str, word: &str) -> Outcome<usize> {
        let Some(text) = self.env.profile.prompt(word, &self.env.folder) else {
            return inconclusive(format!("the profile has no prompt `{word}`"));
        };
        Ok(self.begin_with(session, json!([{"type": "text", "text": text}])))
    }

    /// Sends a prompt of these blocks. Yields the place of the request.
    pub fn begin_with(&mut self, session: &str, blocks: Value) -> usize {
        let params = json!({"sessionId": session, "prompt": blocks});
        self.request("session/prompt", params)
    }

    /// Waits for the end of a turn, whatever it is.
    ///
    /// # Errors
    /// When it does not end in time.
    pub fn turn_reply(&mut self, request: usize) -> Outcome<Reply> {
        self.reply_within(request, self.env.turn_timeout)
    }

    /// Waits for the end of a turn, which must not be an error.
    ///
    /// # Errors
    /// When it does not end in time, or in an error or without a stop reason.
    pub fn finish(&mut self, request: usize) -> Outcome<Turn> {
        let reply = self.turn_reply(request)?;
        let result = match reply.answer {
            Ok(result) => result,
            Err(_) => return Err(self.at(reply.index, "the turn ended in an error")),
        };
        match result.get("stopReason").and_then(Value::as_str) {
            Some(stop) => Ok(Turn {
                request,
                end: reply.index,
                stop: stop.to_owned(),
            }),
            None => Err(self.at(reply.index, "the turn ended without a stop reason")),
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

    /// Starts the prompt `slow` and waits until the agent is at it.
    ///
    /// # Errors
    /// Inconclusive when the turn ends before anything of it was seen.
    pub fn begin_slow(&mut self, session: &str) -> Outcome<usize> {
        let request = self.begin(session, "slow")?;
        let limit = self.env.turn_timeout;
        let what = "update of the turn";
        let seen = self.wait_on(Some(request), request, what, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            let kind = entry.params().pointer("/update/sessionUpdate");
            let output = kind.and_then(Value::as_str).is_some_and(|kind| {
                kind.starts_with("agent_") || kind == "plan" || kind.starts_with("tool_call")
            });
            let ended = entry.request == Some(request);
            let ours = output && entry.session() == Some(session);
            (ended || ours).then_some(ours)
        })?;
        // A short turn may be over although its end is still on its way: what is done
        // to it then would prove nothing.
        self.listen(self.env.quiet);
        if seen && self.recording().answer(request).is_none() {
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
    /// When none comes in time; inconclusive when the turn ends without.
    pub fn asked(&mut self, request: usize, method: &str) -> Outcome<usize> {
        let limit = self.env.turn_timeout;
        let found = self.wait_on(Some(request), request, method, limit, |recording, index| {
            let entry = recording.entries.get(index)?;
            if entry.request == Some(request) {
                return Some(None);
            }
            entry.calls(Party::Agent, method).then_some(Some(index))
        })?;
        match found {
            Some(index) => Ok(index),
            None => inconclusive(format!("the agent did not call {method} in this turn")),
        }
    }

    /// No answer must have come for what was sent at or after this mark, other than
    /// to requests.
    ///
    /// # Errors
    /// When one has.
    pub fn nothing_answered_since(&self, mark: usize) -> Outcome {
        self.no_stray_answer(mark, "a notification was answered")
    }

    /// No answer that belongs to no request must have come since this mark.
    ///
    /// # Errors
    /// With this reason, when one has.
    pub fn no_stray_answer(&self, mark: usize, reason: &str) -> Outcome {
        let stray = self.since(mark).find(|(_, entry)| {
            let answer = matches!(entry.kind, Kind::Result | Kind::Error);
            entry.from == Party::Agent && answer && entry.request.is_none()
        });
        match stray {
            Some((index, _)) => Err(self.at(index, reason)),
            None => Ok(()),
        }
    }

    /// The agent still serves: a new session opens.
    ///
    /// # Errors
    /// When it does not.
    pub fn still_serves(&mut self) -> Outcome {
        match self.session() {
            Ok(_) => Ok(()),
            Err(Stop::Fail(failure)) => fail(format!(
                "the connection is of no use afterwards: {}",
                failure.reason
            )),
            Err(other) => Err(other),
        }
    }

    /// The first of these words that the profile has.
    ///
    /// # Errors
    /// Inconclusive when it has none of them.
    pub fn word<'a>(&self, words: &[&'a str]) -> Outcome<&'a str> {
        let known = |word: &&&str| self.env.profile.prompts.contains_key(**word);
        match words.iter().find(known) {
            Some(word) => Ok(word),
            None => inconclusive(format!(
                "the profile has no prompt `{}`",
                words.join("` or `")
            )),
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
