//! A filter between the suite and an agent: it sees every message in both
//! directions and decides what becomes of it.
//!
//! This is how the checks are proven: an agent that obeys a rule, behind a filter
//! that breaks it, is an agent that breaks the rule. The filter works on lines, so
//! it can write what no typed agent would.

use std::collections::HashMap;
use std::sync::mpsc::{Sender, SyncSender};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::Event;
use crate::wire::Party;

/// Decides what becomes of a message: forwards it, changes it, drops it or adds
/// others, by calling the tap.
pub type Filter = fn(&mut Tap<'_>, Passing);

/// A message on its way.
#[derive(Clone, Debug)]
pub struct Passing {
    /// Who wrote it.
    pub from: Party,
    /// Its method, or that of the request it answers.
    pub method: String,
    /// The message.
    pub value: Value,
}

impl Passing {
    /// Whether it is what the agent answered to this method.
    #[must_use]
    pub fn answers(&self, method: &str) -> bool {
        self.from == Party::Agent && self.method == method && self.value.get("method").is_none()
    }

    /// Whether it is a request or notification of this party.
    #[must_use]
    pub fn calls(&self, from: Party, method: &str) -> bool {
        self.from == from && self.value.get("method").and_then(Value::as_str) == Some(method)
    }
}

/// What a filter may do, and what it remembers.
#[derive(Debug)]
pub struct Tap<'a> {
    lines: Vec<(Party, Vec<u8>)>,
    memory: &'a mut HashMap<String, Value>,
}

impl Tap<'_> {
    /// Lets a message through as it is.
    pub fn forward(&mut self, passing: &Passing) {
        match passing.from {
            Party::Agent => self.to_client(&passing.value),
            Party::Client => self.to_agent(&passing.value),
        }
    }

    /// Writes a message to the client.
    pub fn to_client(&mut self, value: &Value) {
        self.raw(value.to_string());
    }

    /// Writes a line to the client that need not be a message.
    pub fn raw(&mut self, line: impl Into<Vec<u8>>) {
        self.lines.push((Party::Agent, line.into()));
    }

    /// Writes a message to the agent.
    pub fn to_agent(&mut self, value: &Value) {
        self.lines
            .push((Party::Client, format!("{value}\n").into_bytes()));
    }

    /// What was kept under a name; `null` before that.
    pub fn kept(&mut self, name: &str) -> &mut Value {
        self.memory.entry(name.to_owned()).or_default()
    }
}

/// A filter at work; shared by the thread that reads and the one that sends.
#[derive(Clone, Debug)]
pub(super) struct Running {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    filter: Filter,
    memory: HashMap<String, Value>,
    /// Methods by the writer and id of their request.
    open: HashMap<(Party, String), String>,
    events: SyncSender<Event>,
    /// `None` once the input is closed; the writer ends with its last sender.
    input: Option<Sender<Vec<u8>>>,
}

impl Running {
    pub(super) fn new(filter: Filter, events: SyncSender<Event>, input: Sender<Vec<u8>>) -> Self {
        let state = State {
            filter,
            memory: HashMap::new(),
            open: HashMap::new(),
            events,
            input: Some(input),
        };
        Self {
            state: Arc::new(Mutex::new(state)),
        }
    }

    /// Takes bytes that are meant for the agent.
    pub(super) fn to_agent(&self, bytes: Vec<u8>) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => state.pass(Party::Client, value),
            // What is no message is none of the filter's business.
            _ => state.write(bytes),
        }
    }

    /// Closes the agent's input.
    pub(super) fn close(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.input = None;
    }

    /// Takes a line that the agent wrote.
    pub(super) fn to_client(&self, line: &[u8]) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match serde_json::from_slice(line) {
            Ok(value @ Value::Object(_)) => state.pass(Party::Agent, value),
            _ => drop(state.events.send(Event::Line(line.to_vec()))),
        }
    }
}

impl State {
    fn pass(&mut self, from: Party, value: Value) {
        let id = value.get("id").map(Value::to_string);
        let method = match (value.get("method").and_then(Value::as_str), id) {
            (Some(method), Some(id)) => {
                self.open.insert((from, id), method.to_owned());
                method.to_owned()
            }
            (Some(method), None) => method.to_owned(),
            (None, Some(id)) => self.open.remove(&(from.peer(), id)).unwrap_or_default(),
            (None, None) => String::new(),
        };
        let mut tap = Tap {
            lines: Vec::new(),
            memory: &mut self.memory,
        };
        let passing = Passing {
            from,
            method,
            value,
        };
        (self.filter)(&mut tap, passing);
        for (writer, line) in tap.lines {
            // Either end may be gone; then nobody misses the line.
            match writer {
                Party::Agent => drop(self.events.send(Event::Line(line))),
                Party::Client => self.write(line),
            }
        }
    }

    fn write(&self, bytes: Vec<u8>) {
        if let Some(input) = &self.input {
            // The writer has ended because the agent has.
            let _ = input.send(bytes);
        }
    }
}
