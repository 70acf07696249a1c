//! A JSON-RPC connection over two byte streams, with a hook on each direction.
//!
//! A defect is a hook: it receives one message and returns what happens instead. Messages are
//! `serde_json` values; no type of the SDK is used.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

/// Limit of a request to the peer.
const ANSWER_LIMIT: Duration = Duration::from_secs(60);

/// What a hook returns for a message.
pub(crate) enum Step {
    /// Handles this message as if the peer had sent it.
    Handle(Value),
    /// Writes this message.
    Write(Value),
    /// Writes this text and a newline.
    Raw(String),
}

/// Replaces one message by steps.
pub(crate) type Hook = fn(&mut Memory, Value) -> Vec<Step>;

/// What the hooks of a connection remember between messages.
#[derive(Default)]
pub(crate) struct Memory {
    /// Messages that a hook holds back.
    pub(crate) held: Vec<Value>,
    /// A value that a hook keeps.
    pub(crate) note: Value,
    /// The method of each request, received and sent, by its id.
    received: HashMap<String, String>,
    sent: HashMap<String, String>,
}

impl Memory {
    /// The method of the request that `response` answers; empty for a request.
    pub(crate) fn answered(&self, response: &Value) -> String {
        self.method(&self.received, response)
    }

    /// The method of the own request that the peer's `response` answers.
    pub(crate) fn asked(&self, response: &Value) -> String {
        self.method(&self.sent, response)
    }

    fn method(&self, table: &HashMap<String, String>, response: &Value) -> String {
        let request = response.get("method").is_some();
        let method = table.get(&response["id"].to_string());
        method.filter(|_| !request).cloned().unwrap_or_default()
    }
}

/// One defect: a name, a sentence, and its hooks.
pub(crate) struct Fault {
    pub(crate) name: &'static str,
    pub(crate) defect: &'static str,
    incoming: Option<Hook>,
    outgoing: Option<Hook>,
}

/// A fault without hooks.
pub(crate) const fn fault(name: &'static str, defect: &'static str) -> Fault {
    Fault {
        name,
        defect,
        incoming: None,
        outgoing: None,
    }
}

impl Fault {
    /// Runs `hook` on each message from the peer; one that is not JSON is `null`.
    pub(crate) const fn incoming(mut self, hook: Hook) -> Self {
        self.incoming = Some(hook);
        self
    }

    /// Runs `hook` on each message to the peer.
    pub(crate) const fn outgoing(mut self, hook: Hook) -> Self {
        self.outgoing = Some(hook);
        self
    }
}

/// Handles requests and notifications of the peer.
pub(crate) trait Role: Send + Sync + 'static {
    fn handle(self: Arc<Self>, method: &str, id: Option<Value>, params: Value);

    /// Whether the id of a request may be null.
    fn has_null_ids(&self) -> bool {
        true
    }
}

/// One side of a connection.
pub(crate) struct Connection {
    output: Mutex<Output>,
    pending: Mutex<Pending>,
    fault: &'static Fault,
}

struct Output {
    writer: Option<Box<dyn Write + Send>>,
    memory: Memory,
}

