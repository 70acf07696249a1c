//! The events of a prompt at `/openoxide/prompt`: those of OpenOxide's text, then an event `response` or
//! `error`.

use acp_server::Session;
use acp_server::event::Event;
use acp_server_dialects::openoxide::{EndedTurn, TurnEvents, event_name};
use bytes::Bytes;
use serde_json::json;

use super::text::frame;

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
