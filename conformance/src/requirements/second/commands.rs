//! Slash commands.

use serde_json::json;

use super::steps::{ended, ready};
use crate::harness::Outcome;
use crate::requirements::commands::{descriptions, names, unique};
use crate::requirements::watch::watch;
use crate::requirements::{Check, NamedCheck};
use crate::suite::Cx;

use Check::Run;

const NONE: &str = "the agent advertised no commands";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("commands.names", watch(names, NONE)),
    ("commands.descriptions", watch(descriptions, NONE)),
    ("commands.unique", watch(unique, NONE)),
    ("commands.run", Run(run)),
];

/// The name of no command: an agent that takes any slash for one of its own must still end.
fn run(cx: &mut Cx) -> Outcome {
    let (conn, session) = ready(cx)?;
    let blocks = json!([{"type": "text", "text": "/acp-conformance"}]);
    let request = conn.begin_with(&session, blocks);
    let reply = conn.reply(request)?;
    match reply.answer {
        Ok(_) => ended(conn, &session, request).map(drop),
        Err(_) => Err(conn.at(reply.index, "the prompt was refused")),
    }
}