#[derive(Default)]
struct Pending {
    closed: bool,
    last: u64,
    waiting: HashMap<u64, Sender<Value>>,
    /// The sessions of permission requests, by their ids.
    questions: HashMap<u64, String>,
}

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    pub(crate) fn new(writer: impl Write + Send + 'static, fault: &'static Fault) -> Self {
        Self {
            output: Mutex::new(Output {
                writer: Some(Box::new(writer)),
                memory: Memory::default(),
            }),
            pending: Mutex::default(),
            fault,
        }
    }

    /// Reads messages until the input ends; pending requests fail then.
    pub(crate) fn read(&self, mut input: impl BufRead, role: &Arc<impl Role>) {
        let mut line = Vec::new();
        while input.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {
            if !line.trim_ascii().is_empty() {
                let message: Value = serde_json::from_slice(&line).unwrap_or_default();
                for message in self.received(message) {
                    self.dispatch(message, role);
                }
            }
            line.clear();
        }
        let mut pending = lock(&self.pending);
        pending.closed = true;
        pending.waiting.clear();
    }

    fn received(&self, message: Value) -> Vec<Value> {
        let mut output = lock(&self.output);
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            let key = (id.to_string(), method.to_owned());
            output.memory.received.extend([key]);
        }
        match self.fault.incoming {
            Some(hook) => {
                let steps = hook(&mut output.memory, message);
                output.run(steps)
            }
            None => vec![message],
        }
    }

    fn dispatch(&self, message: Value, role: &Arc<impl Role>) {
        let id = message.get("id").cloned();
        let Some(method) = message["method"].as_str() else {
            if message.get("result").is_some() || message.get("error").is_some() {
                return self.respond(message);
            }
            let code = if message.is_null() { -32700 } else { -32600 };
            return self.error(Value::Null, code, "not a message");
        };
        let valid = match id {
            None | Some(Value::Number(_) | Value::String(_)) => true,
            Some(Value::Null) => role.has_null_ids(),
            Some(_) => false,
        };
        if message["jsonrpc"] != "2.0" || !valid {
            let id = id.filter(|_| valid).unwrap_or_default();
            return self.error(id, -32600, "not a request");
        }
        let params = message.get("params").cloned().unwrap_or_default();
        Arc::clone(role).handle(method, id, params);
    }

    fn respond(&self, response: Value) {
        let id = response["id"].as_u64().unwrap_or_default();
        if let Some(sender) = lock(&self.pending).waiting.remove(&id) {
            // The caller may have stopped waiting.
            let _gone = sender.send(response);
        }
    }

    /// Sends a message, through the hook.
    fn send(&self, message: Value) {
        let mut output = lock(&self.output);
        if let (Some(id), Some(method)) = (message.get("id"), message["method"].as_str()) {
            let key = (id.to_string(), method.to_owned());
            output.memory.sent.extend([key]);
        }
        let steps = match self.fault.outgoing {
            Some(hook) => hook(&mut output.memory, message),
            None => vec![Step::Write(message)],
        };
        let responses = output.run(steps);
        drop(output);
        responses
            .into_iter()
            .for_each(|response| self.respond(response));
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    pub(crate) fn result(&self, id: Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(crate) fn error(&self, id: Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    /// Sends a request and waits for its response, up to 60 s.
    pub(crate) fn call(&self, method: &str, params: Value) -> Result<Value, String> {
        let (sender, receiver) = mpsc::channel();
        let mut pending = lock(&self.pending);
        if pending.closed {
            return Err(format!("{method}: the connection is closed"));
        }
        pending.last += 1;
        let id = pending.last;
        pending.waiting.insert(id, sender);
        if method == "session/request_permission" {
            let session = params["sessionId"].as_str().unwrap_or_default();
            pending.questions.insert(id, session.to_owned());
        }
        drop(pending);
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut response = receiver.recv_timeout(ANSWER_LIMIT).map_err(|e| match e {
            RecvTimeoutError::Timeout => format!("{method}: no response within 60 s"),
            RecvTimeoutError::Disconnected => format!("{method}: the connection is closed"),
        })?;
        match response.get("error") {
            Some(error) => Err(format!("{method}: {error}")),
            None => Ok(response["result"].take()),
        }
    }

    /// Cancels the permission requests of a session, and waits for them no longer.
    pub(crate) fn cancel_questions(&self, session: &str) {
        let mut pending = lock(&self.pending);
        let of = pending.questions.iter().filter(|(_, of)| *of == session);
        let ids: Vec<u64> = of.map(|(id, _)| *id).collect();
        for id in ids {
            pending.questions.remove(&id);
            let Some(sender) = pending.waiting.remove(&id) else {
                continue;
            };
            self.notify("$/cancel_request", json!({"requestId": id}));
            let cancelled = json!({"result": {"outcome": {"outcome": "cancelled"}}});
            // Whoever waited may be gone.
            let _gone = sender.send(cancelled);
        }
    }

    /// Closes the output, so that the peer's input ends.
    pub(crate) fn close(&self) {
        lock(&self.output).writer = None;
    }
}

impl Output {
    /// Writes what the steps demand, and returns the messages to handle.
    fn run(&mut self, steps: Vec<Step>) -> Vec<Value> {
        let mut handle = Vec::new();
        for step in steps {
            // The peer may have gone; the end of the input says so.
            let _gone = match step {
                Step::Handle(message) => {
                    handle.push(message);
                    Ok(())
                }
                Step::Write(message) => self.line(&message.to_string()),
                Step::Raw(text) => self.line(&text),
            };
        }
        handle
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        let Some(writer) = &mut self.writer else {
            return Ok(());
        };
        writer.write_all(format!("{text}\n").as_bytes())?;
        writer.flush()
    }
}
