//! What a client has of a session: up to which event, and which words of its own.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::reconnect::envelope::Envelope;

/// Blocks of prompts that are remembered for each session.
const BLOCKS: usize = 256;

/// A session of the client.
#[derive(Debug)]
pub(super) struct Session {
    /// The parameters with which it was opened.
    setup: Bytes,
    /// The number of the last event; 0 before the first of a new session.
    cursor: Option<u64>,
    /// Blocks that the client has said, which are sent to another connection as events.
    said: VecDeque<Said>,
    hasher: RandomState,
}

#[derive(Debug)]
struct Said {
    request: String,
    /// A hash of the block.
    block: u64,
    answered: bool,
}

/// What an event is to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Passage {
    New,
    /// The client has it, or has said it.
    Known,
}

#[derive(Deserialize)]
struct Update<'a> {
    #[serde(borrow)]
    update: &'a RawValue,
    #[serde(rename = "_meta", default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(rename = "acp-sdk", default)]
    ours: Ours,
}

#[derive(Default, Deserialize)]
struct Ours {
    #[serde(rename = "eventId", default)]
    event: Option<u64>,
}

impl Session {
    /// Creates a session from the request that opened it.
    pub(super) fn new(request: &Bytes) -> Self {
        let envelope = Envelope::read(request);
        let is_new = envelope.method.as_deref() == Some("session/new");
        Self {
            setup: request.clone(),
            cursor: is_new.then_some(0),
            said: VecDeque::new(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Its events come from the beginning.
    pub(super) fn restart(&mut self) {
        self.cursor = None;
        self.said.clear();
    }

    /// Returns a request that opens the session again, without an id: `session/load` or
    /// `session/resume`.
    pub(super) fn open_request(&self, method: &str, id: &str) -> Value {
        let setup: Value = serde_json::from_slice(&self.setup).unwrap_or_default();
        let mut params = setup["params"].clone();
        if !params.is_object() {
            params = json!({});
        }
        params["sessionId"] = json!(id);
        json!({"jsonrpc": "2.0", "id": null, "method": method, "params": params})
    }

    /// The client has prompted.
    pub(super) fn prompted(&mut self, request: &str, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let blocks = message["params"]["prompt"].as_array();
        for block in blocks.into_iter().flatten() {
            if self.said.len() >= BLOCKS {
                self.said.pop_front();
            }
            self.said.push_back(Said {
                request: request.to_owned(),
                block: digest(block, &self.hasher),
                answered: false,
            });
        }
    }

    /// A prompt was answered: its words come before whatever comes from now on, or not at all.
    pub(super) fn prompt_answered(&mut self, request: &str) {
        for said in &mut self.said {
            said.answered |= said.request == request;
        }
    }

    /// Notes an update.
    pub(super) fn event(&mut self, envelope: &Envelope<'_>) -> Passage {
        let params = envelope.params.map_or("null", RawValue::get);
        let Ok(update) = serde_json::from_str::<Update<'_>>(params) else {
            return Passage::New;
        };
        let Some(number) = update.meta.ours.event else {
            return Passage::New;
        };
        if self.cursor.is_some_and(|cursor| number <= cursor) {
            return Passage::Known;
        }
        self.cursor = Some(number);
        if self.said.is_empty() {
            return Passage::New;
        }
        let own = user_block(update.update).and_then(|block| self.position(&block));
        match own {
            Some(index) => {
                self.said.drain(..=index);
                Passage::Known
            }
            None => {
                while self.said.front().is_some_and(|said| said.answered) {
                    self.said.pop_front();
                }
                Passage::New
            }
        }
    }

    /// Returns which of the client's blocks this is: the next one, or one after answered ones.
    fn position(&self, block: &Value) -> Option<usize> {
        let block = digest(block, &self.hasher);
        for (index, said) in self.said.iter().enumerate() {
            if said.block == block {
                return Some(index);
            }
            if !said.answered {
                return None;
            }
        }
        None
    }
}

/// Returns the block of an update that is what a user has said.
fn user_block(update: &RawValue) -> Option<Value> {
    #[derive(Deserialize)]
    struct Kind<'a> {
        #[serde(borrow, rename = "sessionUpdate")]
        kind: std::borrow::Cow<'a, str>,
        content: Option<Value>,
    }
    let update: Kind<'_> = serde_json::from_str(update.get()).ok()?;
    update
        .content
        .filter(|_| update.kind == "user_message_chunk")
}

/// Returns a hash of a block that does not depend on the order of its members.
fn digest(block: &Value, hasher: &impl BuildHasher) -> u64 {
    let mut sorted = block.clone();
    // Without the feature `preserve_order` of serde_json, which any crate may enable, they are sorted.
    sorted.sort_all_objects();
    hasher.hash_one(sorted.to_string())
}
