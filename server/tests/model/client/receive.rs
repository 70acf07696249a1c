//! What a client does with a message, and what is wrong with it.

use acp_sdk::v1::SessionId;
use serde_json::{Value, json};

use super::{Asked, Inner, Sent, Version};
use crate::agent::MODES;
use crate::world::{Answer, Reply};

/// Returns a message without the part of its message ids that differs from server to server.
fn without_nonces(line: &str) -> String {
    let mut parts = line.split(r#""message-"#);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(r#""message-"#);
        let (id, rest) = part.split_once('"').unwrap();
        let id = id.split_once('x').map_or(id, |(_, number)| number);
        text.push_str(id);
        text.push('"');
        text.push_str(rest);
    }
    text
}

impl Inner {
    pub(super) fn received(&self, line: &str) {
        let name = &self.name;
        // A client that leaves meanwhile has handled the message, or has not received it.
        let _handling = self.handling.lock().unwrap();
        let is_closed = self.state().closed;
        if is_closed {
            return;
        }
        let traced = format!("{name} {}", without_nonces(line));
        self.world.state().trace.push(traced);
        let message: Value = serde_json::from_str(line).unwrap();
        let (id, method) = (&message["id"], message["method"].as_str());
        let params = &message["params"];
        let checked = match (method, id.is_null()) {
            (Some("session/update"), true) => self.update(params),
            (Some("$/cancel_request"), true) => self.question_cancelled(&params["requestId"]),
            (Some("session/request_permission"), false) => self.asked(id, params),
            (None, false) => self.answered(id.as_u64().unwrap(), &message),
            _ => Err("an unexpected message".to_owned()),
        };
        if let Err(fault) = checked {
            self.world.fault(format!("{name}: {fault}: {line}"));
        }
    }

    fn update(&self, params: &Value) -> Result<(), String> {
        let session = SessionId::from(params["sessionId"].as_str().unwrap());
        let log = self.world.recorder.log(&session);
        let meta = &params["_meta"]["acp-sdk"];
        let number = meta["eventId"]
            .as_u64()
            .ok_or("an update without a number")?;
        let mut state = self.state();
        let view = state.views.get_mut(&session);
        let view = view.ok_or("an update of a session that was not joined")?;
        view.update(number, &params["update"], &log)?;
        {
            let mut world = self.world.state();
            let shown = world.shown.entry(session).or_default();
            *shown = number.max(*shown);
        }
        // The latest turns are known by their prompts.
        match (
            meta["promptId"].as_str(),
            crate::judge::prompt_of(number, &log),
        ) {
            (None, _) => Ok(()),
            (Some(id), Some(expected)) if id == expected => Ok(()),
            (Some(id), expected) => Err(format!("expected the prompt {expected:?}, got {id}")),
        }
    }

    fn asked(&self, id: &Value, params: &Value) -> Result<(), String> {
        let session = SessionId::from(params["sessionId"].as_str().unwrap());
        let log = self.world.recorder.log(&session);
        let title = match self.version {
            Version::V1 => &params["toolCall"]["title"],
            Version::V2 => &params["title"],
        };
        let is_it = |event: &Value| {
            event["event"] == "permission_asked" && event["request"]["toolCall"]["title"] == *title
        };
        let at = log.iter().position(|entry| is_it(&entry.value));
        let question = at.ok_or("a question that is not committed")? as u64 + 1;
        let mut state = self.state();
        let mut asked = state.asked.iter();
        let is_open = |asked: &Asked| asked.session == session && !asked.cancelled;
        if asked.any(|asked| is_open(asked) && asked.question == question) {
            return Err(format!("question {question} is asked twice"));
        }
        let view = state.views.get(&session);
        let view = view.ok_or("a question of a session that was not joined")?;
        if !view.has_all(question - 1, &log) {
            return Err(format!(
                "question {question} overtakes the updates before it"
            ));
        }
        let mut asked = Asked {
            id: id.clone(),
            session,
            question,
            answered: false,
            cancelled: false,
        };
        if state.dice.roll(2) == 0 {
            let how = state.dice.roll(8);
            self.answer(&mut asked, how);
        }
        state.asked.push(asked);
        Ok(())
    }

