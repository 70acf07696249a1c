//! The agent's side of a scenario: sends, asks, waits, and writes everything down.
//!
//! The record is a file of one JSON object a line, written before anything else is
//! done with a message: `{"from", "at" in milliseconds, "value" or "raw"}`, and
//! `{"mark"}` where the suite is to do something to the client.

use std::collections::HashSet;
use std::fmt;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use crate::transcript::LINE_LIMIT;
use crate::wire::{Party, Version};

/// How long the client may take for one answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// How long a client that does not ask its user may take to answer.
const CONSIDERATION: Duration = Duration::from_millis(500);

/// How many lines of the client wait to be processed.
const QUEUE: usize = 1024;

/// The text that ends a scenario; a client that shows it has reached the end.
pub(super) const BARRIER_METHOD: &str = "the scenario is over";

/// A request that no client knows, sent to see whether it answers still.
pub(super) const STILL_THERE: &str = "_acp-conformance/still-there";

/// A request that no client knows, sent before what it need not understand: one that does not answer it
/// shows nothing by its silence afterwards.
pub(super) const BEFORE: &str = "_acp-conformance/before";

/// Ends a scenario.
pub(super) fn hello(stage: &mut ScriptedAgent) -> bool {
    stage.text(BARRIER_METHOD);
    true
}

/// The stage of one scenario.
pub struct ScriptedAgent {
    lines: Receiver<Vec<u8>>,
    output: Box<dyn Write + Send>,
    record: File,
    tell: Box<dyn FnMut(&str) + Send>,
    started: Instant,
    next_id: u64,
    /// The version of the scenario. A client of both versions declares its capabilities twice.
    pub(super) protocol: Version,
    /// Whether the client has cancelled the turn.
    pub cancelled: bool,
    /// The params of the client's `initialize`.
    pub client: Value,
    /// The session's working directory, as the client gave it.
    pub folder: String,
    /// Requests of the client that came while an answer was awaited.
    pub waiting: Vec<Value>,
    /// The options of the session, with their values.
    pub(super) options: Value,
    /// The ids of the agent's requests that the client has answered.
    answered: HashSet<String>,
}

impl ScriptedAgent {
    /// A stage on a pair of streams, with its record.
    pub(super) fn new(
        protocol: Version,
        record: File,
        tell: impl FnMut(&str) + Send + 'static,
        input: impl Read + Send + 'static,
        output: impl Write + Send + 'static,
    ) -> Self {
        let (sender, lines) = sync_channel(QUEUE);
        thread::spawn(move || {
            let mut input = BufReader::new(input);
            loop {
                let mut line = Vec::new();
                let limit = LINE_LIMIT as u64;
                match input.by_ref().take(limit).read_until(b'\n', &mut line) {
                    Ok(1..) if sender.send(line).is_ok() => {}
                    _ => return,
                }
            }
        });
        Self {
            lines,
            output: Box::new(output),
            record,
            tell: Box::new(tell),
            started: Instant::now(),
            next_id: 0,
            protocol,
            cancelled: false,
            client: Value::Null,
            folder: String::new(),
            waiting: Vec::new(),
            options: Value::Null,
            answered: HashSet::new(),
        }
    }

