//! Whether an agent can be tested: it starts and answers `initialize`. What comes next is `setup`.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Caps, Conn, Entry, Env, Failure, Recording, Stop, Waiting};
use crate::target::Target;
use crate::wire::{Kind, Party};
use crate::{Error, Result};

/// The name of an agent that gives none.
pub(super) const UNNAMED: &str = "an agent without a name";

/// What the first connection has shown.
pub(super) enum Preflight {
    /// The agent has answered: its name and version, the connection, and its error if it refused.
    Ready(String, Box<Conn>, Option<Box<Failure>>),
    /// The agent does not answer `initialize` as the protocol demands.
    Broken(Box<Broken>),
}

/// An agent whose answer to `initialize` is none.
pub(super) struct Broken {
    /// The requirement that it breaks.
    pub(super) breaks: &'static str,
    pub(super) failure: Failure,
    pub(super) recording: Recording,
    stderr: String,
}

/// Requires that `initialize` is answered with its id.
const ANSWERED: &str = "jsonrpc.answers-once";

/// Requires that `initialize` is answered with a result.
pub(super) const ACCEPTED: &str = "initialization.answer";

/// Requires that nothing but messages is written.
const ONLY_MESSAGES: &str = "transports.only-messages";

/// Starts the agent and initializes it.
///
/// # Errors
///
/// When it cannot be started, or writes nothing that could be meant as an answer.
pub(super) fn run(env: &Arc<Env>) -> Result<Preflight> {
    let mut conn = Conn::over(env.clone(), env.target.start()?);
    let params = Caps::Full.initialize(env.schema.version());
    let request = conn.request("initialize", params);
    if let Some((breaks, index)) = meant_as_answer(&mut conn, request) {
        let reason = match breaks {
            ONLY_MESSAGES => {
                "expected one message per line in answer to initialize, got a part of one"
            }
            _ => "expected the answer to initialize to have the id of the request, got another id",
        };
        let Stop::Fail(mut failure) = Stop::at(conn.recording(), index, reason) else {
            return Err(silent(&env.target, reason, &conn.stderr()));
        };
        failure.sent = conn.recording().entries.get(request).map(Entry::excerpt);
        let stderr = conn.stderr();
        return Ok(Preflight::Broken(Box::new(Broken {
            breaks,
            failure: *failure,
            recording: conn.into_recording(),
            stderr,
        })));
    }
    let reply = match conn.reply_within(request, env.turn_timeout) {
        Ok(reply) => reply,
        Err(stop) => return Err(silent(&env.target, &why(&stop), &conn.stderr())),
    };
    let refused = match (
        &reply.answer,
        conn.at(reply.index, "expected a result of initialize, got an error"),
    ) {
        (Err(_), Stop::Fail(failure)) => Some(failure),
        _ => None,
    };
    conn.agent = reply.answer.ok();
    let text = |name: &str| conn.agent_info()?.get(name)?.as_str().map(str::to_owned);
    let name = text("name").unwrap_or_else(|| UNNAMED.into());
    let name = match text("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    };
    Ok(Preflight::Ready(name, Box::new(conn), refused))
}

/// Waits for the answer to `initialize`. Returns what was written instead, if no answer follows it
/// within the time of an answer: what is broken and its place.
///
/// Lines that do not look like JSON are no reason to stop waiting, because agents print text while
/// they start.
fn meant_as_answer(conn: &mut Conn, request: usize) -> Option<(&'static str, usize)> {
    let start = Instant::now() + conn.env.turn_timeout;
    let mut found = None;
    loop {
        if conn.recording().answer(request).is_some() {
            return None;
        }
        let deadline = match &found {
            Some((_, _, at)) => start.min(*at + conn.env.timeout),
            None => start,
        };
        match conn.pump(deadline) {
            Waiting::Entry(index) => {
                let entry = conn.recording().entries.get(index)?;
                if let Some(breaks) = breaks(entry).filter(|_| found.is_none()) {
                    found = Some((breaks, index, Instant::now()));
                }
            }
            Waiting::Unanswered => return None,
            Waiting::Timeout | Waiting::Ended => {
                return found.map(|(breaks, index, _)| (breaks, index));
            }
        }
    }
}

/// Returns what a message breaks that could be meant as the answer to `initialize`.
fn breaks(entry: &Entry) -> Option<&'static str> {
    if entry.from != Party::Agent {
        return None;
    }
    match (&entry.raw, entry.kind) {
        (Some(raw), _) if raw.trim_start().starts_with(['{', '[']) => Some(ONLY_MESSAGES),
        (None, Kind::Result | Kind::Error) if entry.request.is_none() => Some(ANSWERED),
        // An answer without an id is no message at all.
        (None, Kind::Malformed) if is_answer(&entry.value) => Some(ANSWERED),
        _ => None,
    }
}

fn is_answer(value: &Value) -> bool {
    value.get("result").is_some() || value.get("error").is_some()
}

impl Broken {
    /// Returns the error of a run that does not judge what is broken.
    pub(super) fn error(&self, target: &Target) -> Error {
        let came = self.failure.came.as_deref().unwrap_or_default();
        let reason = format!("{}: {came}", self.failure.reason);
        silent(target, &reason, &self.stderr)
    }
}

fn why(stop: &Stop) -> String {
    match stop {
        Stop::Fail(failure) => match &failure.came {
            // Its end is all that there is to say.
            Some(came) if came.starts_with("the agent ended") => came.clone(),
            Some(came) => format!("{}: {came}", failure.reason),
            None => failure.reason.clone(),
        },
        Stop::Skip(reason) | Stop::Inconclusive(reason) | Stop::Blocked(reason) => reason.clone(),
    }
}

fn silent(target: &Target, reason: &str, stderr: &str) -> Error {
    let is_shown = stderr.is_empty() || reason.contains(stderr);
    Error::NoHandshake {
        command: target.command_line(),
        reason: reason.to_owned(),
        stderr: match is_shown {
            true => String::new(),
            false => format!("; the end of its standard error:\n{stderr}"),
        },
    }
}
