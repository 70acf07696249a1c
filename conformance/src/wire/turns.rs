//! Prompt turns as they are seen on the wire, for the rule that nothing of a
//! cancelled turn follows its answer.
//!
//! In version 1 the answer of the prompt ends a turn, in version 2 an idle `state_update`.
//! Updates between turns are legal, and a client may have sent the next prompt
//! already; an update is late only when the session's last turn was answered
//! `cancelled` and none is open. A tool call of an earlier turn may go on; in version 2
//! work in the background goes on, so an update must also name a message or tool call of the
//! cancelled work. At most [`CAPACITY`] sessions and [`IDS`] messages and calls of them are remembered.

use std::collections::{HashMap, HashSet};

use acp_schema::Content;
use serde_json::Value;

use super::facts::content;

/// How many sessions are remembered at once.
const CAPACITY: usize = 16_384;

/// How many messages and tool calls are remembered at once; others are never late.
const IDS: usize = 65_536;

/// Whether an update of this kind carries what the agent produces in a turn. The rest, such as
/// commands or usage, describes the session and may come at any time.
#[must_use]
pub fn is_output(kind: &str) -> bool {
    content(kind) == Some(Content::Output)
}

/// Whether an update of this kind is part of the conversation: output, or words of the user.
#[must_use]
pub(crate) fn is_conversation(kind: &str) -> bool {
    matches!(content(kind), Some(Content::Input | Content::Output))
}

/// How an update stands to a cancelled turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    /// Output of the turn after its answer.
    Output,
    /// News of the session, or of a tool call of an earlier turn, after the answer.
    News,
}

#[derive(Debug, Default)]
struct Session {
    open: usize,
    cancelled: bool,
    /// In version 2: a prompt was accepted, or the agent reports that it works.
    working: bool,
    /// The tool calls that the latest turn or work has begun; in version 2 those that it has shown, without
    /// those that a state lists as going on in the background, and its messages.
    shown: [HashSet<String>; 3],
}

/// Tool calls, thoughts and messages each have ids of their own: their place in [`Session::shown`].
const CALLS: usize = 0;

fn class(kind: &str) -> usize {
    match kind {
        kind if kind.starts_with("tool_call") => CALLS,
        kind if kind.starts_with("agent_thought") => 1,
        _ => 2,
    }
}

impl Session {
    /// In version 2, whether its latest work was cancelled and has ended.
    fn is_cancelled(&self) -> bool {
        self.open == 0 && !self.working && self.cancelled
    }

    /// How many messages and tool calls are remembered.
    fn ids(&self) -> usize {
        self.shown.iter().map(HashSet::len).sum()
    }

    /// Other work begins. Yields how many messages and tool calls are forgotten.
    fn forget(&mut self) -> usize {
        let ids = self.ids();
        self.shown.iter_mut().for_each(HashSet::clear);
        ids
    }
}

/// The sessions of a connection.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: HashMap<String, Session>,
    /// How many messages and tool calls the sessions hold.
    ids: usize,
}

impl Turns {
    /// A prompt was sent.
    pub(crate) fn prompt(&mut self, session: &str) {
        if self.sessions.len() >= CAPACITY && !self.sessions.contains_key(session) {
            let ids = &mut self.ids;
            self.sessions.retain(|_, session| {
                let is_kept = session.open > 0;
                *ids -= if is_kept { 0 } else { session.ids() };
                is_kept
            });
            if self.sessions.len() >= CAPACITY {
                return;
            }
        }
        let session = self.sessions.entry(session.to_owned()).or_default();
        if session.open == 0 && !session.working {
            self.ids -= session.forget();
        }
        session.open += 1;
        session.cancelled = false;
    }

