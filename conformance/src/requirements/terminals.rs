//! The client's terminals, as agents use them.

use std::collections::HashSet;

use super::watch::{agent_calls, has_turns, is_absolute, text, watch};
use super::{Check, Requirement, must, should};
use crate::harness::{Outcome, Recording, Stop, Terminals};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

const NONE: &str = "no terminal was used; the prompt `terminal` may make the agent do it";

pub(super) const ROWS: &[Requirement] = &[
    must(
        "terminals.no-undeclared",
        "terminals#checking-support",
        "the Agent MUST NOT attempt to call any terminal methods",
        watch(
            no_undeclared,
            "no turn with a client that declares no terminals",
        ),
    ),
    must(
        "terminals.released",
        "terminals#executing-commands",
        "The Agent MUST release the terminal using `terminal/release` when it's no longer needed.",
        watch(released, NONE),
    ),
    must(
        "terminals.released-after-kill",
        "terminals#killing-commands",
        "The Agent MUST still call `terminal/release` when it's done using it.",
        watch(released_after_kill, "no command was killed"),
    ),
    must(
        "terminals.known-id",
        "terminals#executing-commands",
        "The Client returns a Terminal ID immediately without waiting for completion",
        watch(known_id, NONE),
    ),
    must(
        "terminals.gone-when-released",
        "terminals#releasing-terminals",
        "After release the terminal ID becomes invalid for all other `terminal/*` methods.",
        watch(gone_when_released, NONE),
    ),
    must(
        "terminals.absolute-cwd",
        "terminals#executing-commands",
        "Working directory for the command. Must be an absolute path.",
        watch(absolute_cwd, "no terminal was given a working directory"),
    ),
    must(
        "terminals.command",
        "terminals#executing-commands",
        "The command to execute",
        watch(command, NONE),
    ),
    must(
        "terminals.used",
        "terminals#executing-commands",
        "The `terminal/create` method starts a command in a new terminal",
        Run(used),
    ),
    should(
        "terminals.refused",
        "overview#error-handling",
        "Errors include an `error` object with `code` and `message`",
        Run(refused),
    ),
    must(
        "terminals.cancelled",
        "prompt-turn#cancellation",
        "the Agent MUST respond to the original `session/prompt` request with the `cancelled`",
        Run(cancelled),
    ),
];

fn no_undeclared(recording: &Recording) -> Outcome<usize> {
    if recording.declared("/terminal").is_some() || !has_turns(recording) {
        return Ok(0);
    }
    match agent_calls(recording, "terminal/").next() {
        Some((index, _)) => Err(Stop::at(
            recording,
            index,
            "a terminal was asked for, which the client does not declare",
        )),
        None => Ok(1),
    }
}

/// Terminals that the agent was given: id, session, and the place of the answer.
fn created(recording: &Recording) -> impl Iterator<Item = (&str, Option<&str>, usize)> {
    let creates = recording.calls(Party::Agent, "terminal/create");
    creates.filter_map(|(request, entry)| {
        let (index, answer) = recording.answer(request)?;
        let id = text(&answer.value, "/result/terminalId")?;
        Some((id, entry.session(), index))
    })
}

fn is_released(recording: &Recording, id: &str) -> bool {
    let mut releases = recording.calls(Party::Agent, "terminal/release");
    releases.any(|(_, entry)| text(entry.params(), "/terminalId") == Some(id))
}

/// Whether the turn in which a terminal was created has ended by itself.
fn turn_is_over(recording: &Recording, session: Option<&str>, created: usize) -> bool {
    let mut prompts = recording.calls(Party::Client, "session/prompt");
    prompts.any(|(request, prompt)| {
        let end = recording.answer(request).filter(|(end, answer)| {
            created < *end && text(&answer.value, "/result/stopReason") == Some("end_turn")
        });
        request < created && prompt.session() == session && end.is_some()
    })
}

fn released(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (id, session, index) in created(recording) {
        if !turn_is_over(recording, session, index) {
            continue;
        }
        seen += 1;
        if !is_released(recording, id) {
            let reason = format!("{id} was not released by the end of its turn");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn released_after_kill(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "terminal/kill") {
        let id = text(entry.params(), "/terminalId").unwrap_or_default();
        if !turn_is_over(recording, entry.session(), index) {
            continue;
        }
        seen += 1;
        if !is_released(recording, id) {
            let reason = format!("{id} was killed and never released");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn known_id(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in agent_calls(recording, "terminal/") {
        let Some(id) = text(entry.params(), "/terminalId") else {
            continue;
        };
        seen += 1;
        if !created(recording).any(|(known, _, place)| known == id && place < index) {
            let reason = format!("no terminal was created with the id {id}");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn gone_when_released(recording: &Recording) -> Outcome<usize> {
    let (mut gone, mut seen) = (HashSet::new(), 0);
    for (index, entry) in agent_calls(recording, "terminal/") {
        let Some(id) = text(entry.params(), "/terminalId") else {
            continue;
        };
        seen += 1;
        if gone.contains(id) {
            let reason = format!("{id} was released before");
            return Err(Stop::at(recording, index, reason));
        }
        if entry.method.as_deref() == Some("terminal/release") {
            gone.insert(id);
        }
    }
    Ok(seen)
}

fn absolute_cwd(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "terminal/create") {
        let Some(cwd) = text(entry.params(), "/cwd") else {
            continue;
        };
        seen += 1;
        if !is_absolute(cwd) {
            let reason = format!("{cwd:?} is not an absolute path");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn command(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "terminal/create") {
        seen += 1;
        if text(entry.params(), "/command").is_none_or(|command| command.trim().is_empty()) {
            return Err(Stop::at(recording, index, "the command is empty"));
        }
    }
    Ok(seen)
}

fn used(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let running = conn.begin(&session, "terminal")?;
    conn.asked(running, "terminal/create")?;
    conn.finish(running).map(drop)
}

fn refused(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.script.terminals = Terminals::Refuse;
    let session = conn.session()?;
    let running = conn.begin(&session, "terminal")?;
    conn.asked(running, "terminal/create")?;
    conn.turn_reply(running)?;
    conn.prompt(&session, "hello").map(drop)
}

fn cancelled(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    conn.script.terminals = Terminals::Run;
    let session = conn.session()?;
    let running = conn.begin(&session, "terminal")?;
    conn.asked(running, "terminal/create")?;
    conn.settle()?;
    conn.cancel(&session);
    let turn = conn.finish(running)?;
    if turn.stop == "cancelled" {
        return Ok(());
    }
    Err(conn.at(turn.end, format!("the turn ended with {}", turn.stop)))
}
