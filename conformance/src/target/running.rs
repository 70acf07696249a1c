//! A filter at work on connections, and what passed through it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::SyncSender;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::Event;
use super::filter::{Held, INJECTED, Open, Output, Passing, Rewrite, Tap, Until};
use crate::wire::Party;

/// The filter of a target.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    /// The filter.
    pub(super) rewrite: Rewrite,
    /// Whether it tells which requests it leaves unanswered.
    pub(super) tells_losses: bool,
    /// What it has done, on all connections.
    pub(super) applied: Arc<Applied>,
    /// Where what passes is recorded.
    pub(super) traffic: Option<Traffic>,
}

impl Behind {
    pub(super) fn new(rewrite: Rewrite) -> Self {
        Self {
            rewrite,
            tells_losses: false,
            applied: Arc::default(),
            traffic: None,
        }
    }
}

/// What a filter has done.
#[derive(Debug, Default)]
pub struct Applied {
    changed: AtomicBool,
    /// A bit for each edit.
    edits: AtomicU64,
}

impl Applied {
    /// Returns whether anything reached its receiver otherwise than it was written.
    #[must_use]
    pub fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Relaxed)
    }

    /// Returns whether the edit of this index was made; true beyond the 64th.
    #[must_use]
    pub fn has_edited(&self, index: usize) -> bool {
        let bit = u32::try_from(index)
            .ok()
            .and_then(|index| 1_u64.checked_shl(index));
        bit.is_none_or(|bit| self.edits.load(Ordering::Relaxed) & bit != 0)
    }
}

/// The messages of one connection in the order in which they passed.
type Record = Arc<Mutex<Vec<Passing>>>;

/// What passed through filters: the messages of each connection in order.
#[derive(Clone, Debug, Default)]
pub struct Traffic(Arc<Mutex<Vec<Record>>>);

impl Traffic {
    /// Returns whether a filter would have changed any of it after the first `skipped` connections.
    #[must_use]
    pub fn is_changed_by(&self, rewrite: impl Into<Rewrite>, skipped: usize) -> bool {
        let rewrite = rewrite.into();
        let connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.iter().skip(skipped).any(|messages| {
            let mut machine = Machine::new(Behind::new(rewrite));
            let messages = messages.lock().unwrap_or_else(PoisonError::into_inner);
            // Most filters are about messages that most connections have not.
            messages.iter().any(|message| rewrite.concerns(message))
                && (messages.iter()).any(|message| machine.rewrite(message).is_change())
        })
    }

    fn connection(&self) -> Record {
        let record = Record::default();
        let mut connections = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        connections.push(record.clone());
        record
    }
}

/// A filter at work; shared by the thread that reads and the one that sends.
#[derive(Clone, Debug)]
pub(crate) struct Running {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    machine: Machine,
    tells_losses: bool,
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
            tells_losses: behind.tells_losses,
            machine: Machine::new(behind),
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
        state.pass(from, bytes);
    }
}

