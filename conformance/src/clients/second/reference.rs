//! The reference client of version 2: launches an agent, says one thing, shows the answer.
//!
//! It owes nothing to the types that the suite is to judge. Permission is given; Ctrl-C
//! cancels the work.

use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use serde_json::{Value, json};

use crate::{Error, Result};

/// How many lines of the agent wait to be looked at.
const QUEUE: usize = 1024;

enum Event {
    Line(Value),
    Interrupt,
    End,
}

/// Says `prompt` to the agent of this command. Whether it was answered.
///
/// # Errors
/// When the agent cannot be started, or the folder is gone.
pub(crate) fn run(prompt: &str, command: &[OsString]) -> Result<bool> {
    let failed = |source| Error::Start {
        command: "the agent".into(),
        source,
    };
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
            // What is no message is of no interest to a client.
            for line in BufReader::new(output)
                .split(b'\n')
                .map_while(std::io::Result::ok)
            {
                let Ok(message) = serde_json::from_slice(&line) else {
                    continue;
                };
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
        cancelled: false,
    };
    let done = client.talk(&events);
    drop(client);
    end(&mut agent, &events);
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

/// Reads away what the agent still says, until it has ended.
fn end(agent: &mut Child, events: &Receiver<Event>) {
    while !matches!(events.recv(), Ok(Event::End) | Err(_)) {}
    // It may be gone already.
    let _ = agent.wait();
}

struct Client {
    input: Option<ChildStdin>,
    prompt: String,
    cwd: String,
    session: Value,
    cancelled: bool,
}

impl Client {
    /// Until the work is done; `false` if it cannot be.
    fn talk(&mut self, events: &Receiver<Event>) -> bool {
        let info = json!({"name": "acp-conformance-client", "version": env!("CARGO_PKG_VERSION")});
        let hello = json!({"protocolVersion": 2, "info": info, "capabilities": {}});
        self.call(0, "initialize", hello);
        loop {
            match events.recv() {
                Ok(Event::Line(message)) => {
                    if let Some(done) = self.take(&message) {
                        return done;
                    }
                }
                Ok(Event::Interrupt) if self.session.is_string() => {
                    self.cancelled = true;
                    let params = json!({"sessionId": self.session});
                    self.send(&json!({"jsonrpc": "2.0", "method": "session/cancel",
                        "params": params}));
                }
                Ok(Event::Interrupt | Event::End) | Err(_) => return false,
            }
        }
    }

    /// Takes a message; tells whether all is done, once it is.
    fn take(&mut self, message: &Value) -> Option<bool> {
        let method = message.get("method").and_then(Value::as_str);
        let params = message.get("params").unwrap_or(&Value::Null);
        match (method, message.get("id")) {
            (Some(method), Some(id)) => self.answer(id, method, params),
            (Some("session/update"), None) => return Self::show(params.get("update")?),
            (Some(_), None) | (None, None) => {}
            (None, Some(id)) => return self.answered(id, message.get("result")),
        }
        None
    }

    fn answered(&mut self, id: &Value, result: Option<&Value>) -> Option<bool> {
        match (id.as_u64()?, result) {
            (0, Some(result)) if result["protocolVersion"] == 2 => {
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

    fn answer(&mut self, id: &Value, method: &str, params: &Value) {
        let refused = |code: i64, message: &str| {
            let error = json!({"code": code, "message": message});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        };
        let answer = match method {
            "session/request_permission" => {
                let options = params.get("options").and_then(Value::as_array);
                let allows = |option: &&Value| {
                    let kind = option["kind"].as_str();
                    kind.is_some_and(|kind| kind.starts_with("allow"))
                };
                let chosen = options.and_then(|options| options.iter().find(allows));
                let outcome = match chosen.filter(|_| !self.cancelled) {
                    Some(chosen) => json!({"outcome": "selected", "optionId": chosen["optionId"]}),
                    None => json!({"outcome": "cancelled"}),
                };
                json!({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})
            }
            "elicitation/create" => refused(-32602, "this client does not ask its user"),
            _ => refused(-32601, "the client has no such method"),
        };
        self.send(&answer);
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
