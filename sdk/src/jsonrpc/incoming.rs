//! Parses an incoming message: request, notification, response, or why it is none.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::envelope::Envelope;
use super::types::{ErrorCode, RpcError};
use crate::json::StrictError;

/// A message, borrowed from the received text.
#[derive(Debug)]
pub(crate) enum Incoming<'a> {
    Request {
        id: &'a RawValue,
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Notification {
        method: Cow<'a, str>,
        params: Option<&'a RawValue>,
    },
    Response {
        id: &'a RawValue,
        outcome: Outcome<'a>,
    },
    /// An error without an id: the peer could not read something that this side sent.
    UncorrelatedError { error: &'a RawValue },
    /// Not a message. `id` is that of the request, if it could be read.
    Invalid {
        code: ErrorCode,
        id: Option<&'a RawValue>,
        reason: String,
        answer: Answer,
    },
}

/// Whether a text that is not a message is answered with an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The peer expects none.
    Never,
    /// Where invalid input is answered: it may be stray text.
    OnDemand,
    Always,
}

/// The payload of a response.
#[derive(Debug)]
pub(crate) enum Outcome<'a> {
    Result(&'a RawValue),
    Error(&'a RawValue),
    /// Both or neither, which JSON-RPC forbids; the reason.
    Malformed(Cow<'static, str>),
}

impl<'a> Outcome<'a> {
    /// Sorts the two members of a response.
    ///
    /// A `null` beside the other member counts as absent, because several peers write every member
    /// of their structures. `result` alone may be null.
    fn new(result: Option<&'a RawValue>, error: Option<&'a RawValue>) -> Self {
        match (result, error.filter(|error| !is_null(error))) {
            (Some(result), None) => Self::Result(result),
            (None, Some(error)) => Self::Error(error),
            (Some(result), Some(error)) if is_null(result) => Self::Error(error),
            (Some(_), Some(_)) => Self::Malformed("it has both `result` and `error`".into()),
            (None, None) => Self::Malformed("it has neither `result` nor `error`".into()),
        }
    }
}

/// Parses a line without its line feed. Blank lines are skipped by the caller.
pub(crate) fn read(line: &[u8]) -> Incoming<'_> {
    let text = match std::str::from_utf8(line) {
        Ok(text) => text,
        Err(error) => return parse_error(format!("the line is not UTF-8: {error}")),
    };
    match Envelope::read_strict(text) {
        Ok(envelope) => sort(envelope),
        Err(error) => not_an_envelope(text, &error),
    }
}

fn sort(envelope: Envelope<'_>) -> Incoming<'_> {
    let Envelope {
        jsonrpc,
        id,
        method,
        params,
        result,
        error,
    } = envelope;
    let versioned = jsonrpc.is_some_and(|version| version.get() == "\"2.0\"");
    if let Some(id) = id.filter(|id| !is_id(id)) {
        let reason = format!(
            "`id` must be a string, an integer or null, not {}",
            clip(id.get())
        );
        return invalid(None, reason, method.is_some());
    }
    match (method, id) {
        (Some(_), id) if !versioned => {
            invalid(id, "`jsonrpc` must be \"2.0\"".to_owned(), id.is_some())
        }
        (Some(method), Some(id)) => Incoming::Request { id, method, params },
        (Some(method), None) => Incoming::Notification { method, params },
        (None, id) => sort_response(id.filter(|id| !is_null(id)), params, result, error),
    }
}

/// Sorts a message without a method.
fn sort_response<'a>(
    id: Option<&'a RawValue>,
    params: Option<&RawValue>,
    result: Option<&'a RawValue>,
    error: Option<&'a RawValue>,
) -> Incoming<'a> {
    let is_bare = result.is_none() && error.is_none();
    match (id, Outcome::new(result, error)) {
        // Params belong to a request. Without them it is what JavaScript makes of a result that is
        // undefined: a response, and an error with its id would end a request of the peer.
        (id, _) if is_bare && (id.is_none() || params.is_some()) => {
            let reason = "neither `method`, `result` nor `error`".to_owned();
            invalid(id, reason, true)
        }
        (Some(id), outcome) => Incoming::Response { id, outcome },
        (None, Outcome::Error(error)) => Incoming::UncorrelatedError { error },
        (None, _) => invalid(None, "a result without `id`".to_owned(), false),
    }
}

/// Returns why a line is not an object with the members of JSON-RPC.
fn not_an_envelope<'a>(text: &'a str, error: &StrictError) -> Incoming<'a> {
    let first = text.trim_ascii_start().as_bytes().first();
    match (serde_json::from_str::<&RawValue>(text), first) {
        (Ok(_), Some(b'[')) => array(Answer::Always),
        // An array that was cut off, or a line of a log, which clients do not answer.
        (Err(error), Some(b'[')) if error.is_eof() => array(Answer::OnDemand),
        // serde_json names the line and column of invalid syntax.
        (Err(error), _) => parse_error(format!("the line is not JSON: {error}")),
        (Ok(_), Some(b'{')) => invalid(None, error.to_string(), true),
        (Ok(_), _) => {
            let reason = format!("a message is an object, not {}", clip(text));
            invalid(None, reason, true)
        }
    }
}

/// Returns the error for an array: no version of ACP has the batches of JSON-RPC.
fn array<'a>(answer: Answer) -> Incoming<'a> {
    Incoming::Invalid {
        code: ErrorCode::INVALID_REQUEST,
        id: None,
        reason: "an array is no message of ACP: send each message by itself".to_owned(),
        answer,
    }
}

fn parse_error<'a>(reason: String) -> Incoming<'a> {
    Incoming::Invalid {
        code: ErrorCode::PARSE_ERROR,
        id: None,
        reason,
        answer: Answer::OnDemand,
    }
}

fn invalid(id: Option<&RawValue>, reason: String, answerable: bool) -> Incoming<'_> {
    Incoming::Invalid {
        code: ErrorCode::INVALID_REQUEST,
        id,
        reason,
        answer: match (answerable, id) {
            (false, _) => Answer::Never,
            (true, None) => Answer::OnDemand,
            (true, Some(_)) => Answer::Always,
        },
    }
}

pub(crate) fn is_null(value: &RawValue) -> bool {
    value.get() == "null"
}

/// Returns the error for a request with the id null, in versions that have no such ids.
pub(crate) fn null_id(method: &str) -> RpcError {
    let message = format!(
        "the id of `{}` is null; send a string or an integer",
        clip(method)
    );
    RpcError::new(ErrorCode::INVALID_REQUEST, message)
}

/// Returns whether JSON is an id: a string, null, or an integer of any size.
pub(super) fn is_id(id: &RawValue) -> bool {
    let text = id.get().as_bytes();
    match text.first() {
        Some(b'"' | b'n') => true,
        Some(b'-' | b'0'..=b'9') => text.iter().all(|byte| matches!(byte, b'-' | b'0'..=b'9')),
        _ => false,
    }
}

/// Shortens a peer's text for an error message.
pub(crate) fn clip(text: &str) -> &str {
    let end = (0..=text.len().min(100))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    &text[..end.unwrap_or(0)]
}

#[cfg(test)]
mod tests;
