//! How the client answers what an agent asks of it.

use std::collections::HashSet;

use acp_sdk::ErrorCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::confined;
use super::files::Files;

/// What the user says when asked for permission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Consent {
    /// The first option that allows, chosen by its kind.
    #[default]
    Allow,
    /// The first option that rejects.
    Reject,
    /// Nothing; the request stays open until the turn is cancelled.
    Hold,
}

/// What the user does when asked for input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UserInput {
    /// Fills the form in, or follows the link.
    #[default]
    Accept,
    /// Declines.
    Decline,
    /// Closes the question.
    Cancel,
    /// Does what the agent's version does not know.
    Later,
    /// The client fails to ask.
    Fail,
}

/// What becomes of a command in a terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Terminals {
    /// It ends at once with exit code 0.
    #[default]
    End,
    /// It runs until it is killed.
    Run,
    /// The terminal cannot be created.
    Refuse,
}

/// Answers by method.
#[derive(Debug, Default)]
pub struct Script {
    /// The user's answer to permission requests.
    pub consent: Consent,
    /// The user's answer to questions.
    pub input: UserInput,
    /// How commands end.
    pub terminals: Terminals,
    pub(super) files: Files,
    /// The path outside of the working directory for which permission was refused last.
    pub(crate) refused: Option<String>,
    live: HashSet<String>,
    /// Terminals whose command was killed; they stay usable until they are released.
    killed: HashSet<String>,
    created: u64,
}

/// An answer: a result or an error, or none for now.
pub(super) enum Said {
    Result(Value),
    Error(ErrorCode, String),
    Later,
}

impl Said {
    /// Returns the message that answers the request with this id, if it is answered now.
    pub(super) fn message(self, id: &Value) -> Option<Value> {
        match self {
            Self::Result(result) => Some(json!({"jsonrpc": "2.0", "id": id, "result": result})),
            Self::Error(code, message) => {
                let error = json!({"code": code, "message": message});
                Some(json!({"jsonrpc": "2.0", "id": id, "error": error}))
            }
            Self::Later => None,
        }
    }
}

impl Script {
    /// Answers by the defaults, with the files of this folder.
    #[cfg(feature = "remote")]
    pub(crate) fn in_folder(folder: &std::path::Path) -> Self {
        let mut script = Self::default();
        script.files.folder = folder.to_owned();
        script
    }

    /// The message that answers a request of the agent, if it is answered now.
    #[cfg(feature = "remote")]
    pub(crate) fn respond(&mut self, request: &Value) -> Option<Value> {
        let method = request["method"].as_str().unwrap_or_default();
        let said = self.answer(method, &request["params"]);
        said.message(&request["id"])
    }

    /// Answers a request of the agent.
    pub(super) fn answer(&mut self, method: &str, params: &Value) -> Said {
        match method {
            "session/request_permission" => self.permission(params),
            "fs/read_text_file" => match self.files.read(params) {
                Ok(content) => Said::Result(json!({"content": content})),
                Err(reason) => Said::Error(ErrorCode::RESOURCE_NOT_FOUND, reason),
            },
            "fs/write_text_file" => match self.files.write(params) {
                Ok(()) => Said::Result(json!({})),
                Err(reason) => Said::Error(ErrorCode::RESOURCE_NOT_FOUND, reason),
            },
            "elicitation/create" => self.elicitation(params),
            method if method.starts_with("terminal/") => self.terminal(method, params),
            _ => Said::Error(
                ErrorCode::METHOD_NOT_FOUND,
                format!("the client has no method {method}"),
            ),
        }
    }

    /// Answers what was left open when a turn is cancelled.
    pub(super) fn cancelled(method: &str) -> Said {
        match method {
            "session/request_permission" => {
                Said::Result(json!({"outcome": {"outcome": "cancelled"}}))
            }
            "elicitation/create" => Said::Result(json!({"action": "cancel"})),
            "terminal/wait_for_exit" => Said::Result(json!({"signal": "SIGKILL"})),
            _ => Said::Error(
                ErrorCode::REQUEST_CANCELLED,
                "the turn was cancelled".into(),
            ),
        }
    }

