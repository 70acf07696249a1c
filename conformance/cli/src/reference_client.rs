//! The reference client of version 2: launches an agent, says one thing, shows the answer.
//!
//! It owes nothing to the types that the suite is to judge. Before it speaks it reads the list of
//! sessions to its end. Permission is given. Ctrl-C cancels the work; the agent cancels its open
//! questions.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use acp_conformance::{Error, Result};

/// How many lines of the agent wait to be processed.
const QUEUE: usize = 1024;

/// The id of requests for a page of sessions, one of which is open at a time.
const LIST: u64 = 3;

/// An agent that always has another page of sessions is not followed for ever.
const PAGES: usize = 100;

enum Event {
    /// A line, if it is JSON.
    Line(Option<Value>),
    Interrupt,
    End,
}

/// Says `prompt` to the agent of this command. If it is `asking`, permission is left to somebody who
/// never answers. Whether it was answered.
///
/// # Errors
/// When the agent cannot be started, or the folder is gone.
pub(crate) fn run(prompt: &str, asking: bool, command: &[OsString]) -> Result<bool> {
    let failed = Error::starting("the agent");
    let (sender, events) = sync_channel(QUEUE);
    listen_for_interrupts(sender.clone());
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| failed(std::io::ErrorKind::InvalidInput.into()))?;
    let mut agent = Command::new(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    if let Some(output) = agent.stdout.take() {
        thread::spawn(move || {
            for line in BufReader::new(output)
                .split(b'\n')
                .map_while(std::io::Result::ok)
            {
                if line.trim_ascii().is_empty() {
                    continue;
                }
                let message = serde_json::from_slice(&line).ok();
                if sender.send(Event::Line(message)).is_err() {
                    return;
                }
            }
            // Nobody may be listening any more.
            let _ = sender.send(Event::End);
        });
    }
    let cwd = std::env::current_dir().map_err(Error::Folder)?;
    let mut client = Client {
        input: agent.stdin.take(),
        prompt: prompt.to_owned(),
        cwd: cwd.to_string_lossy().into_owned(),
        session: Value::Null,
        asking,
        asked: Vec::new(),
        pages: 0,
        agent_is_gone: false,
    };
    let done = client.talk(&events);
    let agent_is_gone = client.agent_is_gone;
    // Closes the agent's input.
    drop(client);
    if !agent_is_gone {
        drain(&events);
    }
    // It may be gone already.
    let _ = agent.wait();
    Ok(done)
}

fn listen_for_interrupts(events: SyncSender<Event>) {
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        // Without a runtime, Ctrl-C ends the client, as it would without this thread.
        let Ok(runtime) = runtime else { return };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            if events.send(Event::Interrupt).is_err() {
                return;
            }
        }
    });
}

/// Reads away what the agent still says, until its output ends.
fn drain(events: &Receiver<Event>) {
    while !matches!(events.recv(), Ok(Event::End) | Err(_)) {}
}

struct Client {
    input: Option<ChildStdin>,
    prompt: String,
    cwd: String,
    session: Value,
    /// Whether permission is left to somebody who never answers.
    asking: bool,
    /// The ids of open requests for permission.
    asked: Vec<Value>,
    /// How many pages of sessions were asked for after the first.
    pages: usize,
    agent_is_gone: bool,
}

