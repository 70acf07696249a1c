//! Says everything that the profile has, so that there is something to look at.
//!
//! A tour decides nothing by itself: what the agent does on it is judged by the
//! requirements that look at all messages.

use serde_json::json;

use super::Cx;
use crate::harness::{Caps, Conn, Consent, Outcome, Terminals, UserInput};

/// Every prompt of the profile, to a client that can do everything.
pub(super) fn with_everything(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::Full)?;
    say_all(conn)?;
    conn.script.input = UserInput::Decline;
    let session = conn.session()?;
    for word in ["form", "url"] {
        if conn.word(&[word]).is_ok() {
            let request = conn.begin(&session, word)?;
            conn.turn_reply(request)?;
        }
    }
    interrupt(conn, "permission", "session/request_permission")?;
    interrupt(conn, "terminal", "terminal/create")
}

/// Cancels a turn while the agent waits for the client.
fn interrupt(conn: &mut Conn, word: &str, asks: &str) -> Outcome {
    if conn.word(&[word]).is_err() {
        return Ok(());
    }
    conn.script.consent = Consent::Hold;
    conn.script.terminals = Terminals::Run;
    let session = conn.session()?;
    let request = conn.begin(&session, word)?;
    conn.asked(request, asks)?;
    conn.settle()?;
    conn.cancel(&session);
    conn.turn_reply(request).map(drop)
}

/// Every prompt of the profile, to a client that can do nothing.
pub(super) fn with_nothing(cx: &mut Cx) -> Outcome {
    say_all(cx.with(&Caps::None)?)
}

fn say_all(conn: &mut Conn) -> Outcome {
    let mut params = conn.setup(None);
    if conn
        .capability("/sessionCapabilities/additionalDirectories")
        .is_some()
    {
        params["additionalDirectories"] = json!([conn.env.folder]);
    }
    let session = conn.session_with(params)?.0;
    let words: Vec<String> = conn.env.profile.prompts.keys().cloned().collect();
    for word in words {
        if word == "slow" {
            // Ended by the session or by the request, so that both are seen.
            let request = conn.begin_slow(&session)?;
            let id = conn.id_of(request);
            conn.notify("$/cancel_request", json!({"requestId": id}));
            conn.cancel(&session);
            conn.turn_reply(request)?;
        } else {
            let request = conn.begin(&session, &word)?;
            conn.turn_reply(request)?;
        }
    }
    if conn.capability("/sessionCapabilities/list").is_some() {
        // Shows what the session has become.
        conn.call("session/list", json!({}))?;
    }
    conn.settle()
}
