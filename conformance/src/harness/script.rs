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
    /// Fills the form in if it can, or agrees to follow the link.
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
                // What does not conform to the form may be refused.
                Some(form) => match filled(form) {
                    Some(content) => Said::Result(json!({"action": "accept", "content": content})),
                    None => Said::Result(json!({"action": "cancel"})),
                },
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

/// Values for the required fields of a form; none if one of them cannot be filled in.
fn filled(form: &Value) -> Option<Value> {
    let required = form.get("required").and_then(Value::as_array);
    let names = required.into_iter().flatten().filter_map(Value::as_str);
    let values = names.map(|name| {
        let value = value_for(form.pointer("/properties")?.get(name)?)?;
        Some((name.to_owned(), value))
    });
    Some(Value::Object(values.collect::<Option<Map<_, _>>>()?))
}

/// A value that conforms to the schema of a field: its default, or else the first that it allows.
fn value_for(field: &Value) -> Option<Value> {
    // `null` means as little as a member that is not there.
    let given = |at: &str| field.pointer(at).filter(|value| !value.is_null());
    let first = given("/default").or(given("/enum/0"));
    if let Some(value) = first.or(given("/oneOf/0/const")) {
        return Some(value.clone());
    }
    let number = |at: &str| given(at).and_then(Value::as_f64);
    match field.get("type")?.as_str()? {
        "boolean" => Some(json!(true)),
        "integer" | "number" => {
            let greatest = given("/maximum").filter(|_| number("/maximum") < Some(1.0));
            Some(given("/minimum").or(greatest).cloned().unwrap_or(json!(1)))
        }
        "array" => {
            let all = given("/items/enum").or(given("/items/anyOf"))?.as_array()?;
            let least = given("/minItems").and_then(Value::as_u64).unwrap_or(0);
            let least = usize::try_from(least).ok()?;
            let chosen = all.get(..least)?.iter();
            let chosen = chosen.map(|it| it.get("const").unwrap_or(it).clone());
            Some(Value::Array(chosen.collect()))
        }
        // What matches a pattern takes more than is worth here.
        "string" => text_for(field).filter(|_| given("/pattern").is_none()),
        _ => None,
    }
}

/// A text of the format and the length that a field has.
fn text_for(field: &Value) -> Option<Value> {
    /// The longest text that is written for a form.
    const LONGEST: usize = 65_536;
    let length = |name: &str| usize::try_from(field.get(name)?.as_u64()?).ok();
    let least = length("minLength").unwrap_or(0);
    let most = length("maxLength").unwrap_or(LONGEST);
    let text = match field.get("format").and_then(Value::as_str) {
        Some("email") => "user@example.com".to_owned(),
        Some("uri") => "https://example.com/".to_owned(),
        Some("date") => "2026-01-31".to_owned(),
        Some("date-time") => "2026-01-31T12:00:00Z".to_owned(),
        // An unknown format is an annotation.
        _ => "text"
            .chars()
            .cycle()
            .take(least.max(4).min(most))
            .collect(),
    };
    (least..=most.min(LONGEST))
        .contains(&text.len())
        .then(|| json!(text))
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
        assert_eq!(filled(&form), Some(json!({"a": "x", "b": true})));
        let unknown = json!({"properties": {}, "required": ["a"]});
        assert_eq!(filled(&unknown), None);
        let many = json!({"type": "array", "minItems": 1, "items": {"type": "string", "enum": ["x", "y"]}});
        let titled = json!({"type": "array", "minItems": 1, "items": {"anyOf": [{"const": "x", "title": "X"}]}});
        for (field, value) in [
            (json!({"type": "string"}), Some(json!("text"))),
            (
                json!({"type": "string", "default": null, "minLength": 6}),
                Some(json!("textte")),
            ),
            (json!({"type": "string", "maxLength": 2}), Some(json!("te"))),
            (
                json!({"type": "string", "format": "email"}),
                Some(json!("user@example.com")),
            ),
            (
                json!({"type": "string", "format": "date", "maxLength": 3}),
                None,
            ),
            (
                json!({"type": "string", "minLength": 10_000_000_000_u64}),
                None,
            ),
            (json!({"type": "string", "pattern": "^A[0-9]+$"}), None),
            (
                json!({"type": "string", "pattern": "^A$", "default": "A"}),
                Some(json!("A")),
            ),
            (
                json!({"type": "integer", "minimum": null, "maximum": -1}),
                Some(json!(-1)),
            ),
            (
                json!({"type": "integer", "minimum": 3, "maximum": 5}),
                Some(json!(3)),
            ),
            (many, Some(json!(["x"]))),
            (titled, Some(json!(["x"]))),
            (
                json!({"type": "array", "minItems": 2, "items": {"enum": ["x"]}}),
                None,
            ),
            (json!({"type": "_color"}), None),
        ] {
            assert_eq!(value_for(&field), value, "{field}");
        }
    }
}
