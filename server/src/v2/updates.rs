//! Events as updates of version 2.

use acp_sdk::json::UnknownVariant;
use acp_sdk::{Json, RpcError, v1, v2};

use super::{content, map_patch, options, patch, reread, tool_calls};
use crate::event::{Event, EventBody, TurnEvent};

/// The id of a session's plan. Version 1 has one plan per session.
const PLAN: &str = "plan";

/// What the encoder of one subscriber remembers. It saves work and changes no result: an update
/// depends on its event alone, so a client can resume anywhere.
#[derive(Debug, Default)]
pub(crate) struct EncoderState {
    /// The message id of the last chunk: most chunks continue a message.
    last: Option<(v1::MessageId, v2::MessageId)>,
}

impl EncoderState {
    /// Returns the id of a chunk's message, which version 2 requires.
    ///
    /// The log gives each chunk an id. One that has none all the same, from another store, is a
    /// message of its own: which chunks belong together is not visible from the middle of a log.
    fn message_id(&mut self, number: u64, chunk: &v1::ContentChunk) -> v2::MessageId {
        let Some(id) = &chunk.message_id else {
            return format!("event-{number}").into();
        };
        match &self.last {
            Some((last, converted)) if last == id => converted.clone(),
            _ => {
                let converted = v2::MessageId::from(id.as_str());
                self.last = Some((id.clone(), converted.clone()));
                converted
            }
        }
    }
}

/// Converts an event to the update that clients of version 2 are sent.
///
/// `None` if they are sent nothing: for a mode, because the session's log has the config options
/// with the new mode too; for an event of a later version of this crate; and for an update that
/// version 2 refuses: a notice without a title, or one of a kind that only version 2 has, without
/// its required members.
///
/// A question that is answered sets the state to running even if another one is open, because the
/// work that asked it goes on.
pub(crate) fn update(event: &Event, state: &mut EncoderState) -> Option<v2::SessionUpdate> {
    match &event.body {
        EventBody::Update(update) => of_update(event.number, update, state),
        EventBody::Turn(event) => Some(of_turn(event).into()),
        EventBody::Unknown(_) => None,
    }
}

fn of_update(
    number: u64,
    update: &v1::SessionUpdate,
    state: &mut EncoderState,
) -> Option<v2::SessionUpdate> {
    let mut chunk = |update| {
        let id = state.message_id(number, update);
        chunk(update, id)
    };
    Some(match update {
        v1::SessionUpdate::UserMessageChunk(update) => {
            v2::SessionUpdate::UserMessageChunk(chunk(update)?)
        }
        v1::SessionUpdate::AgentMessageChunk(update) => {
            v2::SessionUpdate::AgentMessageChunk(chunk(update)?)
        }
        v1::SessionUpdate::AgentThoughtChunk(update) => {
            v2::SessionUpdate::AgentThoughtChunk(chunk(update)?)
        }
        v1::SessionUpdate::ToolCall(call) => tool_calls::new_to_v2(call).into(),
        v1::SessionUpdate::ToolCallUpdate(update) => tool_calls::update_to_v2(update).into(),
        v1::SessionUpdate::Plan(update) => plan(update).into(),
        v1::SessionUpdate::AvailableCommandsUpdate(update) => {
            let commands = options::commands_to_v2(&update.available_commands);
            let mut next = v2::AvailableCommandsUpdate::new(commands);
            next.meta.clone_from(&update.meta);
            next.into()
        }
        v1::SessionUpdate::CurrentModeUpdate(_) => return None,
        v1::SessionUpdate::ConfigOptionUpdate(update) => {
            let options = options::options_to_v2(&update.config_options);
            let mut next = v2::ConfigOptionUpdate::new(options);
            next.meta.clone_from(&update.meta);
            next.into()
        }
        v1::SessionUpdate::SessionInfoUpdate(update) => {
            let mut next = v2::SessionInfoUpdate::new();
            next.title = update.title.clone();
            next.updated_at = update.updated_at.clone();
            next.meta = patch(update.meta.clone());
            next.into()
        }
        v1::SessionUpdate::UsageUpdate(update) => {
            let mut next = v2::UsageUpdate::new(update.used, update.size);
            next.cost = patch(update.cost.as_ref().and_then(reread));
            next.meta.clone_from(&update.meta);
            next.into()
        }
        v1::SessionUpdate::Notice(update) if update.title.is_empty() => return None,
        v1::SessionUpdate::Notice(update) => {
            let severity = v2::NoticeSeverity::from(update.severity.as_str());
            let mut next = v2::Notice::new(severity, update.title.as_str());
            next.description.clone_from(&update.description);
            next.meta.clone_from(&update.meta);
            next.into()
        }
        v1::SessionUpdate::CompactionUpdate(update) => {
            let status = v2::CompactionStatus::from(update.status.as_str());
            let mut next = v2::CompactionUpdate::new(update.compaction_id.as_str(), status);
            next.summary = map_patch(&update.summary, |blocks| content::all_to_v2(blocks));
            next.error = update.error.clone();
            next.meta = update.meta.clone();
            next.into()
        }
        v1::SessionUpdate::CompactionSummaryChunk(update) => {
            let block = content::to_v2(&update.content)?;
            let mut next = v2::CompactionSummaryChunk::new(update.compaction_id.as_str(), block);
            next.meta.clone_from(&update.meta);
            next.into()
        }
        // A kind that version 1 does not know may be one of version 2.
        other => reread(other)?,
    })
}