    /// A prompt was answered; `result` is `None` for an error.
    pub(crate) fn answered(&mut self, session: &str, result: Option<&Value>) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.open = session.open.saturating_sub(1);
            let reason = result.and_then(|result| result.get("stopReason"));
            session.cancelled = reason.and_then(Value::as_str) == Some("cancelled");
        }
    }

    /// In version 2, a prompt was accepted.
    pub(crate) fn accepted(&mut self, session: &str) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.open = session.open.saturating_sub(1);
            session.working = true;
        }
    }

    /// In version 2, the agent reports what it does, and why it stopped.
    pub(crate) fn reported(&mut self, session: &str, update: &Value) {
        let Some(session) = self.sessions.get_mut(session) else {
            return;
        };
        let text = |name: &str| update.get(name).and_then(Value::as_str);
        let is_idle = text("state") == Some("idle");
        if !is_idle && !session.working {
            // Other work begins.
            self.ids -= session.forget();
        }
        session.working = !is_idle;
        session.cancelled = is_idle && text("stopReason") == Some("cancelled");
        let listed = update.get("background").and_then(Value::as_array);
        for call in listed.into_iter().flatten().filter_map(id_of) {
            self.ids -= usize::from(session.shown[CALLS].remove(call));
        }
    }

    /// In version 2, takes an update in. Returns the message or tool call of cancelled work that it is
    /// about, if the end of this work was reported before.
    pub(crate) fn late<'a>(
        &mut self,
        session: &str,
        kind: &str,
        update: &'a Value,
    ) -> Option<&'a str> {
        let session = self.sessions.get_mut(session)?;
        let id = id_of(update).filter(|_| is_output(kind))?;
        let is_cancelled = session.is_cancelled();
        let shown = session.shown.get_mut(class(kind))?;
        if is_cancelled {
            return shown.contains(id).then_some(id);
        }
        if (session.working || session.open > 0) && self.ids < IDS && !shown.contains(id) {
            shown.insert(id.to_owned());
            self.ids += 1;
        }
        None
    }

    /// The session is set up anew, so what follows is its replay.
    pub(crate) fn reopened(&mut self, session: &str) {
        let known = self.sessions.remove(session);
        self.ids -= known.map_or(0, |session| session.ids());
    }

    /// In version 1, judges an update by when it comes.
    pub(crate) fn update(&mut self, session: &str, kind: &str, update: &Value) -> Option<Late> {
        let session = self.sessions.get_mut(session)?;
        if session.open > 0 {
            let call = id_of(update).filter(|_| kind == "tool_call" && self.ids < IDS);
            let is_new = call.is_some_and(|call| session.shown[CALLS].insert(call.to_owned()));
            self.ids += usize::from(is_new);
            return None;
        }
        if !session.cancelled {
            return None;
        }
        let is_earlier = kind == "tool_call_update"
            && !id_of(update).is_some_and(|call| session.shown[CALLS].contains(call));
        Some(match is_output(kind) && !is_earlier {
            true => Late::Output,
            false => Late::News,
        })
    }
}

