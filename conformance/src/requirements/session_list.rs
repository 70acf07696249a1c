//! The list of sessions: filter, pages, what it says of each.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::passive::{absolute, items, repeated, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{Capability, Conn, Cx, Outcome, fail};
use crate::passive::{RuleResult, View, violation};
use crate::wire::Party;

use Check::Run;

/// More pages than any agent has; a list that goes on is endless.
const PAGES: usize = 500;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("session-list.lists-new", Run(lists_new)),
    ("session-list.filter", Run(filter)),
    ("session-list.empty", Run(empty)),
    ("session-list.pages-end", Run(pages_end)),
    (
        "session-list.page-size",
        watch(page_size, "no list of sessions"),
    ),
    (
        "session-list.absolute-cwd",
        watch(absolute_cwd, "no session was listed"),
    ),
    (
        "session-list.unique-id",
        watch(unique_id, "no session was listed"),
    ),
    (
        "session-list.timestamps",
        watch(timestamps, "no session had a time of its last activity"),
    ),
    (
        "session-list.info-update",
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
            return Err(conn.at(
                conn.mark() - 1,
                "expected a new cursor, got the same one twice",
            ));
        }
        params["cursor"] = json!(cursor);
    }
    fail(format!(
        "expected the list of sessions to end, got {PAGES} pages without an end"
    ))
}

/// What a list has that lacks a session.
fn instead(list: &[Value]) -> &'static str {
    match list {
        [] => "an empty list",
        _ => "others only",
    }
}

fn lists_new(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    let all = listed(conn, None)?;
    if all
        .iter()
        .any(|info| text(info, "/sessionId") == Some(session.as_str()))
    {
        return Ok(());
    }
    let got = instead(&all);
    Err(conn.at(
        conn.mark() - 1,
        format!("expected {session} in the list, got {got}"),
    ))
}

fn filter(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let elsewhere = std::env::temp_dir();
    conn.result("session/new", json!({"cwd": elsewhere, "mcpServers": []}))?;
    let session = conn.session()?;
    // Some agents list a session only once something was said in it.
    conn.prompt(&session, "hello")?;
    let cwd = conn.env.folder.to_string_lossy().into_owned();
    let all = listed(conn, Some(&cwd))?;
    if let Some(other) = all
        .iter()
        .filter_map(|info| text(info, "/cwd"))
        .find(|other| *other != cwd)
    {
        let reason = format!("expected sessions of {cwd} alone, got one of {other}");
        return Err(conn.at(conn.mark() - 1, reason));
    }
    let is_it = |info: &Value| text(info, "/sessionId") == Some(session.as_str());
    if !all.iter().any(is_it) {
        let got = instead(&all);
        let reason = format!("expected {session} among the sessions of {cwd}, got {got}");
        return Err(conn.at(conn.mark() - 1, reason));
    }
    Ok(())
}

fn empty(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let nowhere = conn.env.folder.join("no-such-directory");
    let all = listed(conn, Some(&nowhere.to_string_lossy()))?;
    if all.is_empty() {
        return Ok(());
    }
    Err(conn.at(
        conn.mark() - 1,
        "expected no session of a directory without any, got some",
    ))
}

fn pages_end(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
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
        Some(id) => Err(conn.at(
            conn.mark() - 1,
            format!("expected {id} once in the list, got it twice"),
        )),
        None => Ok(()),
    }
}

/// The page of sessions that it is.
fn page<'a>(view: &View<'a>) -> Option<&'a Value> {
    view.result(Party::Client, "session/list")
}

/// The sessions of the page that it is.
fn infos<'a>(view: &View<'a>) -> impl Iterator<Item = &'a Value> {
    let page = page(view).into_iter();
    page.flat_map(|page| items(page, "/sessions"))
}

fn page_size(view: &View<'_>) -> RuleResult {
    match infos(view).count() {
        length @ 1001.. => violation(format!(
            "expected at most 1000 sessions on a page, got {length}"
        )),
        _ => Ok(usize::from(page(view).is_some())),
    }
}

fn absolute_cwd(view: &View<'_>) -> RuleResult {
    absolute(infos(view).map(|info| text(info, "/cwd").unwrap_or_default()))
}

fn unique_id(view: &View<'_>) -> RuleResult {
    let ids = infos(view).filter_map(|info| text(info, "/sessionId"));
    unique("sessions on one page", ids)
}

fn timestamps(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for time in infos(view).filter_map(|info| text(info, "/updatedAt")) {
        seen += 1;
        if !is_timestamp(time) {
            return violation(format!("expected a timestamp of ISO 8601, got {time:?}"));
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

fn info_update(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("session_info_update") else {
        return Ok(0);
    };
    let mut reserved = ["sessionId", "cwd", "additionalDirectories"].into_iter();
    match reserved.find(|name| update.body.get(name).is_some()) {
        Some(name) => violation(format!(
            "expected an update without `{name}`, got one with it"
        )),
        None => Ok(1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timestamps_are_recognized_by_their_shape() {
        assert!(is_timestamp("2025-10-29T14:22:15Z"));
        assert!(is_timestamp("2025-10-29T14:22"));
        assert!(!is_timestamp("1761747735"));
        assert!(!is_timestamp("29.10.2025 14:22:15"));
    }
}