    /// The client's next message before `deadline`; `Err` when it has closed.
    pub(super) fn next(&mut self, deadline: Instant) -> Result<Option<Value>, ()> {
        let line = loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if !line.trim_ascii().is_empty() => break line,
                // An empty line is no message and no harm, as those of agents.
                Ok(_) if Instant::now() < deadline => {}
                Ok(_) | Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(()),
            }
        };
        match serde_json::from_slice::<Value>(&line) {
            Ok(value) => {
                self.write_down(Party::Client, "value", &value);
                if value.get("method") == Some(&json!("session/cancel")) {
                    self.cancelled = true;
                }
                if let (None, Some(id)) = (value.get("method"), value.get("id")) {
                    self.answered.insert(id.to_string());
                }
                Ok(Some(value))
            }
            Err(_) => {
                let text = String::from_utf8_lossy(&line).into_owned();
                self.write_down(Party::Client, "raw", &json!(text));
                Ok(Some(Value::Null))
            }
        }
    }

    /// Sends a message.
    pub fn send(&mut self, value: &Value) {
        self.write_down(Party::Agent, "value", value);
        self.write(&format!("{value}\n"));
    }

    /// Sends a line that need not be a message.
    pub fn raw(&mut self, line: &str) {
        self.write_down(Party::Agent, "raw", &json!(line));
        self.write(&format!("{line}\n"));
    }

    /// Answers a request of the client.
    pub fn answer(&mut self, request: &Value, result: &Value) {
        let id = request.get("id").cloned().unwrap_or_default();
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Refuses a request of the client.
    pub fn refuse(&mut self, request: &Value, code: ErrorCode, message: &str) {
        let id = request.get("id").cloned().unwrap_or_default();
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Sends a notification.
    pub fn notify(&mut self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Sends an update of the session.
    pub fn update(&mut self, update: &Value) {
        self.update_of(SESSION, update);
    }

    fn update_of(&mut self, session: &str, update: &Value) {
        let params = json!({"sessionId": session, "update": update});
        self.notify("session/update", &params);
    }

    /// Says something to the user.
    pub fn text(&mut self, text: &str) {
        self.text_in(SESSION, text);
    }

    /// Says something in a session that the client may not know.
    pub(super) fn text_in(&mut self, session: &str, text: &str) {
        let content = json!({"type": "text", "text": text});
        let mut chunk = json!({"sessionUpdate": "agent_message_chunk", "content": content});
        if self.protocol == Version::V2 {
            chunk["messageId"] = "agent-1".into();
        }
        self.update_of(session, &chunk);
    }

    /// Asks the client something, in the session, and waits for the answer: its
    /// result, or `null` for an error or none at all.
    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params);
        let answers = |value: &Value| value.get("method").is_none() && value.get("id") == Some(&id);
        let answer = self.wait(PATIENCE, answers);
        let answer = answer.and_then(|answer| answer.get("result").cloned());
        answer.unwrap_or_default()
    }

    /// Sends the client a request, in the session. Returns its id.
    pub fn begin(&mut self, method: &str, mut params: Value) -> Value {
        if let Some(params) = params.as_object_mut() {
            params.insert("sessionId".to_owned(), json!(SESSION));
        }
        self.next_id += 1;
        let id = json!(format!("agent-{}", self.next_id));
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Waits until the client has answered the request with this id. Whether it has.
    pub fn is_answered(&mut self, id: &Value) -> bool {
        self.is_answered_within(PATIENCE, id)
    }

    /// Waits until the client has answered the requests with these ids, for all of them together.
    pub(super) fn are_answered(&mut self, ids: &[Value]) {
        let deadline = Instant::now() + PATIENCE;
        for id in ids {
            self.is_answered_within(deadline.saturating_duration_since(Instant::now()), id);
        }
    }

    fn is_answered_within(&mut self, limit: Duration, id: &Value) -> bool {
        let key = id.to_string();
        if !self.answered.contains(&key) {
            let answers =
                |value: &Value| value.get("method").is_none() && value.get("id") == Some(id);
            self.wait(limit, answers);
        }
        self.answered.contains(&key)
    }

    /// Asks for permission, cancels the request while the client waits for its user, and waits for the
    /// answer.
    pub fn ask_and_cancel(&mut self, question: Value) {
        let id = self.begin("session/request_permission", question);
        if !self.is_answered_within(CONSIDERATION, &id) {
            self.notify("$/cancel_request", &json!({"requestId": id}));
            self.is_answered(&id);
        }
    }

    /// Asks for permission, has the client interrupted while it waits for its user, and waits for
    /// the answer. In version 2 the agent cancels the question; the client may answer it before.
    pub fn ask_and_interrupt(&mut self, question: Value) {
        let id = self.begin("session/request_permission", question);
        // One that decides by itself has answered by then.
        if !self.is_answered_within(CONSIDERATION, &id) && self.interrupted() {
            if self.protocol == Version::V2 {
                self.notify("$/cancel_request", &json!({"requestId": id}));
            }
            self.is_answered(&id);
        }
    }

    /// Waits for a message; others are kept for later.
    pub fn wait(&mut self, limit: Duration, wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        let deadline = Instant::now() + limit;
        while let Ok(Some(value)) = self.next(deadline) {
            if wanted(&value) {
                return Some(value);
            }
            if is_request(&value) {
                self.waiting.push(value);
            }
        }
        None
    }

    /// Waits until a request of the client waits to be served, for a limited time.
    pub(super) fn await_request(&mut self, limit: Duration) {
        let deadline = Instant::now() + limit;
        while self.waiting.is_empty()
            && let Ok(Some(value)) = self.next(deadline)
        {
            if is_request(&value) {
                self.waiting.push(value);
            }
        }
    }

    /// Has the suite interrupt the client, and waits for its `session/cancel`. Whether it came, and the client
    /// stays: one that ends its connection with that has nothing more to obey.
    pub fn interrupted(&mut self) -> bool {
        self.mark("interrupt");
        let cancel = json!("session/cancel");
        let is_cancel = |value: &Value| value.get("method") == Some(&cancel);
        self.wait(2 * PATIENCE, is_cancel).is_some() && self.stays(CONSIDERATION)
    }

    /// Whether the client keeps its connection for this long.
    fn stays(&mut self, limit: Duration) -> bool {
        let deadline = Instant::now() + limit;
        while Instant::now() < deadline {
            match self.next(deadline) {
                Ok(Some(value)) if is_request(&value) => self.waiting.push(value),
                Ok(_) => {}
                Err(()) => return false,
            }
        }
        true
    }

    /// Why the turn has ended.
    #[must_use]
    pub fn stop_reason(&self) -> &'static str {
        match self.cancelled {
            true => "cancelled",
            false => "end_turn",
        }
    }

    /// Asks the user to fill in a form, and completes what was never asked.
    pub fn ask_by_form(&mut self) {
        let form = json!({
            "mode": "form", "message": "Who are you?",
            "requestedSchema": {
                "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
            },
        });
        self.ask("elicitation/create", form);
        let completed = json!({"elicitationId": "never-asked"});
        self.notify("elicitation/complete", &completed);
    }

    /// What the client declares at this place: neither absent, `null` nor `false`.
    #[must_use]
    pub fn declares(&self, pointer: &str) -> bool {
        let member = match self.protocol {
            Version::V1 => "clientCapabilities",
            Version::V2 => "capabilities",
        };
        let capabilities = self.client.get(member);
        let value = capabilities.and_then(|all| all.pointer(pointer));
        value.is_some_and(|value| !value.is_null() && value != &Value::Bool(false))
    }

    /// Asks the suite to do something to the client.
    pub fn mark(&mut self, mark: &str) {
        // Without its record the scenario is worth nothing; the suite sees that.
        let _ = writeln!(self.record, "{}", json!({"mark": mark}));
        if mark != CLOSED {
            (self.tell)(mark);
        }
    }

    fn write(&mut self, line: &str) {
        let written = self.output.write_all(line.as_bytes());
        // A client that is gone shows in its silence.
        let _ = written.and_then(|()| self.output.flush());
    }

    fn write_down(&mut self, from: Party, member: &str, value: &Value) {
        let at = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        // As above.
        let _ = writeln!(
            self.record,
            "{}",
            json!({"from": from, "at": at, member: value})
        );
    }
}

