//! The list of sessions: filter, pages, what it says of each.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::watch::{is_absolute, items, repeated, text, watch};
use super::{Check, Requirement, capability, must, should};
use crate::harness::{Conn, Outcome, Recording, Stop, fail};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

const LIST: &str = "/sessionCapabilities/list";

/// More pages than any agent has; a list that goes on is endless.
const PAGES: usize = 500;

pub(super) const ROWS: &[Requirement] = &[
    capability(
        "session-list.answers",
        "session-list#listing-sessions",
        "The Agent MUST respond with a list of sessions and optional pagination metadata",
        Run(answers),
    ),
    capability(
        "session-list.no-params",
        "session-list#listing-sessions",
        "A request with an empty `params` object returns the first page of sessions.",
        Run(no_params),
    ),
    should(
        "session-list.lists-new",
        "session-list#session-list",
        "allows Clients to discover sessions known to an Agent",
        Run(lists_new),
    ),
    capability(
        "session-list.filter",
        "session-list#listing-sessions",
        "Only sessions with a matching `cwd` are returned.",
        Run(filter),
    ),
    capability(
        "session-list.empty",
        "session-list#listing-sessions",
        "When no sessions match the criteria, the Agent MUST return an empty `sessions` array.",
        Run(empty),
    ),
    capability(
        "session-list.pages-end",
        "session-list#pagination",
        "Clients MUST treat a missing `nextCursor` as the end of results",
        Run(pages_end),
    ),
    should(
        "session-list.page-size",
        "session-list#pagination",
        "Agents SHOULD enforce reasonable page sizes internally",
        watch(page_size, "no list of sessions"),
    ),
    should(
        "session-list.bad-cursor",
        "session-list#pagination",
        "Agents SHOULD return an error if the cursor is invalid",
        Run(bad_cursor),
    ),
    capability(
        "session-list.absolute-cwd",
        "session-list#listing-sessions",
        "Working directory for the session. Always an absolute path.",
        watch(absolute_cwd, "no session was listed"),
    ),
    capability(
        "session-list.unique-id",
        "session-list#listing-sessions",
        "Unique identifier for the session.",
        watch(unique_id, "no session was listed"),
    ),
    capability(
        "session-list.timestamps",
        "session-list#listing-sessions",
        "ISO 8601 timestamp of the last activity in the session.",
        watch(timestamps, "no session told when it was last used"),
    ),
    must(
        "session-list.info-update",
        "session-list#updating-session-metadata",
        "The `sessionId`, `cwd`, and `additionalDirectories` fields are not included in the update.",
        watch(
            info_update,
            "no session_info_update; the prompt `title` may cause one",
        ),
    ),
];

/// All sessions of the list, page after page.
pub(super) fn listed(conn: &mut Conn, cwd: Option<&str>) -> Outcome<Vec<Value>> {
    let (mut sessions, mut cursors) = (Vec::new(), HashSet::new());
    let mut params = json!({});
    if let Some(cwd) = cwd {
        params["cwd"] = json!(cwd);
    }
    for _ in 0..PAGES {
        let page = conn.result("session/list", params.clone())?;
        sessions.extend(items(&page, "/sessions").cloned());
        let Some(cursor) = text(&page, "/nextCursor") else {
            return Ok(sessions);
        };
        if !cursors.insert(cursor.to_owned()) {
            return Err(conn.at(conn.mark() - 1, "the same cursor came twice"));
        }
        params["cursor"] = json!(cursor);
    }
    fail(format!(
        "the list of sessions does not end in {PAGES} pages"
    ))
}

fn answers(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    let cwd = conn.env.folder.clone();
    let page = conn.result("session/list", json!({"cwd": cwd}))?;
    if page.get("sessions").is_some_and(Value::is_array) {
        return Ok(());
    }
    Err(conn.at(conn.mark() - 1, "the answer has no array `sessions`"))
}

fn no_params(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    conn.result("session/list", json!({})).map(drop)
}

fn lists_new(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    let all = listed(conn, None)?;
    if all
        .iter()
        .any(|info| text(info, "/sessionId") == Some(session.as_str()))
    {
        return Ok(());
    }
    Err(conn.at(conn.mark() - 1, format!("{session} is not listed")))
}

