//! Where the work for a prompt ends.
//!
//! In version 2 the response to a prompt says that the message is in the conversation, and a session
//! that becomes idle has ended its work. The two may come in any order, and the session may have been
//! at work for others, or for itself, when the prompt was sent. An `idle` ends the work for a prompt if
//!
//! - the agent has accepted the prompt. What comes before its response is remembered, and judged when
//!   the response names the message;
//! - it is the end of some work: the session was not idle, or it says a reason that it has not just
//!   said;
//! - it is no end of other work: when the session was at work as the prompt was sent, or the message
//!   of somebody else was taken up, the message of the prompt must have been taken up before.

use std::collections::VecDeque;

use acp_sdk::{RpcError, v1, v2};

use super::digest;

/// What is remembered until a prompt is accepted.
const MOST_MARKS: usize = 256;

/// How the work for a prompt has ended.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// The reason, or the agent's error.
    pub(crate) stop: Result<v1::StopReason, RpcError>,
    /// The `_meta` of the update that says so.
    pub(crate) meta: Option<acp_sdk::Meta>,
}

/// The state of a session, and the prompt that this client has sent.
#[derive(Debug, Default)]
pub(crate) struct Work {
    state: State,
    prompt: Option<Prompt>,
}

#[derive(Debug)]
enum State {
    Idle(Option<v2::StopReason>),
    Busy,
}

impl Default for State {
    fn default() -> Self {
        Self::Idle(None)
    }
}

/// A prompt whose end is awaited.
#[derive(Debug)]
struct Prompt {
    is_accepted: bool,
    /// Its message, if the agent has said which it is.
    message: Option<u64>,
    /// What came before that.
    waiting: VecDeque<Mark>,
    /// The message has been taken up.
    is_inserted: bool,
    /// The session works for somebody else.
    is_for_others: bool,
    /// The agent has written something since.
    has_spoken: bool,
}

/// What an update says about the work.
#[derive(Debug, Clone, PartialEq)]
enum Mark {
    User(u64),
    Spoken,
    Busy,
    Idle(Option<v2::StopReason>, Option<acp_sdk::Meta>),
}

impl Mark {
    fn of(update: &v2::SessionUpdate) -> Option<Self> {
        use v2::SessionUpdate as V2;
        Some(match update {
            V2::UserMessage(message) => Self::User(digest(message.message_id.as_str())),
            V2::UserMessageChunk(chunk) => Self::User(digest(chunk.message_id.as_str())),
            V2::AgentMessage(_)
            | V2::AgentMessageChunk(_)
            | V2::AgentThought(_)
            | V2::AgentThoughtChunk(_) => Self::Spoken,
            V2::StateUpdate(v2::StateUpdate::Idle(idle)) => {
                Self::Idle(idle.stop_reason.clone(), idle.meta.clone())
            }
            V2::StateUpdate(_) => Self::Busy,
            _ => return None,
        })
    }
}

impl Work {
    /// A prompt is about to be sent.
    pub(crate) fn begin(&mut self) {
        self.prompt = Some(Prompt {
            is_accepted: false,
            message: None,
            waiting: VecDeque::new(),
            is_inserted: false,
            is_for_others: matches!(self.state, State::Busy),
            has_spoken: false,
        });
    }

    /// The agent has accepted the prompt, as this message if it says so. Returns the end, if that was
    /// before.
    pub(crate) fn accepted(&mut self, message: Option<&str>) -> Option<End> {
        let prompt = self.prompt.as_mut()?;
        prompt.is_accepted = true;
        prompt.message = message.map(digest);
        let waiting = std::mem::take(&mut prompt.waiting);
        let mut end = None;
        for mark in waiting {
            end = self.step(mark).or(end);
        }
        end
    }

    /// The agent has refused the prompt, or nobody waits for its end.
    pub(crate) fn refused(&mut self) {
        let waiting = self.prompt.take().map(|prompt| prompt.waiting);
        for mark in waiting.unwrap_or_default() {
            self.step(mark);
        }
    }

    /// The connection was lost, and what the agent did is over. Returns whether it worked for the prompt;
    /// one that it has not accepted is answered yet.
    pub(crate) fn lost(&mut self) -> bool {
        self.state = State::default();
        match &mut self.prompt {
            Some(prompt) if !prompt.is_accepted => {
                prompt.waiting.clear();
                (prompt.is_for_others, prompt.has_spoken) = (false, false);
                false
            }
            prompt => prompt.take().is_some(),
        }
    }

