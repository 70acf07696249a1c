//! Prompt turns: how they begin, what they report, how they end.

use serde_json::{Value, json};

use super::watch::{text, undeclared, watch};
use super::{Check, Requirement, info, must, should};
use crate::harness::Outcome;
use crate::suite::Cx;
use crate::watch::{Seen, View, fault};
use crate::wire::Party;

use Check::Run;

pub(super) const ROWS: &[Requirement] = &[
    must(
        "prompt-turn.stop-reason",
        "prompt-turn#4-check-for-completion",
        "the Agent MUST respond to the original `session/prompt` request with a `StopReason`",
        Run(stop_reason),
    ),
    must(
        "prompt-turn.known-stop-reason",
        "prompt-turn#stop-reasons",
        "When an Agent stops a turn, it must specify the corresponding `StopReason`",
        watch(known_stop_reason, "no turn ended with a stop reason"),
    ),
    must(
        "prompt-turn.reports-output",
        "prompt-turn#3-agent-reports-output",
        "The Agent reports the model's output to the Client via `session/update` notifications.",
        Run(reports_output),
    ),
    must(
        "prompt-turn.goes-on",
        "prompt-turn#cancellation",
        "Once a prompt turn completes, the Client may send another `session/prompt`",
        Run(goes_on),
    ),
    should(
        "prompt-turn.unknown-session",
        "schema#errorcode",
        "Resource not found",
        Run(unknown_session),
    ),
    should(
        "prompt-turn.failure-is-an-error",
        "overview#error-handling",
        "Errors include an `error` object with `code` and `message`",
        Run(failure_is_an_error),
    ),
    must(
        "prompt-turn.usage",
        "prompt-turn#session-usage-updates",
        "`used` and `size` are required and non-null token counts for the current session context.",
        watch(usage, "no usage_update; the prompt `usage` may cause one"),
    ),
    must(
        "prompt-turn.currency",
        "prompt-turn#session-usage-updates",
        "`currency` is an ISO 4217 currency code like `\"USD\"`.",
        watch(
            currency,
            "no cost was reported; the prompt `usage` may cause it",
        ),
    ),
    must(
        "prompt-turn.no-undeclared-notice",
        "schema#sessionupdate",
        "Agents MUST only send this update when the Client advertised the `session.notices` Client capability.",
        watch(no_undeclared_notice, NO_TURN),
    ),
    must(
        "prompt-turn.no-undeclared-compaction",
        "schema#sessionupdate",
        "Agents MUST only send this update when the Client advertised the `session.compaction` Client capability.",
        watch(no_undeclared_compaction, NO_TURN),
    ),
    info(
        "prompt-turn.within-the-turn",
        "prompt-turn#the-prompt-turn-lifecycle",
        "starting with a user message and continuing until the Agent completes its response",
        Run(within_the_turn),
    ),
    info(
        "prompt-turn.empty-prompt",
        "prompt-turn#1-user-message",
        "The contents of the user message, e.g. text, images, files, etc.",
        Run(empty_prompt),
    ),
    info(
        "prompt-turn.second-prompt",
        "prompt-turn#the-prompt-turn-lifecycle",
        "starting with a user message and continuing until the Agent completes its response",
        Run(second_prompt),
    ),
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
