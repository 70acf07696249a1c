//! Events as updates of version 2.

use acp_sdk::convert::convert_logged;
use acp_sdk::{RpcError, v1, v2};

use crate::event::{Event, EventBody, StateAfter, TurnEvent};

/// Converts an event to the update that clients of version 2 are sent.
///
/// `None` if they are sent nothing: for an event that does not change the state; for a mode, because the session's log has the config options
/// with the new mode too; for an event of a later version of this crate; and for an update that
/// version 2 refuses: a notice without a title, or one of a kind that only version 2 has, without
/// its required members.
///
/// A question that is answered sets the state to running even if another one is open, because the
/// work that asked it goes on.
pub(crate) fn update(event: Event) -> Option<v2::SessionUpdate> {
    match event.body {
        EventBody::Update(update) => of_update(event.number, update),
        EventBody::Turn(event) => of_turn(&event).map(Into::into),
        EventBody::Unknown(_) => None,
    }
}

/// Converts an update.
///
/// The log gives each chunk the id of its message, which version 2 requires. One that has none all
/// the same, from another store, is a message of its own: which chunks belong together is not
/// visible from the middle of a log.
fn of_update(number: u64, mut update: v1::SessionUpdate) -> Option<v2::SessionUpdate> {
    use v1::SessionUpdate as V1;
    match &mut update {
        V1::UserMessageChunk(chunk)
        | V1::AgentMessageChunk(chunk)
        | V1::AgentThoughtChunk(chunk) => {
            let own = || format!("event-{number}").into();
            chunk.message_id.get_or_insert_with(own);
        }
        V1::Notice(notice) if notice.title.is_empty() => return None,
        _ => {}
    }
    convert_logged(update)
}

fn of_turn(event: &TurnEvent) -> Option<v2::StateUpdate> {
    Some(match event.facts().state? {
        StateAfter::Running => v2::RunningStateUpdate::new().into(),
        StateAfter::RequiresAction => v2::RequiresActionStateUpdate::new().into(),
        StateAfter::Idle { stop_reason, error } => {
            let reason = match stop_reason {
                Some(reason) => convert_logged(reason.clone()),
                None => Some(failed(error)),
            };
            v2::IdleStateUpdate::new().with_stop_reason(reason).into()
        }
    })
}

fn failed(message: Option<&str>) -> v2::StopReason {
    let error = message.map(|text| RpcError::new(v2::error_codes::INTERNAL_ERROR, text));
    let mut reason = v2::ErrorStopReason::new();
    reason.error = error;
    v2::StopReason::Error(reason)
}

/// Returns the state of a session, for a client that attaches.
pub(crate) fn state(turn_runs: bool, question_is_open: bool) -> v2::SessionUpdate {
    let state: v2::StateUpdate = match (turn_runs, question_is_open) {
        (false, _) => v2::IdleStateUpdate::new().into(),
        (true, false) => v2::RunningStateUpdate::new().into(),
        (true, true) => v2::RequiresActionStateUpdate::new().into(),
    };
    state.into()
}
