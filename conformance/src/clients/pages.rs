//! Lists of sessions, page by page, and what clients may do with a cursor.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::assertions::{expect, first};
use super::played::{ClientCheck, Played};
use super::scripted_agent::ScriptedAgent;
use crate::harness::{Entry, Outcome, skip};
use crate::wire::Party;

pub(super) const CHECKS: &[ClientCheck] = &[
    ("client.opaque-cursors", opaque_cursors),
    ("client.end-of-pages", end_of_pages),
];

/// What leads to the second page and to the third. Who decodes, trims, quotes or counts one
/// sends another.
const CURSORS: [&str; 2] = [" %2e../ü+=&\\\"{0} ", "007"];

/// Answers `session/list` with one of three pages.
pub(super) fn list(stage: &mut ScriptedAgent, request: &Value) {
    let cursor = request.pointer("/params/cursor").filter(|it| !it.is_null());
    let page = match cursor {
        None => Some(0),
        Some(cursor) => CURSORS.iter().position(|it| cursor == it).map(|at| at + 1),
    };
    let Some(page) = page else {
        return stage.refuse(
            request,
            ErrorCode::INVALID_PARAMS,
            "there is no such cursor",
        );
    };
    let session = json!({"sessionId": format!("earlier-{page}"), "cwd": "/"});
    let mut answer = json!({"sessions": [session]});
    if let Some(next) = CURSORS.get(page) {
        answer["nextCursor"] = json!(next);
    }
    stage.answer(request, &answer);
}

/// The client's requests for another page, with the cursor that it sends.
fn further(played: &Played) -> impl Iterator<Item = (usize, &Value)> {
    let lists = played.recording.calls(Party::Client, "session/list");
    lists.filter_map(|(index, entry)| {
        let cursor = entry.params().get("cursor").filter(|it| !it.is_null())?;
        Some((index, cursor))
    })
}

/// The pages that the agent gave, before this place.
fn pages(played: &Played, before: usize) -> impl Iterator<Item = &Value> {
    let given = played.recording.entries.iter().take(before);
    let pages = given.filter(|entry: &&Entry| {
        entry.from == Party::Agent && entry.method.as_deref() == Some("session/list")
    });
    pages.filter_map(|entry| entry.value.get("result"))
}

fn opaque_cursors(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let mut sent = 0;
    for (index, cursor) in further(played) {
        let known = pages(played, index).any(|page| page.get("nextCursor") == Some(cursor));
        expect(
            played,
            index,
            known,
            "expected a cursor that the agent gave, got another one",
        )?;
        sent += 1;
    }
    match sent {
        0 => skip("the client asks for no second page of sessions"),
        _ => Ok(()),
    }
}

fn end_of_pages(played: &Played) -> Outcome {
    first(played, "initialize")?;
    let is_last = |page: &Value| page.get("nextCursor").is_none();
    let all = played.recording.entries.len();
    if !pages(played, all).any(is_last) {
        return skip("the client does not ask for the last page of sessions");
    }
    let beyond = further(played).find(|(index, _)| pages(played, *index).any(is_last));
    match beyond {
        None => Ok(()),
        Some((index, _)) => expect(
            played,
            index,
            false,
            "expected no request after the last page, got one",
        ),
    }
}
