//! Prompt turns: how they begin, what they report, how they end.

use std::collections::BTreeSet;

use serde_json::Value;

use super::passive::{items, text, undeclared, watch};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Cx, Outcome, Turn, Update, skip};
use crate::passive::{RuleResult, View, violation};
use crate::wire::{Party, Version, is_output};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "prompt-turn.known-stop-reason",
        watch(known_stop_reason, "no turn ended with a stop reason"),
    ),
    ("prompt-turn.reports-output", Run(reports_output)),
    ("prompt-turn.failure-is-an-error", Run(failure_is_an_error)),
    (
        "prompt-turn.usage",
        watch(usage, "no usage_update; the prompt `usage` may cause one"),
    ),
    (
        "prompt-turn.currency",
        watch(
            currency,
            "no cost was reported; the prompt `usage` may cause it",
        ),
    ),
    (
        "prompt-turn.no-undeclared-notice",
        watch(no_undeclared_notice, NO_TURN),
    ),
    (
        "prompt-turn.no-undeclared-compaction",
        watch(no_undeclared_compaction, NO_TURN),
    ),
    ("prompt-turn.within-the-turn", Run(within_the_turn)),
    ("prompt-turn.new-message-ids", Run(new_message_ids)),
    ("prompt-turn.under-load", Run(under_load)),
];

const NO_TURN: &str = "no turn with a client that declares less";

/// The stop reasons of every version.
pub(super) const STOP_REASONS: [&str; 5] = [
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
];

fn known_stop_reason(view: &View<'_>) -> RuleResult {
    let Some(result) = view.result(Party::Client, "session/prompt") else {
        return Ok(0);
    };
    let reason = text(result, "/stopReason").unwrap_or_default();
    if !STOP_REASONS.contains(&reason) {
        return violation(format!(
            "expected a stop reason of the protocol, got {reason:?}"
        ));
    }
    Ok(1)
}

fn reports_output(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    let within = turn.request..turn.end;
    let updates = conn.recording().updates();
    if updates
        .filter(|update| update.kind.starts_with("agent_message") && says_something(update.body))
        .filter(|update| within.contains(&update.index))
        .any(|update| update.session == session)
    {
        return Ok(());
    }
    Err(conn.at(
        turn.end,
        "expected a message of the agent before the end of the turn, got none",
    ))
}

/// Whether a message or a piece of one has content other than empty text.
fn says_something(update: &Value) -> bool {
    let content = update.get("content").filter(|content| content.is_object());
    let mut blocks = items(update, "/content").chain(content);
    blocks.any(|block| text(block, "/text") != Some(""))
}

fn failure_is_an_error(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let request = conn.begin(&session, "fail")?;
    let reply = conn.turn_reply(request)?;
    match &reply.answer {
        Err(_) => {
            conn.prompt(&session, "hello")?;
            Ok(())
        }
        Ok(result) if text(result, "/stopReason") == Some("refusal") => Ok(()),
        Ok(_) => Err(conn.at(
            reply.index,
            "expected an error for a turn that failed, got a result",
        )),
    }
}

fn usage(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("usage_update") else {
        return Ok(0);
    };
    let count = |name: &str| update.body.get(name).and_then(Value::as_u64);
    if count("used").is_none() || count("size").is_none() {
        return violation("expected counts in `used` and `size`, got other values");
    }
    Ok(1)
}

fn currency(view: &View<'_>) -> RuleResult {
    let update = view.update_of("usage_update");
    let cost = update.and_then(|update| update.body.get("cost"));
    let Some(cost) = cost.filter(|cost| !cost.is_null()) else {
        return Ok(0);
    };
    let unit = text(cost, "/currency").unwrap_or_default();
    if !names_unit(unit) {
        return violation(format!(
            "expected a currency code of ISO 4217 or another unit, got {unit:?}"
        ));
    }
    Ok(1)
}

/// Codes that agents are likely to write in lower case.
const CURRENCIES: [&str; 8] = ["USD", "EUR", "GBP", "JPY", "CNY", "CHF", "CAD", "AUD"];

/// Whether it can be the unit of a cost: money has a code of ISO 4217, anything else a name such as `credits`.
fn names_unit(unit: &str) -> bool {
    let is_lowered = |code: &str| code != unit && code.eq_ignore_ascii_case(unit);
    unit.chars().any(char::is_alphabetic) && !CURRENCIES.iter().any(|code| is_lowered(code))
}

/// Updates of these kinds need this capability of the client.
fn kinds(view: &View<'_>, pointer: &str, kinds: &[&str]) -> RuleResult {
    let kind = view.update().map_or("", |update| update.kind);
    undeclared(view, pointer, kinds.contains(&kind), kind)
}

