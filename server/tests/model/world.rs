//! What clients and schedule have in common: the log, the prompts, and what was found wrong.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use acp_sdk::v1::SessionId;
use serde_json::Value;

use crate::client::Version;
use crate::record::Recorder;
use crate::view::Place;

/// A prompt that a client sent.
pub struct Prompt {
    pub session: SessionId,
    pub text: String,
    pub version: Version,
    /// Whether something may have cancelled it.
    pub may_be_cancelled: bool,
    /// Whether something may have made it fail.
    pub may_fail: bool,
    /// How often its client had joined or left the session.
    pub generation: u32,
    pub answer: Option<Answer>,
    /// Its connection has ended without an answer.
    pub is_lost: bool,
}

impl Prompt {
    pub fn is_open(&self) -> bool {
        self.answer.is_none() && !self.is_lost
    }
}

/// Input that a client gave a turn, perhaps again.
pub struct Steer {
    pub session: SessionId,
    pub text: String,
    pub answer: Option<Result<Value, Value>>,
    /// Its connection has ended without an answer.
    pub is_lost: bool,
}

pub struct Answer {
    pub result: Result<Value, Value>,
    /// Where the client may have been when it was answered, if it was attached since it prompted.
    pub places: Option<Vec<Place>>,
}

/// An answer that a client gave to a question.
pub struct Reply {
    pub session: SessionId,
    pub question: u64,
    pub option: String,
}

#[derive(Default)]
pub struct World {
    pub recorder: Arc<Recorder>,
    state: Mutex<State>,
}

#[derive(Default)]
pub struct State {
    pub prompts: Vec<Prompt>,
    pub steers: Vec<Steer>,
    pub replies: Vec<Reply>,
    /// The last events that a client was sent, by session: the server knows that they are committed.
    pub shown: BTreeMap<SessionId, u64>,
    /// What was found wrong.
    pub faults: Vec<String>,
    /// What the clients were sent, and when.
    pub trace: Vec<String>,
}

impl World {
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub fn fault(&self, fault: String) {
        self.state().faults.push(fault);
    }

    /// Something may cancel the prompts of a session.
    pub fn cancels(&self, session: &SessionId) {
        let mut state = self.state();
        let open = state.prompts.iter_mut().filter(|prompt| prompt.is_open());
        for prompt in open.filter(|prompt| prompt.session == *session) {
            prompt.may_be_cancelled = true;
        }
    }

    /// Something may make the prompts of a session fail.
    pub fn fails(&self, session: &SessionId) {
        let mut state = self.state();
        let open = state.prompts.iter_mut().filter(|prompt| prompt.is_open());
        for prompt in open.filter(|prompt| prompt.session == *session) {
            prompt.may_fail = true;
        }
    }
}
