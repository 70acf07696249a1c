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

/// An update of a child session, or of its parent about it.
pub(crate) struct OfChild {
    /// The child session; `None` if the update is of its parent.
    pub(crate) child: Option<v2::SessionId>,
    pub(crate) update: v2::SessionUpdate,
}

/// Converts an event about a child session to updates. Those of its parent come first, because a
/// child session must be announced before anything names it.
///
/// In a replay (`is_loaded`) there are no states besides the last one; the history of a child that has
/// ended ends with its marker.
pub(crate) fn of_child(event: &TurnEvent, is_loaded: bool) -> Vec<OfChild> {
    match event {
        TurnEvent::ChildStarted { child, title } => {
            let state = (!is_loaded).then(|| v2::RunningStateUpdate::new().into());
            announced(child, Some(title), state)
        }
        TurnEvent::ChildUpdate { child, update } => {
            let update = of_update(0, update.clone()).into_iter();
            let of_child = |update| OfChild {
                child: Some(child.as_str().into()),
                update,
            };
            update.map(of_child).collect()
        }
        TurnEvent::ChildEnded { child, stop_reason } => {
            let reason: Option<v2::StopReason> = convert_logged(stop_reason.clone());
            let idle = v2::IdleStateUpdate::new().with_stop_reason(reason);
            let mut updates = announced(child, None, Some(idle.into()));
            if is_loaded {
                updates.insert(0, replayed(child));
            }
            updates
        }
        TurnEvent::PermissionAsked {
            child: Some(child), ..
        } => {
            let state = v2::RequiresActionStateUpdate::new().into();
            announced(child, None, Some(state))
        }
        TurnEvent::PermissionAnswered {
            child: Some(child), ..
        } => announced(child, None, Some(v2::RunningStateUpdate::new().into())),
        TurnEvent::TurnStarted { .. }
        | TurnEvent::TurnEnded { .. }
        | TurnEvent::PermissionAsked { .. }
        | TurnEvent::PermissionAnswered { .. }
        | TurnEvent::ElicitationAsked { .. }
        | TurnEvent::ElicitationAnswered { .. } => Vec::new(),
    }
}

/// Returns what a replay ends with of a child session that is still open.
pub(crate) fn open_child(child: &v1::SessionId, asks: bool) -> Vec<OfChild> {
    let state = match asks {
        true => v2::RequiresActionStateUpdate::new().into(),
        false => v2::RunningStateUpdate::new().into(),
    };
    let mut updates = announced(child, None, Some(state));
    updates.insert(0, replayed(child));
    updates
}

/// Returns the update of the parent, and the state of the child session if it is known.
pub(crate) fn announced(
    child: &v1::SessionId,
    title: Option<&str>,
    state: Option<v2::StateUpdate>,
) -> Vec<OfChild> {
    let id = v2::SessionId::from(child.as_str());
    let mut about = v2::SubagentUpdate::new(id.clone());
    if let Some(title) = title {
        about = about.with_title(title.to_owned());
    }
    if let Some(state) = state.clone() {
        about = about.with_state(state);
    }
    let mut updates = vec![OfChild {
        child: None,
        update: about.into(),
    }];
    updates.extend(state.map(|state| OfChild {
        child: Some(id),
        update: state.into(),
    }));
    updates
}

fn replayed(child: &v1::SessionId) -> OfChild {
    OfChild {
        child: Some(child.as_str().into()),
        update: v2::ReplayComplete::new().into(),
    }
}
