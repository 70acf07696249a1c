//! A filter between the suite and an agent: it sees every message in both
//! directions and decides whether it is forwarded, changed or dropped.
//!
//! This is how the checks are proven: an agent that obeys a rule, behind a filter
//! that breaks it, is an agent that breaks the rule. The filter works on lines, so
//! it can write what no typed agent would.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::wire::Party;

/// Decides about a message: forwards it, changes it, drops it or adds
/// others, by calling the tap.
pub type Filter = fn(&mut Tap<'_>, &Passing);

/// A filter with data of its own.
pub trait Rewriter: Sync {
    /// Returns false if such a message is forwarded as it is, whatever came before it.
    fn concerns(&self, passing: &Passing) -> bool;

    /// Decides about a message, as a [`Filter`] does.
    fn pass(&self, tap: &mut Tap<'_>, passing: &Passing);
}

/// What an agent is behind.
#[derive(Clone, Copy)]
pub enum Rewrite {
    /// A function.
    Code(Filter),
    /// An interpreter of data.
    Data(&'static dyn Rewriter),
}

impl Rewrite {
    /// A filter that changes nothing.
    pub(super) const NOTHING: Self = Self::Code(|tap, _| tap.forward());

    pub(super) fn concerns(&self, passing: &Passing) -> bool {
        match self {
            Self::Code(_) => true,
            Self::Data(data) => data.concerns(passing),
        }
    }

    pub(super) fn pass(&self, tap: &mut Tap<'_>, passing: &Passing) {
        match self {
            Self::Code(filter) => filter(tap, passing),
            Self::Data(data) => data.pass(tap, passing),
        }
    }
}

impl From<Filter> for Rewrite {
    fn from(filter: Filter) -> Self {
        Self::Code(filter)
    }
}

impl fmt::Debug for Rewrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Rewrite")
    }
}

/// The open requests: method and params, by sender and id.
pub(super) type Open = HashMap<(Party, String), (String, Arc<Value>)>;

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Who wrote it.
    pub from: Party,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// Its params, or those of the request it answers.
    pub params: Arc<Value>,
    /// The message; `null` when the line is none.
    pub value: Value,
    /// The line, when it is no message.
    pub raw: Option<Vec<u8>>,
}

impl Passing {
    /// Whether it is what the agent answered to this method.
    #[must_use]
    pub fn answers(&self, method: &str) -> bool {
        self.from == Party::Agent && self.method == method && self.value.get("method").is_none()
    }

    /// Whether it is the result of this method.
    #[must_use]
    pub fn succeeds(&self, method: &str) -> bool {
        self.answers(method) && self.value.get("result").is_some()
    }

    /// Whether it is a request or notification of the client.
    #[must_use]
    pub fn asks(&self, method: &str) -> bool {
        self.calls(Party::Client, method)
    }

    /// Whether it is a request or notification of the agent.
    #[must_use]
    pub fn tells(&self, method: &str) -> bool {
        self.calls(Party::Agent, method)
    }

    /// Whether it is a session update of this kind.
    #[must_use]
    pub fn updates(&self, kind: &str) -> bool {
        self.tells("session/update") && self.at("/update/sessionUpdate") == kind
    }

    /// The text at this place of the params; empty when there is none.
    #[must_use]
    pub fn at(&self, pointer: &str) -> &str {
        let text = self.params.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default()
    }

    /// The text of the prompt that it is or answers.
    #[must_use]
    pub fn prompt(&self) -> &str {
        self.at("/prompt/0/text")
    }

    /// Its bytes, with a line feed for the agent, whose input is not split into lines.
    pub(super) fn line(&self) -> Vec<u8> {
        match (self.from, &self.raw) {
            (_, Some(raw)) => raw.clone(),
            (Party::Agent, None) => self.value.to_string().into_bytes(),
            (Party::Client, None) => format!("{}\n", self.value).into_bytes(),
        }
    }

    /// Whether it is a request or notification of this side with this method.
    #[must_use]
    pub fn calls(&self, from: Party, method: &str) -> bool {
        self.from == from && self.value.get("method").and_then(Value::as_str) == Some(method)
    }
}

/// What a filter may do, and what it remembers.
#[derive(Debug)]
pub struct Tap<'a> {
    pub(super) lines: Vec<Output>,
    pub(super) unanswered: Vec<Value>,
    pub(super) held: Vec<Held>,
    pub(super) edits: u64,
    pub(super) memory: &'a mut HashMap<String, Value>,
    pub(super) open: &'a mut Open,
    pub(super) injected: &'a mut u64,
}

/// What a filter lets through or writes.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Output {
    /// The message as it came.
    Unchanged,
    /// A line, and by whom it is written.
    Line(Party, Vec<u8>),
}

/// A message that is held back, and by whom it was written.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) from: Party,
    pub(super) line: Vec<u8>,
    pub(super) until: Until,
}

