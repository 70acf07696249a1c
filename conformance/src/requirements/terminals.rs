//! The client's terminals, as agents use them.

use super::watch::{absolute, at_end, is_agents, text, undeclared, watch};
use super::{Check, Requirement, must, should};
use crate::harness::{Outcome, Terminals};
use crate::suite::Cx;
use crate::watch::{Seen, State, View, fault, fault_at};
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
        at_end(released, NONE),
    ),
    must(
        "terminals.released-after-kill",
        "terminals#killing-commands",
        "The Agent MUST still call `terminal/release` when it's done using it.",
        at_end(released_after_kill, "no command was killed"),
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

fn no_undeclared(view: &View<'_>) -> Seen {
    let breaks = is_agents(view, "terminal/");
    undeclared(view, "/terminal", breaks, "a terminal was asked for")
}

fn released(state: &State) -> Seen {
    let over = state.terminals.iter().filter(|(_, it)| it.turn_is_over);
    let mut seen = 0;
    for (id, terminal) in over {
        seen += 1;
        if !terminal.released {
            let reason = format!("{id} was not released by the end of its turn");
            return fault_at(terminal.place, reason);
        }
    }
    Ok(seen)
}

fn released_after_kill(state: &State) -> Seen {
    let mut seen = 0;
    for (id, terminal) in &state.terminals {
        let Some((place, true)) = terminal.killed else {
            continue;
        };
        seen += 1;
        if !terminal.released {
            return fault_at(place, format!("{id} was killed and never released"));
        }
    }
    Ok(seen)
}

/// The terminal that a call of the agent names.
fn named<'a>(view: &View<'a>) -> Option<&'a str> {
    let id = text(view.params(), "/terminalId")?;
    (is_agents(view, "terminal/") && view.state.is_whole()).then_some(id)
}

fn known_id(view: &View<'_>) -> Seen {
    match named(view) {
        None => Ok(0),
        Some(id) if view.state.terminals.contains_key(id) => Ok(1),
        Some(id) => fault(format!("no terminal was created with the id {id}")),
    }
}

fn gone_when_released(view: &View<'_>) -> Seen {
    let Some(id) = named(view) else {
        return Ok(0);
    };
    let known = view.state.terminals.get(id);
    if known.is_some_and(|terminal| terminal.released) {
        return fault(format!("{id} was released before"));
    }
    Ok(1)
}

fn absolute_cwd(view: &View<'_>) -> Seen {
    if !view.calls(Party::Agent, "terminal/create") {
        return Ok(0);
    }
    absolute(text(view.params(), "/cwd"))
}

fn command(view: &View<'_>) -> Seen {
    if !view.calls(Party::Agent, "terminal/create") {
        return Ok(0);
    }
    if text(view.params(), "/command").is_none_or(|command| command.trim().is_empty()) {
        return fault("the command is empty");
    }
    Ok(1)
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
