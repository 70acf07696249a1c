//! What the reference agent of version 2 does for a word, and when its questions are answered.

use serde_json::{Value, json};

use super::Agent;

/// What a session is doing.
#[derive(Debug, PartialEq)]
pub(super) enum Work {
    None,
    /// It ends with a cancellation.
    Endless,
    /// It goes on with the answer to the request of this id.
    Asking(String, About),
}

/// What the client was asked about.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum About {
    /// Whether the tool call of this id may run.
    Tool(String),
    /// A form.
    Form,
    /// A page, by the id of the question.
    Page(String),
}

impl Agent {
    /// Works on a word, as far as it gets without an answer.
    pub(super) fn word(&mut self, id: &str, word: &str) {
        let mode = word.strip_prefix("elicit ").unwrap_or_default();
        match word {
            "slow" => {
                self.say(id, "Counting until somebody says stop.");
                self.work(id, Work::Endless);
            }
            "tool" | "permission" => self.ask_for_permission(id),
            "plan" => {
                let plan = self.number("plan");
                for status in ["in_progress", "completed"] {
                    let entry = json!({"content": "Look around", "priority": "high",
                        "status": status});
                    let plan = json!({"type": "items", "planId": plan, "entries": [entry]});
                    self.tell(id, json!({"sessionUpdate": "plan_update", "plan": plan, "_meta": {
                        "traceparent": "00-80e1afed08e019fc1110464cfa66635c-7a085853722dc6d2-01",
                    }}));
                }
                self.done(id, "I did what I planned.");
            }
            "config" => {
                let options = self.sessions.get(id).map(|it| it.stored.settings.listed());
                let options = options.unwrap_or_default();
                let update = json!({"sessionUpdate": "config_option_update",
                    "configOptions": options});
                self.update(id, &update);
                self.done(id, "These are my options.");
            }
            "elicit form" | "elicit url" if !self.client_shows(mode) => {
                self.done(id, "I would have asked you something.");
            }
            "elicit form" => {
                let color = json!({"type": "string", "title": "Colour"});
                let form = json!({"type": "object", "properties": {"color": color},
                    "required": ["color"]});
                let question = json!({"sessionId": id, "mode": "form",
                    "message": "Which colour?", "requestedSchema": form});
                self.ask(id, "elicitation/create", question, About::Form);
            }
            "elicit url" => {
                let page = self.number("page");
                let question = json!({"sessionId": id, "mode": "url", "elicitationId": page,
                    "message": "Please connect.", "url": "https://agent.example/connect"});
                self.ask(id, "elicitation/create", question, About::Page(page));
            }
            _ => self.done(id, "Hello to you too."),
        }
    }

    /// The client has answered a request.
    pub(super) fn answered(&mut self, request: &Value, result: Option<&Value>) {
        let found = self
            .sessions
            .iter()
            .find_map(|(id, session)| match &session.work {
                Work::Asking(asked, about) if request == asked => Some((id.clone(), about.clone())),
                _ => None,
            });
        let Some((id, about)) = found else { return };
        self.work(&id, Work::None);
        self.state(&id, "running", None);
        let text = |pointer: &str| result.and_then(|result| result.pointer(pointer)?.as_str());
        let accepted = text("/action") == Some("accept");
        match about {
            About::Tool(call) if text("/outcome/optionId") == Some("yes") => {
                self.run_tool(&id, &call);
                self.done(&id, "I looked around.");
            }
            About::Tool(call) => {
                self.tell(&id, call_update(&call, json!({"status": "failed"})));
                self.done(&id, "Then I look away.");
            }
            About::Page(page) if accepted => {
                self.queued
                    .push(json!({"jsonrpc": "2.0", "method": "elicitation/complete",
                    "params": {"elicitationId": page}}));
                self.done(&id, "You are connected.");
            }
            About::Form if accepted => self.done(&id, "A fine colour."),
            About::Form | About::Page(_) => self.done(&id, "Never mind."),
        }
    }

    fn ask_for_permission(&mut self, id: &str) {
        let call = self.number("call");
        let about = json!({"title": "Look around", "kind": "read", "status": "pending"});
        self.tell(id, call_update(&call, about));
        let option =
            |id: &str, name: &str, kind: &str| json!({"optionId": id, "name": name, "kind": kind});
        let options = [
            option("yes", "Yes", "allow_once"),
            option("no", "No", "reject_once"),
        ];
        let subject = json!({"type": "tool_call", "toolCall": {"toolCallId": call}});
        let question = json!({"sessionId": id, "title": "Look around?", "subject": subject,
            "options": options});
        self.ask(
            id,
            "session/request_permission",
            question,
            About::Tool(call),
        );
    }

    /// Shows all that a tool call can show.
    fn run_tool(&mut self, id: &str, call: &str) {
        let cwd = self.sessions.get(id).map(|it| it.stored.cwd.clone());
        let text = json!({"type": "content", "content": {"type": "text", "text": "Looking."}});
        let change = json!({"operation": "modify", "path": "/w/notes.txt"});
        let patch = "diff --git /w/notes.txt /w/notes.txt\n--- /w/notes.txt\n+++ /w/notes.txt\n@@ -1 +1 @@\n-one\n+two\n";
        let diff = json!({"type": "diff", "changes": [change],
            "patch": {"format": "git_patch", "text": patch}});
        let terminal = json!({"type": "terminal", "terminalId": call});
        let updates = [
            call_update(call, json!({"status": "in_progress"})),
            json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": call,
                "content": text}),
            json!({"sessionUpdate": "terminal_update", "terminalId": call, "command": "ls",
                "cwd": cwd, "output": {"data": "bm90ZXM="}}),
        ];
        for update in updates {
            self.tell(id, update);
        }
        self.goes_on(id, vec![json!({"type": "terminal", "terminalId": call})]);
        let updates = [
            json!({"sessionUpdate": "terminal_output_chunk", "terminalId": call,
                "data": "LnR4dAo="}),
            json!({"sessionUpdate": "terminal_update", "terminalId": call,
                "exitStatus": {"exitCode": 0}}),
            call_update(
                call,
                json!({"status": "completed", "content": [diff, terminal]}),
            ),
        ];
        for update in updates {
            self.tell(id, update);
        }
        self.goes_on(id, Vec::new());
    }

    /// Lists this work as going on in the background.
    fn goes_on(&mut self, id: &str, background: Vec<Value>) {
        if let Some(session) = self.sessions.get_mut(id) {
            session.background = background;
        }
        self.state(id, "running", None);
    }

    /// Waits for the client's answer to a request.
    fn ask(&mut self, id: &str, method: &str, params: Value, about: About) {
        self.state(id, "requires_action", None);
        let request = self.number("request");
        self.queued
            .push(json!({"jsonrpc": "2.0", "id": request, "method": method, "params": params}));
        self.work(id, Work::Asking(request, about));
    }

    /// Says a last word.
    fn done(&mut self, id: &str, text: &str) {
        self.say(id, text);
        self.state(id, "idle", Some("end_turn"));
    }

    fn client_shows(&self, mode: &str) -> bool {
        let modes = self.client.get("elicitation");
        modes
            .and_then(|modes| modes.get(mode))
            .is_some_and(Value::is_object)
    }
}

fn call_update(call: &str, mut fields: Value) -> Value {
    fields["sessionUpdate"] = json!("tool_call_update");
    fields["toolCallId"] = json!(call);
    fields
}
