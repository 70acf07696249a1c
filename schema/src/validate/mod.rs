//! Checks messages against the schema.
//!
//! Each definition is compiled when it is first needed, together with only the
//! definitions it reaches, and kept; a [`Validator`] can be shared by threads.
//! A valid value takes one pass. An invalid one takes a second pass, which finds the invalid
//! fields, also inside of unions.
//!
//! Leniency markers (`x-deserialize-…`) are not applied: this is what a strict
//! sender would emit. Extension methods, whose names start with `_`, may carry
//! anything unless the document defines them.

mod explain;
mod slot;
mod strict;

use std::sync::Arc;

use serde_json::Value;

use self::slot::Slot;
use crate::{Document, Error, Kind, Protocol, Side};

/// One place where a value breaks the schema.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// JSON Pointer to the field, from the value that was checked.
    pub path: String,
    /// JSON Pointer to the keyword, from the definition that was checked.
    pub schema_path: String,
    /// The description of the violation.
    pub message: String,
}

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Checked {
    /// The value is valid.
    Valid,
    /// The value is not valid; at least one violation.
    Invalid(Vec<Violation>),
    /// The document has no such method, or the method has no such part.
    Unknown,
}

/// Validates params, results and error objects of the methods of a document.
#[derive(Debug)]
pub struct Validator {
    methods: Vec<MethodSlots>,
    protocol: Protocol,
    error: Slot,
}

/// What a method carries, in either form.
#[derive(Debug)]
struct MethodSlots {
    side: Side,
    name: String,
    request: Option<RequestSlots>,
    notification: Option<Slot>,
}

#[derive(Debug)]
struct RequestSlots {
    params: Slot,
    result: Slot,
}

impl Validator {
    /// A validator for protocol version 1.
    ///
    /// # Errors
    /// Never for the bundled document.
    pub fn v1() -> Result<Self, Error> {
        Self::new(&Document::v1()?)
    }

    /// A validator for a document.
    ///
    /// # Errors
    /// When the method table is not complete or a `$ref` that a method reaches
    /// leads nowhere.
    pub fn new(document: &Document) -> Result<Self, Error> {
        let mut methods: Vec<MethodSlots> = Vec::new();
        let protocol = Protocol::from_document(document)?;
        let document = &Arc::new(document.clone());
        for method in protocol.methods() {
            let of = |slots: &MethodSlots| slots.side == method.side && slots.name == method.name;
            let index = methods.iter().position(of).unwrap_or_else(|| {
                methods.push(MethodSlots {
                    side: method.side,
                    name: method.name.clone(),
                    request: None,
                    notification: None,
                });
                methods.len() - 1
            });
            let Some(slots) = methods.get_mut(index) else {
                continue;
            };
            match &method.kind {
                Kind::Request { params, result } => {
                    slots.request = Some(RequestSlots {
                        params: Slot::new(document, params)?,
                        result: Slot::new(document, result)?,
                    });
                }
                Kind::Notification { params } => {
                    slots.notification = Some(Slot::new(document, params)?);
                }
            }
        }
        let error = Slot::new(document, "Error")?;
        Ok(Self {
            methods,
            protocol,
            error,
        })
    }

    /// Checks the params of a method that `side` handles. If it is a request as well
    /// as a notification, these are the request's; see [`Self::notification`].
    pub fn params(&self, side: Side, method: &str, params: &Value) -> Checked {
        self.check(side, method, params, |slots| {
            let request = slots.request.as_ref().map(|request| &request.params);
            request.or(slots.notification.as_ref())
        })
    }

    /// Checks the params of a notification that `side` takes.
    pub fn notification(&self, side: Side, method: &str, params: &Value) -> Checked {
        self.check(side, method, params, |slots| slots.notification.as_ref())
    }

    /// Checks the result of a request that `side` handles.
    pub fn result(&self, side: Side, method: &str, result: &Value) -> Checked {
        self.check(side, method, result, |slots| {
            slots.request.as_ref().map(|request| &request.result)
        })
    }

    /// Checks a value against the part of a method that `pick` takes.
    fn check(
        &self,
        side: Side,
        method: &str,
        value: &Value,
        pick: impl Fn(&MethodSlots) -> Option<&Slot>,
    ) -> Checked {
        let slots = self.slots(side, method);
        if slots.is_none() && method.starts_with('_') {
            return Checked::Valid;
        }
        slots
            .and_then(pick)
            .map_or(Checked::Unknown, |slot| slot.check(value))
    }

