//! The events of `/session/{id}/events`: names and members of Otter's code.

use std::borrow::Cow;
use std::time::Duration;

use acp_sdk::v1::{SessionUpdate, StopReason};
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::text::{frame, kind, text_of};
use super::view::View;
use crate::event::{Event, EventBody, StoredEvent, TurnEvent};

/// Everything that has no event of its own.
#[derive(Serialize)]
struct LoopEvent<'a> {
    message_id: Option<&'a str>,
    r#type: Cow<'static, str>,
    data: Option<&'a RawValue>,
    turn: Option<u64>,
    /// Seconds since 1970; `null` for events that an earlier version stored.
    timestamp: Option<f64>,
}

/// Returns an event on the wire. The view has observed it.
pub(super) fn encode(view: &View, event: &Event, stored: StoredEvent<'_>) -> Bytes {
    let message_id = view.message_id.as_ref().map(|id| id.as_str());
    let id = Some(event.number);
    match &event.body {
        EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) => {
            let text = text_of(chunk).unwrap_or_default();
            let data = json!({ "message_id": message_id, "text": text, "content": chunk.content });
            frame(id, "user_message", &data)
        }
        EventBody::Turn(TurnEvent::TurnEnded {
            error: Some(error), ..
        }) => {
            let data = json!({
                "message_id": message_id,
                "error": error,
                // The name of a class in Otter.
                "exception": "agent_error",
            });
            frame(id, "error", &data)
        }
        EventBody::Turn(TurnEvent::TurnEnded {
            stop_reason, usage, ..
        }) => {
            let data = json!({
                "message_id": message_id,
                "output": view.output(),
                "steps": view.steps,
                "cost": view.cost,
                "usage": usage,
                "success": view.success,
                "cancelled": *stop_reason == Some(StopReason::Cancelled),
                "stop_reason": stop_reason,
            });
            frame(id, "result", &data)
        }
        EventBody::Turn(TurnEvent::PermissionAsked { question, request }) => {
            let data = json!({
                "permission_id": question.0.to_string(),
                "message_id": message_id,
                "tool_call": request.tool_call,
                "options": request.options,
            });
            frame(id, "permission_request", &data)
        }
        _ => {
            let data = LoopEvent {
                message_id,
                r#type: kind(event),
                data: serde_json::from_str(stored.text).ok(),
                turn: view.turn,
                timestamp: stored
                    .time
                    .map(|time| Duration::from_millis(time).as_secs_f64()),
            };
            frame(id, "loop_event", &data)
        }
    }
}
