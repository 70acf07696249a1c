//! The stdio transport: lines, encodings, ends.

use acp_sdk::ErrorCode;
use serde_json::json;

use super::{Check, NamedCheck};
use crate::harness::{Caps, Cx, Entry, Outcome, fail};

use Check::Run;

pub(super) const CHECKS: &[NamedCheck] = &[
    ("transports.utf8", Run(utf8)),
    ("transports.split-writes", Run(split_writes)),
    ("transports.joined-writes", Run(joined_writes)),
    ("transports.escapes", Run(escapes)),
    ("transports.large-message", Run(large_message)),
    ("transports.crlf", Run(crlf)),
    ("transports.ends-with-its-input", Run(ends_with_its_input)),
];

/// Returns whether a requirement is about the bytes on standard input and output, so that an agent
/// behind another transport cannot be asked.
pub(crate) fn is_about_stdio(id: &str) -> bool {
    matches!(
        id,
        "transports.split-writes"
            | "transports.joined-writes"
            | "transports.blank-lines"
            | "transports.large-message"
            | "transports.crlf"
            | "transports.ends-with-its-input"
    )
}

fn utf8(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let text = "Grüße, 世界, \u{1f600}, \u{2028}\u{2029}\u{feff}.";
    let request = conn.begin_with(&session, json!([{"type": "text", "text": text}]))?;
    conn.finish(request)?;
    match conn.not_utf8() {
        Some(index) => Err(conn.at(index, "expected UTF-8, got other bytes")),
        None => Ok(()),
    }
}

/// The id of a request that is cut within its characters: an agent that decodes each piece by itself answers
/// with another id.
const SPLIT: &str = "split-\u{1f600}\u{1f600}\u{1f600}";

fn split_writes(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let params = json!({"cwd": conn.env.folder, "mcpServers": []});
    let message = json!({"jsonrpc": "2.0", "id": SPLIT, "method": "session/new", "params": params});
    let text = format!("{message}\n");
    let character = text.find('\u{1f600}').unwrap_or_default();
    let (before, after) = text.as_bytes().split_at(character + 2);
    conn.send_part(before.to_vec());
    // What follows at once may be read together with it.
    conn.listen(conn.env.quiet);
    let mut pieces = after.chunks(7).map(<[u8]>::to_vec);
    let request = conn.send_in_pieces(&message, &mut pieces);
    let answers = |entry: &Entry| entry.request == Some(request);
    conn.answered(request, "an answer to session/new with its id", answers)
        .map(drop)
}

fn joined_writes(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let request = |id: &str| {
        let params = json!({"cwd": conn.env.folder, "mcpServers": []});
        json!({"jsonrpc": "2.0", "id": id, "method": "session/new", "params": params})
    };
    let (first, second) = (request("first"), request("second"));
    let bytes = format!("{first}\n{second}\n").into_bytes();
    let one = conn.send_in_pieces(&first, &mut [bytes].into_iter());
    let other = conn.send_in_pieces(&second, &mut std::iter::empty());
    let limit = conn.env.start_timeout();
    conn.reply_within(one, limit)?;
    conn.reply_within(other, limit).map(drop)
}

fn escapes(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let params = json!({"cwd": conn.env.folder, "mcpServers": []});
    let message =
        json!({"jsonrpc": "2.0", "id": "escaped", "method": "session/new", "params": params});
    let text = message
        .to_string()
        .replace("session/new", r"session\/\u006eew");
    let bytes = format!("{text}\n").into_bytes();
    let request = conn.send_in_pieces(&message, &mut [bytes].into_iter());
    let reply = conn.reply_within(request, conn.env.start_timeout())?;
    // An agent that opens no session at all may not have the method.
    if reply.code() == Some(ErrorCode::METHOD_NOT_FOUND) && conn.env.conditions.no_session.is_none()
    {
        return Err(conn.at(
            reply.index,
            "expected the method to be session/new, got error -32601",
        ));
    }
    Ok(())
}

fn large_message(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let mut params = conn.setup(None);
    params["_meta"] = json!({"padding": "x".repeat(1 << 20)});
    conn.result("session/new", params).map(drop)
}

fn crlf(cx: &mut Cx) -> Outcome {
    let conn = cx.connected()?;
    let params = json!({"cwd": conn.env.folder, "mcpServers": []});
    let message =
        json!({"jsonrpc": "2.0", "id": "crlf", "method": "session/new", "params": params});
    let bytes = format!("{message}\r\n").into_bytes();
    let request = conn.send_in_pieces(&message, &mut [bytes].into_iter());
    conn.reply_within(request, conn.env.start_timeout())
        .map(drop)
}

fn ends_with_its_input(cx: &mut Cx) -> Outcome {
    let conn = cx.with(&Caps::Full)?;
    conn.session()?;
    conn.close();
    if conn.ends_within(conn.env.timeout) {
        Ok(())
    } else {
        fail("expected the agent to end after its input, got none of it in time")
    }
}
