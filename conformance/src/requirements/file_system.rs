//! The client's files, as agents use them.

use serde_json::Value;

use super::watch::{agent_calls, has_turns, is_absolute, never_calls, text, watch};
use super::{Check, Requirement, must};
use crate::harness::{Outcome, Recording, Stop};
use crate::suite::Cx;

use Check::Run;

const NONE: &str = "no file was read or written through the client; the prompts `read` and `write` may make the agent do it";
const NO_TURN: &str = "no turn with a client that declares less";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "file-system.no-undeclared-read",
        "file-system#checking-support",
        "the Agent MUST NOT attempt to call the corresponding filesystem method",
        watch(no_undeclared_read, NO_TURN),
    ),
    must(
        "file-system.no-undeclared-write",
        "file-system#checking-support",
        "the Agent MUST NOT attempt to call the corresponding filesystem method",
        watch(no_undeclared_write, NO_TURN),
    ),
    must(
        "file-system.absolute-path",
        "file-system#reading-files",
        "Absolute path to the file to read",
        watch(absolute_path, NONE),
    ),
    must(
        "file-system.line-from-one",
        "file-system#reading-files",
        "Optional line number to start reading from (1-based)",
        watch(line_from_one, NONE),
    ),
    must(
        "file-system.own-session",
        "file-system#reading-files",
        "The Session ID for this request",
        watch(own_session, NONE),
    ),
    must(
        "file-system.read",
        "file-system#reading-files",
        "The Client responds with the file contents",
        Run(read),
    ),
    must(
        "file-system.read-fails",
        "overview#error-handling",
        "Errors include an `error` object with `code` and `message`",
        Run(read_fails),
    ),
];

/// Whether this connection shows what an agent does without the capability.
fn tempts(recording: &Recording, pointer: &str) -> bool {
    recording.declared(pointer).is_none() && has_turns(recording)
}

fn no_undeclared_read(recording: &Recording) -> Outcome<usize> {
    if !tempts(recording, "/fs/readTextFile") {
        return Ok(0);
    }
    never_calls(recording, "fs/read_text_file")?;
    Ok(1)
}

fn no_undeclared_write(recording: &Recording) -> Outcome<usize> {
    if !tempts(recording, "/fs/writeTextFile") {
        return Ok(0);
    }
    never_calls(recording, "fs/write_text_file")?;
    Ok(1)
}

fn absolute_path(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in agent_calls(recording, "fs/") {
        seen += 1;
        let path = text(entry.params(), "/path").unwrap_or_default();
        if !is_absolute(path) {
            let reason = format!("{path:?} is not an absolute path");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn line_from_one(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in agent_calls(recording, "fs/read_text_file") {
        seen += 1;
        if entry.params().get("line").and_then(Value::as_i64) == Some(0) {
            return Err(Stop::at(recording, index, "there is no line 0"));
        }
    }
    Ok(seen)
}

fn own_session(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in agent_calls(recording, "fs/") {
        seen += 1;
        let mut prompts = recording.calls(crate::wire::Party::Client, "session/prompt");
        let during = prompts.any(|(request, prompt)| {
            let ended = recording.answer(request).map(|(end, _)| end);
            prompt.session() == entry.session()
                && request < index
                && ended.is_none_or(|end| index < end)
        });
        if !during {
            let reason = "a file was asked for in a session that has no turn";
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn read(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin(&session, "read")?;
    conn.asked(running, "fs/read_text_file")?;
    conn.finish(running).map(drop)
}

fn read_fails(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin(&session, "read-missing")?;
    conn.asked(running, "fs/read_text_file")?;
    // How the turn ends is the agent's choice; that it ends, and the session goes
    // on, is not.
    conn.turn_reply(running)?;
    conn.prompt(&session, "hello").map(drop)
}
