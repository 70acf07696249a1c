//! Tool calls: announced, followed, ended, and permitted before they run.

use serde_json::Value;

use super::passive::{absolute, from_one, items, text, unique, watch};
use super::{Check, NamedCheck};
use crate::harness::{Conn, Consent, Cx, Entry, Outcome, Recording, Stop, inconclusive, skip};
use crate::passive::{RuleResult, Tool, View, Violation, is_final, violation};
use crate::wire::{Party, extensions};

use Check::Run;

const NONE: &str = "no tool call; the prompt `tool` should cause one";
const UNASKED: &str = "the agent did not ask for permission; the prompt `permission` may make it";

pub(super) const CHECKS: &[NamedCheck] = &[
    ("tool-calls.announced", watch(announced, NONE)),
    ("tool-calls.unique-id", watch(unique_id, NONE)),
    (
        "tool-calls.in-progress",
        watch(in_progress, "no tool call that completed"),
    ),
    (
        "tool-calls.end-with-the-turn",
        watch(
            end_with_the_turn,
            "no tool call in a turn that ended by itself",
        ),
    ),
    ("tool-calls.final-is-final", watch(final_is_final, NONE)),
    (
        "tool-calls.absolute-paths",
        watch(absolute_paths, "no tool call named a file"),
    ),
    (
        "tool-calls.lines-from-one",
        watch(lines_from_one, "no tool call named a line"),
    ),
    (
        "tool-calls.terminal-exists",
        watch(terminal_exists, "no tool call showed a terminal"),
    ),
    ("tool-calls.option-ids", watch(option_ids, UNASKED)),
    ("tool-calls.options", watch(options, UNASKED)),
    ("tool-calls.asks-before", watch(asks_before, UNASKED)),
    (
        "tool-calls.permission-for-announced",
        watch(permission_for_announced, UNASKED),
    ),
    ("tool-calls.permission-granted", Run(permission_granted)),
    ("tool-calls.permission-rejected", Run(permission_rejected)),
    ("tool-calls.title", watch(title, NONE)),
];

/// A step of a tool call outside of a replay: announced or updated.
struct Step<'a> {
    id: &'a str,
    status: Option<&'a str>,
    body: &'a Value,
    created: bool,
    /// What was known of the call before.
    known: Option<&'a Tool>,
    /// Whether the call may have been announced elsewhere.
    continued: bool,
}

fn step<'a>(view: &View<'a>) -> Option<Step<'a>> {
    let update = view.update()?;
    let created = match update.kind {
        "tool_call" => true,
        "tool_call_update" => false,
        _ => return None,
    };
    let session = view.known(update.session);
    if session.is_some_and(|session| session.replays > 0) {
        return None;
    }
    let id = text(update.body, "/toolCallId")?;
    Some(Step {
        id,
        status: text(update.body, "/status"),
        body: update.body,
        created,
        known: session.and_then(|session| session.tools.get(id)),
        continued: is_continued(view, update.session),
    })
}

/// Sessions whose calls may have been announced elsewhere: those set up again, and
/// all if something was not seen.
fn is_continued(view: &View<'_>, session: &str) -> bool {
    !view.state.is_whole() || view.known(session).is_some_and(|session| session.continued)
}

fn announced(view: &View<'_>) -> RuleResult {
    let Some(step) = step(view) else {
        return Ok(0);
    };
    let announced = step.known.is_some_and(|tool| tool.announced.is_some());
    if !step.created && !announced && !step.continued {
        return violation(format!(
            "expected a tool_call before its updates, got {} without one",
            step.id
        ));
    }
    Ok(1)
}

fn unique_id(view: &View<'_>) -> RuleResult {
    let Some(step) = step(view).filter(|step| step.created) else {
        return Ok(0);
    };
    // A second tool_call for one that is under way repeats it; after its end, the id names two calls.
    if step.known.is_some_and(|tool| tool.ended) {
        return violation(format!(
            "expected an id of its own, got {} of another tool call",
            step.id
        ));
    }
    Ok(1)
}

fn in_progress(view: &View<'_>) -> RuleResult {
    let completed = |step: &Step<'_>| step.status == Some("completed");
    let Some(step) = step(view).filter(completed) else {
        return Ok(0);
    };
    if !step.known.is_some_and(|tool| tool.ran) && !step.continued {
        return violation(format!(
            "expected in_progress before completed, got {} without it",
            step.id
        ));
    }
    Ok(1)
}

fn end_with_the_turn(view: &View<'_>) -> RuleResult {
    let result = view.result(Party::Client, "session/prompt");
    let ended = result.and_then(|result| text(result, "/stopReason")) == Some("end_turn");
    let Some(asked) = view.asked.filter(|_| ended) else {
        return Ok(0);
    };
    let session = asked.session.as_deref().and_then(|name| view.known(name));
    let tools = session.into_iter().flat_map(|session| &session.tools);
    let mut seen = 0;
    for (id, tool) in tools.filter(|(_, tool)| tool.announced > Some(asked.place)) {
        seen += 1;
        if !tool.ended {
            return violation(format!(
                "expected {id} to complete or fail before the end of the turn, got neither"
            ));
        }
    }
    Ok(seen)
}

