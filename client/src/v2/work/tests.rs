use serde_json::{Value, json};

use super::*;

fn update(value: Value) -> v2::SessionUpdate {
    serde_json::from_value(value).unwrap()
}

/// Plays the steps of a session. Returns the index of the step that ends the prompt, and the reason.
///
/// - `prompt`: this client sends its prompt. `ok` accepts it as the message `mine`, `ok ?` without a
///   message id, and `no` rejects it.
/// - `lost`: the connection is replaced. The conversation and its state follow, then `ok` for the prompt that
///   was sent again.
/// - `mine` and `other`: user messages with this id.
/// - `says`: a chunk of an agent message.
/// - Others: a state of the session, and its stop reason.
fn played(steps: &str) -> Option<(usize, String)> {
    let mut work = Work::default();
    for (index, step) in steps.split(", ").enumerate() {
        let end = match step.split_once(' ').unwrap_or((step, "")) {
            ("prompt", _) => {
                work.begin();
                None
            }
            ("ok", "") => work.accepted(Some("mine")),
            ("ok", _) => work.accepted(None),
            ("no", _) => {
                work.refused();
                None
            }
            ("lost", _) => {
                assert!(!work.lost());
                None
            }
            ("says", _) => work.update(&update(json!({"sessionUpdate": "agent_message_chunk",
                "messageId": "a", "content": {"type": "text", "text": "a"}}))),
            (id @ ("mine" | "other"), _) => work.update(&update(
                json!({"sessionUpdate": "user_message", "messageId": id, "content": []}),
            )),
            (state, "") => work.update(&update(
                json!({"sessionUpdate": "state_update", "state": state}),
            )),
            (state, reason) => work.update(&update(json!({"sessionUpdate": "state_update",
                "state": state, "stopReason": reason}))),
        };
        if let Some(end) = end {
            let stop = end
                .stop
                .map_or_else(|error| error.message, |stop| stop.as_str().into());
            return Some((index, stop));
        }
    }
    None
}

#[track_caller]
fn ends(steps: &str, index: usize, reason: &str) {
    assert_eq!(played(steps), Some((index, reason.to_owned())), "{steps}");
}

#[test]
fn work_ends_when_the_session_becomes_idle() {
    ends(
        "prompt, ok, mine, running, says, idle end_turn",
        5,
        "end_turn",
    );
    ends(
        "prompt, ok, running, requires_action, running, idle refusal",
        5,
        "refusal",
    );
    ends("prompt, ok, requires_action, idle _x", 3, "_x");
    ends("prompt, ok, running, idle", 3, "end_turn");
    ends("prompt, ok, _dreaming, idle", 3, "end_turn");
    ends("prompt, ok, running, idle error", 3, "the work has failed");
}

#[test]
fn the_response_may_come_last() {
    ends(
        "prompt, mine, running, says, idle end_turn, ok",
        5,
        "end_turn",
    );
    ends("prompt, running, idle cancelled, ok", 3, "cancelled");
    assert_eq!(played("prompt, running, idle end_turn, no"), None);
}

#[test]
fn a_response_without_a_message_id_accepts_any_message() {
    ends(
        "running, prompt, idle refusal, mine, running, ok ?, idle end_turn",
        6,
        "end_turn",
    );
    ends("prompt, ok ?, other, running, idle", 4, "end_turn");
}

#[test]
fn a_repeated_idle_is_no_end() {
    let first = "idle, ok, running, idle end_turn, ";
    let none = [
        "prompt, ok, idle end_turn, idle end_turn",
        "prompt, idle end_turn, ok",
    ];
    for steps in none {
        assert_eq!(played(&[first, steps].concat()), None, "{steps}");
    }
    let again = |steps: &str, index, reason| ends(&[first, steps].concat(), index, reason);
    again(
        "prompt, ok, idle end_turn, running, idle end_turn",
        8,
        "end_turn",
    );
    // Agents that never report `running`.
    again("prompt, ok, says, idle end_turn", 7, "end_turn");
    again("prompt, ok, mine, idle end_turn", 7, "end_turn");
    again("prompt, ok, idle cancelled", 6, "cancelled");
    ends("prompt, ok, idle end_turn", 2, "end_turn");
}

#[test]
fn the_end_of_other_work_is_no_end() {
    ends(
        "running, prompt, ok, idle end_turn, mine, running, idle refusal",
        6,
        "refusal",
    );
    ends(
        "running, prompt, idle end_turn, mine, running, ok, idle refusal",
        6,
        "refusal",
    );
    ends("running, prompt, ok, mine, idle end_turn", 4, "end_turn");
    let others = "prompt, other, running, says, idle end_turn, mine, ok";
    assert_eq!(played(others), None);
    let others = [others, ", running, idle refusal"].concat();
    ends(&others, 8, "refusal");
    ends(
        "prompt, ok, other, running, idle, mine, running, idle refusal",
        7,
        "refusal",
    );
}

#[test]
fn work_may_have_ended_before_its_prompt_was_sent_again() {
    ends("prompt, lost, other, mine, says, idle, ok", 6, "end_turn");
    ends(
        "prompt, running, lost, mine, idle refusal, ok",
        5,
        "refusal",
    );
    // It runs, or has not begun.
    ends("prompt, lost, mine, running, ok, idle", 5, "end_turn");
    ends(
        "prompt, lost, other, idle, ok, mine, running, idle",
        7,
        "end_turn",
    );
    ends("prompt, lost, idle, mine, ok, running, idle", 6, "end_turn");
    // Without a loss, the state is that of earlier work.
    assert_eq!(played("prompt, mine, idle, ok"), None);
}

#[test]
fn only_accepted_work_is_lost() {
    let mut work = Work::default();
    assert!(!work.lost());
    work.begin();
    assert!(!work.lost());
    assert!(work.accepted(Some("mine")).is_none());
    assert!(work.lost());
    assert!(!work.lost());
}

#[test]
fn events_before_the_response_are_bounded() {
    let mut work = Work::default();
    work.begin();
    for number in 0..10 * MOST_MARKS {
        work.update(&update(json!({"sessionUpdate": "user_message",
            "messageId": number.to_string(), "content": []})));
    }
    assert_eq!(
        work.prompt.as_ref().map(|prompt| prompt.waiting.len()),
        Some(MOST_MARKS)
    );
}
