//! The client's terminals, as agents use them.

use super::NamedCheck;
use super::passive::{absolute, at_end, is_agents, text, undeclared_method, watch};
use crate::passive::{RuleResult, State, View, violation, violation_at};
use crate::wire::Party;

const NONE: &str = "no terminal was used; the prompt `terminal` may make the agent do it";

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "terminals.no-undeclared",
        watch(
            no_undeclared,
            "no turn with a client that declares no terminals",
        ),
    ),
    ("terminals.released", at_end(released, NONE)),
    (
        "terminals.released-after-kill",
        at_end(
            released_after_kill,
            "no command was killed whose output was read then",
        ),
    ),
    ("terminals.known-id", watch(known_id, NONE)),
    (
        "terminals.gone-when-released",
        watch(gone_when_released, NONE),
    ),
    (
        "terminals.absolute-cwd",
        watch(absolute_cwd, "no terminal was given a working directory"),
    ),
    ("terminals.command", watch(command, NONE)),
];

fn no_undeclared(view: &View<'_>) -> RuleResult {
    let breaks = is_agents(view, "terminal/");
    // All methods of terminals need the same capability.
    undeclared_method(view, "terminal/create", breaks)
}

fn released(state: &State) -> RuleResult {
    let mut seen = 0;
    // A command that still runs, such as a server, may be needed in later turns, and so may the output of
    // one that has ended, until the agent has it.
    for (id, terminal) in &state.terminals {
        seen += usize::from(terminal.overdue || terminal.released);
        if terminal.overdue && !terminal.released {
            let reason = format!(
                "expected {id} to be released, because its command had ended and its output was read in a turn that is over, got no release"
            );
            return violation_at(terminal.place, reason);
        }
    }
    Ok(seen)
}

fn released_after_kill(state: &State) -> RuleResult {
    let mut seen = 0;
    // What is killed may be read in a later turn, as above.
    for (id, terminal) in &state.terminals {
        let Some(place) = terminal.killed else {
            continue;
        };
        seen += usize::from(terminal.overdue || terminal.released);
        if terminal.overdue && !terminal.released {
            let reason = format!(
                "expected {id} to be released, because its command was killed and its output was read in a turn that is over, got no release"
            );
            return violation_at(place, reason);
        }
    }
    Ok(seen)
}

/// The terminal that a call of the agent names.
fn named<'a>(view: &View<'a>) -> Option<&'a str> {
    let id = text(view.params(), "/terminalId")?;
    (is_agents(view, "terminal/") && view.state.is_whole()).then_some(id)
}

fn known_id(view: &View<'_>) -> RuleResult {
    match named(view) {
        None => Ok(0),
        Some(id) if view.state.terminals.contains_key(id) => Ok(1),
        Some(id) => violation(format!(
            "expected the id of a terminal that was created, got {id}"
        )),
    }
}

fn gone_when_released(view: &View<'_>) -> RuleResult {
    let Some(id) = named(view) else {
        return Ok(0);
    };
    let known = view.state.terminals.get(id);
    // The sentence is about all other methods: an agent may release a terminal again when it tidies up.
    let is_other = view.method != "terminal/release";
    if is_other && known.is_some_and(|terminal| terminal.released) {
        return violation(format!(
            "expected a terminal that is not released, got {id}"
        ));
    }
    Ok(1)
}

fn absolute_cwd(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Agent, "terminal/create") {
        return Ok(0);
    }
    absolute(text(view.params(), "/cwd"))
}

fn command(view: &View<'_>) -> RuleResult {
    if !view.calls(Party::Agent, "terminal/create") {
        return Ok(0);
    }
    if text(view.params(), "/command").is_none_or(|command| command.trim().is_empty()) {
        return violation("expected a command, got an empty text");
    }
    Ok(1)
}
