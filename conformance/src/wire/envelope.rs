//! The JSON-RPC envelope: what kind of message a value is, and what is wrong
//! with it before its params are inspected.
//!
//! A defective envelope is still read as far as it can be, because a message
//! without `jsonrpc` has params worth checking too.

use serde_json::Value;

use super::unknown_fields::{MOST, UnknownField, pointer};

/// A message as far as it can be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Message<'a> {
    /// A call that wants an answer.
    Request {
        /// Chosen by the caller; unique among its own open requests only.
        id: &'a Value,
        /// The method.
        method: &'a str,
        /// The params; absent and `null` differ on the wire.
        params: Option<&'a Value>,
    },
    /// A call without an answer.
    Notification {
        /// The method.
        method: &'a str,
        /// The params.
        params: Option<&'a Value>,
    },
    /// An answer.
    Response {
        /// The id of the request; `None` when the member is missing.
        id: Option<&'a Value>,
        /// The outcome of the request.
        answer: Answer<'a>,
    },
}

/// The outcome of a request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Answer<'a> {
    /// It succeeded.
    Result(&'a Value),
    /// It failed.
    Error(&'a Value),
}

/// A breach of the envelope's rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// JSON Pointer into the message.
    pub pointer: &'static str,
    /// What is wrong.
    pub message: String,
}

/// Reads the envelope of `value`. The message is `None` when its kind cannot be
/// determined; then there is at least one defect.
#[must_use]
pub fn read(value: &Value) -> (Option<Message<'_>>, Vec<Defect>) {
    let mut defects = Vec::new();
    let Some(object) = value.as_object() else {
        let message = match value {
            Value::Array(_) => "expected one message, got a batch".to_owned(),
            other => format!("expected an object, got {}", describe(other)),
        };
        defects.push(Defect {
            pointer: "",
            message,
        });
        return (None, defects);
    };
    match object.get("jsonrpc") {
        Some(Value::String(version)) if version == "2.0" => {}
        Some(other) => defects.push(Defect {
            pointer: "/jsonrpc",
            message: format!("expected \"2.0\", got {}", excerpt(other)),
        }),
        None => defects.push(Defect {
            pointer: "/jsonrpc",
            message: "expected \"2.0\", got none".into(),
        }),
    }
    let id = object.get("id");
    if let Some(id) = id
        && !is_id(id)
    {
        defects.push(Defect {
            pointer: "/id",
            message: format!(
                "expected a string, an integer or null, got {}",
                describe(id)
            ),
        });
    }
    let (result, error) = (object.get("result"), object.get("error"));
    if let Some(method) = object.get("method") {
        for (member, present) in [("/result", result.is_some()), ("/error", error.is_some())] {
            if present {
                defects.push(Defect {
                    pointer: member,
                    message: "expected no answer in a message with a method, got one".into(),
                });
            }
        }
        let Some(method) = method.as_str() else {
            defects.push(Defect {
                pointer: "/method",
                message: format!("expected a string, got {}", describe(method)),
            });
            return (None, defects);
        };
        let params = object.get("params");
        let message = match id {
            Some(id) => Message::Request { id, method, params },
            None => Message::Notification { method, params },
        };
        return (Some(message), defects);
    }
    let answer = match (result, error) {
        (Some(_), Some(error)) => {
            defects.push(Defect {
                pointer: "/result",
                message: "expected `result` or `error`, got both".into(),
            });
            Answer::Error(error)
        }
        (Some(result), None) => Answer::Result(result),
        (None, Some(error)) => Answer::Error(error),
        (None, None) => {
            defects.push(Defect {
                pointer: "",
                message: "expected `method`, `result` or `error`, got none of them".into(),
            });
            return (None, defects);
        }
    };
    (Some(Message::Response { id, answer }), defects)
}

/// The members that neither the schema nor JSON-RPC has of a message and of its error object. All
/// types of the protocol have `_meta`.
pub(super) fn unknown_fields(message: &Value) -> impl Iterator<Item = UnknownField<'_>> {
    const MESSAGE: &[&str] = &[
        "jsonrpc", "id", "method", "params", "result", "error", "_meta",
    ];
    const ERROR: &[&str] = &["code", "message", "data", "_meta"];
    let is_message = ["method", "result", "error"]
        .iter()
        .any(|name| message.get(name).is_some());
    let objects = [
        ("", Some(message), MESSAGE),
        ("/error", message.get("error"), ERROR),
    ];
    // What is no message has another finding.
    let objects = objects.into_iter().filter(move |_| is_message);
    objects.flat_map(|(place, value, known)| {
        let members = value.and_then(Value::as_object).into_iter().flatten();
        let others = members.filter(|(name, _)| !known.contains(&name.as_str()));
        others.take(MOST).map(move |(name, _)| UnknownField {
            pointer: format!("{place}{}", pointer(std::iter::once(name))),
            of: Vec::new(),
            name: name.clone(),
        })
    })
}

