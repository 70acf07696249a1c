//! Rules over messages that belong to rows whose check performs something.
//!
//! The check brings the situation about; the rule finds the violation wherever the situation occurs,
//! in a recording and in live traffic too.

use serde_json::Value;

use super::option_lists::{modes_agree, updates_all};
use crate::passive::{Rule, RuleResult, View, violation};
use crate::wire::{FindingKind, Party, Version};

/// The rules of a version by the ids of the table.
pub(crate) fn rules(version: Version) -> &'static [(&'static str, Rule)] {
    match version {
        Version::V1 => V1,
        Version::V2 => V2,
    }
}

const V1: &[(&str, Rule)] = &[
    (
        "session-load.resume-is-silent",
        Rule::Everything(resume_is_silent),
    ),
    ("session-load.replays", Rule::Messages(load_replays)),
    (
        "config-options.complete-update",
        Rule::Messages(updates_all),
    ),
    ("config-options.modes-in-sync", Rule::Messages(modes_agree)),
];

const V2: &[(&str, Rule)] = &[
    (
        "session-load.close-is-last",
        Rule::Everything(close_is_last),
    ),
    ("session-load.state-first", Rule::Messages(state_first)),
    (
        "prompt-lifecycle.silent-after-cancel",
        Rule::Findings(&[FindingKind::LateUpdate]),
    ),
    (
        "config-options.complete-update",
        Rule::Messages(updates_all),
    ),
];

/// Nothing of a session comes after it was closed on the connection.
fn close_is_last(view: &View<'_>) -> RuleResult {
    let session = view.session().filter(|_| view.is_call(Party::Agent));
    if session
        .and_then(|session| view.known(session))
        .is_some_and(|it| it.closed)
    {
        return violation("expected no message of a session after it was closed, got one");
    }
    let closed = view.result(Party::Client, "session/close");
    Ok(usize::from(closed.is_some()))
}

/// The state of a session that is resumed comes before the answer.
fn state_first(view: &View<'_>) -> RuleResult {
    if view.result(Party::Client, "session/resume").is_none() {
        return Ok(0);
    }
    let session = view
        .asked
        .and_then(|asked| view.known(asked.session.as_deref()?));
    match session {
        Some(session) if !session.has_state => {
            violation("expected a `state_update` before the answer to session/resume, got none")
        }
        session => Ok(usize::from(session.is_some())),
    }
}

/// No message of the user and no tool call comes while a session is resumed, unless a turn goes on in it.
/// Text of the agent may be a greeting, and its plan is none of the past.
fn resume_is_silent(view: &View<'_>) -> RuleResult {
    if let Some(update) = view.update() {
        let resumed = view.known(update.session).filter(|it| it.is_resuming());
        let mut told = ["user_message", "tool_call"].iter();
        if resumed.is_some() && told.any(|kind| update.kind.starts_with(kind)) {
            let kind = update.kind;
            return violation(format!(
                "expected no replay before the answer to session/resume, got {kind}"
            ));
        }
        return Ok(0);
    }
    let resumed = view.result(Party::Client, "session/resume");
    Ok(usize::from(resumed.is_some()))
}

