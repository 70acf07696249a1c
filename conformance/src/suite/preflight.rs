//! Whether an agent can be tested: it starts and answers `initialize`.

use std::sync::Arc;
use std::time::Instant;

use serde_json::Value;

use crate::harness::{Caps, Conn, Entry, Env, Failure, Recording, Stop, Waiting};
use crate::requirements::second;
use crate::subject::Subject;
use crate::wire::{Kind, Party, Version};
use crate::{Error, Result};

/// The name of an agent that gives none.
pub(super) const UNNAMED: &str = "an agent without a name";

/// What the first connection has shown.
pub(super) enum Preflight {
    /// The agent can be tested; its name and version.
    Ready(String),
    /// The agent does not answer `initialize` as the protocol demands.
    Broken(Box<Broken>),
}

/// An agent whose answer to `initialize` is none.
pub(super) struct Broken {
    /// The requirement that it breaks, by its id in each version.
    pub(super) breaks: [&'static str; 2],
    pub(super) failure: Failure,
    pub(super) recording: Recording,
    stderr: String,
}

/// Requires that `initialize` is answered with its id.
const ANSWERED: [&str; 2] = ["jsonrpc.answers-once", "transports.answers-once"];

/// Requires that nothing but messages is written.
const ONLY_MESSAGES: [&str; 2] = ["transports.only-messages"; 2];

/// Starts the agent and initializes it.
///
/// # Errors
///
/// When it cannot be started, or writes nothing that could be meant as an answer.
pub(super) fn run(env: &Arc<Env>) -> Result<Preflight> {
    let mut conn = Conn::over(env.clone(), env.subject.start()?);
    let (params, member) = match env.schema.version() {
        Version::V1 => (Caps::Full.initialize(), "agentInfo"),
        Version::V2 => (second::initialize(&2.into()), "info"),
    };
    let request = conn.request("initialize", params);
    if let Some((breaks, index)) = meant_as_answer(&mut conn, request) {
        let reason = match breaks {
            ONLY_MESSAGES => {
                "expected one message per line in answer to initialize, got a part of one"
            }
            _ => "expected the answer to initialize to have the id of the request, got another id",
        };
        let Stop::Fail(mut failure) = Stop::at(conn.recording(), index, reason) else {
            return Err(silent(&env.subject, reason, &conn.stderr()));
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
        Err(stop) => return Err(silent(&env.subject, &why(&stop), &conn.stderr())),
    };
    let info = reply.answer.ok();
    let text = |name: &str| {
        let info = info.as_ref()?.get(member)?;
        info.get(name)?.as_str().map(str::to_owned)
    };
    let name = text("name").unwrap_or_else(|| UNNAMED.into());
    Ok(Preflight::Ready(match text("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    }))
}

/// Waits for the answer to `initialize`. Returns what was written instead, if no answer follows it
/// within the time of an answer: what is broken and its place.
///
/// Lines that do not look like JSON are no reason to stop waiting, because agents print text while
/// they start.
fn meant_as_answer(conn: &mut Conn, request: usize) -> Option<([&'static str; 2], usize)> {
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
fn breaks(entry: &Entry) -> Option<[&'static str; 2]> {
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
    pub(super) fn error(&self, subject: &Subject) -> Error {
        let came = self.failure.came.as_deref().unwrap_or_default();
        let reason = format!("{}: {came}", self.failure.reason);
        silent(subject, &reason, &self.stderr)
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
        Stop::Skip(reason) | Stop::Inconclusive(reason) => reason.clone(),
    }
}

fn silent(subject: &Subject, reason: &str, stderr: &str) -> Error {
    let is_shown = stderr.is_empty() || reason.contains(stderr);
    Error::NoHandshake {
        command: subject.command_line(),
        reason: reason.to_owned(),
        stderr: match is_shown {
            true => String::new(),
            false => format!("; the end of its standard error:\n{stderr}"),
        },
    }
}