    fn permission(&mut self, params: &Value) -> Said {
        let outside = confined::outside(params, &self.files.folder);
        let wanted = match self.consent {
            Consent::Allow if outside.is_some() => {
                self.refused = outside;
                "reject"
            }
            Consent::Allow => "allow",
            Consent::Reject => "reject",
            Consent::Hold => return Said::Later,
        };
        let options = params.get("options").and_then(Value::as_array);
        let fits = |option: &&Value| {
            let kind = option.get("kind").and_then(Value::as_str);
            kind.is_some_and(|kind| kind.starts_with(wanted))
        };
        let chosen = options.and_then(|options| options.iter().find(fits));
        match chosen.and_then(|option| option.get("optionId")) {
            Some(id) => Said::Result(json!({"outcome": {"outcome": "selected", "optionId": id}})),
            None => Said::Result(json!({"outcome": {"outcome": "cancelled"}})),
        }
    }

    fn elicitation(&self, params: &Value) -> Said {
        let form = params.get("requestedSchema");
        match self.input {
            UserInput::Accept => match form {
                Some(form) => Said::Result(json!({"action": "accept", "content": filled(form)})),
                None => Said::Result(json!({"action": "accept"})),
            },
            UserInput::Decline => Said::Result(json!({"action": "decline"})),
            UserInput::Cancel => Said::Result(json!({"action": "cancel"})),
            UserInput::Later => Said::Result(json!({"action": "_later"})),
            UserInput::Fail => Said::Error(
                ErrorCode::INTERNAL_ERROR,
                "the client cannot ask the user".into(),
            ),
        }
    }

    fn terminal(&mut self, method: &str, params: &Value) -> Said {
        let id = params.get("terminalId").and_then(Value::as_str);
        let known = id.is_some_and(|id| self.live.contains(id));
        let killed = id.is_some_and(|id| self.killed.contains(id));
        match method {
            "terminal/create" if self.terminals == Terminals::Refuse => Said::Error(
                ErrorCode::INTERNAL_ERROR,
                "the terminal cannot be created".into(),
            ),
            "terminal/create" => {
                self.created += 1;
                let id = format!("terminal-{}", self.created);
                self.live.insert(id.clone());
                Said::Result(json!({"terminalId": id}))
            }
            _ if !known => Said::Error(
                ErrorCode::RESOURCE_NOT_FOUND,
                "there is no such terminal".into(),
            ),
            "terminal/wait_for_exit" if killed => Self::cancelled(method),
            "terminal/output" => {
                let mut output = json!({"output": "hello\n", "truncated": false});
                if killed {
                    output["exitStatus"] = json!({"signal": "SIGKILL"});
                } else if self.terminals == Terminals::End {
                    output["exitStatus"] = json!({"exitCode": 0});
                }
                Said::Result(output)
            }
            "terminal/wait_for_exit" if self.terminals == Terminals::Run => Said::Later,
            "terminal/wait_for_exit" => Said::Result(json!({"exitCode": 0})),
            "terminal/release" => {
                self.live.retain(|live| Some(live.as_str()) != id);
                Said::Result(json!({}))
            }
            "terminal/kill" => {
                self.killed.extend(id.map(str::to_owned));
                Said::Result(json!({}))
            }
            _ => Said::Error(
                ErrorCode::METHOD_NOT_FOUND,
                format!("the client has no method {method}"),
            ),
        }
    }
}

/// Values for the required fields of a form, each the first that its schema allows.
fn filled(form: &Value) -> Value {
    let required = form.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let values = names.map(|name| {
        let field = form.pointer("/properties").and_then(|all| all.get(name));
        (name.to_owned(), field.map_or(Value::Null, value_for))
    });
    Value::Object(values.collect::<Map<_, _>>())
}

