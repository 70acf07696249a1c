//! Tool calls: announced, followed, ended, and permitted before they run.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::watch::{is_absolute, items, repeated, text, watch};
use super::{Check, Requirement, info, must, should};
use crate::harness::{Conn, Consent, Outcome, Recording, Stop};
use crate::suite::Cx;
use crate::wire::Party;

use Check::Run;

const NONE: &str = "no tool call; the prompt `tool` should cause one";
const UNASKED: &str = "the agent did not ask for permission; the prompt `permission` may make it";

pub(super) const ROWS: &[Requirement] = &[
    should(
        "tool-calls.announced",
        "tool-calls#creating",
        "When the language model requests a tool invocation, the Agent SHOULD report it to the Client",
        watch(announced, NONE),
    ),
    must(
        "tool-calls.unique-id",
        "tool-calls#creating",
        "A unique identifier for this tool call within the session",
        watch(unique_id, NONE),
    ),
    should(
        "tool-calls.in-progress",
        "prompt-turn#5-tool-invocation-and-status-reporting",
        "the Agent SHOULD invoke the tool and report a status update marking the tool as `in_progress`",
        watch(in_progress, "no tool call that completed"),
    ),
    must(
        "tool-calls.end-with-the-turn",
        "prompt-turn#4-check-for-completion",
        "If there are no pending tool calls, the turn ends",
        watch(
            end_with_the_turn,
            "no tool call in a turn that ended by itself",
        ),
    ),
    should(
        "tool-calls.final-is-final",
        "tool-calls#status",
        "Tool calls progress through different statuses during their lifecycle",
        watch(final_is_final, NONE),
    ),
    must(
        "tool-calls.absolute-paths",
        "overview#argument-requirements",
        "All file paths in the protocol MUST be absolute.",
        watch(absolute_paths, "no tool call named a file"),
    ),
    must(
        "tool-calls.lines-from-one",
        "overview#argument-requirements",
        "Line numbers are 1-based",
        watch(lines_from_one, "no tool call named a line"),
    ),
    must(
        "tool-calls.terminal-exists",
        "tool-calls#terminals",
        "The ID of a terminal created with `terminal/create`",
        watch(terminal_exists, "no tool call showed a terminal"),
    ),
    must(
        "tool-calls.option-ids",
        "tool-calls#permission-options",
        "Unique identifier for this option",
        watch(option_ids, UNASKED),
    ),
    must(
        "tool-calls.options",
        "tool-calls#requesting-permission",
        "Available permission options for the user to choose from",
        watch(options, UNASKED),
    ),
    must(
        "tool-calls.asks-before",
        "tool-calls#requesting-permission",
        "The Agent MAY request permission from the user before executing a tool call",
        watch(asks_before, UNASKED),
    ),
    should(
        "tool-calls.permission-for-announced",
        "tool-calls#creating",
        "When the language model requests a tool invocation, the Agent SHOULD report it to the Client",
        watch(permission_for_announced, UNASKED),
    ),
    must(
        "tool-calls.permission-granted",
        "tool-calls#requesting-permission",
        "The Client responds with the user's decision",
        Run(permission_granted),
    ),
    must(
        "tool-calls.permission-rejected",
        "tool-calls#requesting-permission",
        "The Client responds with the user's decision",
        Run(permission_rejected),
    ),
    info(
        "tool-calls.title",
        "tool-calls#creating",
        "A human-readable title describing what the tool is doing",
        watch(title, NONE),
    ),
];

/// A step of a tool call: announced or updated.
struct Step<'a> {
    index: usize,
    call: (&'a str, &'a str),
    status: Option<&'a str>,
    body: &'a Value,
    created: bool,
}

/// Every step of every tool call outside of replays, in order.
fn steps(recording: &Recording) -> impl Iterator<Item = Step<'_>> {
    let replays = recording.replays();
    recording.updates().filter_map(move |update| {
        let created = match update.kind {
            "tool_call" => true,
            "tool_call_update" => false,
            _ => return None,
        };
        let replayed = replays.iter().any(|(session, from, to)| {
            *session == update.session && (*from..*to).contains(&update.index)
        });
        if replayed {
            return None;
        }
        Some(Step {
            index: update.index,
            call: (update.session, text(update.body, "/toolCallId")?),
            status: text(update.body, "/status"),
            body: update.body,
            created,
        })
    })
}

