//! Sessions of v2 that are opened again.

use acp_sdk::ErrorCode;
use serde_json::json;

use crate::harness::{Cx, Outcome};
use crate::requirements::{Check, NamedCheck};

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("session-load.replayed-ids", Run(replayed_ids)),
    ("session-load.unknown-replay", Run(unknown_replay)),
    ("session-load.close-unknown", Run(close_unknown)),
];

fn close_unknown(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let params = json!({"sessionId": "acp-conformance-no-such-session"});
    let reply = conn.call("session/close", params)?;
    match reply.code() {
        // The client takes this one for a success.
        None | Some(ErrorCode::RESOURCE_NOT_FOUND) => Ok(()),
        Some(code) => Err(conn.at(
            reply.index,
            format!("expected a result of session/close or error -32002, got {code}"),
        )),
    }
}

fn unknown_replay(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
    let mut params = conn.setup(Some(&session));
    params["replayFrom"] = json!({"type": "_acp-conformance-nowhere"});
    let reply = conn.refusal("session/resume", params)?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)
}

fn replayed_ids(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    conn.prompt(&session, "hello")?;
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
