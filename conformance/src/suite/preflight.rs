//! Whether an agent can be tested: it starts and answers `initialize`. What comes next is `setup`.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::report::RootCause;
use crate::harness::{Caps, Conn, Entry, Env, Failure, Recording, Stop, Waiting};
use crate::requirements::latest_version;
use crate::target::{Target, Unended};
use crate::transcript::{LINE_LIMIT, redact_text};
use crate::wire::{Kind, Party, Version, shorten};
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
    pub(super) cause: RootCause,
    pub(super) recording: Recording,
}

/// Requires that `initialize` is answered with its id.
const ANSWERED: &str = "jsonrpc.answers-once";

/// Requires that `initialize` is answered with a result.
pub(super) const ACCEPTED: &str = "initialization.answer";

/// Requires that nothing but messages is written.
const ONLY_MESSAGES: &str = "transports.only-messages";

/// How often the length of a line without an end is read, for it grows without an event.
const LOOK: Duration = Duration::from_millis(250);

/// Starts the agent and initializes it.
///
/// # Errors
///
/// When it cannot be started, or ends without having written anything.
pub(super) fn run(env: &Arc<Env>) -> Result<Preflight> {
    let mut conn = Conn::over(env.clone(), env.target.start()?);
    let params = Caps::Full.initialize(env.schema.version());
    let request = conn.request("initialize", params);
    let instead = match wait_for_answer(&mut conn, request) {
        None => return Ok(ready(conn, request)),
        Some(instead) => instead,
    };
    if let Instead::End = instead
        && conn.recording().of(Party::Agent).next().is_none()
    {
        // The end is known, so that this does not wait.
        let stop = conn.reply_within(request, Duration::ZERO).err();
        let reason = stop.as_ref().map(why).unwrap_or_default();
        return Err(silent(&env.target, &reason, &conn.stderr()));
    }
    let (breaks, failure) = failure(&mut conn, request, instead);
    let remedy = match breaks {
        ACCEPTED => {
            "Start the agent by hand and look at its output; \
             --turn-timeout sets how long it may take."
        }
        _ => "",
    };
    let cause = RootCause::new("initialize", "", remedy, &Stop::Fail(Box::new(failure)));
    Ok(Preflight::Broken(Box::new(Broken {
        breaks,
        cause,
        recording: conn.into_recording(),
    })))
}

/// What came instead of an answer to `initialize`.
enum Instead {
    /// Something that could be meant as one: what it breaks, and its place.
    Meant(&'static str, usize),
    /// A line without an end.
    Line(Unended),
    /// The end of the agent's output.
    End,
    /// Nothing.
    Nothing,
}

/// Waits for the answer to `initialize`. Returns what came instead, if no answer follows it within
/// the time of an answer.
///
/// Lines that do not look like JSON are no reason to stop waiting, because agents print text while
/// they start.
fn wait_for_answer(conn: &mut Conn, request: usize) -> Option<Instead> {
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
        let ended = match conn.pump(deadline.min(Instant::now() + LOOK)) {
            Waiting::Entry(index) => {
                let entry = conn.recording().entries.get(index)?;
                if let Some(breaks) = breaks(entry).filter(|_| found.is_none()) {
                    found = Some((breaks, index, Instant::now()));
                }
                continue;
            }
            Waiting::Unanswered => false,
            Waiting::Ended => true,
            Waiting::Timeout => {
                // Nobody reads a line any more that is longer than this.
                let is_too_long = conn.unended().bytes > LINE_LIMIT as u64;
                if !is_too_long && Instant::now() < deadline {
                    continue;
                }
                false
            }
        };
        let unended = conn.unended();
        // A child of it may hold its output open.
        let ended = ended || conn.ends_within(Duration::ZERO);
        return Some(match found {
            Some((breaks, index, _)) => Instead::Meant(breaks, index),
            None if ended => Instead::End,
            None if unended.bytes > 0 => Instead::Line(unended),
            None => Instead::Nothing,
        });
    }
}

