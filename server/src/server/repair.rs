//! Ending a turn whose process was killed.

use std::collections::BTreeSet;

use acp_sdk::HandlerResult;
use acp_sdk::conversation::{Conversation, Item};
use acp_sdk::v1::{SessionUpdate, ToolCall, ToolCallId, ToolCallStatus, ToolCallUpdate};

use crate::Session;
use crate::connection::store_failed;
use crate::event::{EventBody, QuestionId, TurnEvent, TurnId};
use crate::session::Received;
use crate::store::{RecordChange, SessionRecord, StoreError};
use crate::turn::is_final;

/// What a killed turn left open.
#[derive(Default)]
struct LeftOpen {
    /// Its tool calls, without their content.
    calls: Conversation,
    permissions: BTreeSet<QuestionId>,
    elicitations: BTreeSet<QuestionId>,
}

impl LeftOpen {
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

    /// Decides for every event of our own: one that opens something must be ended by [`repair`].
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

/// Ends the turn that ran when the process of the session was killed, so that its tool calls and
/// questions do not stay open for ever.
///
/// # Errors
///
/// When the store fails.
pub(super) async fn repair(session: &Session, record: &SessionRecord) -> HandlerResult<()> {
    let Some(turn) = record.running_turn else {
        return Ok(());
    };
    let mut left = LeftOpen::default();
    let mut events = session.subscribe(turn.saturating_sub(1));
    while let Some(received) = events.next_now().await? {
        if let Received::Event(event) = received {
            left.note(event.body);
        }
    }
    let calls = left.open_calls();
    let epoch = session.log().epoch();
    let appended = session.log().append_now(Some(epoch), |appender| {
        for id in calls {
            let update = ToolCallUpdate::new(id).with_status(ToolCallStatus::Failed);
            push(appender, &SessionUpdate::ToolCallUpdate(update))?;
        }
        for question in left.permissions {
            let outcome = None;
            push(
                appender,
                &TurnEvent::PermissionAnswered { question, outcome },
            )?;
        }
        for question in left.elicitations {
            let action = None;
            push(
                appender,
                &TurnEvent::ElicitationAnswered { question, action },
            )?;
        }
        let ended = TurnEvent::TurnEnded {
            turn: TurnId(turn),
            stop_reason: None,
            error: Some("the process of the agent ended during the turn".to_owned()),
            usage: None,
        };
        push(appender, &ended)?;
        appender.change(RecordChange {
            running_turn: Some(None),
            ..RecordChange::default()
        });
        Ok::<_, StoreError>(())
    });
    let flushed = match appended {
        Ok(()) => session.log().flush(epoch).await,
        Err(error) => Err(error),
    };
    flushed.map_err(|error| store_failed(session.id(), &error))
}

fn push<T: serde::Serialize>(
    appender: &mut crate::log::Appender<'_>,
    event: &T,
) -> Result<(), StoreError> {
    use crate::store::StoreErrorKind::Corrupt;
    let pushed = appender.push(event);
    pushed.map_err(|error| StoreError::new(Corrupt, error.to_string()))?;
    Ok(())
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