impl Client {
    /// Until the work is done; `false` if it cannot be.
    fn talk(&mut self, events: &Receiver<Event>) -> bool {
        let info = json!({"name": "acp-conformance-client", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
        self.call(0, "initialize", hello);
        loop {
            match events.recv() {
                Ok(Event::Line(Some(message))) => {
                    if let Some(done) = self.hear(&message) {
                        return done;
                    }
                }
                Ok(Event::Line(None)) => {
                    self.send(&refusal(
                        &Value::Null,
                        ErrorCode::PARSE_ERROR,
                        "this is not JSON",
                    ));
                }
                Ok(Event::Interrupt) if self.session.is_string() => {
                    let params = json!({"sessionId": self.session});
                    self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel",
                        "params": params}));
                }
                Ok(Event::Interrupt) => return false,
                Ok(Event::End) | Err(_) => {
                    self.agent_is_gone = true;
                    return false;
                }
            }
        }
    }

    /// Takes a line, and answers it if it is a request; tells whether all is done, once it is.
    fn hear(&mut self, line: &Value) -> Option<bool> {
        let (answer, done) = self.take(line);
        if let Some(answer) = answer {
            self.send(&answer);
        }
        done
    }

    /// Takes a message. Yields the answer, and whether all is done, once it is.
    fn take(&mut self, message: &Value) -> (Option<Value>, Option<bool>) {
        if !message.is_object() {
            let refused = refusal(
                &Value::Null,
                ErrorCode::INVALID_REQUEST,
                "this is no message",
            );
            return (Some(refused), None);
        }
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").unwrap_or(&Value::Null);
        match (method, message.get("id")) {
            (Some("session/request_permission"), Some(id)) if self.asking => {
                self.asked.push(id.clone());
                (None, None)
            }
            (Some("$/cancel_request"), None) => {
                let id = params.get("requestId").unwrap_or(&Value::Null);
                let open = self.asked.iter().position(|asked| asked == id);
                let answer = open.map(|open| {
                    let result = json!({"outcome": {"outcome": "cancelled"}});
                    json!({"jsonrpc": "2.0", "id": self.asked.remove(open), "result": result})
                });
                (answer, None)
            }
            (Some(method), Some(id)) => (Some(self.answer(id, method, params)), None),
            (Some("session/update"), None) => (None, params.get("update").and_then(Self::show)),
            (Some(_), None) | (None, None) => (None, None),
            (None, Some(id)) => (None, self.answered(id, message.get("result"))),
        }
    }

    fn answered(&mut self, id: &Value, result: Option<&Value>) -> Option<bool> {
        match (id.as_u64()?, result) {
            (0, Some(result)) if result["protocolVersion"] == 2 => {
                self.call(LIST, "session/list", json!({}));
            }
            (LIST, Some(result)) if result["nextCursor"].is_string() && self.pages < PAGES => {
                self.pages += 1;
                let params = json!({"cursor": result["nextCursor"]});
                self.call(LIST, "session/list", params);
            }
            // A list that is refused is no reason not to talk.
            (LIST, _) => {
                let params = json!({"cwd": self.cwd});
                self.call(1, "session/new", params);
            }
            (1, Some(result)) => {
                self.session = result["sessionId"].clone();
                let text = json!({"type": "text", "text": self.prompt});
                let params = json!({"sessionId": self.session, "prompt": [text]});
                self.call(2, "session/prompt", params);
            }
            (2, Some(_)) => {}
            _ => return Some(false),
        }
        None
    }

    fn show(update: &Value) -> Option<bool> {
        if let Some(text) = update.pointer("/content/text").and_then(Value::as_str) {
            // Nobody may be reading.
            let _ = writeln!(std::io::stdout(), "{text}");
        }
        (update["state"] == "idle").then_some(true)
    }

    fn answer(&self, id: &Value, method: &str, params: &Value) -> Value {
        match method {
            "session/request_permission" => {
                let options = params.get("options").and_then(Value::as_array);
                let allows = |option: &&Value| {
                    let kind = option["kind"].as_str();
                    kind.is_some_and(|kind| kind.starts_with("allow"))
                };
                let chosen = options.and_then(|options| options.iter().find(allows));
                let outcome = match chosen {
                    Some(chosen) => json!({"outcome": "selected", "optionId": chosen["optionId"]}),
                    None => json!({"outcome": "cancelled"}),
                };
                json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
            }
            "elicitation/create" => refusal(
                id,
                ErrorCode::INVALID_PARAMS,
                "this client does not ask its user",
            ),
            _ => refusal(
                id,
                ErrorCode::METHOD_NOT_FOUND,
                "the client has no such method",
            ),
        }
    }

    fn call(&mut self, id: u64, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
    }

    fn send(&mut self, message: &Value) {
        if let Some(input) = &mut self.input {
            // An agent that is gone shows in its silence.
            let _ = writeln!(input, "{message}").and_then(|()| input.flush());
        }
    }
}

fn refusal(id: &Value, code: ErrorCode, message: &str) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}})
}
