//! A prompt turn: the first word of the prompt says what the agent does.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Agent, INVALID_PARAMS, State, invalid, text};
use crate::connection::lock;

/// Limit of a turn that waits for its cancellation.
const SLOW: Duration = Duration::from_secs(120);

type Outcome = Result<(), String>;

/// A running turn.
struct Turn {
    agent: Arc<Agent>,
    session: String,
    cwd: String,
    client: Value,
    v2: bool,
    /// Makes ids unique within the session.
    number: usize,
}

impl Agent {
    /// Starts a turn on a thread of its own.
    pub(super) fn prompt(self: Arc<Self>, id: &Value, params: &Value) -> Result<(), (i64, String)> {
        let name = text(params, "sessionId")?.to_owned();
        let blocks = params["prompt"].as_array();
        let blocks = blocks
            .ok_or_else(|| invalid("`prompt` is not an array"))?
            .clone();
        let mut words = String::new();
        for block in &blocks {
            match block["type"].as_str() {
                Some("text") => words.push_str(text(block, "text")?),
                Some("resource_link") => words.push_str(text(block, "uri")?),
                _ => return Err(invalid("a block of the prompt is neither text nor a link")),
            }
        }
        let (client, v2) = {
            let state = lock(&self.state);
            (state.client.clone(), state.version == Some(2))
        };
        let (cwd, number) = self.with(&name, |session| {
            if session.turn.is_some() {
                return Err((INVALID_PARAMS, "a prompt of the session is running".into()));
            }
            session.turn = Some(id.clone());
            session.cancelled = false;
            session
                .title
                .get_or_insert_with(|| words.chars().take(40).collect());
            Ok((session.cwd.clone(), session.history.len()))
        })?;
        let turn = Turn {
            agent: self,
            session: name,
            cwd,
            client,
            v2,
            number,
        };
        let id = id.clone();
        std::thread::spawn(move || turn.run(id, &blocks, &words));
        Ok(())
    }
}

impl Turn {
    fn run(self, id: Value, blocks: &[Value], words: &str) {
        let message = format!("user-{}", self.number);
        if self.v2 {
            self.agent
                .connection
                .result(id.clone(), json!({"messageId": message}));
        }
        for block in blocks {
            let chunk = json!({"sessionUpdate": "user_message_chunk", "messageId": message, "content": block});
            self.remember(&chunk);
            if self.v2 {
                self.agent.update(&self.session, chunk);
            }
        }
        self.state(json!({"state": "running"}));
        if let Err(error) = self.act(words) {
            self.say(&error);
        }
        let reason = if self.is_cancelled() {
            "cancelled"
        } else {
            "end_turn"
        };
        // The next prompt may come as soon as the end is written.
        let mut state = lock(&self.agent.state);
        if let Some(session) = state.sessions.get_mut(&self.session) {
            session.turn = None;
        }
        // Whoever sees that the turn is over also finds its end written.
        self.state(json!({"state": "idle", "stopReason": reason}));
        drop(state);
        if !self.v2 {
            self.agent
                .connection
                .result(id, json!({"stopReason": reason}));
        }
    }