fn final_is_final(view: &View<'_>) -> RuleResult {
    let Some(step) = step(view) else {
        return Ok(0);
    };
    // Whether an id may come again is another row's question.
    let ended = !step.created && step.known.is_some_and(|tool| tool.ended);
    match step.status {
        None => Ok(1),
        // A cancellation may come too late.
        Some(status) if is_final(status) => Ok(1),
        Some(status) if ended => violation(format!(
            "expected no status of {} after its end, got {status}",
            step.id
        )),
        Some(_) => Ok(1),
    }
}

/// The tool call that an update, of a replay too, or a request for permission shows.
fn shown<'a>(view: &View<'a>) -> Option<&'a Value> {
    let update = view.update();
    let update = update.filter(|it| matches!(it.kind, "tool_call" | "tool_call_update"));
    asked_about(view).or_else(|| Some(update?.body))
}

/// The tool call for which permission is asked. What a subject of an extension has is the extension's.
pub(super) fn asked_about<'a>(view: &View<'a>) -> Option<&'a Value> {
    let params = Some(view.params()).filter(|_| view.calls(Party::Agent, ASKS))?;
    let subject = || {
        params
            .get("subject")
            .filter(|it| text(it, "/type") == Some("tool_call"))
    };
    params
        .get("toolCall")
        .or_else(|| subject()?.get("toolCall"))
}

/// Everything that tool calls of the agent show.
pub(crate) fn agent_tool_content(recording: &Recording) -> Vec<&Value> {
    let updates = recording.updates();
    let updates = updates.filter(|update| update.kind.starts_with("tool_call"));
    let asked = recording.calls(Party::Agent, ASKS);
    let asked = asked.filter_map(|(_, entry)| entry.params().get("toolCall"));
    let all = updates.map(|update| update.body).chain(asked);
    all.flat_map(|call| items(call, "/content")).collect()
}

fn absolute_paths(view: &View<'_>) -> RuleResult {
    let Some(call) = shown(view) else {
        return Ok(0);
    };
    let places = items(call, "/locations").chain(items(call, "/content"));
    absolute(places.filter_map(|place| text(place, "/path")))
}

fn lines_from_one(view: &View<'_>) -> RuleResult {
    let Some(call) = shown(view) else {
        return Ok(0);
    };
    from_one(items(call, "/locations").filter_map(|place| place.get("line")))
}

fn terminal_exists(view: &View<'_>) -> RuleResult {
    // Terminals of a replay are those of another time.
    let call = asked_about(view).or_else(|| Some(step(view)?.body));
    let Some(call) = call.filter(|_| view.state.is_whole()) else {
        return Ok(0);
    };
    let mut seen = 0;
    let mut known = None;
    for id in items(call, "/content").filter_map(|item| text(item, "/terminalId")) {
        seen += 1;
        if view.state.terminals.contains_key(id) {
            continue;
        }
        let found = Violation::new(format!(
            "expected the id of a terminal that was created, got {id}"
        ));
        let mut here = extensions::terminals(call).filter(|(own, _)| *own == id);
        let extension = here.next().map(|(_, extension)| extension);
        let extension = extension.or_else(|| view.state.displays(id));
        match extension {
            None => return Err(found),
            extension => known = Some(found.unless(extension)),
        }
    }
    known.map_or(Ok(seen), Err)
}

const ASKS: &str = "session/request_permission";

/// The options of the request for permission that it is.
fn offered<'a>(view: &View<'a>) -> Option<impl Iterator<Item = &'a Value>> {
    let asks = view.calls(Party::Agent, ASKS);
    asks.then(|| items(view.params(), "/options"))
}

pub(super) fn option_ids(view: &View<'_>) -> RuleResult {
    let Some(offered) = offered(view) else {
        return Ok(0);
    };
    unique(
        "options",
        offered.filter_map(|option| text(option, "/optionId")),
    )
}

pub(super) fn options(view: &View<'_>) -> RuleResult {
    match offered(view).map(Iterator::count) {
        None => Ok(0),
        Some(0) => violation("expected options to choose from, got none"),
        Some(_) => Ok(1),
    }
}

/// The tool call that permission is asked for: its id, its session, and what is known
/// of it.
fn permitted<'a>(view: &View<'a>) -> Option<(&'a str, &'a str, Option<&'a Tool>)> {
    let session = view.session().filter(|_| view.calls(Party::Agent, ASKS))?;
    let id = text(view.params(), "/toolCall/toolCallId")?;
    let tool = view
        .known(session)
        .and_then(|session| session.tools.get(id));
    Some((id, session, tool))
}

fn asks_before(view: &View<'_>) -> RuleResult {
    match permitted(view) {
        None => Ok(0),
        Some((id, _, Some(tool))) if tool.ended => violation(format!(
            "expected the request for permission before the end of {id}, got it after"
        )),
        Some(_) => Ok(1),
    }
}