/// Sessions whose calls were announced elsewhere: those set up again.
fn is_continued(recording: &Recording, session: &str) -> bool {
    ["session/load", "session/resume"].iter().any(|method| {
        let mut calls = recording.calls(Party::Client, method);
        calls.any(|(_, entry)| entry.session() == Some(session))
    })
}

fn announced(recording: &Recording) -> Outcome<usize> {
    let (mut known, mut seen) = (HashSet::new(), 0);
    for step in steps(recording) {
        seen += 1;
        if step.created {
            known.insert(step.call);
        } else if !known.contains(&step.call) && !is_continued(recording, step.call.0) {
            let reason = format!("{} was never announced by a tool_call", step.call.1);
            return Err(Stop::at(recording, step.index, reason));
        }
    }
    Ok(seen)
}

fn unique_id(recording: &Recording) -> Outcome<usize> {
    let (mut known, mut seen) = (HashMap::new(), 0);
    for step in steps(recording) {
        let ended = matches!(step.status, Some("completed" | "failed"));
        if !step.created {
            if ended {
                known.insert(step.call, true);
            }
            continue;
        }
        seen += 1;
        // A second tool_call for one that is under way repeats it; after its end,
        // or in another turn, the id names two calls.
        if known.insert(step.call, ended) == Some(true) {
            let reason = format!("{} named another tool call before", step.call.1);
            return Err(Stop::at(recording, step.index, reason));
        }
    }
    Ok(seen)
}

fn in_progress(recording: &Recording) -> Outcome<usize> {
    let (mut running, mut seen) = (HashSet::new(), 0);
    for step in steps(recording) {
        match step.status {
            Some("in_progress") => {
                running.insert(step.call);
            }
            Some("completed") => {
                seen += 1;
                if !running.contains(&step.call) && !is_continued(recording, step.call.0) {
                    let reason = format!("{} completed without being in progress", step.call.1);
                    return Err(Stop::at(recording, step.index, reason));
                }
            }
            _ => {}
        }
    }
    Ok(seen)
}

fn end_with_the_turn(recording: &Recording) -> Outcome<usize> {
    let steps: Vec<_> = steps(recording).collect();
    let mut seen = 0;
    for (request, prompt) in recording.calls(Party::Client, "session/prompt") {
        let Some((end, answer)) = recording.answer(request) else {
            continue;
        };
        if text(&answer.value, "/result/stopReason") != Some("end_turn") {
            continue;
        }
        let mut open = HashSet::new();
        for step in &steps {
            if !(request..end).contains(&step.index) || Some(step.call.0) != prompt.session() {
                continue;
            }
            if step.created {
                seen += 1;
                open.insert(step.call.1);
            }
            if matches!(step.status, Some("completed" | "failed")) {
                open.remove(step.call.1);
            }
        }
        if let Some(call) = open.into_iter().next() {
            let reason = format!("the turn ended while {call} was neither completed nor failed");
            return Err(Stop::at(recording, end, reason));
        }
    }
    Ok(seen)
}

fn final_is_final(recording: &Recording) -> Outcome<usize> {
    let (mut ended, mut seen) = (HashSet::new(), 0);
    for step in steps(recording) {
        seen += 1;
        if step.created {
            // Whether an id may come again is another row's question.
            ended.remove(&step.call);
        }
        match step.status {
            Some("completed" | "failed") => {
                ended.insert(step.call);
            }
            Some(status) if ended.contains(&step.call) => {
                let reason = format!("{} is {status} after its end", step.call.1);
                return Err(Stop::at(recording, step.index, reason));
            }
            _ => {}
        }
    }
    Ok(seen)
}

/// Tool calls as updates and permission requests show them.
fn shown(recording: &Recording) -> Vec<(usize, &Value)> {
    let updates = steps(recording).map(|step| (step.index, step.body));
    let asked = recording.calls(Party::Agent, "session/request_permission");
    let asked = asked.filter_map(|(index, entry)| Some((index, entry.params().get("toolCall")?)));
    updates.chain(asked).collect()
}