    /// Checks the error object of a response.
    pub fn error_object(&self, error: &Value) -> Checked {
        self.error.check(error)
    }

    /// Checks a whole JSON-RPC message that goes to `receiver`.
    ///
    /// `answered` is the method that a response answers; without it, only the
    /// envelope and an error object are checked. Paths start at the message, so
    /// a wrong prompt is at `/params/prompt`.
    pub fn message(&self, receiver: Side, answered: Option<&str>, message: &Value) -> Checked {
        let violations = envelope(message);
        if !violations.is_empty() {
            return Checked::Invalid(violations);
        }
        let id = message.get("id");
        let Some(method) = message.get("method").and_then(Value::as_str) else {
            if let Some(error) = message.get("error") {
                return prefixed("/error", self.error_object(error));
            }
            let result = message.get("result").unwrap_or(&Value::Null);
            let Some(method) = answered else {
                return Checked::Unknown;
            };
            // The answering side is the one that the response comes from.
            let side = self.protocol.peer(receiver).unwrap_or(receiver);
            return prefixed("/result", self.result(side, method, result));
        };
        let slots = self
            .slots(receiver, method)
            .or_else(|| self.slots(Side::PROTOCOL, method));
        let Some(slots) = slots else {
            return match method.starts_with('_') {
                true => Checked::Valid,
                false => Checked::Unknown,
            };
        };
        let form = match id {
            Some(_) => slots.request.as_ref().map(|request| &request.params),
            None => slots.notification.as_ref(),
        };
        let Some(form) = form else {
            let text = match id {
                Some(_) => "`id` is not allowed; this method is a notification",
                None => "`id` is missing; this method is a request",
            };
            return Checked::Invalid(vec![violation("/id", text)]);
        };
        // Absent params are those of an empty object: every field is optional
        // or the check names the one that is missing.
        let empty = Value::Object(serde_json::Map::new());
        let params = message.get("params").unwrap_or(&empty);
        prefixed("/params", form.check(params))
    }

    fn slots(&self, side: Side, method: &str) -> Option<&MethodSlots> {
        self.methods
            .iter()
            .find(|slots| slots.side.includes(side) && slots.name == method)
    }
}

/// The rules of JSON-RPC 2.0 for one message.
fn envelope(message: &Value) -> Vec<Violation> {
    let Some(object) = message.as_object() else {
        return vec![violation("", "a message is a JSON object")];
    };
    let mut found = Vec::new();
    if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        found.push(violation("/jsonrpc", "`jsonrpc` must be \"2.0\""));
    }
    if let Some(id) = object.get("id")
        && !(id.is_null() || id.is_string() || id.is_i64())
    {
        found.push(violation(
            "/id",
            "`id` must be a string, an integer or null",
        ));
    }
    let answers =
        usize::from(object.contains_key("result")) + usize::from(object.contains_key("error"));
    match object.get("method") {
        Some(method) => {
            if !method.is_string() {
                found.push(violation("/method", "`method` must be a string"));
            }
            if answers > 0 {
                found.push(violation("", "`method` stands beside `result` or `error`"));
            }
            if let Some(params) = object.get("params")
                && !(params.is_object() || params.is_array() || params.is_null())
            {
                found.push(violation(
                    "/params",
                    "`params` must be an object or an array",
                ));
            }
        }
        None if answers != 1 => found.push(violation(
            "",
            "neither a call (`method`) nor an answer (one of `result` and `error`)",
        )),
        None if !object.contains_key("id") => {
            found.push(violation("/id", "a response needs an `id`"));
        }
        None => {}
    }
    found
}

fn violation(path: &str, message: &str) -> Violation {
    Violation {
        path: path.into(),
        schema_path: String::new(),
        message: message.into(),
    }
}

fn prefixed(prefix: &str, checked: Checked) -> Checked {
    match checked {
        Checked::Invalid(mut violations) => {
            for violation in &mut violations {
                violation.path.insert_str(0, prefix);
            }
            Checked::Invalid(violations)
        }
        other => other,
    }
}

#[cfg(test)]
mod tests;