/// The id of the message or tool call that a value is about.
fn id_of(value: &Value) -> Option<&str> {
    let id = value.get("messageId").or_else(|| value.get("toolCallId"));
    id?.as_str()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cancelled() -> Turns {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.answered("s", Some(&json!({"stopReason": "cancelled"})));
        turns
    }

    #[test]
    fn the_documents_say_what_a_turn_produces() {
        for kind in ["agent_message_chunk", "agent_thought", "tool_call", "plan"] {
            assert!(is_output(kind) && is_conversation(kind), "{kind}");
        }
        for kind in ["user_message_chunk", "user_message"] {
            assert!(!is_output(kind) && is_conversation(kind), "{kind}");
        }
        for kind in [
            "usage_update",
            "plan_update",
            "state_update",
            "_example/kind",
        ] {
            assert!(!is_output(kind) && !is_conversation(kind), "{kind}");
        }
    }

    /// How an update of version 1 about the tool call `id`, or about none, stands to a cancelled turn.
    fn heard(turns: &mut Turns, session: &str, kind: &str, id: Option<&str>) -> Option<Late> {
        turns.update(session, kind, &json!({"toolCallId": id}))
    }

    #[test]
    fn output_after_a_cancelled_turn_is_late() {
        let mut turns = cancelled();
        let mut found = |session: &str, kind: &str| heard(&mut turns, session, kind, None);
        assert_eq!(found("s", "agent_message_chunk"), Some(Late::Output));
        assert_eq!(found("s", "usage_update"), Some(Late::News));
        assert_eq!(found("other", "tool_call"), None);
    }

    /// A command may run in the background from one turn to the next.
    #[test]
    fn a_tool_call_of_an_earlier_turn_is_not_late() {
        let mut turns = Turns::default();
        turns.prompt("s");
        assert_eq!(heard(&mut turns, "s", "tool_call", Some("earlier")), None);
        turns.answered("s", Some(&json!({"stopReason": "end_turn"})));
        turns.prompt("s");
        assert_eq!(heard(&mut turns, "s", "tool_call", Some("own")), None);
        let both = |turns: &mut Turns| {
            ["earlier", "own"].map(|id| heard(turns, "s", "tool_call_update", Some(id)))
        };
        assert_eq!(both(&mut turns), [None, None]);
        turns.answered("s", Some(&json!({"stopReason": "cancelled"})));
        assert_eq!(both(&mut turns), [Some(Late::News), Some(Late::Output)]);
        let begun = heard(&mut turns, "s", "tool_call", Some("new"));
        assert_eq!(begun, Some(Late::Output));
    }

    #[test]
    fn a_turn_that_ended_by_itself_may_be_followed_by_anything() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.answered("s", Some(&json!({"stopReason": "end_turn"})));
        let late = heard(&mut turns, "s", "agent_message_chunk", None);
        assert_eq!(late, None);
    }

    #[test]
    fn the_next_turn_and_a_replay_clear_the_mark() {
        let mut turns = cancelled();
        turns.prompt("s");
        assert_eq!(heard(&mut turns, "s", "tool_call", None), None);
        let mut turns = cancelled();
        turns.reopened("s");
        assert_eq!(heard(&mut turns, "s", "user_message_chunk", None), None);
    }

    /// Whether a message or call with this id is late in version 2.
    fn is_late(turns: &mut Turns, kind: &str, update: Value) -> bool {
        turns.late("s", kind, &update).is_some()
    }

    #[test]
    fn in_version_2_a_reported_state_ends_the_work_and_begins_it() {
        let mut turns = Turns::default();
        let message =
            |turns: &mut Turns| is_late(turns, "agent_message", json!({"messageId": "m"}));
        turns.prompt("s");
        turns.accepted("s");
        assert!(!message(&mut turns));
        let cancelled = json!({"state": "idle", "stopReason": "cancelled"});
        turns.reported("s", &cancelled);
        assert!(message(&mut turns));
        assert!(!is_late(
            &mut turns,
            "user_message",
            json!({"messageId": "m"})
        ));
        turns.reported("s", &json!({"state": "running"}));
        assert!(!message(&mut turns));
        turns.reported("s", &json!({"state": "idle", "stopReason": "end_turn"}));
        assert!(!message(&mut turns));
    }

    #[test]
    fn in_version_2_messages_of_different_types_may_have_one_id() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.accepted("s");
        let says = |turns: &mut Turns, kind: &str| is_late(turns, kind, json!({"messageId": "1"}));
        assert!(!says(&mut turns, "agent_thought_chunk"));
        turns.reported("s", &json!({"state": "idle", "stopReason": "cancelled"}));
        assert!(!says(&mut turns, "agent_message_chunk"));
        assert!(says(&mut turns, "agent_thought"));
    }

    #[test]
    fn in_version_2_only_what_the_cancelled_work_showed_is_late() {
        let mut turns = Turns::default();
        let call = |turns: &mut Turns, id: &str| {
            is_late(turns, "tool_call_update", json!({"toolCallId": id}))
        };
        turns.prompt("s");
        turns.accepted("s");
        for id in ["front", "back"] {
            assert!(!call(&mut turns, id));
        }
        let listed = json!([{"type": "tool_call", "toolCallId": "back"}]);
        turns.reported(
            "s",
            &json!({"state": "idle", "stopReason": "cancelled", "background": listed}),
        );
        assert!(call(&mut turns, "front"));
        assert!(!call(&mut turns, "back") && !call(&mut turns, "new"));
        // The list is the latest one, and work of its own has calls of its own.
        turns.reported("s", &json!({"state": "running"}));
        assert!(!call(&mut turns, "next"));
        turns.reported("s", &json!({"state": "idle", "stopReason": "cancelled"}));
        assert!(call(&mut turns, "next") && !call(&mut turns, "front"));
    }

    #[test]
    fn a_second_open_prompt_owns_what_follows_the_first_answer() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.prompt("s");
        turns.answered("s", Some(&json!({"stopReason": "cancelled"})));
        let late = heard(&mut turns, "s", "agent_message_chunk", None);
        assert_eq!(late, None);
    }
}