impl State {
    fn pass(&mut self, from: Party, bytes: Vec<u8>) {
        let written = self.machine.pass(from, bytes);
        for (writer, line) in written.lines {
            // Either end may be gone; then nobody misses the line.
            match writer {
                Party::Agent => drop(self.events.send(Event::Line(line))),
                Party::Client => self.write(line),
            }
        }
        if self.tells_losses {
            for id in written.unanswered {
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

/// A filter on one connection, with its memory. It does no I/O.
#[derive(Debug)]
struct Machine {
    rewrite: Rewrite,
    applied: Arc<Applied>,
    recorded: Option<Record>,
    memory: HashMap<String, Value>,
    open: Open,
    injected: u64,
    held: Vec<Held>,
}

/// What a filter has decided about one message.
#[derive(Debug)]
struct Decision {
    lines: Vec<Output>,
    unanswered: Vec<Value>,
    held: Vec<Held>,
}

impl Decision {
    fn is_change(&self) -> bool {
        self.lines != [Output::Unchanged] || !self.unanswered.is_empty()
    }
}

/// What a filter has written for one message.
#[derive(Debug, Default)]
struct Written {
    lines: Vec<(Party, Vec<u8>)>,
    /// The ids of requests that will not be answered.
    unanswered: Vec<Value>,
}

impl Machine {
    fn new(behind: Behind) -> Self {
        Self {
            rewrite: behind.rewrite,
            applied: behind.applied,
            recorded: behind.traffic.map(|traffic| traffic.connection()),
            memory: HashMap::new(),
            open: HashMap::new(),
            injected: 0,
            held: Vec::new(),
        }
    }

    fn pass(&mut self, from: Party, bytes: Vec<u8>) -> Written {
        let mut written = Written::default();
        let (value, raw) = match serde_json::from_slice(&bytes) {
            Ok(value @ Value::Object(_)) => (value, None),
            _ => (Value::Null, Some(bytes.clone())),
        };
        let is_answer = value.get("method").is_none();
        if is_answer && id_of(&value).is_some_and(|id| id.contains(INJECTED)) {
            self.release(&mut written, |held| held.until == Until::Answer);
            return written;
        }
        let passing = self.identified(from, value, raw);
        let decision = self.rewrite(&passing);
        self.applied
            .changed
            .fetch_or(decision.is_change(), Ordering::Relaxed);
        if let Some(recorded) = &self.recorded {
            let mut recorded = recorded.lock().unwrap_or_else(PoisonError::into_inner);
            recorded.push(passing);
        }
        let lines = decision.lines.into_iter().map(|output| match output {
            Output::Unchanged => (from, bytes.clone()),
            Output::Line(writer, line) => (writer, line),
        });
        written.lines.extend(lines);
        written.unanswered = decision.unanswered;
        self.release(&mut written, |held| {
            held.until == Until::Message && held.from == from
        });
        self.held.extend(decision.held);
        written
    }

    /// Finds the method and params of a message.
    fn identified(&self, from: Party, value: Value, raw: Option<Vec<u8>>) -> Passing {
        let called = value.get("method").and_then(Value::as_str);
        let answered = match (called, id_of(&value)) {
            (None, Some(id)) => Some(self.open.get(&(from.peer(), id)).cloned()),
            _ => None,
        };
        let (method, params) = match answered {
            Some(request) => request.unwrap_or_default(),
            None => {
                let params = value.get("params").cloned().unwrap_or_default();
                (called.unwrap_or_default().to_owned(), Arc::new(params))
            }
        };
        Passing {
            from,
            method,
            params,
            value,
            raw,
        }
    }

    /// Has the filter decide about a message, and remembers what later ones need.
    fn rewrite(&mut self, passing: &Passing) -> Decision {
        if let Some(id) = id_of(&passing.value) {
            if passing.value.get("method").is_some_and(Value::is_string) {
                let request = (passing.method.clone(), passing.params.clone());
                self.open.insert((passing.from, id), request);
            } else {
                self.open.remove(&(passing.from.peer(), id));
            }
        }
        if passing.asks("initialize") {
            let params = Value::clone(&passing.params);
            self.memory.insert("initialize".to_owned(), params);
        }
        let mut tap = Tap {
            lines: Vec::new(),
            unanswered: Vec::new(),
            held: Vec::new(),
            edits: 0,
            memory: &mut self.memory,
            open: &mut self.open,
            injected: &mut self.injected,
        };
        self.rewrite.pass(&mut tap, passing);
        self.applied.edits.fetch_or(tap.edits, Ordering::Relaxed);
        Decision {
            lines: tap.lines,
            unanswered: tap.unanswered,
            held: tap.held,
        }
    }

    /// Delivers what was held back until now.
    fn release(&mut self, written: &mut Written, is_due: impl Fn(&Held) -> bool) {
        let due = self.held.extract_if(.., |held| is_due(held));
        written.lines.extend(due.map(|held| (held.from, held.line)));
    }
}

fn id_of(value: &Value) -> Option<String> {
    value.get("id").map(Value::to_string)
}

/// Returns what a filter writes when these lines pass on one connection.
#[cfg(test)]
pub(crate) fn rewritten(rewrite: Rewrite, lines: &[(Party, &str)]) -> Vec<(Party, String)> {
    let mut machine = Machine::new(Behind::new(rewrite));
    let written = lines.iter().flat_map(|(from, line)| {
        let written = machine.pass(*from, line.as_bytes().to_vec());
        written.lines
    });
    let text = |line: Vec<u8>| String::from_utf8_lossy(&line).trim().to_owned();
    written.map(|(from, line)| (from, text(line))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::target::Filter;

    /// What passed on two connections: one with `a`, and one with a request and its answer.
    fn traffic() -> Traffic {
        let traffic = Traffic::default();
        let request = json!({"id": 1, "method": "m", "params": {"b": 1}});
        let answer = json!({"id": 1, "result": {}});
        let first = vec![(Party::Client, json!({"method": "a"}))];
        for messages in [
            first,
            vec![(Party::Client, request), (Party::Agent, answer)],
        ] {
            let mut behind = Behind::new(Rewrite::NOTHING);
            behind.traffic = Some(traffic.clone());
            let mut machine = Machine::new(behind);
            for (from, message) in messages {
                machine.pass(from, message.to_string().into_bytes());
            }
        }
        traffic
    }

    #[test]
    fn recorded_traffic_tells_what_a_filter_would_change() {
        let changed = |filter: Filter, skipped| traffic().is_changed_by(filter, skipped);
        assert!(!changed(|tap, _| tap.forward(), 0));
        assert!(changed(|tap, it| tap.lose(it, it.asks("a")), 0));
        assert!(!changed(|tap, it| tap.lose(it, it.asks("a")), 1));
        assert!(changed(|tap, it| tap.lose(it, it.succeeds("m")), 1));
        let by_request: Filter = |tap, it| tap.lose(it, it.succeeds("m") && it.params["b"] == 1);
        assert!(changed(by_request, 1));
        assert!(!changed(|tap, it| tap.lose(it, it.succeeds("n")), 1));
        let writes: Filter = |tap, _| {
            tap.forward();
            tap.raw("more");
        };
        assert!(changed(writes, 1));
    }
}
