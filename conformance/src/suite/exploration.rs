//! Sends every prompt of the profile, so that the agent uses as much of the protocol as it can.
//!
//! An exploration has no verdict: its messages are judged by the rules over all messages.

use serde_json::json;

use super::plan::QUICK_WORDS;
use crate::harness::{Capability, Caps, Conn, Consent, Cx, Outcome, Stop, Terminals, UserInput};
use crate::wire::{Kind, Party};

/// Every prompt of the profile, to a client that can do everything.
pub(super) fn with_everything(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::Full)?;
    say_all(conn)?;
    if conn.env.conditions.few_words {
        return Ok(());
    }
    conn.script.input = UserInput::Decline;
    let session = conn.session()?;
    for word in ["form", "url"] {
        if conn.word(&[word]).is_ok() {
            let request = conn.begin(&session, word)?;
            conn.turn_reply(request)?;
        }
    }
    interrupt(conn, "permission", |conn, request| {
        conn.asked(request, "session/request_permission").map(drop)
    })?;
    interrupt(conn, "terminal", |conn, request| {
        let created = conn.asked(request, "terminal/create")?;
        uses_what_it_created(conn, request, created);
        Ok(())
    })
}

/// Cancels a turn when it is `ready`: when the agent waits for the client.
fn interrupt(
    conn: &mut Conn,
    word: &str,
    ready: impl FnOnce(&mut Conn, usize) -> Outcome,
) -> Outcome {
    if conn.word(&[word]).is_err() {
        return Ok(());
    }
    conn.script.consent = Consent::Hold;
    conn.script.terminals = Terminals::Run;
    let session = conn.session()?;
    let request = conn.begin(&session, word)?;
    // An agent may do the work without asking.
    let _ = ready(conn, request);
    conn.settle()?;
    conn.cancel(&session);
    conn.turn_reply(request).map(drop)
}

/// Waits until the agent asks something about the terminal that it has just created. That it
/// reads on does not say so: it may answer other requests before it goes on with the turn, and
/// a turn that is cancelled by then never waits for the command.
fn uses_what_it_created(conn: &mut Conn, request: usize, created: usize) {
    let limit = conn.env.timeout;
    // An agent may as well do without: then the turn is cancelled where it stands.
    let _ = conn.wait(created + 1, "use of the terminal", limit, |all, index| {
        let entry = all.entries.get(index)?;
        let method = entry.method.as_deref().unwrap_or_default();
        let asks = entry.from == Party::Agent && entry.kind == Kind::Request;
        let ended = entry.request == Some(request);
        (ended || (asks && method.starts_with("terminal/"))).then_some(())
    });
}

/// Every prompt of the profile, to a client that can do nothing.
pub(super) fn with_nothing(cx: &mut Cx) -> Outcome {
    say_all(cx.with(&Caps::None)?)
}

fn say_all(conn: &mut Conn) -> Outcome {
    let mut params = conn.setup(None);
    if conn.can(Capability::AdditionalDirectories) {
        params["additionalDirectories"] = json!([conn.env.folder]);
    }
    let session = conn.session_with(params)?.0;
    let words: Vec<String> = conn.env.profile.prompts.keys().cloned().collect();
    let few = conn.env.conditions.few_words;
    let is_said = |word: &String| !few || QUICK_WORDS.contains(&word.as_str());
    let words: Vec<String> = words.into_iter().filter(is_said).collect();
    for word in words {
        if word == "slow" {
            // Ended by the session or by the request, so that both are seen.
            let request = match conn.begin_slow(&session) {
                Ok(request) => request,
                Err(stop @ Stop::Fail(_)) => return Err(stop),
                // A turn that ended at once is no reason to leave the other prompts out.
                Err(_) => continue,
            };
            let id = conn.id_of(request);
            conn.notify("$/cancel_request", json!({"requestId": id}));
            conn.cancel(&session);
            conn.turn_reply(request)?;
        } else {
            let request = conn.begin(&session, &word)?;
            match word.as_str() {
                // Nobody follows its link.
                "url" => conn.end_turn(&session, request)?,
                _ => conn.turn_reply(request).map(drop)?,
            }
        }
    }
    if conn.can(Capability::LIST) {
        // Shows what the session has become.
        conn.call("session/list", json!({}))?;
    }
    conn.settle()
}
