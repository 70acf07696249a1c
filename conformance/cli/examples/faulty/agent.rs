//! The agent without a defect: sessions in memory, and a turn for each word of `profile.toml`.

mod turn;

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};

use serde_json::{Value, json};

use crate::connection::{Connection, Fault, Role, lock};

const INVALID_PARAMS: i64 = -32602;
const METHOD_NOT_FOUND: i64 = -32601;
const NOT_FOUND: i64 = -32002;
const INVALID_REQUEST: i64 = -32600;
/// Sessions on a page of `session/list`.
const PAGE: usize = 5;
const MODES: [&str; 2] = ["ask", "code"];
const MODELS: [&str; 2] = ["small", "large"];

pub(crate) struct Agent {
    connection: Connection,
    /// The version that it prefers.
    version: u64,
    state: Mutex<State>,
    /// Something in `state` was cancelled.
    cancelled: Condvar,
}

#[derive(Default)]
struct State {
    /// The parameters of `initialize`, and the version that was agreed on.
    client: Value,
    version: Option<u64>,
    sessions: BTreeMap<String, Session>,
}

impl State {
    /// Whether the turn of a session is cancelled; true without the session.
    fn is_cancelled(&self, name: &str) -> bool {
        self.sessions
            .get(name)
            .is_none_or(|session| session.cancelled)
    }
}

#[derive(Default)]
struct Session {
    cwd: String,
    title: Option<String>,
    /// The values of the options `mode` and `model`.
    mode: usize,
    model: usize,
    history: Vec<Value>,
    active: bool,
    /// The id of the prompt that is running.
    turn: Option<Value>,
    cancelled: bool,
}

type Answer = Result<Value, (i64, String)>;

fn invalid(what: impl Into<String>) -> (i64, String) {
    (INVALID_PARAMS, what.into())
}

fn text<'a>(params: &'a Value, name: &str) -> Result<&'a str, (i64, String)> {
    let text = params[name].as_str();
    text.ok_or_else(|| invalid(format!("`{name}` is not a string")))
}

/// Serves standard input and output until the input ends.
pub(crate) fn run(version: u64, fault: &'static Fault) {
    let agent = Arc::new(Agent {
        connection: Connection::new(io::stdout(), fault),
        version,
        state: Mutex::default(),
        cancelled: Condvar::new(),
    });
    agent.connection.read(io::stdin().lock(), &agent);
}

impl Role for Agent {
    fn has_null_ids(&self) -> bool {
        !self.v2()
    }

    fn handle(self: Arc<Self>, method: &str, id: Option<Value>, params: Value) {
        let Some(id) = id else {
            return match method {
                "session/cancel" => self.cancel(|name, _| params["sessionId"] == name),
                "$/cancel_request" => {
                    self.cancel(|_, session| session.turn.as_ref() == Some(&params["requestId"]));
                }
                _ => {}
            };
        };
        let answer = if method == "session/prompt" {
            match Arc::clone(&self).prompt(&id, &params) {
                Ok(()) => return,
                Err(error) => Err(error),
            }
        } else {
            self.answer(method, &params)
        };
        match answer {
            Ok(result) => self.connection.result(id, result),
            Err((code, message)) => self.connection.error(id, code, &message),
        }
    }
}

impl Agent {
    fn v2(&self) -> bool {
        lock(&self.state).version == Some(2)
    }

    fn answer(&self, method: &str, params: &Value) -> Answer {
        let version = lock(&self.state).version;
        let v2 = match (method, version) {
            ("initialize", None) => return self.initialize(params),
            ("initialize", Some(_)) => return Err((INVALID_REQUEST, "initialized twice".into())),
            (_, None) => return Err((INVALID_REQUEST, "not initialized".into())),
            (_, Some(version)) => version == 2,
        };
        if !params.is_object() {
            return Err(invalid("the parameters are not an object"));
        }
        match method {
            "session/new" => self.open(params),
            "session/load" if !v2 => self.reopen(params, true),
            "session/resume" => {
                let resumed = match params["replayFrom"]["type"].as_str() {
                    Some("start") if v2 => self.reopen(params, true),
                    Some(_) if v2 => Err(invalid("replays from the start only")),
                    _ => self.reopen(params, false),
                }?;
                if v2 {
                    let state = json!({"sessionUpdate": "state_update", "state": "idle"});
                    self.update(text(params, "sessionId")?, state);
                }
                Ok(resumed)
            }
            "session/list" => self.list(params),
            "session/close" => self.close(params),
            "session/delete" => {
                let name = text(params, "sessionId")?;
                self.cancel(|other, _| other == name);
                lock(&self.state).sessions.remove(name);
                Ok(json!({}))
            }
            "session/set_mode" if !v2 => {
                self.set(text(params, "sessionId")?, "mode", text(params, "modeId")?)?;
                self.report_options(params, "config_option_update")
            }
            "session/set_config_option" => {
                let name = text(params, "sessionId")?;
                if v2 && params["type"] != "id" {
                    return Err(invalid("no option has a value of this type"));
                }
                self.set(name, text(params, "configId")?, text(params, "value")?)?;
                if !v2 && params["configId"] == "mode" {
                    self.report_options(params, "current_mode_update")?;
                }
                self.with(name, |session| {
                    Ok(json!({"configOptions": session.options(v2)}))
                })
            }
            "tool_call/cancel" | "terminal/cancel" if v2 => Err(invalid("nothing to cancel")),
            "authenticate" if !v2 => Err(invalid("no such method of authentication")),
            _ => Err((METHOD_NOT_FOUND, format!("no method is called {method}"))),
        }
    }

