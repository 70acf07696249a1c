//! The events of `/session/{id}/events`: names and members of Otter's code.

use std::borrow::Cow;
use std::time::Duration;

use acp_sdk::v1::{SessionUpdate, StopReason};
use acp_server::event::{Event, EventBody, StoredEvent, TurnEvent};
use acp_server::internal::clock;
use acp_server::usage::{Costs, TurnUsage};
use bytes::Bytes;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::usage::DOLLARS;
use super::text::{frame, kind, text_of};
use super::view::View;

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

/// What the end of a turn says of it besides its result.
#[derive(Serialize)]
struct Used {
    /// In dollars; `null` if the agent reported none.
    cost: Option<f64>,
    /// By currency.
    costs: Costs,
    started_at: Option<String>,
    ended_at: Option<String>,
    duration_ms: Option<u64>,
}

impl Used {
    fn of(turn: Option<TurnUsage>, ended: StoredEvent<'_>) -> Self {
        let started_at = turn.as_ref().and_then(|turn| turn.started_at);
        let duration_ms = turn.as_ref().and_then(TurnUsage::duration);
        let costs = turn.map(|turn| turn.costs).unwrap_or_default();
        Self {
            cost: costs.get(DOLLARS),
            costs,
            started_at: started_at.map(clock::text),
            ended_at: ended.time_text(),
            duration_ms,
        }
    }
}

/// The data of the end of a turn.
#[derive(Serialize)]
struct Ended<T> {
    #[serde(flatten)]
    end: T,
    #[serde(flatten)]
    used: Used,
}

/// Returns an event on the wire. The view has observed it. `turn`: what the turn used that it ends.
pub(super) fn encode(
    view: &View,
    event: &Event,
    stored: StoredEvent<'_>,
    turn: Option<TurnUsage>,
) -> Bytes {
    let message_id = view.message_id.as_ref().map(|id| id.as_str());
    let id = Some(event.number);
    match &event.body {
        EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) => {
            let text = text_of(chunk).unwrap_or_default();
            let data = json!({ "message_id": message_id, "text": text, "content": chunk.content });
            frame(id, "user_message", &data)
        }
        EventBody::Turn(TurnEvent::TurnEnded {
            error: Some(error),
            usage,
            ..
        }) => {
            let end = json!({
                "message_id": message_id,
                "error": error,
                // The name of a class in Otter.
                "exception": "agent_error",
                "usage": usage,
            });
            let used = Used::of(turn, stored);
            frame(id, "error", &Ended { end, used })
        }
        EventBody::Turn(TurnEvent::TurnEnded {
            stop_reason, usage, ..
        }) => {
            let end = json!({
                "message_id": message_id,
                "output": view.output(),
                "output_omitted_bytes": view.output_omitted(),
                "steps": view.steps,
                "usage": usage,
                "success": view.success,
                "cancelled": *stop_reason == Some(StopReason::Cancelled),
                "stop_reason": stop_reason,
            });
            let used = Used::of(turn, stored);
            frame(id, "result", &Ended { end, used })
        }
        EventBody::Turn(TurnEvent::PermissionAsked {
            question, request, ..
        }) => {
            let mut data = json!({
                "permission_id": question.0.to_string(),
                "message_id": message_id,
                "tool_call": request.tool_call,
                "options": request.options,
            });
            if let Some((call, omitted)) = view.asked(request) {
                data["tool_call"] = json!(call);
                data["tool_call_omitted_bytes"] = json!(omitted);
            }
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
