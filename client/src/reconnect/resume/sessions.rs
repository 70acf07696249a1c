//! Replay state of one session: the event cursor and the sent prompt blocks.

use std::collections::VecDeque;
use std::hash::{BuildHasher, RandomState};

use acp_sdk::facts::Content;
use acp_sdk::v1::SESSION_UPDATE_CONTENT;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::settings::Settings;
use crate::reconnect::envelope::Envelope;

/// Maximum number of sent prompt blocks kept per session.
const MAX_BLOCKS: usize = 256;

/// Replay state of a session of the client.
#[derive(Debug)]
pub(super) struct Session {
    /// The request that opened the session; its params are reused to open it again.
    setup: Bytes,
    /// The number of the last event; 0 before the first of a new session.
    cursor: Option<u64>,
    pub(super) settings: Settings,
    /// Whether the agent replays old updates, whose values are not in force.
    pub(super) replays: bool,
    /// A prompt is in flight, and whether the agent has sent something of its turn.
    turn: Option<Progress>,
    /// The `promptId` of that prompt.
    prompt: Option<String>,
    /// Blocks of the client's prompts. The agent replays them as events on another connection.
    sent_blocks: VecDeque<SentBlock>,
    hasher: RandomState,
}

/// The progress of a turn, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    Sent,
    Begun,
}

#[derive(Debug)]
struct SentBlock {
    request: String,
    /// A hash of the block.
    block: u64,
    answered: bool,
}

/// Whether the client already has an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventStatus {
    New,
    /// The client has received the event or has sent its content.
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
    /// Creates a session from the request that opened it and the number of its last event.
    pub(super) fn new(setup: Bytes, cursor: Option<u64>) -> Self {
        Self {
            setup,
            cursor,
            settings: Settings::default(),
            replays: false,
            turn: None,
            prompt: None,
            sent_blocks: VecDeque::new(),
            hasher: RandomState::new(),
        }
    }

    pub(super) fn cursor(&self) -> Option<u64> {
        self.cursor
    }

    /// Resets the cursor, because the agent replays the events from the first one.
    pub(super) fn restart(&mut self) {
        self.cursor = None;
        self.replays = true;
        self.sent_blocks.clear();
    }

    /// Returns a request that opens this session or a copy of it, with the members of this session's
    /// setup that it lacks.
    pub(super) fn setup_for(&self, request: &Bytes) -> Bytes {
        let setup: Value = serde_json::from_slice(&self.setup).unwrap_or_default();
        let mut setup_for: Value = serde_json::from_slice(request).unwrap_or_default();
        let params = setup_for["params"].as_object_mut();
        let (Some(params), Some(own)) = (params, setup["params"].as_object()) else {
            return request.clone();
        };
        for (name, value) in own {
            params.entry(name.clone()).or_insert_with(|| value.clone());
        }
        setup_for.to_string().into()
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

    /// As [`open_request`](Self::open_request), for the history in version 2.
    pub(super) fn replay_request(&self, id: &str) -> Value {
        let mut request = self.open_request("session/resume", id);
        request["params"]["replayFrom"] = json!({"type": "start"});
        request
    }

    /// Records the blocks of a `session/prompt` request.
    pub(super) fn record_prompt(&mut self, request: &str, message: &[u8]) {
        let message: Value = serde_json::from_slice(message).unwrap_or_default();
        let blocks = message["params"]["prompt"].as_array();
        for block in blocks.into_iter().flatten() {
            if self.sent_blocks.len() >= MAX_BLOCKS {
                self.sent_blocks.pop_front();
            }
            self.sent_blocks.push_back(SentBlock {
                request: request.to_owned(),
                block: digest(block, &self.hasher),
                answered: false,
            });
        }
    }

    /// Marks the blocks of a prompt as answered: the agent replays them next or not at all.
    pub(super) fn prompt_answered(&mut self, request: &str) {
        self.turn = None;
        for sent in &mut self.sent_blocks {
            sent.answered |= sent.request == request;
        }
    }

    /// Records an update and returns whether it is new to the client.
    pub(super) fn event(&mut self, envelope: &Envelope<'_>) -> EventStatus {
        let params = envelope.params.map_or("null", RawValue::get);
        let status = self.status(params);
        if status == EventStatus::New && !self.replays {
            self.settings.update(params);
            if self.turn == Some(Progress::Sent) && is_output(params, self.prompt.as_deref()) {
                self.turn = Some(Progress::Begun);
            }
        }
        status
    }

    /// Records that a prompt was sent, and its `promptId`.
    pub(super) fn prompted(&mut self, prompt: Option<&str>) {
        self.turn = Some(Progress::Sent);
        self.prompt = prompt.map(str::to_owned);
    }

    /// Records a request of the agent in this session.
    pub(super) fn asked(&mut self) {
        self.turn = self.turn.map(|_| Progress::Begun);
    }

    /// Returns whether the agent has begun the turn of the prompt in flight.
    pub(super) fn has_begun(&self) -> bool {
        self.turn == Some(Progress::Begun)
    }

    fn status(&mut self, params: &str) -> EventStatus {
        let Ok(update) = serde_json::from_str::<Update<'_>>(params) else {
            return EventStatus::New;
        };
        let Some(number) = update.meta.ours.event else {
            return EventStatus::New;
        };
        if self.cursor.is_some_and(|cursor| number <= cursor) {
            return EventStatus::Known;
        }
        self.cursor = Some(number);
        if self.sent_blocks.is_empty() {
            return EventStatus::New;
        }
        let index = user_block(update.update).and_then(|block| self.position(&block));
        match index {
            Some(index) => {
                self.sent_blocks.drain(..=index);
                EventStatus::Known
            }
            None => {
                while self.sent_blocks.front().is_some_and(|sent| sent.answered) {
                    self.sent_blocks.pop_front();
                }
                EventStatus::New
            }
        }
    }

    /// Returns the index of a replayed block: the first unanswered one or one before it.
    fn position(&self, block: &Value) -> Option<usize> {
        let block = digest(block, &self.hasher);
        for (index, sent) in self.sent_blocks.iter().enumerate() {
            if sent.block == block {
                return Some(index);
            }
            if !sent.answered {
                return None;
            }
        }
        None
    }
}

/// Returns whether the params of an update have output of the turn of this prompt. An agent that does
/// not name prompts has one turn at a time.
fn is_output(params: &str, prompt: Option<&str>) -> bool {
    let params: Value = serde_json::from_str(params).unwrap_or_default();
    let tag = params["update"]["sessionUpdate"].as_str();
    let of = params["_meta"]["acp-sdk"]["promptId"].as_str();
    let is_own = of.is_none() || prompt.is_none() || of == prompt;
    is_own && tag.and_then(|tag| SESSION_UPDATE_CONTENT.get(tag)) == Some(Content::Output)
}

/// Returns the content of a `user_message_chunk` update.
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
    // serde_json keeps insertion order if any crate enables its feature `preserve_order`.
    sorted.sort_all_objects();
    hasher.hash_one(sorted.to_string())
}