    fn initialize(&self, params: &Value) -> Answer {
        let wanted = params["protocolVersion"].as_u64();
        let wanted = wanted.ok_or_else(|| invalid("`protocolVersion` is not a number"))?;
        let version = wanted.clamp(1, self.version);
        let info = json!({"name": "faulty", "version": "1.0.0"});
        let mut state = lock(&self.state);
        let name = if version == 2 {
            "capabilities"
        } else {
            "clientCapabilities"
        };
        state.client = params[name].clone();
        state.version = Some(version);
        if version == 2 {
            let session = json!({"delete": {}});
            return Ok(json!({"protocolVersion": 2, "info": info,
                "capabilities": {"session": session}, "authMethods": []}));
        }
        let session = json!({"list": {}, "resume": {}, "close": {}, "delete": {}});
        let capabilities = json!({"loadSession": true, "sessionCapabilities": session});
        Ok(json!({"protocolVersion": 1, "agentInfo": info,
            "agentCapabilities": capabilities, "authMethods": []}))
    }

    /// Runs `act` on an active session.
    fn with<T>(
        &self,
        name: &str,
        act: impl FnOnce(&mut Session) -> Result<T, (i64, String)>,
    ) -> Result<T, (i64, String)> {
        let mut state = lock(&self.state);
        let session = state
            .sessions
            .get_mut(name)
            .filter(|session| session.active);
        act(session.ok_or_else(|| (NOT_FOUND, format!("no session is called {name}")))?)
    }

    fn open(&self, params: &Value) -> Answer {
        let cwd = self.setup(params)?;
        let mut state = lock(&self.state);
        let session = Session {
            cwd,
            active: true,
            ..Session::default()
        };
        let v2 = state.version == Some(2);
        let mut result = session.settings(v2);
        // Unique in other processes as well.
        let name = format!("s{:04}-{}", state.sessions.len(), std::process::id());
        let name = if state.sessions.contains_key(&name) {
            format!("{name}x")
        } else {
            name
        };
        result["sessionId"] = json!(name);
        state.sessions.insert(name, session);
        Ok(result)
    }

    fn reopen(&self, params: &Value, replay: bool) -> Answer {
        let name = text(params, "sessionId")?;
        let cwd = self.setup(params)?;
        let mut state = lock(&self.state);
        let v2 = state.version == Some(2);
        let session = state.sessions.get_mut(name);
        let session = session.ok_or_else(|| (NOT_FOUND, format!("no session is called {name}")))?;
        if session.cwd != cwd {
            return Err(invalid("`cwd` is not that of the session"));
        }
        session.active = true;
        let history = if replay {
            session.history.clone()
        } else {
            Vec::new()
        };
        let result = session.settings(v2);
        drop(state);
        for update in history {
            self.update(name, update);
        }
        Ok(result)
    }

    /// Checks the parameters that all methods of session setup have; returns the `cwd`.
    fn setup(&self, params: &Value) -> Result<String, (i64, String)> {
        let cwd = text(params, "cwd")?;
        if !Path::new(cwd).is_absolute() {
            return Err(invalid("`cwd` is not absolute"));
        }
        let servers = match &params["mcpServers"] {
            Value::Array(servers) => servers.as_slice(),
            Value::Null if self.v2() => &[],
            _ => return Err(invalid("`mcpServers` is not an array")),
        };
        for server in servers {
            connect(server, cwd).map_err(|error| invalid(format!("an MCP server: {error}")))?;
        }
        Ok(cwd.to_owned())
    }

