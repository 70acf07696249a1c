//! What version 2 demands of clients.

use serde_json::{Value, json};

use crate::clients::assertions::{equals, expect, first, survives};
use crate::clients::handshake::{
    asks_for, closes_on_other_version, comes_to_an_end, initialize_first,
};
use crate::clients::played::{ClientCheck, Played};
use crate::clients::robustness::{
    answer_to_cancelled, answers_extensions, cancels_pending_permission, hears_after_cancelling,
    ignores_cancellations, ignores_completions, ignores_the_unknown, method_not_found,
    notices_death, refuses_forms, reports_errors, survives_the_unknown,
};
use crate::harness::{Outcome, Update};
use crate::wire::Party;

pub(in crate::clients) const CHECKS: &[ClientCheck] = &[
    ("client.initialize-first", initialize_first),
    ("client.version", version),
    ("client.closes-on-other-version", closes_on_other_version),
    ("client.comes-to-an-end", comes_to_an_end),
    ("client.answers-extensions", answers_extensions),
    ("client.method-not-found", method_not_found),
    ("client.ignores-notifications", ignores_the_unknown),
    ("client.unknown-values", survives_the_unknown),
    ("client.undeclared-questions", questions),
    ("client.unknown-completions", ignores_completions),
    ("client.unknown-cancellations", ignores_cancellations),
    ("client.no-undeclared-cancel", no_undeclared_cancel),
    (
        "client.cancels-pending-permission",
        cancels_pending_permission,
    ),
    ("client.cancelled-request", cancelled_request),
    ("client.hears-after-cancelling", hears_after_cancelling),
    ("client.survives-noise", survives),
    ("client.diff-without-patch", survives),
    ("client.reports-errors", reports_errors),
    ("client.notices-death", notices_death),
];

fn version(played: &Played) -> Outcome {
    asks_for(
        played,
        2,
        "expected version 2 to be requested, got another one",
    )
}

/// A question that the agent cancels has an outcome for it.
fn cancelled_request(played: &Played) -> Outcome {
    let (index, answer) = answer_to_cancelled(played)?;
    let outcome = answer.value.pointer("/result/outcome/outcome");
    equals(played, index, "the outcome", &json!("cancelled"), outcome)
}

/// What the agent said last of a tool call or terminal says whether it may be cancelled.
fn no_undeclared_cancel(played: &Played) -> Outcome {
    first(played, "session/prompt")?;
    for (method, member) in [
        ("tool_call/cancel", "toolCallId"),
        ("terminal/cancel", "terminalId"),
    ] {
        for (index, entry) in played.recording.calls(Party::Client, method) {
            let id = entry.params().get(member);
            let about = |update: &Update<'_>| update.index < index && update.body.get(member) == id;
            let capabilities = played.recording.updates().filter(about);
            let latest = capabilities
                .filter_map(|update| update.body.get("capabilities"))
                .last();
            let declares = latest
                .and_then(|all| all.get("cancel"))
                .is_some_and(Value::is_object);
            let reason = format!("expected no {method} of what does not advertise it, got one");
            expect(played, index, declares, &reason)?;
        }
    }
    Ok(())
}

fn questions(played: &Played) -> Outcome {
    refuses_forms(played, "capabilities")
}
