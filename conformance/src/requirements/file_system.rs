//! The client's files, as agents use them.

use super::NamedCheck;
use super::passive::{absolute, from_one, is_agents, text, undeclared_method, watch};
use super::session_setup::is_known;
use crate::passive::{RuleResult, View};
use crate::wire::Party;

const NONE: &str = "no file was read or written through the client; the prompts `read` and `write` may make the agent do it";
const NO_LINE: &str =
    "no file was read from a line on; the prompt `lines` may make the agent do it";
const NO_TURN: &str = "no turn with a client that declares less";

pub(super) const CHECKS: &[NamedCheck] = &[
    (
        "file-system.no-undeclared-read",
        watch(no_undeclared_read, NO_TURN),
    ),
    (
        "file-system.no-undeclared-write",
        watch(no_undeclared_write, NO_TURN),
    ),
    ("file-system.absolute-path", watch(absolute_path, NONE)),
    ("file-system.line-from-one", watch(line_from_one, NO_LINE)),
    ("file-system.own-session", watch(own_session, NONE)),
];

fn no_undeclared_read(view: &View<'_>) -> RuleResult {
    let method = "fs/read_text_file";
    let breaks = view.calls(Party::Agent, method);
    undeclared_method(view, method, breaks)
}

fn no_undeclared_write(view: &View<'_>) -> RuleResult {
    let method = "fs/write_text_file";
    let breaks = view.calls(Party::Agent, method);
    undeclared_method(view, method, breaks)
}

fn absolute_path(view: &View<'_>) -> RuleResult {
    if !is_agents(view, "fs/") {
        return Ok(0);
    }
    absolute([text(view.params(), "/path").unwrap_or_default()])
}

fn line_from_one(view: &View<'_>) -> RuleResult {
    let line = view.params().get("line");
    match line.filter(|_| view.calls(Party::Agent, "fs/read_text_file")) {
        Some(line) => from_one([line]),
        None => Ok(0),
    }
}

fn own_session(view: &View<'_>) -> RuleResult {
    if !is_agents(view, "fs/") || !view.state.is_whole() {
        return Ok(0);
    }
    is_known(view, view.session().unwrap_or_default())
}
