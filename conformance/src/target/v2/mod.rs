//! The reference agent of version 2: raw messages in, raw messages out, nothing between.
//!
//! It owes nothing to the types that the suite is to judge, and is small: a prompt is a word.
//! `tool` is answered with a tool call that asks for permission, `plan` with a plan,
//! `elicit form` and `elicit url` with a question, all else with text. `slow` runs until it is cancelled. It waits for
//! nothing but its input, so one thread is enough.

mod servers;
mod settings;
mod store;
mod words;

use std::collections::BTreeMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, LazyLock};

use acp_sdk::ErrorCode;
use serde_json::{Map, Value, json};

use self::settings::{Settings, commands};
pub use self::store::Store;
use self::store::Stored;
use self::words::Work;
use crate::wire::{Party, Schema, UNSUPPORTED_PROTOCOL_VERSION, Verdict, Version};

/// What it takes for valid; `None` if the document as shipped could not be read.
static SCHEMA: LazyLock<Option<Arc<Schema>>> = LazyLock::new(|| Schema::of(Version::V2).ok());

/// Serves a client until it closes the input.
///
/// # Errors
/// When reading or writing fails.
pub fn serve(store: &Store, input: impl BufRead, mut output: impl Write) -> std::io::Result<()> {
    let mut agent = Agent {
        store: store.clone(),
        ..Agent::default()
    };
    for line in input.split(b'\n') {
        let line = line?;
        if line.trim_ascii().is_empty() {
            continue;
        }
        let answer = match serde_json::from_slice(&line) {
            Ok(message) => agent.message(&message),
            Err(error) => Some(refused(
                &Value::Null,
                ErrorCode::PARSE_ERROR,
                &error.to_string(),
            )),
        };
        let messages = agent.replayed.drain(..).chain(answer);
        for message in messages.chain(agent.queued.drain(..)) {
            writeln!(output, "{message}")?;
        }
        output.flush()?;
    }
    Ok(())
}

#[derive(Debug, Default)]
struct Agent {
    initialized: bool,
    /// Whether a request has come since.
    has_served: bool,
    /// What the client can do.
    client: Value,
    /// The sessions of this connection.
    sessions: BTreeMap<String, Session>,
    /// The sessions of all connections.
    store: Store,
    /// What is to be written before the answer.
    replayed: Vec<Value>,
    /// What is to be written after the answer.
    queued: Vec<Value>,
}

#[derive(Debug)]
struct Session {
    work: Work,
    /// What goes on in the background, as states list it.
    background: Vec<Value>,
    stored: Stored,
    /// The MCP servers that it has started.
    _servers: Vec<servers::Started>,
}

/// Why a request is refused.
type Refusal = (ErrorCode, String);

type Answer = Result<Value, Refusal>;

impl Session {
    fn new(stored: Stored, servers: Vec<servers::Started>) -> Self {
        Self {
            work: Work::None,
            background: Vec::new(),
            stored,
            _servers: servers,
        }
    }
}

