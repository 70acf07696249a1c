//! Content: what a prompt may be made of.

use serde_json::{Value, json};

use super::steps::{ended, ready};
use crate::harness::{Outcome, Stop, inconclusive};
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;

use Check::Run;

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("content.text", Run(text)),
    ("content.image", Run(image)),
    ("content.audio", Run(audio)),
    ("content.embedded", Run(embedded)),
];

/// A picture of one pixel, and a sound of no length.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SILENCE: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// A prompt of the word `hello` and this block is accepted and worked on. Only agents that
/// declare the capability must do so, if there is one.
fn accepted(cx: &mut Cx, capability: Option<&str>, block: Value) -> Outcome {
    let (conn, session) = ready(cx)?;
    if let Some(name) = capability {
        let pointer = format!("/capabilities/session/prompt/{name}");
        let agent = conn.agent.as_ref();
        if agent
            .and_then(|agent| agent.pointer(&pointer))
            .is_none_or(Value::is_null)
        {
            return Err(Stop::Skip(format!("the agent does not declare `{name}`")));
        }
    }
    let Some(hello) = conn.env.profile.prompt("hello", &conn.env.folder) else {
        return inconclusive("the profile has no prompt `hello`");
    };
    let request = conn.begin_with(&session, json!([{"type": "text", "text": hello}, block]));
    let reply = conn.reply(request)?;
    match reply.answer {
        Ok(_) => ended(conn, &session, request).map(drop),
        Err(_) => Err(conn.at(reply.index, "the prompt was refused")),
    }
}

fn text(cx: &mut Cx) -> Outcome {
    accepted(cx, None, json!({"type": "text", "text": "And once more."}))
}

fn image(cx: &mut Cx) -> Outcome {
    let block = json!({"type": "image", "mimeType": "image/png", "data": PIXEL});
    accepted(cx, Some("image"), block)
}

fn audio(cx: &mut Cx) -> Outcome {
    let block = json!({"type": "audio", "mimeType": "audio/wav", "data": SILENCE});
    accepted(cx, Some("audio"), block)
}

fn embedded(cx: &mut Cx) -> Outcome {
    let resource = json!({"uri": "file:///tmp/notes.txt", "mimeType": "text/plain", "text": "one"});
    accepted(
        cx,
        Some("embeddedContext"),
        json!({"type": "resource", "resource": resource}),
    )
}