/// A replay has what was seen live of the turns that ended.
fn load_replays(view: &View<'_>) -> RuleResult {
    let loaded = view.result(Party::Client, "session/load");
    let asked = view.asked.filter(|_| loaded.is_some());
    let session = asked.and_then(|asked| view.known(asked.session.as_deref()?));
    let Some(session) = session.filter(|_| view.state.is_whole()) else {
        return Ok(0);
    };
    if let Some(kind) = session.lost_in_replay() {
        return violation(format!("expected {kind} in the replay, got none"));
    }
    let (lost, all) = session.tools_lost_in_replay();
    match lost.first() {
        Some(id) => violation(format!(
            "expected {all} tool calls in the replay, got {} without {}",
            all - lost.len(),
            Value::from(*id)
        )),
        None => Ok(usize::from(session.had_turns())),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::passive::{Said, State};
    use crate::wire::Kind;

    /// What the rules find in a conversation; requests have an id and a method, and all ids are
    /// the client's.
    fn found(messages: &[Value]) -> Vec<String> {
        let mut state = State::whole();
        let mut found = Vec::new();
        for (place, value) in messages.iter().enumerate() {
            let (kind, from) = match (value.get("method"), value.get("id")) {
                (Some(_), Some(_)) => (Kind::Request, Party::Client),
                (Some(_), None) => (Kind::Notification, Party::Agent),
                _ => (Kind::Result, Party::Agent),
            };
            let place = place as u64;
            let said = Said {
                place,
                from,
                kind,
                value,
            };
            let view = View::new(&state, said);
            for (_, rule) in V1 {
                if let Rule::Everything(look) | Rule::Messages(look) = rule
                    && let Err(violation) = look(&view)
                {
                    found.push(violation.reason);
                }
            }
            state.take(said);
        }
        found
    }

    fn call(method: &str) -> Value {
        json!({"id": 1, "method": method, "params": {"sessionId": "s"}})
    }

    fn update(kind: &str, tool: &str) -> Value {
        json!({"method": "session/update", "params": {"sessionId": "s",
            "update": {"sessionUpdate": kind, "toolCallId": tool}}})
    }

    /// A turn with a message and two tool calls that ends like this, and then more.
    fn after(stop: &str, then: &[Value]) -> Vec<String> {
        let mut all = vec![
            call("session/prompt"),
            update("agent_message_chunk", ""),
            update("tool_call", "a"),
            update("tool_call", "b"),
            json!({"id": 1, "result": {"stopReason": stop}}),
        ];
        all.extend_from_slice(then);
        found(&all)
    }

    fn replay(tools: &[&str]) -> Vec<Value> {
        let mut all = vec![call("session/load"), update("user_message_chunk", "")];
        all.push(update("agent_message_chunk", ""));
        all.extend(tools.iter().map(|tool| update("tool_call", tool)));
        all.push(json!({"id": 1, "result": null}));
        all
    }

    #[test]
    fn a_replay_has_the_kinds_and_the_tool_calls_of_the_turn() {
        assert!(after("end_turn", &replay(&["a", "b"])).is_empty());
        let lost = after("end_turn", &replay(&["b"]));
        let text = "expected 2 tool calls in the replay, got 1 without \"a\"";
        assert_eq!(lost, [text]);
        assert_eq!(
            after("end_turn", &replay(&[])),
            ["expected tool_call in the replay, got none"]
        );
        let silent = [call("session/load"), json!({"id": 1, "result": null})];
        assert_eq!(
            after("end_turn", &silent),
            ["expected user_message_chunk in the replay, got none"]
        );
    }

    /// The text does not say that ids stay, nor what of an interrupted turn is kept.
    #[test]
    fn new_ids_and_interrupted_turns_are_tolerated() {
        assert!(after("end_turn", &replay(&["c", "d"])).is_empty());
        assert!(after("cancelled", &replay(&[])).is_empty());
        assert!(found(&replay(&[])).is_empty());
    }

    #[test]
    fn a_resumed_session_repeats_nothing_of_its_conversation() {
        let resume = |kind: &str| {
            let answer = json!({"id": 1, "result": {}});
            [call("session/resume"), update(kind, ""), answer]
        };
        assert!(after("end_turn", &resume("available_commands_update")).is_empty());
        // It may be a greeting.
        assert!(after("end_turn", &resume("agent_message_chunk")).is_empty());
        for kind in ["user_message_chunk", "tool_call"] {
            let found = after("end_turn", &resume(kind));
            let text = "expected no replay before the answer to session/resume, got";
            assert_eq!(found, [format!("{text} {kind}")]);
        }
    }
}