impl Agent {
    /// Takes a message. Yields the answer if it is a request, or none at all.
    fn message(&mut self, message: &Value) -> Option<Value> {
        let id = message.get("id");
        let is_request = message.get("method").is_some();
        let is_id = |id: &Value| {
            id.is_string() || id.is_i64() || id.is_u64() || (id.is_null() && !is_request)
        };
        if message.is_array() || id.is_some_and(|id| !is_id(id)) {
            return Some(malformed(
                "no object, or its id is neither a text nor a number",
            ));
        }
        let params = message.get("params").unwrap_or(&Value::Null);
        let Some(method) = message.get("method") else {
            let answers = message.get("result").is_some() || message.get("error").is_some();
            if let (Some(id), true) = (id, answers) {
                self.answered(id, message.get("result"));
                return None;
            }
            return Some(malformed("neither a call nor an answer"));
        };
        let Some(method) = method.as_str() else {
            return Some(malformed("a method is a text"));
        };
        let Some(id) = id else {
            if method == "session/cancel" {
                self.cancel(params);
            }
            return None;
        };
        Some(match self.request(method, params) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, reason)) => {
                let mut answer = refused(id, code, &reason);
                if code == ErrorCode::RESOURCE_NOT_FOUND {
                    answer["error"]["data"] = json!({"sessionId": params["sessionId"]});
                }
                if code == UNSUPPORTED_PROTOCOL_VERSION {
                    let requested = &params["protocolVersion"];
                    answer["error"]["data"] = json!({"requested": requested, "supported": [2]});
                }
                answer
            }
        })
    }

    fn request(&mut self, method: &str, params: &Value) -> Answer {
        let none = Value::Object(Map::new());
        let judged = if params.is_null() { &none } else { params };
        let verdict = SCHEMA
            .as_ref()
            .map(|schema| schema.params(Party::Client, method, judged));
        if let Some(Verdict::Invalid(violations)) = verdict {
            let first = violations
                .first()
                .map(|violation| violation.message.clone());
            return Err(invalid(first.unwrap_or_default()));
        }
        if method == "initialize" {
            if self.has_served {
                let reason = "`initialize` comes before all other requests";
                return Err((ErrorCode::INVALID_REQUEST, reason.to_owned()));
            }
            return self.initialize(params);
        }
        self.has_served |= self.initialized;
        if matches!(method, "tool_call/cancel" | "terminal/cancel") {
            let reason = format!("{method} names nothing that can be cancelled");
            return Err(invalid(reason));
        }
        let known = [
            "session/new",
            "session/list",
            "session/resume",
            "session/close",
            "session/delete",
            "session/prompt",
            "session/set_config_option",
            "auth/login",
            "auth/logout",
        ];
        if !known.contains(&method) {
            return Err((ErrorCode::METHOD_NOT_FOUND, format!("no method {method}")));
        }
        if !self.initialized {
            return Err((
                ErrorCode::INVALID_REQUEST,
                "`initialize` comes first".to_owned(),
            ));
        }
        match method {
            "auth/login" if params["methodId"] != "none" => {
                Err(invalid("there is no such way to log in"))
            }
            "auth/login" | "auth/logout" => Ok(json!({})),
            "session/new" => {
                let cwd = params.get("cwd").filter(|cwd| cwd.is_string());
                let cwd = cwd.ok_or_else(|| invalid("cwd is a text"))?.clone();
                let roots = params
                    .get("additionalDirectories")
                    .and_then(Value::as_array);
                let relative = |root: &Value| !root.as_str().is_some_and(|it| it.starts_with('/'));
                if roots.is_some_and(|roots| roots.iter().any(relative)) {
                    return Err(invalid("additional directories are absolute"));
                }
                let servers = servers::connect(params)?;
                let id = self.number("session");
                let stored = Stored {
                    cwd,
                    history: Vec::new(),
                    settings: Settings::default(),
                };
                let options = stored.settings.listed();
                self.store.put(&id, &stored).map_err(unkept)?;
                let session = Session::new(stored, servers);
                self.sessions.insert(id.clone(), session);
                self.update(&id, &commands());
                Ok(json!({"sessionId": id, "configOptions": options}))
            }
            // Every list is one page, so that no cursor is known.
            "session/list" if params.get("cursor").is_some_and(Value::is_string) => {
                Err(invalid("no such cursor"))
            }
            "session/delete" => {
                let id = params.get("sessionId").and_then(Value::as_str);
                self.sessions.remove(id.unwrap_or_default());
                self.store.remove(id.unwrap_or_default());
                Ok(json!({}))
            }
            "session/list" => {
                let cwd = params.get("cwd").filter(|cwd| !cwd.is_null());
                let all = self.store.directories().into_iter();
                let listed = all.filter(|(_, of)| cwd.is_none_or(|cwd| cwd == of));
                let info = listed.map(|(id, cwd)| json!({"sessionId": id, "cwd": cwd}));
                Ok(json!({"sessions": info.collect::<Vec<_>>()}))
            }
            _ => {
                let id = params.get("sessionId").and_then(Value::as_str);
                let id = id.ok_or_else(|| invalid("sessionId is a text"))?;
                if method == "session/resume"
                    && !self.sessions.contains_key(id)
                    && let Some(stored) = self.store.get(id)
                {
                    let session = Session::new(stored, servers::connect(params)?);
                    self.sessions.insert(id.to_owned(), session);
                }
                let Some(session) = self.sessions.get_mut(id) else {
                    if method == "session/close" {
                        return Ok(json!({}));
                    }
                    return Err((ErrorCode::RESOURCE_NOT_FOUND, format!("no session {id}")));
                };
                match method {
                    "session/resume" => {
                        let from = params.pointer("/replayFrom/type").and_then(Value::as_str);
                        let replay = match from {
                            None => Vec::new(),
                            Some("start") => session.stored.history.clone(),
                            Some(_) => return Err(invalid("replayFrom is not known")),
                        };
                        let state = match session.work {
                            Work::None => "idle",
                            _ => "running",
                        };
                        let state = json!({"sessionUpdate": "state_update", "state": state,
                            "background": session.background});
                        let updates = replay.into_iter().chain([state]);
                        let updates = updates.map(|update| update_of(id, &update));
                        self.replayed.extend(updates);
                        Ok(json!({"configOptions": session.stored.settings.listed()}))
                    }
                    "session/set_config_option" => {
                        let set = session.stored.settings.set(params);
                        set.map_err(invalid)?;
                        self.store.put(id, &session.stored).map_err(unkept)?;
                        Ok(json!({"configOptions": session.stored.settings.listed()}))
                    }
                    "session/close" => {
                        self.cancel(params);
                        // Nothing of the session follows the answer.
                        self.replayed.append(&mut self.queued);
                        Ok(json!({}))
                    }
                    _ => self.prompt(id, params),
                }
            }
        }
    }

    fn initialize(&mut self, params: &Value) -> Answer {
        let version = params.get("protocolVersion").and_then(Value::as_u64);
        match version {
            Some(2..=65_535) => {}
            Some(_) => {
                return Err((
                    UNSUPPORTED_PROTOCOL_VERSION,
                    "version 2 is all there is".to_owned(),
                ));
            }
            None => return Err(invalid("protocolVersion is a number")),
        }
        self.initialized = true;
        self.client = params.get("capabilities").cloned().unwrap_or_default();
        let mut methods = vec![json!({"type": "agent", "methodId": "none", "name": "Log in"})];
        if self
            .client
            .pointer("/auth/terminal")
            .is_some_and(Value::is_object)
        {
            let env = json!([{"name": "LOGIN", "value": "yes"}]);
            methods.push(json!({"type": "terminal", "methodId": "terminal",
                "name": "Log in from a terminal", "args": ["login"], "env": env}));
        }
        let prompt = json!({"image": {}, "audio": {}, "embeddedContext": {}});
        Ok(json!({
            "protocolVersion": 2,
            "info": {"name": "acp-conformance-agent", "version": env!("CARGO_PKG_VERSION")},
            "capabilities": {
                "session": {"prompt": prompt, "mcp": {"stdio": {}, "http": {}}, "delete": {},
                    "additionalDirectories": {}},
            },
            "authMethods": methods,
            "_meta": {"acp-conformance.example/reference": true},
        }))
    }

    fn prompt(&mut self, id: &str, params: &Value) -> Answer {
        const TYPES: [&str; 5] = ["text", "image", "audio", "resource", "resource_link"];
        let Some(blocks) = params.get("prompt").filter(|blocks| blocks.is_array()) else {
            return Err(invalid("prompt is a list"));
        };
        let mut types = blocks.as_array().into_iter().flatten();
        let is_known = |block: &Value| {
            let kind = block.get("type").and_then(Value::as_str);
            kind.is_some_and(|kind| TYPES.contains(&kind))
        };
        if !types.all(is_known) {
            let reason = format!("content blocks have one of the types {TYPES:?}");
            return Err(invalid(reason));
        }
        let text = blocks.pointer("/0/text").and_then(Value::as_str);
        let text = text.unwrap_or_default().to_owned();
        // The state of a new session, which the first prompt may pass on its way: it ends nothing.
        if self
            .sessions
            .get(id)
            .is_some_and(|session| session.stored.history.is_empty())
        {
            self.state(id, "idle", None);
        }
        let message = self.number("message");
        let said =
            json!({"sessionUpdate": "user_message", "messageId": message, "content": blocks});
        self.tell(id, said);
        self.state(id, "running", None);
        self.word(id, &text);
        Ok(json!({"messageId": message}))
    }

    fn cancel(&mut self, params: &Value) {
        let id = params.get("sessionId").and_then(Value::as_str);
        let id = id.unwrap_or_default();
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        match std::mem::replace(&mut session.work, Work::None) {
            Work::None => return,
            Work::Endless => {}
            Work::Asking(request, _) => self.queued.push(json!({
                "jsonrpc": "2.0",
                "method": "$/cancel_request",
                "params": {"requestId": request},
            })),
        }
        self.state(id, "idle", Some("cancelled"));
    }

    fn work(&mut self, id: &str, work: Work) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.work = work;
        }
    }

    fn say(&mut self, id: &str, text: &str) {
        let message = self.number("message");
        let block = json!({"type": "text", "text": text});
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "messageId": message,
            "content": block});
        self.tell(id, chunk);
    }

    fn state(&mut self, id: &str, state: &str, reason: Option<&str>) {
        let background = self.sessions.get(id).map(|it| it.background.clone());
        let mut update = json!({"sessionUpdate": "state_update", "state": state,
            "background": background.unwrap_or_default()});
        if let Some(reason) = reason {
            update["stopReason"] = reason.into();
        }
        self.update(id, &update);
    }

    /// An update that belongs to the conversation.
    fn tell(&mut self, id: &str, update: Value) {
        self.update(id, &update);
        if let Some(session) = self.sessions.get_mut(id) {
            session.stored.history.push(update);
            if let Err(error) = self.store.put(id, &session.stored) {
                eprintln!("reference agent: cannot keep session {id}: {error}");
            }
        }
    }

    fn update(&mut self, id: &str, update: &Value) {
        self.queued.push(update_of(id, update));
    }

    fn number(&mut self, what: &str) -> String {
        self.store.id(what)
    }
}

fn update_of(session: &str, update: &Value) -> Value {
    let params = json!({"sessionId": session, "update": update});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

fn invalid(reason: impl Into<String>) -> Refusal {
    (ErrorCode::INVALID_PARAMS, reason.into())
}

fn unkept(error: std::io::Error) -> Refusal {
    (
        ErrorCode::INTERNAL_ERROR,
        format!("cannot keep the session: {error}"),
    )
}

/// The answer to what is no message.
fn malformed(reason: &str) -> Value {
    refused(&Value::Null, ErrorCode::INVALID_REQUEST, reason)
}

fn refused(id: &Value, code: ErrorCode, message: &str) -> Value {
    let error = json!({"code": code, "message": message});
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}
