//! Slash commands.

use serde_json::json;

use super::steps::{ended, ready};
use crate::harness::Outcome;
use crate::requirements::commands::{descriptions, names, unique};
use crate::requirements::watch::watch;
use crate::requirements::{Check, Requirement, info, must};
use crate::suite::Cx;

use Check::Run;

const NONE: &str = "the agent advertised no commands";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "commands.names",
        "v2/slash-commands#availablecommand",
        "The command name (e.g., \"web\", \"test\", \"plan\")",
        watch(names, NONE),
    ),
    must(
        "commands.descriptions",
        "v2/slash-commands#availablecommand",
        "Human-readable description of what the command does",
        watch(descriptions, NONE),
    ),
    info(
        "commands.unique",
        "v2/slash-commands#advertising-commands",
        "The list of commands available in this session",
        watch(unique, NONE),
    ),
    must(
        "commands.run",
        "v2/slash-commands#running-commands",
        "Commands are included as regular user messages in prompt requests",
        Run(run),
    ),
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