    pub(super) fn answer(&self, asked: &mut Asked, how: u64) {
        asked.answered = true;
        let option = match how {
            0..=3 => "allow",
            4 => "reject",
            5 => "unknown",
            6 => {
                self.world.cancels(&asked.session);
                let outcome = json!({ "outcome": { "outcome": "cancelled" } });
                return self.send(&json!({ "jsonrpc": "2.0", "id": asked.id, "result": outcome }));
            }
            _ => {
                let error = json!({ "code": -32603, "message": "no" });
                return self.send(&json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }));
            }
        };
        self.world.state().replies.push(Reply {
            session: asked.session.clone(),
            question: asked.question,
            option: option.to_owned(),
        });
        let outcome = json!({ "outcome": { "outcome": "selected", "optionId": option } });
        self.send(&json!({ "jsonrpc": "2.0", "id": asked.id, "result": outcome }));
    }

    fn question_cancelled(&self, id: &Value) -> Result<(), String> {
        let mut state = self.state();
        let mut asked = state.asked.iter_mut();
        let asked = asked.find(|asked| asked.id == *id);
        let asked = asked.ok_or("a question is withdrawn that was never asked")?;
        if asked.cancelled {
            return Err("a question is withdrawn twice".to_owned());
        }
        asked.cancelled = true;
        // As the protocol has it, a cancelled request is answered, too.
        if !std::mem::replace(&mut asked.answered, true) {
            let error = json!({ "code": -32800, "message": "cancelled" });
            self.send(&json!({ "jsonrpc": "2.0", "id": asked.id, "error": error }));
        }
        Ok(())
    }

    fn answered(&self, id: u64, message: &Value) -> Result<(), String> {
        let mut state = self.state();
        let sent = state.sent.remove(&id);
        let sent = sent.ok_or("an answer to no request, or a second one")?;
        let result = match &message["result"] {
            Value::Null => Err(message["error"].clone()),
            result => Ok(result.clone()),
        };
        match sent {
            Sent::Initialize => result.map(drop).map_err(|error| error.to_string()),
            Sent::Join(session) => {
                let log = self.world.recorder.log(&session);
                let view = state.views.get_mut(&session).unwrap();
                match result {
                    Ok(result) => view.joined(result["lastEventId"].as_u64(), &log),
                    Err(_) => {
                        view.not_joined();
                        Ok(())
                    }
                }
            }
            Sent::Prompt(at) => {
                let mut world = self.world.state();
                let prompt = &mut world.prompts[at];
                let view = &state.views[&prompt.session];
                let since = view.is_certain() && view.generation == prompt.generation;
                prompt.answer = Some(Answer {
                    result,
                    places: since.then(|| view.places()),
                });
                Ok(())
            }
            Sent::Steer(at) => {
                self.world.state().steers[at].answer = Some(result);
                Ok(())
            }
            Sent::Close(session) => {
                if let (Ok(_), Some(view)) = (result, state.views.get_mut(&session)) {
                    view.left();
                }
                Ok(())
            }
            Sent::Mode(session, mode) => {
                let log = self.world.recorder.log(&session);
                let is_set = |entry: &Value| entry["currentModeId"] == mode;
                match result {
                    Ok(_) if mode != MODES[0] && !log.iter().any(|entry| is_set(&entry.value)) => {
                        Err(format!("the mode {mode} is not committed"))
                    }
                    _ => Ok(()),
                }
            }
            Sent::State(session) => {
                let last = result
                    .ok()
                    .and_then(|result| result["lastEventId"].as_u64());
                state.states.insert(session, last);
                Ok(())
            }
            Sent::Other => Ok(()),
        }
    }
}
