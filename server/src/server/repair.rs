//! Ending a turn whose process was killed.

use acp_sdk::HandlerResult;

use crate::Session;
use crate::connection::store_failed;
use crate::event::TurnId;
use crate::store::{RecordChange, SessionRecord};
use crate::turn::LeftOpen;

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
    let turn = TurnId(turn);
    let log = session.log();
    let epoch = log.epoch();
    let left = LeftOpen::of(session, turn).await?;
    let appended = log.append_now(Some(epoch), |appender| {
        left.end(
            appender,
            turn,
            "the process of the agent ended during the turn",
        )?;
        appender.change(RecordChange {
            running_turn: Some(None),
            ..RecordChange::default()
        });
        Ok::<_, crate::Error>(())
    });
    appended?;
    let flushed = log.flush(epoch).await;
    flushed.map_err(|error| store_failed(session.id(), &error))
}