    fn act(&self, words: &str) -> Outcome {
        let (word, rest) = words.split_once(' ').unwrap_or((words, ""));
        let path = Path::new(&self.cwd).join(rest).display().to_string();
        match word {
            "slow" => {
                self.say("I am working");
                let state = lock(&self.agent.state);
                let running = |state: &mut State| !state.is_cancelled(&self.session);
                drop(
                    self.agent
                        .cancelled
                        .wait_timeout_while(state, SLOW, running),
                );
                Ok(())
            }
            "tool" => {
                self.call("edit", &path);
                self.progress("in_progress", json!([]));
                let content =
                    json!({"type": "diff", "path": path, "oldText": null, "newText": "hello"});
                self.progress("completed", json!([content]));
                self.say("done");
                Ok(())
            }
            "permission" => self.write_if_allowed(&path),
            "read" => {
                self.requires("/fs/readTextFile")?;
                self.call("read", &path);
                let params =
                    json!({"sessionId": self.session, "path": path, "line": 1, "limit": 10});
                self.progress("in_progress", json!([]));
                self.finish(self.request("fs/read_text_file", params))
            }
            "write" => {
                self.requires("/fs/writeTextFile")?;
                self.call("edit", &path);
                let params = json!({"sessionId": self.session, "path": path, "content": "hello\n"});
                self.progress("in_progress", json!([]));
                self.finish(self.request("fs/write_text_file", params))
            }
            "terminal" => {
                self.requires("/terminal")?;
                self.terminal()
            }
            "form" => {
                self.requires("/elicitation/form")?;
                let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                self.ask(
                    json!({"mode": "form", "message": "Who are you?", "requestedSchema": schema}),
                )
            }
            "url" => {
                self.requires("/elicitation/url")?;
                let id = format!("{}-{}", self.session, self.number);
                self.ask(
                    json!({"mode": "url", "message": "Sign in", "elicitationId": id,
                    "url": "https://example.com/login"}),
                )
            }
            "plan" => {
                for statuses in [
                    ["in_progress", "pending"],
                    ["completed", "in_progress"],
                    ["completed"; 2],
                ] {
                    let entries = ["think", "act"].iter().zip(statuses).map(|(content, status)| {
                        json!({"content": content, "priority": "medium", "status": status})
                    });
                    let entries: Vec<Value> = entries.collect();
                    self.update(match self.v2 {
                        false => json!({"sessionUpdate": "plan", "entries": entries}),
                        true => json!({"sessionUpdate": "plan_update",
                            "plan": {"type": "items", "planId": "plan", "entries": entries}}),
                    });
                }
                Ok(())
            }
            "usage" => {
                self.update(json!({"sessionUpdate": "usage_update", "used": 10, "size": 1000}));
                Ok(())
            }
            "commands" => {
                let mut command = json!({"name": "hello", "description": "Says hello"});
                if self.v2 {
                    command["type"] = json!("command");
                }
                self.update(json!({"sessionUpdate": "available_commands_update", "availableCommands": [command]}));
                Ok(())
            }
            _ => {
                self.say("Hello. ");
                self.say(words);
                Ok(())
            }
        }
    }

    /// Writes a file once the user allows it.
    fn write_if_allowed(&self, path: &str) -> Outcome {
        self.call("edit", path);
        let options = ["allow_once", "allow_always", "reject_once"]
            .map(|kind| json!({"optionId": kind.replace('_', "-"), "name": kind, "kind": kind}));
        let call = json!({"toolCallId": self.tool()});
        let mut params = json!({"sessionId": self.session, "options": options});
        if self.v2 {
            params["title"] = json!("Write the file?");
            params["subject"] = json!({"type": "tool_call", "toolCall": call});
        } else {
            params["toolCall"] = call;
        }
        self.state(json!({"state": "requires_action"}));
        let response = self
            .agent
            .connection
            .call("session/request_permission", params);
        self.state(json!({"state": "running"}));
        let response = response.inspect_err(|_| self.progress("failed", json!([])))?;
        let allowed = response["outcome"]["outcome"] == "selected"
            && matches!(
                response["outcome"]["optionId"].as_str(),
                Some("allow-once" | "allow-always")
            );
        if response["outcome"]["outcome"] == "cancelled" {
            self.agent.cancel(|name, _| name == self.session);
        }
        if !allowed {
            self.progress("failed", json!([]));
            return Ok(());
        }
        self.progress("in_progress", json!([]));
        let written = std::fs::write(path, "hello\n").map_err(|error| error.to_string());
        if self.v2 && written.is_ok() {
            let content = json!({"type": "diff", "changes": [{"operation": "add", "path": path}]});
            self.progress("completed", json!([content]));
            return Ok(());
        }
        self.finish(written.map(|()| "written".into()))
    }

    fn terminal(&self) -> Outcome {
        let params = json!({"sessionId": self.session, "command": "echo", "args": ["hello"],
            "env": [], "cwd": self.cwd, "outputByteLimit": 1000});
        let id = self.agent.connection.call("terminal/create", params)?["terminalId"].take();
        self.call("execute", "");
        self.progress(
            "in_progress",
            json!([{"type": "terminal", "terminalId": id}]),
        );
        let params = json!({"sessionId": self.session, "terminalId": id});
        let connection = &self.agent.connection;
        let ended = self.until_exit(&params);
        let output = ended.and_then(|_| connection.call("terminal/output", params.clone()));
        let released = connection.call("terminal/release", params);
        let status = if output.is_ok() {
            "completed"
        } else {
            "failed"
        };
        self.update_call(json!({"status": status}));
        self.say(output?["output"].as_str().unwrap_or_default());
        released.map(|_| ())
    }