impl fmt::Debug for ScriptedAgent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("ScriptedAgent");
        debug.field("folder", &self.folder).finish_non_exhaustive()
    }
}

fn is_request(value: &Value) -> bool {
    value.get("id").is_some() && value.get("method").is_some()
}

/// The mark that says that the client has closed the agent's input; nothing is to be done.
pub(super) const CLOSED: &str = "closed";

/// The only session that a scenario knows.
pub(super) const SESSION: &str = "scenario-session";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workdir::Workdir;

    #[test]
    fn an_empty_line_of_a_client_is_not_recorded() {
        let folder = Workdir::new().unwrap();
        let path = folder.path().join("record.jsonl");
        let record = File::create(&path).unwrap();
        let input: &[u8] = b"\n \r\n{\"id\":1}\n\noops\n";
        let mut stage = ScriptedAgent::new(Version::V2, record, |_| {}, input, std::io::sink());
        let deadline = Instant::now() + PATIENCE;
        assert_eq!(stage.next(deadline), Ok(Some(json!({"id": 1}))));
        assert_eq!(stage.next(deadline), Ok(Some(Value::Null)));
        assert_eq!(stage.next(deadline), Err(()));
        let record = std::fs::read_to_string(path).unwrap();
        assert_eq!(record.lines().count(), 2, "{record}");
        assert!(record.contains(r#""raw":"oops\n""#), "{record}");
    }

    #[test]
    fn a_client_that_leaves_with_its_cancellation_is_asked_nothing_more() {
        let folder = Workdir::new().unwrap();
        let interrupted = |input: Box<dyn Read + Send>| {
            let record = File::create(folder.path().join("record.jsonl")).unwrap();
            let mut stage = ScriptedAgent::new(Version::V1, record, |_| {}, input, std::io::sink());
            (stage.interrupted(), stage.waiting.len())
        };
        let cancel = "{\"method\":\"session/cancel\"}\n{\"id\":1,\"method\":\"session/list\"}\n";
        assert_eq!(interrupted(Box::new(cancel.as_bytes())), (false, 1));
        let (stays, mut writer) = std::io::pipe().unwrap();
        writer.write_all(cancel.as_bytes()).unwrap();
        assert_eq!(interrupted(Box::new(stays)), (true, 1));
        drop(writer);
    }
}
