//! Prompt turns as they are seen on the wire, for the rule that nothing of a
//! cancelled turn follows its answer.
//!
//! In version 1 the answer of the prompt ends a turn, in version 2 an idle `state_update`.
//! Updates between turns are legal, and a client may have sent the next prompt
//! already; an update is late only when the session's last turn was answered
//! `cancelled` and none is open. At most [`CAPACITY`] sessions are remembered.

use std::collections::HashMap;

use acp_schema::Content;
use serde_json::Value;

use super::facts::content;

/// How many sessions are remembered at once.
const CAPACITY: usize = 16_384;

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
    /// News of the session after the answer.
    News,
}

#[derive(Debug, Default)]
struct Session {
    open: usize,
    cancelled: bool,
    /// In version 2: a prompt was accepted, or the agent reports that it works.
    working: bool,
}

/// The sessions of a connection.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    sessions: HashMap<String, Session>,
}

impl Turns {
    /// A prompt was sent.
    pub(crate) fn prompt(&mut self, session: &str) {
        if self.sessions.len() >= CAPACITY && !self.sessions.contains_key(session) {
            self.sessions.retain(|_, session| session.open > 0);
            if self.sessions.len() >= CAPACITY {
                return;
            }
        }
        let session = self.sessions.entry(session.to_owned()).or_default();
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
    pub(crate) fn reported(&mut self, session: &str, state: &str, stop: Option<&str>) {
        if let Some(session) = self.sessions.get_mut(session) {
            session.working = state != "idle";
            session.cancelled = state == "idle" && stop == Some("cancelled");
        }
    }

    /// Whether an update of version 2 comes after the end of the cancelled work that it
    /// belongs to. State may come from the background.
    pub(crate) fn comes_late(&self, session: &str, kind: &str) -> bool {
        let over = |session: &Session| session.open == 0 && !session.working && session.cancelled;
        is_output(kind) && self.sessions.get(session).is_some_and(over)
    }

    /// The session is set up anew, so what follows is its replay.
    pub(crate) fn reopened(&mut self, session: &str) {
        self.sessions.remove(session);
    }

    /// Judges an update by when it comes.
    pub(crate) fn update(&self, session: &str, kind: &str) -> Option<Late> {
        let session = self.sessions.get(session)?;
        if session.open > 0 || !session.cancelled {
            return None;
        }
        Some(if is_output(kind) {
            Late::Output
        } else {
            Late::News
        })
    }
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

    #[test]
    fn output_after_a_cancelled_turn_is_late() {
        let turns = cancelled();
        assert_eq!(turns.update("s", "agent_message_chunk"), Some(Late::Output));
        assert_eq!(turns.update("s", "usage_update"), Some(Late::News));
        assert_eq!(turns.update("other", "tool_call"), None);
    }

    #[test]
    fn a_turn_that_ended_by_itself_may_be_followed_by_anything() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.answered("s", Some(&json!({"stopReason": "end_turn"})));
        assert_eq!(turns.update("s", "agent_message_chunk"), None);
    }

    #[test]
    fn the_next_turn_and_a_replay_clear_the_mark() {
        let mut turns = cancelled();
        turns.prompt("s");
        assert_eq!(turns.update("s", "tool_call"), None);
        let mut turns = cancelled();
        turns.reopened("s");
        assert_eq!(turns.update("s", "user_message_chunk"), None);
    }

    #[test]
    fn in_version_2_a_reported_state_ends_the_work_and_begins_it() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.accepted("s");
        assert!(!turns.comes_late("s", "agent_message"));
        turns.reported("s", "idle", Some("cancelled"));
        assert!(turns.comes_late("s", "agent_message"));
        assert!(!turns.comes_late("s", "user_message"));
        turns.reported("s", "running", None);
        assert!(!turns.comes_late("s", "agent_message"));
        turns.reported("s", "idle", Some("end_turn"));
        assert!(!turns.comes_late("s", "agent_message"));
    }

    #[test]
    fn a_second_open_prompt_owns_what_follows_the_first_answer() {
        let mut turns = Turns::default();
        turns.prompt("s");
        turns.prompt("s");
        turns.answered("s", Some(&json!({"stopReason": "cancelled"})));
        assert_eq!(turns.update("s", "agent_message_chunk"), None);
    }
}