fn filter(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    let elsewhere = std::env::temp_dir();
    conn.result("session/new", json!({"cwd": elsewhere, "mcpServers": []}))?;
    conn.session()?;
    let cwd = conn.env.folder.to_string_lossy().into_owned();
    let all = listed(conn, Some(&cwd))?;
    if all
        .iter()
        .all(|info| text(info, "/cwd") == Some(cwd.as_str()))
    {
        return Ok(());
    }
    Err(conn.at(conn.mark() - 1, "sessions of another directory are listed"))
}

fn empty(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    let nowhere = conn.env.folder.join("no-such-directory");
    let all = listed(conn, Some(&nowhere.to_string_lossy()))?;
    if all.is_empty() {
        return Ok(());
    }
    Err(conn.at(
        conn.mark() - 1,
        "sessions are listed for a directory without any",
    ))
}

fn pages_end(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    // More sessions than a page of most agents holds, so that there is a second one,
    // unless the agent takes its time.
    let deadline = Instant::now() + Duration::from_secs(1);
    for _ in 0..25 {
        conn.session()?;
        if Instant::now() > deadline {
            break;
        }
    }
    let all = listed(conn, None)?;
    let ids = all.iter().filter_map(|info| text(info, "/sessionId"));
    match repeated(ids) {
        Some(id) => Err(conn.at(conn.mark() - 1, format!("{id} is listed twice"))),
        None => Ok(()),
    }
}

fn bad_cursor(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(LIST)?;
    let params = json!({"cursor": "acp-conformance-no-such-cursor"});
    conn.refusal("session/list", params).map(drop)
}

/// The results of `session/list`, with their places.
fn pages(recording: &Recording) -> impl Iterator<Item = (usize, &Value)> {
    let lists = recording.calls(Party::Client, "session/list");
    lists.filter_map(|(index, _)| {
        let (place, answer) = recording.answer(index)?;
        Some((place, answer.value.get("result")?))
    })
}

fn page_size(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, page) in pages(recording) {
        seen += 1;
        let length = items(page, "/sessions").count();
        if length > 1000 {
            return Err(Stop::at(recording, index, format!("a page of {length}")));
        }
    }
    Ok(seen)
}

fn absolute_cwd(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, page) in pages(recording) {
        for info in items(page, "/sessions") {
            seen += 1;
            let cwd = text(info, "/cwd").unwrap_or_default();
            if !is_absolute(cwd) {
                let reason = format!("{cwd:?} is not an absolute path");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn unique_id(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, page) in pages(recording) {
        let ids: Vec<_> = items(page, "/sessions")
            .filter_map(|info| text(info, "/sessionId"))
            .collect();
        seen += ids.len();
        if let Some(id) = repeated(ids) {
            let reason = format!("{id} stands twice on one page");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn timestamps(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, page) in pages(recording) {
        for time in items(page, "/sessions").filter_map(|info| text(info, "/updatedAt")) {
            seen += 1;
            if !is_timestamp(time) {
                let reason = format!("{time:?} is no ISO 8601 timestamp");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

/// Whether a text begins with a date, a `T` and a time of ISO 8601.
fn is_timestamp(text: &str) -> bool {
    let shape = "dddd-dd-ddTdd:dd";
    let fits = |(c, shape): (char, char)| match shape {
        'd' => c.is_ascii_digit(),
        other => c == other,
    };
    text.len() >= shape.len() && text.chars().zip(shape.chars()).all(fits)
}

fn info_update(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for update in recording.updates_of("session_info_update") {
        seen += 1;
        for name in ["sessionId", "cwd", "additionalDirectories"] {
            if update.body.get(name).is_some() {
                let reason = format!("the update has `{name}`");
                return Err(Stop::at(recording, update.index, reason));
            }
        }
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_told_by_their_shape() {
        assert!(is_timestamp("2025-10-29T14:22:15Z"));
        assert!(is_timestamp("2025-10-29T14:22"));
        assert!(!is_timestamp("1761747735"));
        assert!(!is_timestamp("29.10.2025 14:22:15"));
    }
}