    /// Waits for the command, and kills it when the turn is cancelled.
    fn until_exit(&self, params: &Value) -> Result<Value, String> {
        let (agent, exited) = (&self.agent, AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let running =
                    |state: &mut State| !exited.load(SeqCst) && !state.is_cancelled(&self.session);
                drop(
                    agent
                        .cancelled
                        .wait_timeout_while(lock(&agent.state), SLOW, running),
                );
                if !exited.load(SeqCst) {
                    // The client's answer changes nothing.
                    let _killed = agent.connection.call("terminal/kill", params.clone());
                }
            });
            let ended = agent
                .connection
                .call("terminal/wait_for_exit", params.clone());
            let state = lock(&agent.state);
            exited.store(true, SeqCst);
            drop(state);
            agent.cancelled.notify_all();
            ended
        })
    }

    fn ask(&self, mut params: Value) -> Outcome {
        params["sessionId"] = json!(self.session);
        self.state(json!({"state": "requires_action"}));
        let answer = self.agent.connection.call("elicitation/create", params);
        self.state(json!({"state": "running"}));
        self.say(&format!("The answer is {}.", answer?["action"]));
        Ok(())
    }

    fn request(&self, method: &str, params: Value) -> Result<String, String> {
        let result = self.agent.connection.call(method, params)?;
        Ok(result["content"].as_str().unwrap_or("done").to_owned())
    }

    /// Ends the tool call by what came of it.
    fn finish(&self, result: Result<String, String>) -> Outcome {
        let status = if result.is_ok() {
            "completed"
        } else {
            "failed"
        };
        let text = result.unwrap_or_else(|error| error);
        let content = json!({"type": "content", "content": {"type": "text", "text": text}});
        self.progress(status, json!([content]));
        Ok(())
    }

    /// Fails unless the client has declared a capability.
    fn requires(&self, pointer: &str) -> Outcome {
        match self.client.pointer(pointer) {
            None | Some(Value::Null | Value::Bool(false)) => {
                Err(format!("The client has no {pointer}."))
            }
            Some(_) => Ok(()),
        }
    }

    fn is_cancelled(&self) -> bool {
        lock(&self.agent.state).is_cancelled(&self.session)
    }

    fn tool(&self) -> String {
        format!("call-{}", self.number)
    }

    fn call(&self, kind: &str, path: &str) {
        let name = if self.v2 {
            "tool_call_update"
        } else {
            "tool_call"
        };
        let mut update = json!({"sessionUpdate": name, "toolCallId": self.tool(),
            "title": format!("{kind} {path}"), "kind": kind, "status": "pending"});
        if Path::new(path).is_absolute() {
            update["locations"] = json!([{"path": path, "line": 1}]);
        }
        self.update(update);
    }

    fn progress(&self, status: &str, content: Value) {
        self.update_call(match content.as_array().is_some_and(Vec::is_empty) {
            true => json!({"status": status}),
            false => json!({"status": status, "content": content}),
        });
    }

    fn update_call(&self, mut update: Value) {
        update["sessionUpdate"] = json!("tool_call_update");
        update["toolCallId"] = json!(self.tool());
        self.update(update);
    }

    fn say(&self, text: &str) {
        let message = format!("agent-{}", self.number);
        let content = json!({"type": "text", "text": text});
        self.update(json!({"sessionUpdate": "agent_message_chunk", "messageId": message, "content": content}));
    }

    /// Reports the state of the session, which version 1 does not know.
    fn state(&self, mut state: Value) {
        if self.v2 {
            state["sessionUpdate"] = json!("state_update");
            self.agent.update(&self.session, state);
        }
    }

    /// Sends an update that the history keeps.
    fn update(&self, update: Value) {
        self.remember(&update);
        self.agent.update(&self.session, update);
    }

    fn remember(&self, update: &Value) {
        let mut state = lock(&self.agent.state);
        if let Some(session) = state.sessions.get_mut(&self.session) {
            session.history.push(update.clone());
        }
    }
}