/// Returns the requirement that the agent breaks, and how.
fn failure(conn: &mut Conn, request: usize, instead: Instead) -> (&'static str, Failure) {
    let sent = conn.recording().entries.get(request).map(Entry::excerpt);
    let limit = conn.env.turn_timeout;
    let last_words = match conn.stderr() {
        stderr if stderr.is_empty() => String::new(),
        stderr => format!("; the end of its standard error:\n{stderr}"),
    };
    let (breaks, reason, came) = match instead {
        Instead::Meant(breaks, index) => {
            let entry = conn.recording().entries.get(index);
            let reason = match (breaks, entry) {
                (ANSWERED, Some(entry)) => {
                    let id = conn.id_of(request);
                    let got = entry.value.get("id").map_or("none".to_owned(), in_words);
                    format!("expected the id {}, got {got}", in_words(&id))
                }
                _ => "expected one message per line in answer to initialize, got a part of one"
                    .to_owned(),
            };
            (breaks, reason, entry.map(Entry::excerpt))
        }
        Instead::Line(Unended { bytes, start }) => {
            let reason = format!(
                "expected one message per line in answer to initialize, \
                 got a line without an end, {bytes} bytes"
            );
            let start = shorten(&redact_text(&String::from_utf8_lossy(&start)), SHOWN);
            let came = format!("a line without an end, {bytes} bytes: {start}{last_words}");
            (ONLY_MESSAGES, reason, Some(came))
        }
        Instead::End => match conn.reply_within(request, Duration::ZERO) {
            Err(Stop::Fail(failure)) => {
                let heard = conn.heard_since(request);
                let came = failure.came.map(|came| came + &heard);
                (ACCEPTED, failure.reason, came)
            }
            _ => (ACCEPTED, NO_ANSWER.to_owned(), None),
        },
        Instead::Nothing => {
            let heard = conn.heard_since(request);
            let came = format!("timed out after {limit:?}{heard}{last_words}");
            (ACCEPTED, NO_ANSWER.to_owned(), Some(came))
        }
    };
    (breaks, Failure { reason, sent, came })
}

const NO_ANSWER: &str = "expected an answer to initialize, got none";

/// How much is shown of a line without an end, in characters.
const SHOWN: usize = 100;

/// An id with its type, which quotes alone do not show to everybody.
fn in_words(id: &Value) -> String {
    let kind = match id {
        Value::Null => return "null".to_owned(),
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    format!("{} ({kind})", shorten(&id.to_string(), SHOWN))
}

/// The agent has answered `initialize`.
fn ready(mut conn: Conn, request: usize) -> Preflight {
    let answer = conn.recording().answer(request);
    let answer = answer.map(|(index, entry)| (index, entry.answer()));
    let refused = match &answer {
        Some((index, Err(_))) => {
            match conn.at(*index, "expected a result of initialize, got an error") {
                Stop::Fail(failure) => Some(failure),
                _ => None,
            }
        }
        _ => None,
    };
    conn.agent = answer.and_then(|(_, answer)| answer.ok());
    let text = |name: &str| conn.agent_info()?.get(name)?.as_str().map(str::to_owned);
    let name = text("name").unwrap_or_else(|| UNNAMED.into());
    let name = match text("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    };
    Preflight::Ready(name, Box::new(conn), refused)
}

/// Requires that the agent chooses a version that exists.
const KNOWN_VERSION: &str = "initialization.known-version";

/// Requires that the agent chooses the version that it was asked for, if it supports it.
const SAME_VERSION: &str = "initialization.same-version";

/// Returns why the agent cannot be tested if it has chosen another version than the one that it was
/// asked for, and the requirement that it breaks. The specification allows an agent to speak another
/// version, but not one that does not exist, and not while it supports the one that it was asked for.
pub(super) fn other_version(conn: &Conn) -> Option<(RootCause, Option<&'static str>)> {
    let asked = conn.version();
    let chosen = conn.agent.as_ref()?.get("protocolVersion")?.as_u64()?;
    if chosen == asked.number() {
        return None;
    }
    let (breaks, reason, remedy) = match Version::of_number(chosen) {
        Some(_) if latest(&conn.env) == Some(asked.number()) => (
            Some(SAME_VERSION),
            format!(
                "expected version {}, which the agent supports, got {chosen}",
                asked.number()
            ),
            String::new(),
        ),
        Some(_) => (
            None,
            format!("the agent speaks version {chosen}, not {}", asked.number()),
            format!("Run with `--protocol {chosen}`."),
        ),
        None => (
            Some(KNOWN_VERSION),
            format!("expected a version with a specification, 1 or 2, got {chosen}"),
            String::new(),
        ),
    };
    let mut calls = conn.recording().calls(Party::Client, "initialize");
    let answer = calls.find_map(|(index, _)| conn.recording().answer(index));
    let (index, _) = answer?;
    let cause = RootCause::new("initialize", &reason, &remedy, &conn.at(index, ""));
    Some((cause, breaks))
}

/// Returns the latest version that the agent supports, if it shows it on a connection of its own.
fn latest(env: &Arc<Env>) -> Option<u64> {
    let mut conn = Conn::start(env.clone()).ok()?;
    latest_version(&mut conn).ok()?
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

fn why(stop: &Stop) -> String {
    let came = match stop {
        Stop::Fail(failure) => failure.came.as_ref(),
        _ => None,
    };
    match came {
        // Its end is all that there is to say.
        Some(came) if came.starts_with("the agent ended") => came.clone(),
        Some(came) => format!("{}: {came}", stop.reason()),
        None => stop.reason().to_owned(),
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
