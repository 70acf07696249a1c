//! The client's files, as agents use them.

use serde_json::Value;

use super::watch::{absolute, is_agents, text, undeclared, watch};
use super::{Check, Requirement, must};
use crate::harness::Outcome;
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::Party;

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

fn no_undeclared_read(view: &View<'_>) -> Seen {
    let method = "fs/read_text_file";
    let breaks = view.calls(Party::Agent, method);
    undeclared(view, "/fs/readTextFile", breaks, method)
}

fn no_undeclared_write(view: &View<'_>) -> Seen {
    let method = "fs/write_text_file";
    let breaks = view.calls(Party::Agent, method);
    undeclared(view, "/fs/writeTextFile", breaks, method)
}

fn absolute_path(view: &View<'_>) -> Seen {
    if !is_agents(view, "fs/") {
        return Ok(0);
    }
    absolute([text(view.params(), "/path").unwrap_or_default()])
}

fn line_from_one(view: &View<'_>) -> Seen {
    if !view.calls(Party::Agent, "fs/read_text_file") {
        return Ok(0);
    }
    if view.params().get("line").and_then(Value::as_i64) == Some(0) {
        return fault("there is no line 0");
    }
    Ok(1)
}

fn own_session(view: &View<'_>) -> Seen {
    if !is_agents(view, "fs/") || !view.state.is_whole() {
        return Ok(0);
    }
    let session = view.session().unwrap_or_default();
    if view.known(session).is_none() {
        return fault(format!("the client has no session {session:?}"));
    }
    Ok(1)
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