fn value_for(field: &Value) -> Value {
    let first = |at: &str| field.pointer(at).cloned();
    if let Some(value) = first("/default")
        .or_else(|| first("/enum/0"))
        .or_else(|| first("/oneOf/0/const"))
    {
        return value;
    }
    match field.get("type").and_then(Value::as_str) {
        Some("boolean") => Value::Bool(true),
        Some("integer" | "number") => field.get("minimum").cloned().unwrap_or(json!(1)),
        Some("array") => Value::Array(Vec::new()),
        _ => {
            let length = field.get("minLength").and_then(Value::as_u64).unwrap_or(4);
            json!("text".repeat(usize::try_from(length.div_ceil(4)).unwrap_or(1)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(said: Said) -> Value {
        match said {
            Said::Result(value) => value,
            Said::Error(code, _) => json!(code),
            Said::Later => json!("later"),
        }
    }

    #[test]
    fn permission_is_chosen_by_kind_and_not_by_position() {
        let params = json!({"options": [
            {"optionId": "n", "kind": "reject_once"},
            {"optionId": "y", "kind": "allow_always"},
        ]});
        let mut script = Script::default();
        let said = result(script.answer("session/request_permission", &params));
        assert_eq!(said.pointer("/outcome/optionId"), Some(&json!("y")));
        script.consent = Consent::Reject;
        let said = result(script.answer("session/request_permission", &params));
        assert_eq!(said.pointer("/outcome/optionId"), Some(&json!("n")));
    }

    #[test]
    fn permission_outside_of_the_folder_is_refused() {
        let options = json!([
            {"optionId": "y", "kind": "allow_once"},
            {"optionId": "n", "kind": "reject_once"},
        ]);
        let asked = |path: &str| {
            let call = json!({"toolCallId": "c", "locations": [{"path": path}]});
            json!({"options": options, "toolCall": call})
        };
        let mut script = Script::default();
        script.files.folder = "/work".into();
        let said = result(script.answer("session/request_permission", &asked("/work/a")));
        assert_eq!(said.pointer("/outcome/optionId"), Some(&json!("y")));
        assert_eq!(script.refused, None);
        let said = result(script.answer("session/request_permission", &asked("/etc/a")));
        assert_eq!(said.pointer("/outcome/optionId"), Some(&json!("n")));
        assert_eq!(script.refused.as_deref(), Some("/etc/a"));
    }

    #[test]
    fn a_released_terminal_is_gone() {
        let mut script = Script::default();
        let id = result(script.answer("terminal/create", &json!({})));
        assert_eq!(result(script.answer("terminal/release", &id)), json!({}));
        assert_eq!(
            result(script.answer("terminal/output", &id)),
            json!(ErrorCode::RESOURCE_NOT_FOUND)
        );
    }

    #[test]
    fn a_killed_command_has_ended_for_those_that_wait_later() {
        let mut script = Script {
            terminals: Terminals::Run,
            ..Script::default()
        };
        let id = result(script.answer("terminal/create", &json!({})));
        assert_eq!(
            result(script.answer("terminal/wait_for_exit", &id)),
            json!("later")
        );
        result(script.answer("terminal/kill", &id));
        let killed = json!({"signal": "SIGKILL"});
        assert_eq!(result(script.answer("terminal/wait_for_exit", &id)), killed);
        assert_eq!(
            result(script.answer("terminal/output", &id))["exitStatus"],
            killed
        );
    }

    #[test]
    fn a_form_is_filled_in_with_what_it_allows() {
        let form = json!({
            "properties": {"a": {"enum": ["x", "y"]}, "b": {"type": "boolean"}, "c": {"type": "string"}},
            "required": ["a", "b"],
        });
        assert_eq!(filled(&form), json!({"a": "x", "b": true}));
    }
}