/// What kind of JSON a value is, for messages to people.
#[must_use]
pub fn describe(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a fraction",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

/// The JSON text of a value, cut to what fits a line of a report.
#[must_use]
pub fn excerpt(value: &Value) -> String {
    shorten(&value.to_string(), 80)
}

/// The first `limit` characters of `text`, with an ellipsis when more follow.
#[must_use]
pub fn shorten(text: &str, limit: usize) -> String {
    match text.char_indices().nth(limit) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// `text` with its middle left out when it is longer than a line of a report
/// should be; validators quote the value before they say what is wrong with it.
#[must_use]
pub(crate) fn abridge(text: &str) -> String {
    const HEAD: usize = 100;
    const TAIL: usize = 120;
    let length = text.chars().count();
    if length <= HEAD + TAIL {
        return text.to_owned();
    }
    let head: String = text.chars().take(HEAD).collect();
    let tail: String = text.chars().skip(length - TAIL).collect();
    format!("{head} … {tail}")
}

fn is_id(id: &Value) -> bool {
    match id {
        Value::Null | Value::String(_) => true,
        Value::Number(number) => number.is_i64(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pointers(value: &Value) -> Vec<&'static str> {
        let (_, defects) = read(value);
        defects.iter().map(|defect| defect.pointer).collect()
    }

    #[test]
    fn kinds_are_told_apart() {
        let request = json!({"jsonrpc":"2.0","id":null,"method":"m"});
        assert!(matches!(
            read(&request),
            (Some(Message::Request { method: "m", .. }), defects) if defects.is_empty()
        ));
        let notification = json!({"jsonrpc":"2.0","method":"m","params":null});
        assert!(matches!(
            read(&notification).0,
            Some(Message::Notification {
                params: Some(Value::Null),
                ..
            })
        ));
        let nameless = json!({"jsonrpc":"2.0","error":{"code":1,"message":""}});
        assert!(matches!(
            read(&nameless).0,
            Some(Message::Response {
                id: None,
                answer: Answer::Error(_)
            })
        ));
    }

    #[test]
    fn each_defect_is_pointed_at() {
        assert_eq!(pointers(&json!([])), [""]);
        assert_eq!(pointers(&json!({"id":1,"method":"m"})), ["/jsonrpc"]);
        assert_eq!(
            pointers(&json!({"jsonrpc":"1.0","id":1.5,"method":"m"})),
            ["/jsonrpc", "/id"]
        );
        assert_eq!(pointers(&json!({"jsonrpc":"2.0","method":7})), ["/method"]);
        assert_eq!(
            pointers(&json!({"jsonrpc":"2.0","id":1,"method":"m","result":{}})),
            ["/result"]
        );
        assert_eq!(
            pointers(&json!({"jsonrpc":"2.0","id":1,"result":{},"error":{}})),
            ["/result"]
        );
        assert_eq!(pointers(&json!({"jsonrpc":"2.0","id":903})), [""]);
    }

    #[test]
    fn members_of_a_message_and_of_its_error_are_known() {
        let found = |message: Value| -> Vec<_> {
            unknown_fields(&message)
                .map(|field| field.pointer)
                .collect()
        };
        let error = json!({"code": 1, "message": "m", "data": {"own": 1}, "hint": 1});
        let answer = json!({"jsonrpc": "2.0", "id": 1, "error": error, "trace": 1});
        assert_eq!(found(answer), ["/trace", "/error/hint"]);
        let call = json!({"jsonrpc": "2.0", "method": "m", "params": {"own": 1}, "_meta": {}});
        assert!(found(call).is_empty());
        assert!(found(json!({"own": 1})).is_empty());
    }

    #[test]
    fn a_long_text_keeps_both_ends() {
        let text = format!("begin {} end", "ß".repeat(300));
        let short = abridge(&text);
        assert!(short.starts_with("begin ß") && short.ends_with("ß end"));
        assert_eq!(short.chars().count(), 223);
        assert_eq!(abridge("short"), "short");
    }

    #[test]
    fn an_excerpt_is_cut_between_characters() {
        assert_eq!(shorten("äöü", 2), "äö…");
        assert_eq!(shorten("äö", 2), "äö");
    }
}
