//! The client without a defect: one prompt, files, terminals, and every permission granted.

use std::fs;
use std::io::{self, BufReader};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::connection::{Connection, Fault, Role, lock};
use crate::terminals::Terminals;

/// How long an agent may take to exit after its input was closed.
const EXIT_LIMIT: Duration = Duration::from_secs(2);

struct Client {
    connection: Connection,
    session: Mutex<Option<String>>,
    cancelled: AtomicBool,
    terminals: Terminals,
}

/// Runs one prompt; fails when the agent does.
pub(crate) fn run(fault: &'static Fault, cwd: &str, prompt: &str, command: &[&str]) -> ExitCode {
    match converse(fault, cwd, prompt, command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn converse(
    fault: &'static Fault,
    cwd: &str,
    prompt: &str,
    command: &[&str],
) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot start {}: {error}", command[0]);
    let mut agent = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let (Some(input), Some(output)) = (agent.stdin.take(), agent.stdout.take()) else {
        return Err("the agent has no standard streams".into());
    };
    let client = Arc::new(Client {
        connection: Connection::new(input, fault),
        session: Mutex::default(),
        cancelled: AtomicBool::default(),
        terminals: Terminals::default(),
    });
    let reader = Arc::clone(&client);
    std::thread::spawn(move || reader.connection.read(BufReader::new(output), &reader));
    let interrupted = Arc::clone(&client);
    std::thread::spawn(move || interrupted.cancel_on_interrupt());
    let outcome = client.turn(cwd, prompt);
    client.connection.close();
    let start = Instant::now();
    while start.elapsed() < EXIT_LIMIT && matches!(agent.try_wait(), Ok(None)) {
        std::thread::sleep(Duration::from_millis(5));
    }
    // An agent that has exited cannot be killed.
    let _exited = agent.kill();
    outcome
}

impl Client {
    fn turn(&self, cwd: &str, prompt: &str) -> Result<(), String> {
        let capabilities =
            json!({"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": true});
        let info = json!({"name": "faulty", "version": "1.0.0"});
        let params =
            json!({"protocolVersion": 1, "clientCapabilities": capabilities, "clientInfo": info});
        let agent = self.connection.call("initialize", params)?;
        if agent["protocolVersion"] != 1 {
            return Err(format!(
                "the agent speaks version {}",
                agent["protocolVersion"]
            ));
        }
        let params = json!({"cwd": cwd, "mcpServers": []});
        let session = self.connection.call("session/new", params)?;
        let name = session["sessionId"]
            .as_str()
            .ok_or("the session has no id")?;
        *lock(&self.session) = Some(name.to_owned());
        let params = json!({"sessionId": name, "prompt": [{"type": "text", "text": prompt}]});
        let end = self.connection.call("session/prompt", params)?;
        println!("\nThe turn ended: {}.", end["stopReason"]);
        Ok(())
    }

    /// Sends `session/cancel` when the user interrupts.
    fn cancel_on_interrupt(&self) {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        let Ok(runtime) = runtime else {
            return;
        };
        while runtime.block_on(tokio::signal::ctrl_c()).is_ok() {
            let Some(session) = lock(&self.session).clone() else {
                std::process::exit(130);
            };
            self.cancelled.store(true, Ordering::SeqCst);
            self.connection
                .notify("session/cancel", json!({"sessionId": session}));
        }
    }

    fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        let session = lock(&self.session).clone();
        let known = ["session/request_permission", "fs/", "terminal/"];
        if !known.iter().any(|prefix| method.starts_with(prefix)) {
            return Err((-32601, format!("no method is called {method}")));
        }
        if params["sessionId"].as_str() != session.as_deref() {
            return Err((-32602, "no such session".into()));
        }
        match method {
            "session/request_permission" => self.permission(params),
            "fs/read_text_file" => read(params),
            "fs/write_text_file" => write(params),
            _ => self.terminals.answer(method, params),
        }
    }

    fn permission(&self, params: &Value) -> Result<Value, (i64, String)> {
        let options = params["options"].as_array();
        let options = options.ok_or_else(|| (-32602, "`options` is not an array".to_owned()))?;
        let allows = |option: &&Value| {
            option["kind"]
                .as_str()
                .is_some_and(|kind| kind.starts_with("allow"))
        };
        let outcome = match options.iter().find(allows).or(options.first()) {
            Some(option) if !self.cancelled.load(Ordering::SeqCst) => {
                json!({"outcome": "selected", "optionId": option["optionId"]})
            }
            _ => json!({"outcome": "cancelled"}),
        };
        Ok(json!({"outcome": outcome}))
    }
}

impl Role for Client {
    fn handle(self: Arc<Self>, method: &str, id: Option<Value>, params: Value) {
        let method = method.to_owned();
        let Some(id) = id else {
            if params["update"]["sessionUpdate"] == "agent_message_chunk" {
                print!(
                    "{}",
                    params["update"]["content"]["text"]
                        .as_str()
                        .unwrap_or_default()
                );
            }
            return;
        };
        // A request may wait for a command; others are answered meanwhile.
        std::thread::spawn(move || match self.answer(&method, &params) {
            Ok(result) => self.connection.result(id, result),
            Err((code, message)) => self.connection.error(id, code, &message),
        });
    }
}

fn path(params: &Value) -> Result<&Path, (i64, String)> {
    let path = params["path"].as_str().map(Path::new);
    let absolute = path.filter(|path| path.is_absolute());
    absolute.ok_or_else(|| (-32602, "`path` is not an absolute path".into()))
}

fn failure(error: io::Error) -> (i64, String) {
    let missing = error.kind() == io::ErrorKind::NotFound;
    (if missing { -32002 } else { -32603 }, error.to_string())
}

fn read(params: &Value) -> Result<Value, (i64, String)> {
    let text = fs::read_to_string(path(params)?).map_err(failure)?;
    let number = |name: &str| params[name].as_u64().and_then(|n| usize::try_from(n).ok());
    let skip = number("line").unwrap_or(1).saturating_sub(1);
    let limit = number("limit").unwrap_or(usize::MAX);
    let content: String = text.split_inclusive('\n').skip(skip).take(limit).collect();
    Ok(json!({"content": content}))
}

fn write(params: &Value) -> Result<Value, (i64, String)> {
    let path = path(params)?;
    let content = params["content"].as_str();
    let content = content.ok_or_else(|| (-32602, "`content` is not a string".to_owned()))?;
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(failure)?;
    }
    fs::write(path, content).map_err(failure)?;
    Ok(json!({}))
}
