//! Cancelled requests, and work that is cancelled while it waits.

use serde_json::json;

use super::steps::{ended_cancelled, open, ready};
use crate::harness::{Consent, Outcome, inconclusive};
use crate::requirements::{Check, Requirement, must, should};
use crate::suite::Cx;
use crate::wire::Party;

use Check::{Excluded, Run};

pub(super) const ROWS: &[Requirement] = &[
    must(
        "cancellation.request-answered",
        "v2/cancellation#cancel-request-notification",
        "MUST send one of these responses for the original request",
        Run(request_answered),
    ),
    must(
        "cancellation.while-asking",
        "v2/prompt-lifecycle#cancellation",
        "Agents MUST catch these errors and report the semantically meaningful `cancelled` stop reason",
        Run(while_asking),
    ),
    should(
        "cancellation.internal",
        "v2/cancellation#internal-cancellation",
        "Send the same `-32800` (Cancelled) error response as if `$/cancel_request` was received",
        Excluded("an agent cannot be made to give up a request by itself"),
    ),
    should(
        "cancellation.stops-the-model",
        "v2/prompt-lifecycle#cancellation",
        "it SHOULD stop all language model requests and all tool call invocations as soon as possible.",
        Excluded("what an agent does behind the wire cannot be seen; that it ends is checked"),
    ),
];

/// A result or an error, whatever the agent makes of the cancellation.
fn request_answered(cx: &mut Cx) -> Outcome {
    let conn = open(cx)?;
    let nowhere = conn.env.folder.join("cancelled");
    let request = conn.request("session/list", json!({"cwd": nowhere}));
    let id = conn.id_of(request);
    conn.notify("$/cancel_request", json!({"requestId": id}));
    conn.reply(request).map(drop)
}

fn while_asking(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    conn.word(&["tool"])?;
    conn.script.consent = Consent::Hold;
    let request = conn.begin(&session, "tool")?;
    let limit = conn.env.turn_timeout;
    let asks = conn.wait(request, "question or end", limit, |recording, index| {
        let entry = recording.entries.get(index)?;
        let idle = entry.value.pointer("/params/update/state") == Some(&json!("idle"));
        match entry.calls(Party::Agent, "session/request_permission") {
            true => Some(true),
            false => idle.then_some(false),
        }
    })?;
    if !asks {
        return inconclusive("the agent did not ask for permission");
    }
    conn.cancel(&session);
    ended_cancelled(conn, &session, request)
}
