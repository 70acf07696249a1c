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
    // Another list may be asked for after the last page, which gives the cursors again.
    let beyond = further(played).find(|(index, cursor)| {
        let given = pages(played, *index).filter(|page| page.get("nextCursor") == Some(*cursor));
        let sent = further(played).take_while(|(other, _)| other < index);
        let sent = sent.filter(|(_, other)| other == cursor);
        pages(played, *index).any(is_last) && given.count() <= sent.count()
    });
    match beyond {
        None => Ok(()),
        Some((index, _)) => expect(
            played,
            index,
            false,
            "expected no request for a page after the last one, got one",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::Stop;

    #[test]
    fn a_list_that_is_asked_for_again_has_its_pages_again() {
        let begin = (
            "client",
            json!({"id": 0, "method": "initialize", "params": {}}),
        );
        let page = |id: u64, cursor: Option<&str>, next: Option<&str>| {
            let params = cursor.map_or(json!({}), |cursor| json!({"cursor": cursor}));
            let mut result = json!({"sessions": []});
            if let Some(next) = next {
                result["nextCursor"] = json!(next);
            }
            [
                (
                    "client",
                    json!({"id": id, "method": "session/list", "params": params}),
                ),
                ("agent", json!({"id": id, "result": result})),
            ]
        };
        let outcome = |pages: &[[(&'static str, Value); 2]]| {
            let pages = pages.iter().flatten().cloned();
            end_of_pages(&Played::of(std::iter::once(begin.clone()).chain(pages)))
        };
        let all = [page(1, None, Some("a")), page(2, Some("a"), None)];
        assert!(outcome(&all).is_ok());
        let again = [page(3, None, Some("a")), page(4, Some("a"), None)];
        assert!(outcome(&[&all[..], &again[..]].concat()).is_ok());
        for cursor in ["a", "b"] {
            let more = [&all[..], &[page(3, Some(cursor), None)]].concat();
            assert!(matches!(outcome(&more), Err(Stop::Fail(_))), "{cursor}");
        }
    }
}