    /// Takes in an update. Returns the end of the work for the prompt, if it says so.
    pub(crate) fn update(&mut self, update: &v2::SessionUpdate) -> Option<End> {
        let mark = Mark::of(update)?;
        match &mut self.prompt {
            Some(prompt) if !prompt.is_accepted => {
                if prompt.waiting.back() != Some(&mark) {
                    if prompt.waiting.len() == MOST_MARKS {
                        prompt.waiting.pop_front();
                    }
                    prompt.waiting.push_back(mark);
                }
                None
            }
            _ => self.step(mark),
        }
    }

    fn step(&mut self, mark: Mark) -> Option<End> {
        let (reason, meta) = match mark {
            Mark::User(message) => {
                if let Some(prompt) = &mut self.prompt {
                    // Without a name it may be any.
                    prompt.is_inserted |= prompt.message.is_none_or(|own| own == message);
                    prompt.is_for_others = !prompt.is_inserted;
                }
                return None;
            }
            Mark::Spoken => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.has_spoken = true;
                }
                return None;
            }
            Mark::Busy => {
                self.state = State::Busy;
                return None;
            }
            Mark::Idle(reason, meta) => (reason, meta),
        };
        let before = std::mem::replace(&mut self.state, State::Idle(reason.clone()));
        let prompt = self.prompt.as_mut()?;
        let is_end = match before {
            State::Busy => true,
            State::Idle(before) => {
                let is_repeated = before == reason && !prompt.is_inserted && !prompt.has_spoken;
                reason.is_some() && !is_repeated
            }
        };
        if !is_end {
            return None;
        }
        if prompt.is_for_others {
            (prompt.is_for_others, prompt.has_spoken) = (false, false);
            return None;
        }
        self.prompt = None;
        Some(End {
            stop: stop(reason),
            meta,
        })
    }
}

