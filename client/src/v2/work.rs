//! Detects the end of the work for a prompt.
//!
//! In version 2 the response to a prompt means that the message was added to the conversation, and
//! a session that becomes idle has ended its work. The two arrive in any order, and the session may
//! have been running for another client when the prompt was sent. An `idle` ends the work for a
//! prompt if
//!
//! - the agent has accepted the prompt. Events before its response are queued, and evaluated when
//!   the response contains the message id;
//! - it ends some work: the session was not idle, or the stop reason differs from the previous one;
//! - it does not end other work: if the session was running when the prompt was sent, or another
//!   client's message was added, the message of the prompt must have been added before.
//!
//! A prompt that is sent again on another connection has ended before if its message was replayed and the
//! state behind the history is idle.

use std::collections::VecDeque;

use acp_sdk::convert::convert_logged;
use acp_sdk::{RpcError, v1, v2};

use super::digest;

/// Maximum number of events queued until a prompt is accepted.
const MOST_MARKS: usize = 256;

/// The end of the work for a prompt.
#[derive(Debug, Clone)]
pub struct End {
    /// The stop reason, or the agent's error.
    pub stop: Result<v1::StopReason, RpcError>,
    /// The `_meta` of the update that reports the end.
    pub meta: Option<acp_sdk::Meta>,
}

/// The state of a session and of this client's prompt.
#[derive(Debug, Default)]
pub struct Work {
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
    /// The connection was replaced before its response: it is sent again.
    is_repeated: bool,
    /// The digest of its message id, if the response contains one.
    message: Option<u64>,
    /// Events before the response.
    waiting: VecDeque<Mark>,
    /// Whether the message was added to the conversation.
    is_inserted: bool,
    /// Whether the session is running for another client.
    is_for_others: bool,
    /// Whether the agent has sent a message since the prompt.
    has_agent_message: bool,
}

/// An event that affects the work for a prompt.
#[derive(Debug, Clone, PartialEq)]
enum Mark {
    UserMessage(u64),
    AgentMessage,
    Busy,
    Idle(Option<v2::StopReason>, Option<acp_sdk::Meta>),
}

impl Mark {
    fn of(update: &v2::SessionUpdate) -> Option<Self> {
        use v2::SessionUpdate as V2;
        Some(match update {
            V2::UserMessage(message) => Self::UserMessage(digest(message.message_id.as_str())),
            V2::UserMessageChunk(chunk) => Self::UserMessage(digest(chunk.message_id.as_str())),
            V2::AgentMessage(_)
            | V2::AgentMessageChunk(_)
            | V2::AgentThought(_)
            | V2::AgentThoughtChunk(_) => Self::AgentMessage,
            V2::StateUpdate(v2::StateUpdate::Idle(idle)) => {
                Self::Idle(idle.stop_reason.clone(), idle.meta.clone())
            }
            V2::StateUpdate(_) => Self::Busy,
            _ => return None,
        })
    }
}

impl Work {
    /// Prepares for a prompt that is sent next.
    pub fn begin(&mut self) {
        self.prompt = Some(Prompt {
            is_accepted: false,
            is_repeated: false,
            message: None,
            waiting: VecDeque::new(),
            is_inserted: false,
            is_for_others: matches!(self.state, State::Busy),
            has_agent_message: false,
        });
    }

    /// Records that the agent accepted the prompt, and the message id if there is one. Returns the
    /// end if a queued event was it.
    pub fn accepted(&mut self, message: Option<&str>) -> Option<End> {
        let prompt = self.prompt.as_mut()?;
        prompt.is_accepted = true;
        prompt.message = message.map(digest);
        let waiting = std::mem::take(&mut prompt.waiting);
        let ended_before = match waiting.back() {
            Some(Mark::Idle(reason, meta)) if prompt.is_repeated => {
                let own = |message| waiting.contains(&Mark::UserMessage(message));
                let is_replayed = prompt.message.is_some_and(own);
                is_replayed.then(|| (reason.clone(), meta.clone()))
            }
            _ => None,
        };
        let mut end = None;
        for mark in waiting {
            end = self.step(mark).or(end);
        }
        end.or_else(|| {
            let (reason, meta) = ended_before?;
            self.prompt = None;
            Some(End {
                stop: stop(reason),
                meta,
            })
        })
    }

    /// Records that the agent rejected the prompt, or that its end is no longer awaited.
    pub fn refused(&mut self) {
        let waiting = self.prompt.take().map(|prompt| prompt.waiting);
        for mark in waiting.unwrap_or_default() {
            self.step(mark);
        }
    }

    /// Resets the state after a lost connection. Returns whether the agent worked for the prompt; a
    /// prompt that was not accepted still gets a response.
    pub fn lost(&mut self) -> bool {
        self.state = State::default();
        self.reconnected();
        self.prompt.take_if(|prompt| prompt.is_accepted).is_some()
    }

    /// Records that the connection was replaced: a prompt that was not accepted is sent again with its
    /// key, and the state of the session follows.
    pub fn reconnected(&mut self) {
        if let Some(prompt) = &mut self.prompt
            && !prompt.is_accepted
        {
            self.state = State::default();
            prompt.waiting.clear();
            (prompt.is_for_others, prompt.has_agent_message) = (false, false);
            prompt.is_repeated = true;
        }
    }

    /// Records an update. Returns the end of the work for the prompt if the update is it.
    pub fn update(&mut self, update: &v2::SessionUpdate) -> Option<End> {
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
            Mark::UserMessage(message) => {
                if let Some(prompt) = &mut self.prompt {
                    // Without a message id in the response, any message may be the prompt's.
                    prompt.is_inserted |= prompt.message.is_none_or(|own| own == message);
                    prompt.is_for_others = !prompt.is_inserted;
                }
                return None;
            }
            Mark::AgentMessage => {
                if let Some(prompt) = &mut self.prompt {
                    prompt.has_agent_message = true;
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
                let is_repeated =
                    before == reason && !prompt.is_inserted && !prompt.has_agent_message;
                reason.is_some() && !is_repeated
            }
        };
        if !is_end {
            return None;
        }
        if prompt.is_for_others {
            (prompt.is_for_others, prompt.has_agent_message) = (false, false);
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
    match reason {
        // A missing reason counts as `end_turn`.
        None => Ok(v1::StopReason::EndTurn),
        Some(v2::StopReason::Error(error)) => {
            let unknown = || RpcError::new(v2::error_codes::INTERNAL_ERROR, "the work has failed");
            Err(error.error.unwrap_or_else(unknown))
        }
        Some(reason) => Ok(convert_logged(reason).unwrap_or_else(|| "unknown".into())),
    }
}

#[cfg(test)]
mod tests;
