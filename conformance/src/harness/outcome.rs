//! The outcome of a check.

use acp_sdk::ErrorCode;

use crate::wire::Kind;

use super::{Entry, Recording};

/// A check that got to its end has passed; everything else stops it early.
pub type Outcome<T = ()> = Result<T, Stop>;

/// Why a check ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The agent broke the requirement, or what the check needs is missing.
    Fail(Box<Failure>),
    /// The agent does not declare the optional capability that this is about.
    Skip(String),
    /// Nothing was seen that decides.
    Inconclusive(String),
    /// A step that the check depends on is impossible with this agent.
    Blocked(String),
}

/// What was sent, what came, and why that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, in words.
    pub reason: String,
    /// The message that led to it.
    pub sent: Option<String>,
    /// What came instead of what should have.
    pub came: Option<String>,
}

/// The requirement is broken.
pub fn fail<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::failed(reason))
}

/// The agent does not declare the capability.
pub fn skip<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::Skip(reason.into()))
}

/// Nothing was seen that decides.
pub fn inconclusive<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::Inconclusive(reason.into()))
}

/// The outcome of a check that a connection still serves after something: this request must succeed.
pub(crate) fn serves<T>(after: &str, outcome: Outcome<T>) -> Outcome {
    outcome.map(drop).map_err(|stop| match stop {
        Stop::Fail(mut failure) => {
            let reason = failure.reason;
            failure.reason =
                format!("expected the connection to serve {after}, got a failure: {reason}");
            Stop::Fail(failure)
        }
        other => other,
    })
}

impl Stop {
    /// The reason, of whatever kind it is.
    #[must_use]
    pub fn reason(&self) -> &str {
        match self {
            Self::Fail(failure) => &failure.reason,
            Self::Skip(reason) | Self::Inconclusive(reason) | Self::Blocked(reason) => reason,
        }
    }

    /// A failure without an excerpt of the traffic.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Fail(Box::new(Failure {
            reason: reason.into(),
            ..Failure::default()
        }))
    }

    /// A failure at one message of a recording: the message is what came, and the
    /// one of the other side that led to it, as far as that can be determined, is what was sent.
    #[must_use]
    pub fn at(recording: &Recording, index: usize, reason: impl Into<String>) -> Self {
        Self::at_place(recording, index, "", reason)
    }

    /// The same at a place in the message, by its JSON Pointer.
    #[must_use]
    pub fn at_place(
        recording: &Recording,
        index: usize,
        pointer: &str,
        reason: impl Into<String>,
    ) -> Self {
        let came = recording.entries.get(index);
        let sent = came.and_then(|came| cause(recording, index, came));
        Self::Fail(Box::new(Failure {
            reason: reason.into(),
            sent: sent.map(super::Entry::excerpt),
            came: came.map(|came| came.excerpt_at(pointer)),
        }))
    }

    /// Something that was sent is not followed by what is due.
    #[must_use]
    pub fn after(recording: &Recording, index: usize, reason: impl Into<String>) -> Self {
        let sent = recording.entries.get(index);
        Self::Fail(Box::new(Failure {
            reason: reason.into(),
            sent: sent.map(super::Entry::excerpt),
            came: None,
        }))
    }
}

/// How far back the cause of an answer without a request is looked for.
const NEAR: usize = 64;

/// What led to a message: the request that it answers; of an answer to none, the notification
/// or the line without a message that it most likely answers; otherwise the last message of
/// the other side, about the same session if it names one.
fn cause<'a>(recording: &'a Recording, index: usize, came: &Entry) -> Option<&'a Entry> {
    if let Some(request) = came.request {
        return recording.entries.get(request);
    }
    let others = || {
        let before = recording.entries.iter().take(index).rev();
        before.filter(|entry| entry.from != came.from).take(NEAR)
    };
    if !matches!(came.kind, Kind::Result | Kind::Error) {
        let of_session = |entry: &&Entry| entry.session() == came.session();
        return others().find(of_session).or_else(|| others().next());
    }
    let text = came.value.to_string();
    let unread = matches!(
        code(came),
        Some(ErrorCode::PARSE_ERROR | ErrorCode::INVALID_REQUEST)
    );
    let named = |entry: &&Entry| {
        let method = entry.method.as_deref();
        entry.kind == Kind::Notification && method.is_some_and(|method| text.contains(method))
    };
    let kind = if unread {
        Kind::Malformed
    } else {
        Kind::Notification
    };
    let of_kind = |entry: &&Entry| entry.kind == kind;
    let mut found = others().find(named);
    found = found.or_else(|| others().find(of_kind));
    found.or_else(|| others().next())
}

fn code(entry: &Entry) -> Option<ErrorCode> {
    crate::wire::error_code(entry.value.get("error")?)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Value, json};

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::{Party, Schema};

    /// What a failure at the agent's last message says was sent.
    fn sent(by_client: &[Value], came: Value) -> String {
        let mut recorder = Recorder::new(Schema::v1().unwrap());
        for value in by_client {
            match value {
                Value::String(line) => recorder.probe(line.clone(), Duration::ZERO),
                value => recorder.message(Party::Client, value.clone(), Duration::ZERO),
            };
        }
        let index = recorder.message(Party::Agent, came, Duration::ZERO);
        match Stop::at(&recorder.recording, index, "wrong") {
            Stop::Fail(failure) => failure.sent.unwrap_or_default(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_answer_without_a_request_is_laid_to_what_it_most_likely_answers() {
        let tell = |method: &str| json!({"jsonrpc": "2.0", "method": method, "params": {}});
        let ask = json!({"jsonrpc": "2.0", "id": 1, "method": "_x/ask", "params": {}});
        let said = [
            json!("{oops"),
            tell("_x/early"),
            tell("session/cancel"),
            ask,
        ];
        let error = |code: ErrorCode, data: &str| {
            let error = json!({"code": code, "message": "no", "data": data});
            json!({"jsonrpc": "2.0", "id": null, "error": error})
        };
        assert!(sent(&said, error(ErrorCode::METHOD_NOT_FOUND, "_x/early")).contains("_x/early"));
        assert!(sent(&said, error(ErrorCode::INTERNAL_ERROR, "")).contains("session/cancel"));
        assert!(sent(&said, error(ErrorCode::PARSE_ERROR, "")).contains("oops"));
        let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
            "sessionId": "s", "update": {"sessionUpdate": "plan", "entries": []},
        }});
        let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel",
            "params": {"sessionId": "s"}});
        assert!(sent(&[cancel, tell("_x/late")], update).contains("session/cancel"));
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        assert!(sent(&said, answer).contains("_x/ask"));
    }
}
