//! Ending a turn whose process was killed.

use std::collections::BTreeSet;

use acp_sdk::HandlerResult;
use acp_sdk::v1::{SessionUpdate, ToolCallId, ToolCallStatus, ToolCallUpdate};

use crate::Session;
use crate::connection::store_failed;
use crate::event::{EventBody, QuestionId, TurnEvent, TurnId};
use crate::session::Received;
use crate::store::{RecordChange, SessionRecord, StoreError};
use crate::turn::is_final;

/// What a killed turn left open.
#[derive(Default)]
struct LeftOpen {
    calls: Vec<ToolCallId>,
    permissions: BTreeSet<QuestionId>,
    elicitations: BTreeSet<QuestionId>,
}

impl LeftOpen {
    fn note(&mut self, body: EventBody) {
        match body {
            EventBody::Update(SessionUpdate::ToolCall(call)) if !is_final(call.status.as_ref()) => {
                self.calls.push(call.tool_call_id);
            }
            EventBody::Update(SessionUpdate::ToolCallUpdate(update))
                if is_final(update.status.as_ref()) =>
            {
                self.calls.retain(|id| *id != update.tool_call_id);
            }
            EventBody::Turn(TurnEvent::PermissionAsked { question, .. }) => {
                self.permissions.insert(question);
            }
            EventBody::Turn(TurnEvent::PermissionAnswered { question, .. }) => {
                self.permissions.remove(&question);
            }
            EventBody::Turn(TurnEvent::ElicitationAsked { question, .. }) => {
                self.elicitations.insert(question);
            }
            EventBody::Turn(TurnEvent::ElicitationAnswered { question, .. }) => {
                self.elicitations.remove(&question);
            }
            _ => {}
        }
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
    let epoch = session.log().epoch();
    let appended = session.log().append_now(Some(epoch), |appender| {
        for id in left.calls {
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
