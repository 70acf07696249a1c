//! The end of a connection: its sessions are deleted or closed, as far as the agent can do that.

use std::time::{Duration, Instant};

use acp_schema::Attachment;
use serde_json::{Value, json};

use super::{Conn, Recording, Waiting, adapter};
use crate::wire::{Kind, Party, Version, attachment, capability};

/// How many sessions of a connection are cleaned up.
const SESSIONS: usize = 64;

/// How long all answers together may take.
const LIMIT: Duration = Duration::from_secs(2);

/// Ends a connection. Returns what was said on it before the cleanup, which is no part of a check.
pub(crate) fn end(mut conn: Conn) -> Recording {
    let mark = conn.mark();
    conn.begin_cleanup();
    if conn.env.conditions.cleans_up && !conn.has_ended() {
        remove_sessions(&mut conn);
    }
    let mut recording = conn.into_recording();
    recording.entries.truncate(mark);
    recording
}

fn remove_sessions(conn: &mut Conn) {
    let version = conn.env.schema.version();
    let Some(method) = method(conn.recording(), version) else {
        return;
    };
    let sessions = open_sessions(conn.recording());
    let mut requests = Vec::new();
    for session in sessions.iter().take(SESSIONS) {
        if is_busy(conn.recording(), session) {
            conn.cancel(session);
        }
        requests.push(conn.request(method, json!({"sessionId": session})));
    }
    let deadline = Instant::now() + LIMIT;
    let is_open = |conn: &Conn| {
        let mut requests = requests.iter();
        requests.any(|request| conn.recording().answer(*request).is_none())
    };
    while is_open(conn) {
        if matches!(conn.pump(deadline), Waiting::Timeout | Waiting::Ended) {
            return;
        }
    }
}

/// Returns the method that removes most: `session/delete`, else `session/close`, else none.
fn method(recording: &Recording, version: Version) -> Option<&'static str> {
    let mut calls = recording.calls(Party::Client, "initialize");
    let agent = calls.find_map(|(index, _)| recording.result(index))?;
    let declared = agent.get(adapter::of(version).agent_members.1)?;
    ["session/delete", "session/close"]
        .into_iter()
        .find(|method| {
            // A basic method of agents with sessions needs no capability of its own in version 2.
            let pointer = capability(version, Party::Agent, method).unwrap_or("/session");
            let value = declared.pointer(pointer);
            value.is_some_and(|value| !value.is_null() && *value != Value::Bool(false))
        })
}

/// The sessions that were opened on the connection, without those that a check has removed.
fn open_sessions(recording: &Recording) -> Vec<String> {
    let mut open: Vec<String> = Vec::new();
    for (index, entry) in recording.entries.iter().enumerate() {
        if entry.from != Party::Client || entry.kind != Kind::Request {
            continue;
        }
        match entry.method.as_deref().map(attachment) {
            Some(Attachment::Creates) => {
                let id = recording.result(index).and_then(|it| it.get("sessionId"));
                let id = id.and_then(Value::as_str).map(str::to_owned);
                open.extend(id.filter(|id| !open.contains(id)));
            }
            Some(Attachment::Leaves) if recording.result(index).is_some() => {
                open.retain(|id| Some(id.as_str()) != entry.session());
            }
            _ => {}
        }
    }
    open
}

/// Whether a prompt of the session is not answered.
fn is_busy(recording: &Recording, session: &str) -> bool {
    let mut prompts = recording.calls(Party::Client, "session/prompt");
    prompts.any(|(index, prompt)| {
        prompt.session() == Some(session) && recording.answer(index).is_none()
    })
}
