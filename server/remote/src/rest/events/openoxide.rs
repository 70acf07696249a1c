//! The events of a prompt at `/openoxide/prompt`: those of OpenOxide's text, then an event `response` or
//! `error`.

use acp_server::Session;
use acp_server::event::Event;
use acp_server_dialects::openoxide::{EndedTurn, TurnEvents, event_name};
use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use serde_json::json;

use super::reader::EventReader;
use super::text::frame;
use crate::rest::failure::Failure;

/// Returns an event on the wire; `None` if the vocabulary has none for it.
pub(super) fn encode(turn: &mut TurnEvents, session: &Session, event: Event) -> Option<Bytes> {
    let id = Some(event.number);
    let mut piece = Vec::new();
    for event in turn.take(session, event) {
        piece.extend_from_slice(&frame(id, event_name(&event), &event));
    }
    match turn.ended() {
        Some(EndedTurn::Response(response)) => {
            piece.extend_from_slice(&frame(id, "response", response));
        }
        Some(EndedTurn::Failed(reason)) => {
            piece.extend_from_slice(&frame(id, "error", &json!({ "error": reason })));
        }
        None => {}
    }
    (!piece.is_empty()).then(|| piece.into())
}

/// Reads a turn to its end, and returns its response.
///
/// # Errors
///
/// 500 when the turn has failed or cannot be read, 409 when it never began, 503 when the server stops.
pub(in crate::rest) async fn whole(mut reader: EventReader) -> Result<Response, Failure> {
    while reader.next().await.is_some() {}
    match (reader.openoxide.ended(), &reader.no_turn) {
        (Some(EndedTurn::Response(response)), _) => Ok(Json(response).into_response()),
        (Some(EndedTurn::Failed(reason)), _) => Err(Failure::internal("turn_failed", reason)),
        (None, Some(reason)) => Err(Failure::new(StatusCode::CONFLICT, "no_turn").message(reason)),
        (None, None) if reader.is_stopping() => Err(Failure::overloaded("stopping")),
        (None, None) => {
            let detail = "the events of the turn cannot be read to its end";
            Err(Failure::internal("session_read_failed", detail))
        }
    }
}
