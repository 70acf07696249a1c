//! What a turn left open that could not end by itself.

use std::collections::{BTreeMap, BTreeSet};

use acp_sdk::conversation::{Conversation, Item, is_final};
use acp_sdk::v1::{SessionId, SessionUpdate, StopReason, ToolCall, ToolCallId, ToolCallUpdate};

use super::core::{failed, push};
use crate::event::{EventBody, QuestionId, TurnEvent, TurnId};
use crate::log::Appender;
use crate::session::Received;
use crate::{Result, Session};

/// Tool calls and questions of a turn without an end, as the log has them: its process was killed, or
/// the store has failed.
#[derive(Default)]
pub(crate) struct LeftOpen {
    /// Its tool calls, without their content.
    calls: Conversation,
    /// Its child sessions, with theirs.
    children: BTreeMap<SessionId, Conversation>,
    permissions: BTreeSet<QuestionId>,
    elicitations: BTreeSet<QuestionId>,
}

impl LeftOpen {
    /// Returns what is open in the committed events of a turn.
    ///
    /// # Errors
    ///
    /// When the events cannot be read.
    pub(crate) async fn of(session: &Session, turn: TurnId) -> Result<Self> {
        let mut left = Self::default();
        let mut events = session.subscribe(turn.0.saturating_sub(1));
        while let Some(received) = events.next_now().await? {
            if let Received::Event(event) = received {
                left.note(event.body);
            }
        }
        Ok(left)
    }

    /// Appends the end of what is open.
    pub(super) fn close(self, appender: &mut Appender<'_>) -> Result<()> {
        for (child, calls) in self.children {
            for id in open_calls(&calls) {
                let (child, update) = (child.clone(), failed(&id));
                push(appender, &TurnEvent::ChildUpdate { child, update })?;
            }
            let stop_reason = StopReason::Cancelled;
            push(appender, &TurnEvent::ChildEnded { child, stop_reason })?;
        }
        for id in open_calls(&self.calls) {
            push(appender, &failed(&id))?;
        }
        for question in self.permissions {
            let outcome = None;
            push(
                appender,
                &TurnEvent::PermissionAnswered {
                    question,
                    outcome,
                    by: None,
                    child: None,
                },
            )?;
        }
        for question in self.elicitations {
            let action = None;
            push(
                appender,
                &TurnEvent::ElicitationAnswered { question, action },
            )?;
        }
        Ok(())
    }

    /// Appends the end of what is open, and of the turn. Returns the number of the last event.
    pub(crate) fn end(
        self,
        appender: &mut Appender<'_>,
        turn: TurnId,
        reason: &str,
    ) -> Result<u64> {
        self.close(appender)?;
        let number = appender.next_number();
        let ended = TurnEvent::TurnEnded {
            turn,
            stop_reason: None,
            error: Some(reason.to_owned()),
            usage: None,
        };
        push(appender, &ended)?;
        Ok(number)
    }

    fn note(&mut self, body: EventBody) {
        match body {
            EventBody::Update(update) => note_call(&mut self.calls, update),
            EventBody::Turn(event) => self.note_turn(&event),
            // What an event of a later version opens, that version closes.
            EventBody::Unknown(_) => {}
        }
    }

    /// Decides for every event of our own: one that opens something must be ended by [`close`](Self::close).
    fn note_turn(&mut self, event: &TurnEvent) {
        match event {
            TurnEvent::PermissionAsked { question, .. } => {
                self.permissions.insert(*question);
            }
            TurnEvent::PermissionAnswered { question, .. } => {
                self.permissions.remove(question);
            }
            TurnEvent::ElicitationAsked { question, .. } => {
                self.elicitations.insert(*question);
            }
            TurnEvent::ElicitationAnswered { question, .. } => {
                self.elicitations.remove(question);
            }
            TurnEvent::ChildStarted { child, .. } => {
                self.children.insert(child.clone(), Conversation::default());
            }
            TurnEvent::ChildUpdate { child, update } => {
                if let Some(calls) = self.children.get_mut(child) {
                    note_call(calls, update.clone());
                }
            }
            TurnEvent::ChildEnded { child, .. } => {
                self.children.remove(child);
            }
            // The record of the session has the running turn.
            TurnEvent::TurnStarted { .. } | TurnEvent::TurnEnded { .. } => {}
        }
    }
}

/// Notes what an update says of a tool call, without its content.
fn note_call(calls: &mut Conversation, update: SessionUpdate) {
    let update = match update {
        SessionUpdate::ToolCall(call) => {
            let status = call.status;
            ToolCall::new(call.tool_call_id, "")
                .with_status(status)
                .into()
        }
        SessionUpdate::ToolCallUpdate(update) => {
            let status = update.status;
            ToolCallUpdate::new(update.tool_call_id)
                .with_status(status)
                .into()
        }
        // Other updates open nothing.
        _ => return,
    };
    let _ = calls.apply(&update);
}

fn open_calls(calls: &Conversation) -> Vec<ToolCallId> {
    let calls = calls.items().filter_map(Item::as_tool_call);
    let open = calls.filter(|call| !is_final(call.status.as_ref()));
    open.map(|call| call.tool_call_id.clone()).collect()
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::ToolCallStatus;

    use super::*;

    #[test]
    fn calls_without_an_end_are_open() {
        let announced = |id: &str| SessionUpdate::ToolCall(ToolCall::new(id, "Run"));
        let updated = |id: &str, status| {
            SessionUpdate::ToolCallUpdate(ToolCallUpdate::new(id).with_status(status))
        };
        let mut left = LeftOpen::default();
        for update in [
            announced("done"),
            announced("open"),
            updated("done", ToolCallStatus::Completed),
            updated("open", ToolCallStatus::InProgress),
            // An agent that never announced it.
            updated("unknown", ToolCallStatus::InProgress),
        ] {
            left.note(EventBody::Update(update));
        }
        assert_eq!(open_calls(&left.calls), ["open", "unknown"]);
    }

    #[test]
    fn children_without_an_end_are_open_with_their_calls() {
        let started = |child: &str| TurnEvent::ChildStarted {
            child: child.into(),
            title: "Find it".to_owned(),
        };
        let call = |child: &str, update: SessionUpdate| TurnEvent::ChildUpdate {
            child: child.into(),
            update,
        };
        let mut left = LeftOpen::default();
        for event in [
            started("done"),
            started("open"),
            call("open", ToolCall::new("open", "Run").into()),
            call("open", ToolCall::new("done", "Run").into()),
            call(
                "open",
                ToolCallUpdate::new("done")
                    .with_status(ToolCallStatus::Completed)
                    .into(),
            ),
            call("done", ToolCall::new("of done", "Run").into()),
            TurnEvent::ChildEnded {
                child: "done".into(),
                stop_reason: StopReason::EndTurn,
            },
        ] {
            left.note(EventBody::Turn(event));
        }
        let children: Vec<_> = left.children.iter().collect();
        let [(child, calls)] = children[..] else {
            panic!("{children:?}");
        };
        assert_eq!(
            (child.as_str(), open_calls(calls)),
            ("open", vec!["open".into()])
        );
    }
}