fn no_undeclared_notice(view: &View<'_>) -> RuleResult {
    kinds(view, "/session/notices", &["notice"])
}

fn no_undeclared_compaction(view: &View<'_>) -> RuleResult {
    let all = ["compaction_update", "compaction_summary_chunk"];
    kinds(view, "/session/compaction", &all)
}

fn within_the_turn(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    conn.settle()?;
    conn.listen(conn.env.quiet);
    let updates = conn.recording().updates();
    let late = updates.filter(|update| update.kind.starts_with("agent_message"));
    match late.filter(|update| update.session == session).last() {
        Some(update) if update.index > turn.end => Err(conn.at(
            update.index,
            "expected the text of a turn before its end, got some after it",
        )),
        _ => Ok(()),
    }
}

/// How many sessions a busy agent has, and how many turns each of them.
const SESSIONS: usize = 3;
const ROUNDS: usize = 2;

/// The ids of the messages of the agent in a turn.
fn message_ids(conn: &Conn, session: &str, turn: &Turn) -> BTreeSet<String> {
    let updates = conn.recording().updates();
    let ours = updates.filter(|update| {
        let within = (turn.request..turn.end).contains(&update.index);
        within && update.session == session && update.kind.starts_with("agent_message")
    });
    let ids = ours.filter_map(|update| text(update.body, "/messageId"));
    ids.map(str::to_owned).collect()
}

fn new_message_ids(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let first = conn.prompt(&session, "hello")?;
    let second = conn.prompt(&session, "hello")?;
    let ids = [&first, &second].map(|turn| message_ids(conn, &session, turn));
    if ids.iter().any(BTreeSet::is_empty) {
        return skip("the agent gives its messages no `messageId`");
    }
    // Messages of v2 may be changed at any time, so that only a turn without one of its own is wrong.
    if conn.version() == Version::V2 && !ids[1].is_subset(&ids[0]) {
        return Ok(());
    }
    match ids[0].intersection(&ids[1]).next() {
        Some(id) => {
            let reason = format!(
                "expected messages with ids of their own in the second turn, got {id} again"
            );
            Err(conn.at(second.end, reason))
        }
        None => Ok(()),
    }
}

/// Whether an update after the end of a turn of version 1 belongs to it: the turn has shown the same message
/// or tool call, or it is the first message. Others may be news of the agent.
fn is_of_turn(conn: &Conn, turn: &Turn, late: &Update<'_>) -> bool {
    let shown = conn.recording().updates().filter(|update| {
        let within = (turn.request..turn.end).contains(&update.index);
        within && update.session == late.session
    });
    let shown: Vec<_> = shown.collect();
    let is_message = |update: &Update<'_>| update.kind == "agent_message_chunk";
    match id(late) {
        Some(late) if shown.iter().any(|update| id(update) == Some(late)) => true,
        _ => is_message(late) && !shown.iter().any(is_message),
    }
}

/// The id of the message or tool call that an update is about.
fn id<'a>(update: &Update<'a>) -> Option<&'a str> {
    text(update.body, "/messageId").or_else(|| text(update.body, "/toolCallId"))
}

fn under_load(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(conn.session()?);
    }
    let mut turns = Vec::new();
    for _ in 0..ROUNDS {
        let mut running = Vec::new();
        for session in &sessions {
            running.push((session, conn.begin(session, "hello")?));
        }
        for (session, request) in running {
            turns.push((session, conn.finish(request)?));
        }
    }
    conn.settle()?;
    if conn.version() == Version::V2 {
        // Work in the background and new work may send output after the end.
        return Ok(());
    }
    for (session, turn) in &turns {
        let mut later = turns.iter().filter(|(other, _)| other == session);
        let next = later.find(|(_, next)| next.request > turn.end);
        let next = next.map_or(conn.mark(), |(_, next)| next.request);
        let mut updates = conn.recording().updates();
        let late = updates.find(|update| {
            let is_late = (turn.end..next).contains(&update.index);
            is_late
                && update.session == **session
                && is_output(update.kind)
                && is_of_turn(conn, turn, update)
        });
        if let Some(update) = late {
            let reason = format!(
                "expected the updates of a turn before its end, got {} after it",
                update.kind
            );
            return Err(conn.at(update.index, reason));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_a_code_and_other_units_have_a_name() {
        for unit in ["USD", "XAU", "credits", "premium requests"] {
            assert!(names_unit(unit), "{unit}");
        }
        for unit in ["usd", "Eur", "$", "", " ", "840"] {
            assert!(!names_unit(unit), "{unit}");
        }
    }
}
