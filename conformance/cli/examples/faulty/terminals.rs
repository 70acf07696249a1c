//! The terminals of the client: commands with their output.

use std::collections::HashMap;
use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::connection::lock;

#[derive(Default)]
pub(crate) struct Terminals {
    all: Mutex<HashMap<String, Arc<Terminal>>>,
    created: Mutex<u64>,
}

struct Terminal {
    child: Mutex<Child>,
    output: Arc<Mutex<Output>>,
}

struct Output {
    bytes: Vec<u8>,
    limit: usize,
    truncated: bool,
    /// Streams that have not ended.
    open: u8,
}

impl Terminals {
    pub(crate) fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        if method == "terminal/create" {
            return self.create(params);
        }
        let id = params["terminalId"].as_str().unwrap_or_default();
        let terminal = lock(&self.all).get(id).cloned();
        let terminal = terminal.ok_or_else(|| (-32002, format!("no terminal is called {id}")))?;
        match method {
            "terminal/output" => {
                let status = terminal.status();
                let output = lock(&terminal.output);
                let text = String::from_utf8_lossy(&output.bytes);
                let mut result = json!({"output": text, "truncated": output.truncated});
                if let Some(status) = status {
                    result["exitStatus"] = status;
                }
                return Ok(result);
            }
            "terminal/wait_for_exit" => return Ok(terminal.wait()),
            "terminal/kill" => terminal.kill(),
            "terminal/release" => {
                lock(&self.all).remove(id);
                terminal.kill();
            }
            _ => return Err((-32601, format!("no method is called {method}"))),
        }
        Ok(json!({}))
    }

    fn create(&self, params: &Value) -> Result<Value, (i64, String)> {
        let command = params["command"].as_str();
        let command = command.ok_or_else(|| (-32602, "`command` is not a string".to_owned()))?;
        let words = |name: &str| params[name].as_array().cloned().unwrap_or_default();
        let mut process = Command::new(command);
        for word in words("args") {
            process.arg(word.as_str().unwrap_or_default());
        }
        for pair in words("env") {
            let part = |name: &str| pair[name].as_str().unwrap_or_default().to_owned();
            process.env(part("name"), part("value"));
        }
        if let Some(cwd) = params["cwd"].as_str() {
            process.current_dir(cwd);
        }
        let streams = process
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = streams
            .spawn()
            .map_err(|error| (-32603, error.to_string()))?;
        let limit = params["outputByteLimit"].as_u64();
        let output = Arc::new(Mutex::new(Output {
            bytes: Vec::new(),
            limit: limit
                .and_then(|n| usize::try_from(n).ok())
                .unwrap_or(usize::MAX),
            truncated: false,
            open: 2,
        }));
        collect(child.stdout.take(), &output);
        collect(child.stderr.take(), &output);
        let mut created = lock(&self.created);
        *created += 1;
        let id = format!("terminal-{created}");
        let child = Mutex::new(child);
        lock(&self.all).insert(id.clone(), Arc::new(Terminal { child, output }));
        Ok(json!({"terminalId": id}))
    }
}

impl Terminal {
    fn status(&self) -> Option<Value> {
        let status = lock(&self.child).try_wait().ok()??;
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal: Option<i32> = None;
        let signal = signal.map(|number| format!("signal {number}"));
        Some(json!({"exitCode": status.code(), "signal": signal}))
    }

    fn wait(&self) -> Value {
        loop {
            if let Some(status) = self.status() {
                // A background process may keep the streams open.
                for _ in 0..20 {
                    if lock(&self.output).open == 0 {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                return status;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn kill(&self) {
        // A command that has exited cannot be killed.
        let _exited = lock(&self.child).kill();
    }
}

/// Reads a stream to its end, keeping the last bytes within the limit.
fn collect(stream: Option<impl Read + Send + 'static>, output: &Arc<Mutex<Output>>) {
    let output = Arc::clone(output);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        if let Some(mut stream) = stream {
            while let Ok(n @ 1..) = stream.read(&mut buffer) {
                lock(&output).append(&buffer[..n]);
            }
        }
        lock(&output).open -= 1;
    });
}

impl Output {
    fn append(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        let excess = self.bytes.len().saturating_sub(self.limit);
        if excess > 0 {
            self.truncated = true;
            // Not within a character: its later bytes begin with the bits 10.
            let rest = &self.bytes[excess..];
            let inside = rest.iter().take_while(|byte| **byte & 0xC0 == 0x80).count();
            self.bytes.drain(..excess + inside);
        }
    }
}
