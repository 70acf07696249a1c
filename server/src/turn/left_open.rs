//! What a turn left open that could not end by itself.

use std::collections::BTreeSet;

use acp_sdk::conversation::{Conversation, Item, is_final};
use acp_sdk::v1::{SessionUpdate, ToolCall, ToolCallId, ToolCallStatus, ToolCallUpdate};

use super::core::push;
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
        for id in self.open_calls() {
            let update = ToolCallUpdate::new(id).with_status(ToolCallStatus::Failed);
            push(appender, &SessionUpdate::ToolCallUpdate(update))?;
        }
        for question in self.permissions {
            let outcome = None;
            push(
                appender,
                &TurnEvent::PermissionAnswered {
                    question,
                    outcome,
                    by: None,
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
            EventBody::Update(SessionUpdate::ToolCall(call)) => {
                let status = call.status;
                let call = ToolCall::new(call.tool_call_id, "").with_status(status);
                let _ = self.calls.apply(&call.into());
            }
            EventBody::Update(SessionUpdate::ToolCallUpdate(update)) => {
                let status = update.status;
                let update = ToolCallUpdate::new(update.tool_call_id).with_status(status);
                let _ = self.calls.apply(&update.into());
            }
            // Other updates open nothing.
            EventBody::Update(_) => {}
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
            // The record of the session has the running turn.
            TurnEvent::TurnStarted { .. } | TurnEvent::TurnEnded { .. } => {}
        }
    }

    fn open_calls(&self) -> Vec<ToolCallId> {
        let calls = self.calls.items().filter_map(Item::as_tool_call);
        let open = calls.filter(|call| !is_final(call.status.as_ref()));
        open.map(|call| call.tool_call_id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
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
        assert_eq!(left.open_calls(), ["open", "unknown"]);
    }
}