/// Everything that tool calls of the agent show.
pub(crate) fn agent_tool_content(recording: &Recording) -> Vec<&Value> {
    let calls = shown(recording).into_iter();
    calls
        .flat_map(|(_, call)| items(call, "/content"))
        .collect()
}

fn absolute_paths(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, call) in shown(recording) {
        for place in items(call, "/locations").chain(items(call, "/content")) {
            let Some(path) = text(place, "/path") else {
                continue;
            };
            seen += 1;
            if !is_absolute(path) {
                let reason = format!("{path:?} is not an absolute path");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn lines_from_one(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, call) in shown(recording) {
        for line in items(call, "/locations").filter_map(|place| place.get("line")?.as_i64()) {
            seen += 1;
            if line < 1 {
                return Err(Stop::at(
                    recording,
                    index,
                    format!("there is no line {line}"),
                ));
            }
        }
    }
    Ok(seen)
}

fn terminal_exists(recording: &Recording) -> Outcome<usize> {
    let created = |id: &str, before: usize| {
        let mut creates = recording.calls(Party::Agent, "terminal/create");
        creates.any(|(request, _)| {
            request < before
                && recording
                    .result(request)
                    .and_then(|result| text(result, "/terminalId"))
                    == Some(id)
        })
    };
    let mut seen = 0;
    for (index, call) in shown(recording) {
        for id in items(call, "/content").filter_map(|item| text(item, "/terminalId")) {
            seen += 1;
            if !created(id, index) {
                let reason = format!("no terminal was created with the id {id}");
                return Err(Stop::at(recording, index, reason));
            }
        }
    }
    Ok(seen)
}

fn option_ids(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "session/request_permission") {
        seen += 1;
        let ids = items(entry.params(), "/options").filter_map(|option| text(option, "/optionId"));
        if let Some(id) = repeated(ids) {
            return Err(Stop::at(
                recording,
                index,
                format!("two options have the id {id}"),
            ));
        }
    }
    Ok(seen)
}

fn options(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "session/request_permission") {
        seen += 1;
        if items(entry.params(), "/options").next().is_none() {
            return Err(Stop::at(
                recording,
                index,
                "there is nothing to choose from",
            ));
        }
    }
    Ok(seen)
}

fn asks_before(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "session/request_permission") {
        let (Some(session), Some(call)) = (
            entry.session(),
            text(entry.params(), "/toolCall/toolCallId"),
        ) else {
            continue;
        };
        seen += 1;
        let mut earlier = steps(recording).take_while(|step| step.index < index);
        let ended = earlier.any(|step| {
            step.call == (session, call) && matches!(step.status, Some("completed" | "failed"))
        });
        if ended {
            let reason = format!("permission for {call}, which has ended already");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn permission_for_announced(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.calls(Party::Agent, "session/request_permission") {
        let (Some(session), Some(call)) = (
            entry.session(),
            text(entry.params(), "/toolCall/toolCallId"),
        ) else {
            continue;
        };
        seen += 1;
        let mut earlier = steps(recording).take_while(|step| step.index < index);
        if !earlier.any(|step| step.created && step.call == (session, call)) {
            let reason = format!("permission for {call}, which was never announced");
            return Err(Stop::at(recording, index, reason));
        }
    }
    Ok(seen)
}

fn title(recording: &Recording) -> Outcome<usize> {
    let mut seen = 0;
    for step in steps(recording).filter(|step| step.created) {
        seen += 1;
        if text(step.body, "/title").is_none_or(|title| title.trim().is_empty()) {
            return Err(Stop::at(recording, step.index, "the title is empty"));
        }
    }
    Ok(seen)
}

fn decided(conn: &mut Conn, consent: Consent) -> Outcome {
    conn.script.consent = consent;
    let session = conn.session()?;
    let word = conn.word(&["permission", "tool"])?;
    let running = conn.begin(&session, word)?;
    conn.asked(running, "session/request_permission")?;
    conn.finish(running)?;
    conn.prompt(&session, "hello").map(drop)
}

fn permission_granted(cx: &mut Cx) -> Outcome {
    decided(cx.ready()?, Consent::Allow)
}

fn permission_rejected(cx: &mut Cx) -> Outcome {
    decided(cx.ready()?, Consent::Reject)
}
