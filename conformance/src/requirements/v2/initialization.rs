//! The baseline of v2.

use acp_sdk::ErrorCode;
use serde_json::json;

use crate::harness::{Cx, Outcome};
use crate::requirements::elicitation::no_undeclared_mode;
use crate::requirements::passive::watch;
use crate::requirements::{Check, NamedCheck};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("initialization.baseline-methods", Run(baseline_methods)),
    ("initialization.removed-methods", Run(removed_methods)),
    (
        "initialization.undeclared",
        watch(
            no_undeclared_mode,
            "no turn with a client that declares less",
        ),
    ),
];

fn removed_methods(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let setup = conn.setup(Some(&session));
    for (method, params) in [
        ("session/load", setup),
        (
            "session/set_mode",
            json!({"sessionId": session, "modeId": "none"}),
        ),
        ("authenticate", json!({"methodId": "none"})),
    ] {
        let reply = conn.refusal(method, params)?;
        conn.has_code(&reply, ErrorCode::METHOD_NOT_FOUND)?;
    }
    Ok(())
}

fn baseline_methods(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let setup = conn.setup(Some(&session));
    let about = json!({"sessionId": session});
    for (method, params) in [
        ("session/list", json!({})),
        ("session/resume", setup),
        ("session/prompt", json!({})),
        ("session/close", about),
    ] {
        let reply = conn.call(method, params)?;
        if reply.code() == Some(ErrorCode::METHOD_NOT_FOUND) {
            return Err(conn.at(
                reply.index,
                format!("expected {method} to be supported, got error -32601"),
            ));
        }
    }
    Ok(())
}
