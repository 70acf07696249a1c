//! A filter between the suite and an agent: it sees every message in both
//! directions and decides what becomes of it.
//!
//! This is how the checks are proven: an agent that obeys a rule, behind a filter
//! that breaks it, is an agent that breaks the rule. The filter works on lines, so
//! it can write what no typed agent would.

use std::collections::HashMap;
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::Event;
use crate::wire::Party;

/// Decides what becomes of a message: forwards it, changes it, drops it or adds
/// others, by calling the tap.
pub type Filter = fn(&mut Tap<'_>, Passing);

/// A filter that an agent is behind.
#[derive(Clone, Copy, Debug)]
pub(super) struct Behind {
    /// The filter.
    pub(super) filter: Filter,
    /// Whether it tells which requests it leaves unanswered.
    pub(super) tells_losses: bool,
}

/// What the filter keeps of the requests that are open: method and params, by who
/// sent them and their id.
type Open = HashMap<(Party, String), (String, Value)>;

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Who wrote it.
    pub from: Party,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// Its params, or those of the request it answers.
    pub params: Value,
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

    fn calls(&self, from: Party, method: &str) -> bool {
        self.from == from && self.value.get("method").and_then(Value::as_str) == Some(method)
    }
}

/// What a filter may do, and what it remembers.
#[derive(Debug)]
pub struct Tap<'a> {
    lines: Vec<(Party, Vec<u8>)>,
    unanswered: Vec<Value>,
    memory: &'a mut HashMap<String, Value>,
    open: &'a mut Open,
    injected: &'a mut u64,
}

impl Tap<'_> {
    /// Lets a message through as it is.
    pub fn forward(&mut self, passing: &Passing) {
        match (passing.from, &passing.raw) {
            (from, Some(raw)) => self.lines.push((from, raw.clone())),
            (Party::Agent, None) => self.to_client(&passing.value),
            (Party::Client, None) => self.to_agent(&passing.value),
        }
    }

    /// Lets a message through, changed when it is the one.
    pub fn edit(&mut self, mut passing: Passing, hit: bool, change: impl FnOnce(&mut Value)) {
        if hit {
            change(&mut passing.value);
        }
        self.forward(&passing);
    }

    /// Drops a message when it is the one.
    pub fn lose(&mut self, passing: &Passing, hit: bool) {
        if !hit {
            return self.forward(passing);
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
    pub fn refuse(&mut self, passing: &Passing, hit: bool, code: i64) {
        let error = json!({"code": code, "message": "the filter says no"});
        self.answer(passing, hit, "error", &error);
    }

    /// Sends the client a request that the agent knows nothing of, nor learns what
    /// came of it.
    pub fn ask_client(&mut self, method: &str, params: &Value) {
        *self.injected += 1;
        let id = format!("{INJECTED}{}", self.injected);
        self.to_client(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
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
        self.lines.push((Party::Agent, line.into()));
    }

    /// Writes bytes to the agent that need not be a message.
    pub fn raw_to_agent(&mut self, bytes: impl Into<Vec<u8>>) {
        self.lines.push((Party::Client, bytes.into()));
    }

    /// Writes a message to the agent.
    pub fn to_agent(&mut self, value: &Value) {
        self.lines
            .push((Party::Client, format!("{value}\n").into_bytes()));
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
            return self.forward(passing);
        }
        let id = passing.value.get("id").cloned().unwrap_or_default();
        self.open.remove(&(passing.from, id.to_string()));
        let answer = json!({"jsonrpc": "2.0", "id": id, member: value});
        match passing.from {
            Party::Client => self.to_client(&answer),
            Party::Agent => self.to_agent(&answer),
        }
    }
}

/// What the ids of requests begin with that a filter makes up.
const INJECTED: &str = "filter-";

/// A filter at work; shared by the thread that reads and the one that sends.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    behind: Behind,
    memory: HashMap<String, Value>,
    open: Open,
    injected: u64,
    events: SyncSender<Event>,
    /// `None` once the input is closed; the writer ends with its last sender.
    input: Option<SyncSender<Vec<u8>>>,
}

impl Running {
    pub(super) fn new(
        behind: Behind,
        events: SyncSender<Event>,
        input: SyncSender<Vec<u8>>,
    ) -> Self {
        let state = State {
            behind,
            memory: HashMap::new(),
            open: HashMap::new(),
            injected: 0,
            events,
            input: Some(input),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Takes bytes that are meant for the agent.
    pub(crate) fn to_agent(&self, bytes: Vec<u8>) {
        self.pass(Party::Client, bytes);
    }

    /// Takes a line that the agent wrote.
    pub(super) fn to_client(&self, line: &[u8]) {
        self.pass(Party::Agent, line.to_vec());
    }

    /// Closes the agent's input.
    pub(crate) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.input = None;
    }

    fn pass(&self, from: Party, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => state.pass(from, value, None),
            _ => state.pass(from, Value::Null, Some(bytes)),
        }
    }
}

impl State {
    fn pass(&mut self, from: Party, value: Value, raw: Option<Vec<u8>>) {
        let id = value.get("id").map(Value::to_string);
        let called = value.get("method").and_then(Value::as_str);
        let params = value.get("params").cloned().unwrap_or_default();
        let (method, params) = match (called, id) {
            (Some(method), Some(id)) => {
                let request = (method.to_owned(), params);
                self.open.insert((from, id), request.clone());
                request
            }
            (Some(method), None) => (method.to_owned(), params),
            (None, Some(id)) if id.contains(INJECTED) => return,
            (None, Some(id)) => self.open.remove(&(from.peer(), id)).unwrap_or_default(),
            (None, None) => (String::new(), params),
        };
        let passing = Passing {
            from,
            method,
            params,
            value,
            raw,
        };
        if passing.asks("initialize") {
            let params = passing.params.clone();
            self.memory.insert("initialize".to_owned(), params);
        }
        let mut tap = Tap {
            lines: Vec::new(),
            unanswered: Vec::new(),
            memory: &mut self.memory,
            open: &mut self.open,
            injected: &mut self.injected,
        };
        (self.behind.filter)(&mut tap, passing);
        let (lines, unanswered) = (tap.lines, tap.unanswered);
        for (writer, line) in lines {
            // Either end may be gone; then nobody misses the line.
            match writer {
                Party::Agent => drop(self.events.send(Event::Line(line))),
                Party::Client => self.write(line),
            }
        }
        if self.behind.tells_losses {
            for id in unanswered {
                // As above.
                let _ = self.events.send(Event::Unanswered(id));
            }
        }
    }

    fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // The writer has ended because the agent has, or the agent does not read.
            let _ = input.try_send(bytes);
        }
    }
}
