//! Sessions of v2 that are opened again.

use acp_sdk::ErrorCode;
use serde_json::json;

use crate::harness::{Cx, Entry, Outcome, Turn, Update, skip};
use crate::requirements::conversation::Conversation;
use crate::requirements::v2::cancellation::inserted;
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("session-load.replayed-ids", Run(replayed_ids)),
    ("session-load.close-at-once", Run(close_at_once)),
    ("session-load.close-is-last", Run(close_is_last)),
    ("session-load.state-first", Run(state_first)),
    ("session-load.unknown-names-it", Run(unknown_names_it)),
];

fn close_is_last(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let params = json!({"sessionId": session});
    conn.result("session/close", params)?;
    let closed = conn.mark();
    conn.settle()?;
    conn.listen(conn.env.quiet);
    let is_late = |(_, entry): &(usize, &Entry)| {
        entry.from == Party::Agent && entry.is_call() && entry.session() == Some(&session)
    };
    match conn.since(closed).find(is_late) {
        Some((index, _)) => Err(conn.at(
            index,
            "expected no message of the session after the answer to session/close, got one",
        )),
        None => Ok(()),
    }
}

fn state_first(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    conn.settle()?;
    let said = Conversation::between(conn.recording(), &session, 0, conn.mark());
    for (request, answer) in [conn.load(&session)?, conn.resume(&session)?] {
        let ours = conn.recording().updates();
        let ours = ours.filter(|it| it.session == session && (request..answer).contains(&it.index));
        let ours: Vec<Update<'_>> = ours.collect();
        // An agent may greet its user after the state.
        let retold = said.retold(ours.iter().copied());
        let replayed = retold.last().map_or(request, |last| last.index);
        let is_late = |it: &Update<'_>| it.kind == "state_update" && it.index > replayed;
        if !ours.iter().any(is_late) {
            return Err(conn.at(
                answer,
                "expected a `state_update` after the replay and before the answer to session/resume, got none",
            ));
        }
    }
    Ok(())
}

fn unknown_names_it(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let id = "acp-conformance-no-such-session";
    let reply = conn.call("session/resume", conn.setup(Some(id)))?;
    if reply.code() != Some(ErrorCode::RESOURCE_NOT_FOUND) {
        return skip("the agent does not refuse unknown sessions with error -32002");
    }
    let error = reply.answer.as_ref().err();
    let named = error.and_then(|error| error.pointer("/data/sessionId")?.as_str());
    match named == Some(id) {
        true => Ok(()),
        false => Err(conn.at(
            reply.index,
            format!(
                "expected `data.sessionId` {id} in error -32002, got {}",
                named.unwrap_or("none")
            ),
        )),
    }
}

fn close_at_once(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let params = json!({"sessionId": session});
    let id = conn.next_id();
    let close = json!({"jsonrpc": "2.0", "id": id, "method": "session/close", "params": params});
    inserted(conn, &session, |_| close.clone()).map(drop)
}

fn replayed_ids(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let first = conn.prompt(&session, "hello")?;
    // Whether a second prompt is served is another row's question.
    if let Ok(second) = conn.prompt(&session, "hello") {
        let id = |turn: &Turn| conn.recording().result(turn.request)?.get("messageId");
        if id(&first).is_some_and(|first| id(&second) == Some(first)) {
            return Err(conn.at(
                second.end,
                "expected a `messageId` of its own for each prompt, got one for both",
            ));
        }
    }
    conn.settle()?;
    let (from, to) = conn.load(&session)?;
    let message = |kind: &str| kind.starts_with("user_") || kind.starts_with("agent_");
    let mut updates = conn.recording().updates();
    let anonymous = updates.find(|update| {
        let replayed = (from..to).contains(&update.index) && update.session == session;
        let id = update.body.get("messageId");
        replayed && message(update.kind) && !id.is_some_and(serde_json::Value::is_string)
    });
    match anonymous {
        Some(update) => {
            let reason = format!(
                "expected `messageId` in a replayed {}, got none",
                update.kind
            );
            Err(conn.at(update.index, reason))
        }
        None => Ok(()),
    }
}