fn stop(reason: Option<v2::StopReason>) -> Result<v1::StopReason, RpcError> {
    Ok(match reason {
        // The agent owes a reason.
        None | Some(v2::StopReason::EndTurn) => v1::StopReason::EndTurn,
        Some(v2::StopReason::MaxTokens) => v1::StopReason::MaxTokens,
        Some(v2::StopReason::MaxTurnRequests) => v1::StopReason::MaxTurnRequests,
        Some(v2::StopReason::Refusal) => v1::StopReason::Refusal,
        Some(v2::StopReason::Cancelled) => v1::StopReason::Cancelled,
        Some(v2::StopReason::Error(error)) => {
            let unknown = || RpcError::new(v2::error_codes::INTERNAL_ERROR, "the work has failed");
            return Err(error.error.unwrap_or_else(unknown));
        }
        Some(v2::StopReason::Unknown(unknown)) => v1::StopReason::from(unknown.tag()),
        Some(_) => v1::StopReason::from("unknown"),
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn update(value: Value) -> v2::SessionUpdate {
        serde_json::from_value(value).unwrap()
    }

    /// Plays a session: `prompt`, `ok`, `ok ?` and `no` are this client's prompt and its response, the
    /// second without the message, `mine` and
    /// `other` messages, `says` words of the agent, the rest states, after a space the reason to
    /// stop. Returns the number of the line after which the prompt has ended, and why.
    fn played(lines: &[&str]) -> Option<(usize, String)> {
        let mut work = Work::default();
        for (number, line) in lines.iter().enumerate() {
            let end = match line.split_once(' ').unwrap_or((line, "")) {
                ("prompt", _) => {
                    work.begin();
                    None
                }
                ("ok", "") => work.accepted(Some("mine")),
                ("ok", _) => work.accepted(None),
                ("no", _) => {
                    work.refused();
                    None
                }
                ("says", _) => work.update(&update(json!({"sessionUpdate": "agent_message_chunk",
                    "messageId": "a", "content": {"type": "text", "text": "a"}}))),
                (id @ ("mine" | "other"), _) => work.update(&update(
                    json!({"sessionUpdate": "user_message", "messageId": id, "content": []}),
                )),
                (state, "") => work.update(&update(
                    json!({"sessionUpdate": "state_update", "state": state}),
                )),
                (state, reason) => work.update(&update(json!({"sessionUpdate": "state_update",
                    "state": state, "stopReason": reason}))),
            };
            if let Some(end) = end {
                let stop = end
                    .stop
                    .map_or_else(|error| error.message, |stop| stop.as_str().into());
                return Some((number, stop));
            }
        }
        None
    }

    fn end(number: usize, reason: &str) -> Option<(usize, String)> {
        Some((number, reason.to_owned()))
    }

    #[test]
    fn work_ends_when_the_session_becomes_idle() {
        let lines = ["prompt", "ok", "mine", "running", "says", "idle end_turn"];
        assert_eq!(played(&lines), end(5, "end_turn"));
        let asked = [
            "prompt",
            "ok",
            "running",
            "requires_action",
            "running",
            "idle refusal",
        ];
        assert_eq!(played(&asked), end(5, "refusal"));
        assert_eq!(
            played(&["prompt", "ok", "requires_action", "idle _x"]),
            end(3, "_x")
        );
        assert_eq!(
            played(&["prompt", "ok", "running", "idle"]),
            end(3, "end_turn")
        );
        assert_eq!(
            played(&["prompt", "ok", "_dreaming", "idle"]),
            end(3, "end_turn")
        );
        assert_eq!(
            played(&["prompt", "ok", "running", "idle error"]),
            end(3, "the work has failed")
        );
    }

    #[test]
    fn the_response_may_come_last() {
        let early = ["prompt", "mine", "running", "says", "idle end_turn", "ok"];
        assert_eq!(played(&early), end(5, "end_turn"));
        assert_eq!(
            played(&["prompt", "running", "idle cancelled", "ok"]),
            end(3, "cancelled")
        );
        assert_eq!(played(&["prompt", "running", "idle end_turn", "no"]), None);
    }

    #[test]
    fn a_message_without_a_name_may_be_any() {
        let early = [
            "running",
            "prompt",
            "idle refusal",
            "mine",
            "running",
            "ok ?",
            "idle end_turn",
        ];
        assert_eq!(played(&early), end(6, "end_turn"));
        assert_eq!(
            played(&["prompt", "ok ?", "other", "running", "idle"]),
            end(4, "end_turn")
        );
    }

    #[test]
    fn a_repeated_idle_is_no_end() {
        let first = ["prompt", "ok", "running", "idle end_turn"];
        let again = |rest: &[&'static str]| {
            let mut work = first.to_vec();
            work[0] = "idle";
            work.extend_from_slice(rest);
            played(&work)
        };
        assert_eq!(
            again(&["prompt", "ok", "idle end_turn", "idle end_turn"]),
            None
        );
        assert_eq!(again(&["prompt", "idle end_turn", "ok"]), None);
        let ended = again(&["prompt", "ok", "idle end_turn", "running", "idle end_turn"]);
        assert_eq!(ended, end(8, "end_turn"));
        // Agents that never say that they run.
        assert_eq!(
            again(&["prompt", "ok", "says", "idle end_turn"]),
            end(7, "end_turn")
        );
        assert_eq!(
            again(&["prompt", "ok", "mine", "idle end_turn"]),
            end(7, "end_turn")
        );
        assert_eq!(
            again(&["prompt", "ok", "idle cancelled"]),
            end(6, "cancelled")
        );
        assert_eq!(
            played(&["prompt", "ok", "idle end_turn"]),
            end(2, "end_turn")
        );
    }

    #[test]
    fn the_end_of_other_work_is_no_end() {
        let own = [
            "running",
            "prompt",
            "ok",
            "idle end_turn",
            "mine",
            "running",
            "idle refusal",
        ];
        assert_eq!(played(&own), end(6, "refusal"));
        let before = [
            "running",
            "prompt",
            "idle end_turn",
            "mine",
            "running",
            "ok",
            "idle refusal",
        ];
        assert_eq!(played(&before), end(6, "refusal"));
        let joined = ["running", "prompt", "ok", "mine", "idle end_turn"];
        assert_eq!(played(&joined), end(4, "end_turn"));
        let others = [
            "prompt",
            "other",
            "running",
            "says",
            "idle end_turn",
            "mine",
            "ok",
        ];
        assert_eq!(played(&others), None);
        let others = [&others[..], &["running", "idle refusal"]].concat();
        assert_eq!(played(&others), end(8, "refusal"));
        let later = [
            "prompt",
            "ok",
            "other",
            "running",
            "idle",
            "mine",
            "running",
            "idle refusal",
        ];
        assert_eq!(played(&later), end(7, "refusal"));
    }

    #[test]
    fn only_accepted_work_is_lost() {
        let mut work = Work::default();
        assert!(!work.lost());
        work.begin();
        assert!(!work.lost());
        assert!(work.accepted(Some("mine")).is_none());
        assert!(work.lost());
        assert!(!work.lost());
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut work = Work::default();
        work.begin();
        for number in 0..10 * MOST_MARKS {
            work.update(&update(json!({"sessionUpdate": "user_message",
                "messageId": number.to_string(), "content": []})));
        }
        assert_eq!(
            work.prompt.as_ref().map(|prompt| prompt.waiting.len()),
            Some(MOST_MARKS)
        );
    }
}
