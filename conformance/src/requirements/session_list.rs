//! The list of sessions: filter, pages, what it says of each.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::passive::{absolute, items, repeated, text, unique, watch};
use super::working_directory::{directory, plain};
use super::{Check, NamedCheck};
use crate::harness::{Capability, Conn, Cx, Outcome, fail};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{Party, Version};

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

/// All sessions, listed once more unless the list is as it should be. Sessions of other connections that
/// begin or end meanwhile may move one to another page, so that it is missed or listed twice.
fn listed_as(conn: &mut Conn, is_good: impl Fn(&[Value]) -> bool) -> Outcome<Vec<Value>> {
    let all = listed(conn, None)?;
    match is_good(&all) {
        true => Ok(all),
        false => listed(conn, None),
    }
}

fn lists_new(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    let has_it = |all: &[Value]| {
        let mut ids = all.iter().filter_map(|info| text(info, "/sessionId"));
        ids.any(|id| id == session)
    };
    let all = listed_as(conn, has_it)?;
    if has_it(&all) {
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
        .find(|other| plain(other) != plain(&cwd))
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
    // The other session had no turn, so that it may be in no list: another list shows whether there is a filter.
    let elsewhere = directory(conn, "elsewhere")?;
    // In version 2 a directory stands for itself alone.
    let above = conn.env.folder.parent().map(Path::to_owned);
    let above = above.filter(|_| conn.version() == Version::V2);
    for other in std::iter::once(elsewhere).chain(above) {
        let other = other.to_string_lossy();
        if listed(conn, Some(&other))?.iter().any(is_it) {
            let reason = format!("expected sessions of {other} alone, got {session} of {cwd}");
            return Err(conn.at(conn.mark() - 1, reason));
        }
    }
    Ok(())
}

fn empty(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.needs(Capability::LIST)?;
    let nowhere = directory(conn, "without-sessions")?;
    let nowhere = nowhere.to_string_lossy();
    let page = conn.result("session/list", json!({"cwd": nowhere}))?;
    if !page.get("sessions").is_some_and(Value::is_array) {
        return Err(conn.at(conn.mark() - 1, "expected an empty `sessions`, got none"));
    }
    if listed(conn, Some(&nowhere))?.is_empty() {
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
    let all = listed_as(conn, |all| twice(all).is_none())?;
    match twice(&all) {
        Some(id) => Err(conn.at(
            conn.mark() - 1,
            format!("expected {id} once in the list, got it twice"),
        )),
        None => Ok(()),
    }
}

/// The id of a session that is listed twice.
fn twice(all: &[Value]) -> Option<&str> {
    repeated(all.iter().filter_map(|info| text(info, "/sessionId")))
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

/// Whether a text is a date and a time of ISO 8601, in the extended or the basic format.
fn is_timestamp(text: &str) -> bool {
    let Some((date, time)) = text.split_once('T') else {
        return false;
    };
    let zone = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (time, zone) = time.split_at(zone);
    let (time, fraction) = time.split_once(['.', ',']).unwrap_or((time, "0"));
    let is_zone = matches!(
        shape(zone).as_str(),
        "" | "Z" | "+00:00" | "-00:00" | "+0000" | "-0000" | "+00" | "-00"
    );
    let is_fraction = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    is_date(date) && is_time(time) && is_fraction && is_zone
}

/// Whether a text is a date of the calendar, the year or the week.
fn is_date(text: &str) -> bool {
    match (shape(text).as_str(), &numbers(text)[..]) {
        ("0000-00-00" | "00000000", [_, _, month, day]) => {
            (1..=12).contains(month) && (1..=31).contains(day)
        }
        ("0000-000" | "0000000" | "0000-W00-0" | "0000W000", _) => true,
        _ => false,
    }
}

fn is_time(text: &str) -> bool {
    let shapes = ["00:00:00", "000000", "00:00", "0000", "00"];
    let numbers = numbers(text);
    let mut limited = numbers.iter().zip([24, 59, 60]);
    shapes.contains(&shape(text).as_str()) && limited.all(|(number, most)| *number <= most)
}

/// A text with 0 in the stead of each digit.
fn shape(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_ascii_digit() { '0' } else { c })
        .collect()
}

/// The digits of a text as numbers of two digits.
fn numbers(text: &str) -> Vec<u8> {
    let digits = text.bytes().filter(u8::is_ascii_digit);
    let digits: Vec<u8> = digits.map(|digit| digit - b'0').collect();
    let pairs = digits.chunks(2);
    pairs
        .map(|pair| pair.iter().fold(0, |number, digit| number * 10 + digit))
        .collect()
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
    fn timestamps_are_dates_with_a_time() {
        for good in [
            "2025-10-29T14:22:15Z",
            "2025-10-29T14:22",
            "2025-10-29T14:22:15.123456+02:00",
            "2025-10-29T14:22:15,5-0330",
            "20251029T142215Z",
            "2025-302T14",
            "2025-W44-3T14:22Z",
        ] {
            assert!(is_timestamp(good), "{good}");
        }
        for bad in [
            "1761747735",
            "29.10.2025 14:22:15",
            "2025-10-29",
            "2025-13-29T14:22:15Z",
            "2025-10-32T14:22:15Z",
            "2025-10-29T25:22:15Z",
            "2025-10-29T14:60",
            "2025-10-29T14:22:15.Z",
            "2025-10-29T14:22 or so",
            "2025-10-29TdT:dd",
        ] {
            assert!(!is_timestamp(bad), "{bad}");
        }
    }
}