    fn list(&self, params: &Value) -> Answer {
        let cursor = match &params["cursor"] {
            Value::Null => 0,
            cursor => {
                let page = cursor
                    .as_str()
                    .and_then(|text| text.strip_prefix("after-")?.parse().ok());
                page.ok_or_else(|| invalid("no such cursor"))?
            }
        };
        let cwd = &params["cwd"];
        if cwd
            .as_str()
            .is_some_and(|cwd| !Path::new(cwd).is_absolute())
        {
            return Err(invalid("`cwd` is not absolute"));
        }
        let state = lock(&self.state);
        let wanted = state
            .sessions
            .iter()
            .filter(|(_, session)| cwd.is_null() || *cwd == session.cwd);
        let entries: Vec<Value> = wanted
            .map(|(name, session)| {
                let mut entry = json!({"sessionId": name, "cwd": session.cwd});
                if let Some(title) = &session.title {
                    entry["title"] = json!(title);
                }
                entry
            })
            .collect();
        let page: Vec<&Value> = entries.iter().skip(cursor).take(PAGE).collect();
        let end = cursor.saturating_add(PAGE);
        let mut result = json!({"sessions": page});
        if end < entries.len() {
            result["nextCursor"] = json!(format!("after-{end}"));
        }
        Ok(result)
    }

    fn close(&self, params: &Value) -> Answer {
        let name = text(params, "sessionId")?;
        self.with(name, |session| {
            session.active = false;
            Ok(())
        })?;
        self.cancel(|other, _| other == name);
        let mut state = lock(&self.state);
        let runs = |state: &State| state.sessions.get(name).is_some_and(|it| it.turn.is_some());
        while state.version == Some(2) && runs(&state) {
            drop(state);
            std::thread::yield_now();
            state = lock(&self.state);
        }
        Ok(json!({}))
    }

    fn set(&self, name: &str, option: &str, value: &str) -> Result<(), (i64, String)> {
        self.with(name, |session| {
            let (values, current) = match option {
                "mode" => (MODES, &mut session.mode),
                "model" => (MODELS, &mut session.model),
                _ => return Err(invalid(format!("no option is called {option}"))),
            };
            let index = values.iter().position(|known| *known == value);
            *current = index.ok_or_else(|| invalid(format!("no value is called {value}")))?;
            Ok(())
        })
    }

    /// Reports the settings by an update of one kind.
    fn report_options(&self, params: &Value, kind: &str) -> Answer {
        let name = text(params, "sessionId")?;
        let update = self.with(name, |session| {
            Ok(match kind {
                "current_mode_update" => {
                    json!({"sessionUpdate": kind, "currentModeId": MODES[session.mode]})
                }
                _ => json!({"sessionUpdate": kind, "configOptions": session.options(false)}),
            })
        })?;
        self.update(name, update);
        Ok(json!({}))
    }

    /// Cancels the running turns of the sessions that `which` selects.
    fn cancel(&self, which: impl Fn(&str, &Session) -> bool) {
        let mut cancelled = Vec::new();
        for (name, session) in &mut lock(&self.state).sessions {
            if session.turn.is_some() && which(name, session) {
                session.cancelled = true;
                cancelled.push(name.clone());
            }
        }
        self.cancelled.notify_all();
        // In version 1 the client answers them by itself.
        if self.v2() {
            for session in cancelled {
                self.connection.cancel_questions(&session);
            }
        }
    }

    fn update(&self, session: &str, update: Value) {
        let params = json!({"sessionId": session, "update": update});
        self.connection.notify("session/update", params);
    }
}

impl Session {
    fn options(&self, v2: bool) -> Value {
        let id = if v2 { "configId" } else { "id" };
        let option = |name: &str, values: [&str; 2], current: usize| {
            let options = values.map(|value| json!({"value": value, "name": value}));
            json!({id: name, "name": name, "category": name, "type": "select",
                "currentValue": values[current], "options": options})
        };
        json!([
            option("mode", MODES, self.mode),
            option("model", MODELS, self.model)
        ])
    }

    fn settings(&self, v2: bool) -> Value {
        let mut settings = json!({"configOptions": self.options(v2)});
        if !v2 {
            let modes = MODES.map(|mode| json!({"id": mode, "name": mode}));
            settings["modes"] = json!({"currentModeId": MODES[self.mode], "availableModes": modes});
        }
        settings
    }
}

/// Starts an MCP server and greets it; its answer is not awaited.
fn connect(server: &Value, cwd: &str) -> io::Result<()> {
    let Some(command) = server["command"].as_str() else {
        return Err(io::Error::other("only stdio is supported"));
    };
    let words = |name: &str| server[name].as_array().cloned().unwrap_or_default();
    let args: Vec<String> = words("args")
        .iter()
        .filter_map(|arg| Some(arg.as_str()?.into()))
        .collect();
    let env: Vec<(String, String)> = words("env")
        .iter()
        .filter_map(|pair| {
            Some((
                pair["name"].as_str()?.into(),
                pair["value"].as_str()?.into(),
            ))
        })
        .collect();
    let mut process = Command::new(command)
        .args(args)
        .envs(env)
        .current_dir(cwd)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let info = json!({"name": "faulty", "version": "1.0.0"});
    let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info});
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
    if let Some(input) = &mut process.stdin {
        // A server that ended at once is no reason to refuse the session.
        let _ended = writeln!(input, "{hello}");
    }
    // Lives as long as the agent, whose end closes its input.
    std::mem::forget(process);
    Ok(())
}