fn permission_for_announced(view: &View<'_>) -> RuleResult {
    match permitted(view) {
        None => Ok(0),
        Some((_, _, Some(tool))) if tool.announced.is_some() => Ok(1),
        Some((_, session, _)) if is_continued(view, session) => Ok(0),
        Some((id, ..)) => violation(format!("expected a tool call that was announced, got {id}")),
    }
}

fn title(view: &View<'_>) -> RuleResult {
    let Some(step) = step(view).filter(|step| step.created) else {
        return Ok(0);
    };
    if text(step.body, "/title").is_none_or(|title| title.trim().is_empty()) {
        return violation("expected a title, got none");
    }
    Ok(1)
}

/// A turn in which the agent has asked for permission.
pub(super) struct Asking {
    pub(super) session: String,
    pub(super) running: usize,
    /// The place of the question.
    pub(super) asked: usize,
}

/// Runs the prompt of a tool until the agent asks for permission, which gets this answer. If it does
/// not ask in the mode in which its sessions start, it has to in one that is known to.
pub(super) fn asking(conn: &mut Conn, consent: Consent) -> Outcome<Asking> {
    conn.script.consent = consent;
    let word = conn.word(&["permission", "tool"])?;
    let (mut session, state) = conn.new_session()?;
    let mut running = conn.begin(&session, word)?;
    let mut asked = conn.asked(running, ASKS);
    if matches!(asked, Err(Stop::Skip(_)))
        && let Some(other) = conn.asking_session(&state)?
    {
        session = other;
        running = conn.begin(&session, word)?;
        asked = conn.asked(running, ASKS);
    }
    Ok(Asking {
        session,
        running,
        asked: asked?,
    })
}

fn permission_granted(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let Asking {
        session,
        running,
        asked,
    } = asking(conn, Consent::Allow)?;
    conn.finish(running)?;
    conn.prompt(&session, "hello")?;
    match is_allowed(conn.recording(), asked) {
        true => Ok(()),
        false => inconclusive("the suite did not grant what the agent asked for"),
    }
}

/// Whether the request for permission at `asked` was answered with an option that allows.
fn is_allowed(recording: &Recording, asked: usize) -> bool {
    let question = recording.entries.get(asked).into_iter();
    let options = question.flat_map(|entry| items(entry.params(), "/options"));
    let answer = recording.result(asked);
    let chosen = answer.and_then(|answer| text(answer, "/outcome/optionId"));
    let mut chosen = options.filter(|option| text(option, "/optionId") == chosen);
    chosen.any(|option| text(option, "/kind").is_some_and(|kind| kind.starts_with("allow")))
}

fn permission_rejected(cx: &mut Cx) -> Outcome {
    let conn = cx.ready()?;
    let turn = asking(conn, Consent::Reject)?;
    let end = conn.finish(turn.running)?.end;
    did_not_run(conn, turn.asked, end)?;
    conn.prompt(&turn.session, "hello").map(drop)
}

/// The tool call that the agent asked about at `asked` must not be reported as completed before `end`. That
/// it is in progress may be an update that was under way before the agent read the answer.
pub(super) fn did_not_run(conn: &Conn, asked: usize, end: usize) -> Outcome {
    let entries = &conn.recording().entries;
    let question = entries.get(asked).map(Entry::params);
    let places = [
        "/toolCall/toolCallId",
        "/subject/toolCall/toolCallId",
        "/subject/toolCallId",
    ];
    let call = question.and_then(|params| places.iter().find_map(|place| text(params, place)));
    let Some(call) = call else {
        return skip("the agent did not say which tool call it asks about");
    };
    let ran = (asked..end).find(|index| {
        let update = entries
            .get(*index)
            .and_then(|entry| entry.params().get("update"));
        update.is_some_and(|update| {
            let status = text(update, "/status");
            text(update, "/toolCallId") == Some(call) && status == Some("completed")
        })
    });
    match ran {
        Some(index) => Err(conn.at(
            index,
            "expected the tool not to run without permission, got a report that it completed",
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::harness::Recorder;
    use crate::wire::Schema;

    #[test]
    fn permission_is_granted_by_an_option_that_allows() {
        let is_allowed = |outcome: Value| {
            let mut recorder = Recorder::new(Schema::v1().unwrap());
            let option = |id: &str, kind: &str| json!({"optionId": id, "name": "O", "kind": kind});
            let options = json!([option("y", "allow_once"), option("n", "reject_once")]);
            let params =
                json!({"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": options});
            let asks = json!({"jsonrpc": "2.0", "id": 1, "method": ASKS, "params": params});
            let asked = recorder.message(Party::Agent, asks, Duration::ZERO);
            let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {"outcome": outcome}});
            recorder.message(Party::Client, answer, Duration::ZERO);
            is_allowed(&recorder.recording, asked)
        };
        assert!(is_allowed(json!({"outcome": "selected", "optionId": "y"})));
        assert!(!is_allowed(json!({"outcome": "selected", "optionId": "n"})));
        assert!(!is_allowed(json!({"outcome": "cancelled"})));
    }
}
