//! Cancelled requests in v2.

use serde_json::json;

use crate::harness::{Cx, Outcome};
use crate::requirements::{Check, NamedCheck};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] =
    &[("cancellation.request-answered", Run(request_answered))];

/// A result or an error, whatever the agent makes of the cancellation.
fn request_answered(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let nowhere = conn.env.folder.join("cancelled");
    let request = conn.request("session/list", json!({"cwd": nowhere}));
    let id = conn.id_of(request);
    conn.notify("$/cancel_request", json!({"requestId": id}));
    conn.reply(request).map(drop)
}
