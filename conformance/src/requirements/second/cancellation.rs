//! Cancelled requests, and work that is cancelled while it waits.

use serde_json::json;

use super::steps::{ended_cancelled, open, ready};
use crate::harness::{Consent, Outcome, inconclusive};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("cancellation.request-answered", Run(request_answered)),
    ("cancellation.while-asking", Run(while_asking)),
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
