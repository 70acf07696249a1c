//! Tool calls: how they are reported, what they show, and who may allow them.

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::git_patch::fault;
use crate::harness::{Consent, Cx, Outcome};
use crate::passive::{RuleResult, View, violation};
use crate::requirements::media;
use crate::requirements::passive::{absolute, items, text, watch};
use crate::requirements::tool_calls::{Asking, asked_about, asking, did_not_run};
use crate::requirements::{Check, NamedCheck};
use crate::wire::Party;

use Check::Run;

const NO_CALL: &str = "no tool call; the prompt `tool` may cause one";
const NO_DIFF: &str = "no diff; the prompt `tool` may cause one";
const NO_TERMINAL: &str = "no terminal was shown; the prompt `tool` may cause one";

const ASKS: &str = "session/request_permission";

pub(in crate::requirements) const CHECKS: &[NamedCheck] = &[
    ("tool-calls.title", watch(title, NO_CALL)),
    (
        "tool-calls.in-progress",
        watch(in_progress, "no tool call was completed"),
    ),
    ("tool-calls.absolute-paths", watch(absolute_paths, NO_DIFF)),
    ("tool-calls.absolute-cwd", watch(absolute_cwd, NO_TERMINAL)),
    (
        "tool-calls.terminal-bytes",
        watch(terminal_bytes, NO_TERMINAL),
    ),
    ("tool-calls.git-patch", watch(git_patch, NO_DIFF)),
    (
        "tool-calls.output-after-exit",
        watch(output_after_exit, NO_TERMINAL),
    ),
    (
        "tool-calls.unknown-outcome",
        Run(|cx| is_no_permission(cx, json!({"outcome": "_later"}))),
    ),
    (
        "tool-calls.unknown-option",
        Run(|cx| is_no_permission(cx, json!({"outcome": "selected", "optionId": "no-such"}))),
    ),
    (
        "tool-calls.cancels-known-calls",
        Run(|cx| cancels_known(cx, "tool_call/cancel", "toolCallId")),
    ),
    (
        "tool-calls.cancels-known-terminals",
        Run(|cx| cancels_known(cx, "terminal/cancel", "terminalId")),
    ),
];

fn cancels_known(cx: &mut Cx, method: &str, member: &str) -> Outcome {
    let conn = cx.ready()?;
    let session = conn.session()?;
    let mut params = json!({"sessionId": session});
    params[member] = json!("acp-conformance-unknown");
    let reply = conn.refusal(method, params)?;
    conn.has_code(&reply, ErrorCode::INVALID_PARAMS)
}

/// The report of a tool call that it is, and whether it was unknown before.
fn step<'a>(view: &View<'a>) -> Option<(&'a Value, Option<crate::passive::Tool>)> {
    let body = call(view)?;
    let session = view.known(view.session()?);
    // What is replayed, or went on elsewhere before, did not begin here.
    if session.is_some_and(|session| session.continued) || !view.state.is_whole() {
        return None;
    }
    let id = text(body, "/toolCallId")?;
    let known = session.and_then(|session| session.tools.get(id)).copied();
    Some((body, known))
}

fn title(view: &View<'_>) -> RuleResult {
    match step(view) {
        Some((body, None)) if text(body, "/title").is_none_or(|title| title.trim().is_empty()) => {
            violation("expected a title in the first report of the tool call, got none")
        }
        Some((_, None)) => Ok(1),
        _ => Ok(0),
    }
}

fn in_progress(view: &View<'_>) -> RuleResult {
    match step(view) {
        Some((body, known)) if text(body, "/status") == Some("completed") => {
            match known.is_some_and(|tool| tool.ran) {
                true => Ok(1),
                false => violation("expected in_progress before completed, got none"),
            }
        }
        _ => Ok(0),
    }
}

/// The tool call that an update or a request for permission shows.
fn call<'a>(view: &View<'a>) -> Option<&'a Value> {
    let update = view.update_of("tool_call_update").map(|it| it.body);
    update.or_else(|| asked_about(view))
}

/// What an update or a request for permission shows of a tool call.
fn shown<'a>(view: &View<'a>, kind: &'static str) -> impl Iterator<Item = &'a Value> {
    let whole = call(view);
    let chunk = view.update_of("tool_call_content_chunk");
    let whole = whole.into_iter().flat_map(|call| items(call, "/content"));
    let chunk = chunk
        .into_iter()
        .filter_map(|update| update.body.get("content"));
    let all = whole.chain(chunk);
    all.filter(move |content| text(content, "/type") == Some(kind))
}

fn absolute_paths(view: &View<'_>) -> RuleResult {
    let changes = shown(view, "diff").flat_map(|diff| items(diff, "/changes"));
    let changed = changes.flat_map(|change| {
        ["/path", "/oldPath", "/newPath"]
            .into_iter()
            .filter_map(|name| text(change, name))
    });
    let places = call(view).into_iter();
    let places = places.flat_map(|call| items(call, "/locations"));
    let places = places.filter_map(|place| text(place, "/path"));
    absolute(changed.chain(places))
}

fn absolute_cwd(view: &View<'_>) -> RuleResult {
    let terminal = view.update_of("terminal_update");
    let terminal = terminal.and_then(|update| text(update.body, "/cwd"));
    // What a subject of an extension has is the extension's.
    let is_command = || text(view.params(), "/subject/type") == Some("command");
    let asks = view.calls(Party::Agent, ASKS) && is_command();
    let command = text(view.params(), "/subject/cwd").filter(|_| asks);
    absolute(terminal.into_iter().chain(command))
}

fn terminal_bytes(view: &View<'_>) -> RuleResult {
    let whole = view.update_of("terminal_update");
    let whole = whole.and_then(|update| text(update.body, "/output/data"));
    let chunk = view.update_of("terminal_output_chunk");
    let chunk = chunk.and_then(|update| text(update.body, "/data"));
    let mut seen = 0;
    for data in whole.into_iter().chain(chunk) {
        seen += 1;
        if !media::is_base64(data) {
            return violation(format!("expected base64, got {data:?}"));
        }
    }
    Ok(seen)
}

fn output_after_exit(view: &View<'_>) -> RuleResult {
    let Some(update) = view.update_of("terminal_output_chunk") else {
        return Ok(0);
    };
    let id = text(update.body, "/terminalId").unwrap_or_default();
    let session = view
        .known(update.session)
        .filter(|session| session.replays == 0);
    match session.and_then(|session| session.terminals.get(id)) {
        Some(true) => violation(format!(
            "expected the output of the terminal {id} before its exit status, got some after it"
        )),
        Some(false) => Ok(1),
        None => Ok(0),
    }
}

fn git_patch(view: &View<'_>) -> RuleResult {
    let mut seen = 0;
    for diff in shown(view, "diff") {
        if text(diff, "/patch/format") != Some("git_patch") {
            continue;
        }
        seen += 1;
        if let Some(reason) = fault(text(diff, "/patch/text").unwrap_or_default()) {
            return violation(reason);
        }
    }
    Ok(seen)
}

/// Neither an outcome that the client's version does not have nor an option that was not offered is a
/// permission.
fn is_no_permission(cx: &mut Cx, outcome: Value) -> Outcome {
    let conn = cx.ready()?;
    let Asking { running, asked, .. } = asking(conn, Consent::Hold)?;
    // Without a permission the agent may try something else, and ask for that.
    conn.script.consent = Consent::Reject;
    let id = conn.id_of(asked);
    let result = json!({"outcome": outcome});
    conn.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    // The work may fail for want of a permission.
    let end = conn.turn_reply(running)?.index;
    did_not_run(conn, asked, end)
}