fn chunk(chunk: &v1::ContentChunk, id: v2::MessageId) -> Option<v2::ContentChunk> {
    let mut next = v2::ContentChunk::new(id, content::to_v2(&chunk.content)?);
    next.meta.clone_from(&chunk.meta);
    Some(next)
}

fn plan(plan: &v1::Plan) -> v2::PlanUpdate {
    let entry = |entry: &v1::PlanEntry| {
        let mut next = v2::PlanEntry::new(
            entry.content.as_str(),
            v2::PlanEntryPriority::from(entry.priority.as_str()),
            v2::PlanEntryStatus::from(entry.status.as_str()),
        );
        next.meta.clone_from(&entry.meta);
        next
    };
    let items = v2::PlanItems::new(PLAN, plan.entries.iter().map(entry).collect());
    let mut next = v2::PlanUpdate::new(items);
    next.meta.clone_from(&plan.meta);
    next
}

fn of_turn(event: &TurnEvent) -> v2::StateUpdate {
    match event {
        TurnEvent::TurnStarted { .. }
        | TurnEvent::PermissionAnswered { .. }
        | TurnEvent::ElicitationAnswered { .. } => v2::RunningStateUpdate::new().into(),
        TurnEvent::PermissionAsked { .. } | TurnEvent::ElicitationAsked { .. } => {
            v2::RequiresActionStateUpdate::new().into()
        }
        TurnEvent::TurnEnded {
            stop_reason, error, ..
        } => {
            let reason = match stop_reason {
                Some(reason) => stopped(reason),
                None => failed(error.as_deref()),
            };
            v2::IdleStateUpdate::new().with_stop_reason(reason).into()
        }
    }
}

fn stopped(reason: &v1::StopReason) -> v2::StopReason {
    match reason {
        v1::StopReason::EndTurn => v2::StopReason::EndTurn,
        v1::StopReason::MaxTokens => v2::StopReason::MaxTokens,
        v1::StopReason::MaxTurnRequests => v2::StopReason::MaxTurnRequests,
        v1::StopReason::Refusal => v2::StopReason::Refusal,
        v1::StopReason::Cancelled => v2::StopReason::Cancelled,
        other => match other.as_str() {
            "error" => failed(None),
            other => {
                let members = Json::new(other).map(|text| ("stopReason".to_owned(), text));
                let members = members.into_iter().collect();
                v2::StopReason::Unknown(UnknownVariant::new(other, members))
            }
        },
    }
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
