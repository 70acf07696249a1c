//! Prompt turns: how they begin, what they report, how they end.

use serde_json::{Value, json};

use super::watch::{text, undeclared, watch};
use super::{Check, NamedCheck};
use crate::harness::Outcome;
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::Party;

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("prompt-turn.stop-reason", Run(stop_reason)),
    (
        "prompt-turn.known-stop-reason",
        watch(known_stop_reason, "no turn ended with a stop reason"),
    ),
    ("prompt-turn.reports-output", Run(reports_output)),
    ("prompt-turn.goes-on", Run(goes_on)),
    ("prompt-turn.unknown-session", Run(unknown_session)),
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
    ("prompt-turn.empty-prompt", Run(empty_prompt)),
    ("prompt-turn.second-prompt", Run(second_prompt)),
];

const NO_TURN: &str = "no turn with a client that declares less";

const STOP_REASONS: [&str; 5] = [
    "end_turn",
    "max_tokens",
    "max_turn_requests",
    "refusal",
    "cancelled",
];

fn stop_reason(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    if turn.stop == "cancelled" {
        return Err(conn.at(turn.end, "cancelled, though nobody cancelled it"));
    }
    Ok(())
}

fn known_stop_reason(view: &View<'_>) -> Seen {
    let Some(result) = view.result(Party::Client, "session/prompt") else {
        return Ok(0);
    };
    let reason = text(result, "/stopReason").unwrap_or_default();
    if !STOP_REASONS.contains(&reason) {
        return fault(format!("{reason:?} is no stop reason"));
    }
    Ok(1)
}

fn reports_output(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    let said = conn.recording().updates_of("agent_message_chunk");
    let within = turn.request..turn.end;
    if said
        .filter(|update| within.contains(&update.index))
        .any(|update| update.session == session)
    {
        return Ok(());
    }
    Err(conn.at(turn.end, "the turn ended without any agent_message_chunk"))
}

fn goes_on(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    conn.prompt(&session, "hello").map(drop)
}

fn unknown_session(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let request = conn.begin("acp-conformance-no-such-session", "hello")?;
    let reply = conn.turn_reply(request)?;
    match reply.answer {
        Ok(_) => Err(conn.at(reply.index, "a prompt in a session that does not exist ran")),
        Err(_) => conn.has_code(&reply, -32002),
    }
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
            "a turn that failed looks like one that did not",
        )),
    }
}

fn usage(view: &View<'_>) -> Seen {
    let Some(update) = view.update_of("usage_update") else {
        return Ok(0);
    };
    let count = |name: &str| update.body.get(name).and_then(Value::as_u64);
    if count("used").is_none() || count("size").is_none() {
        return fault("`used` and `size` are not both counts");
    }
    Ok(1)
}

fn currency(view: &View<'_>) -> Seen {
    let update = view.update_of("usage_update");
    let cost = update.and_then(|update| update.body.get("cost"));
    let Some(cost) = cost.filter(|cost| !cost.is_null()) else {
        return Ok(0);
    };
    let code = text(cost, "/currency").unwrap_or_default();
    if code.len() != 3 || !code.bytes().all(|byte| byte.is_ascii_uppercase()) {
        return fault(format!("{code:?} is no currency code"));
    }
    Ok(1)
}

/// Updates of these kinds need this capability of the client.
fn kinds(view: &View<'_>, pointer: &str, kinds: &[&str]) -> Seen {
    let kind = view.update().map_or("", |update| update.kind);
    undeclared(view, pointer, kinds.contains(&kind), kind)
}

fn no_undeclared_notice(view: &View<'_>) -> Seen {
    kinds(view, "/session/notices", &["notice"])
}

fn no_undeclared_compaction(view: &View<'_>) -> Seen {
    let all = ["compaction_update", "compaction_summary_chunk"];
    kinds(view, "/session/compaction", &all)
}

fn within_the_turn(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let turn = conn.prompt(&session, "hello")?;
    conn.settle()?;
    conn.listen(conn.env.quiet);
    let late = conn.recording().updates_of("agent_message_chunk");
    match late.filter(|update| update.session == session).last() {
        Some(update) if update.index > turn.end => {
            Err(conn.at(update.index, "text after the answer to the prompt"))
        }
        _ => Ok(()),
    }
}

fn empty_prompt(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let request = conn.begin_with(&session, json!([]));
    conn.turn_reply(request)?;
    conn.prompt(&session, "hello").map(drop)
}

fn second_prompt(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let first = conn.begin_slow(&session)?;
    let second = conn.begin(&session, "hello")?;
    conn.settle()?;
    conn.cancel(&session);
    conn.turn_reply(first)?;
    conn.turn_reply(second).map(drop)
}