/// When a message that is held back is delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Until {
    /// After the next message of the same side.
    Message,
    /// When a request that the filter has sent is answered.
    Answer,
}

impl Tap<'_> {
    /// Lets the message through as it is.
    pub fn forward(&mut self) {
        self.lines.push(Output::Unchanged);
    }

    /// Lets a changed message through.
    pub(crate) fn send(&mut self, changed: &Passing) {
        self.line(changed.from, changed.line());
    }

    /// Holds a message back.
    pub fn hold(&mut self, passing: &Passing, until: Until) {
        self.held.push(Held {
            from: passing.from,
            line: passing.line(),
            until,
        });
    }

    /// Notes that the edit of this index was made, up to the 64th.
    pub(crate) fn edited(&mut self, index: usize) {
        let bit = u32::try_from(index)
            .ok()
            .and_then(|index| 1_u64.checked_shl(index));
        self.edits |= bit.unwrap_or_default();
    }

    /// Lets a message through, changed when it is the one.
    pub fn edit(&mut self, passing: &Passing, hit: bool, change: impl FnOnce(&mut Value)) {
        if !hit {
            return self.forward();
        }
        let mut changed = passing.clone();
        change(&mut changed.value);
        match changed.value == passing.value {
            true => self.forward(),
            false => self.send(&changed),
        }
    }

    /// Drops a message when it is the one.
    pub fn lose(&mut self, passing: &Passing, hit: bool) {
        if !hit {
            return self.forward();
        }
        let called = passing.value.get("method").is_some();
        if let Some(id) = passing.value.get("id")
            && called == (passing.from == Party::Client)
        {
            self.leave_open(id);
        }
    }

    /// The client's request with this id will not be answered, or not for long.
    pub fn leave_open(&mut self, id: &Value) {
        self.unanswered.push(id.clone());
    }

    /// Answers a request in the stead of its receiver when it is the one.
    pub fn reply(&mut self, passing: &Passing, hit: bool, result: &Value) {
        self.answer(passing, hit, "result", result);
    }

    /// Refuses a request in the stead of its receiver when it is the one.
    pub fn refuse(&mut self, passing: &Passing, hit: bool, code: ErrorCode) {
        let error = json!({"code": code, "message": "the filter says no"});
        self.answer(passing, hit, "error", &error);
    }

    /// Sends one side a request that the other one knows nothing of, nor learns what came of it.
    pub fn ask(&mut self, to: Party, method: &str, params: &Value) {
        *self.injected += 1;
        let id = format!("{INJECTED}{}", self.injected);
        self.write_to(
            to,
            &json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}),
        );
    }

    /// Writes a message to one side.
    pub fn write_to(&mut self, to: Party, value: &Value) {
        match to {
            Party::Client => self.to_client(value),
            Party::Agent => self.to_agent(value),
        }
    }

    /// Sends the client an update.
    pub fn update(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.to_client(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    /// Writes a message to the client.
    pub fn to_client(&mut self, value: &Value) {
        self.raw(value.to_string());
    }

    /// Writes a line to the client that need not be a message.
    pub fn raw(&mut self, line: impl Into<Vec<u8>>) {
        self.line(Party::Agent, line);
    }

    /// Writes bytes to the agent that need not be a message.
    pub fn raw_to_agent(&mut self, bytes: impl Into<Vec<u8>>) {
        self.line(Party::Client, bytes);
    }

    /// Writes a message to the agent.
    pub fn to_agent(&mut self, value: &Value) {
        self.line(Party::Client, format!("{value}\n"));
    }

    fn line(&mut self, from: Party, bytes: impl Into<Vec<u8>>) {
        self.lines.push(Output::Line(from, bytes.into()));
    }

    /// What was kept under a name; `null` before that. The params of `initialize`
    /// are kept under that name.
    pub fn kept(&mut self, name: &str) -> &mut Value {
        self.memory.entry(name.to_owned()).or_default()
    }

    /// How many turns of this session run, of any if it is empty; the one that is
    /// being asked for is one of them.
    #[must_use]
    pub fn turns(&self, session: &str) -> usize {
        let of = |params: &Value| params.get("sessionId") == Some(&json!(session));
        let turns = self.open.iter().filter(|((from, _), (method, params))| {
            *from == Party::Client
                && method == "session/prompt"
                && (session.is_empty() || of(params))
        });
        turns.count()
    }

    fn answer(&mut self, passing: &Passing, hit: bool, member: &str, value: &Value) {
        if !hit {
            return self.forward();
        }
        let id = passing.value.get("id").cloned().unwrap_or_default();
        self.open.remove(&(passing.from, id.to_string()));
        let answer = json!({"jsonrpc": "2.0", "id": id, member: value});
        self.write_to(passing.from, &answer);
    }
}

/// What the ids of requests begin with that a filter makes up.
pub(super) const INJECTED: &str = "filter-";
