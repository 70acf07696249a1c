//! Undo and redo of what turns changed in files.

use acp_sdk::HandlerError;
use acp_sdk::extensions::TurnRestoration;
use acp_sdk::v1::ErrorCode;
use acp_server::{UndoDirection, UndoRequest};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::failure::Failure;
use super::state::{Id, Rest};
use crate::caller::Caller;

/// How files are restored.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Restoring {
    /// Overwrites files that somebody else has changed since, and leaves out those that cannot be
    /// restored.
    #[schema(value_type = bool)]
    force: Option<bool>,
}

/// What happened to the files of a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Restored {
    /// `not_applied`, with the status 409: the turn does not count as undone or redone.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    error: Option<&'static str>,
    /// The turn, as the agent names it.
    #[schema(value_type = String)]
    turn: Option<String>,
    /// Whether the turn counts as undone or redone.
    applied: bool,
    files: Vec<RestoredPath>,
    /// Turns that can be undone now.
    undoable: u64,
    /// Turns that can be redone now.
    redoable: u64,
}

/// A file of the turn.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RestoredPath {
    path: String,
    /// `restored`, `removed`, `unchanged`, `overwritten`, `conflict`, `left`, `failed` or `pending`.
    outcome: String,
    /// Why it was not restored.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    reason: Option<String>,
}

pub(super) async fn restore(
    direction: UndoDirection,
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Object(how): Object<Restoring>,
) -> Result<(StatusCode, Json<Restored>), Failure> {
    rest.record(&id).await?;
    let session = rest.open(&caller, &id).await?;
    let request = UndoRequest::new(direction).with_force(how.force.unwrap_or_default());
    let restored = session.undo(request).await;
    let restored = restored.map_err(|error| refused(&error))?;
    let status = match restored.applied {
        true => StatusCode::OK,
        false => StatusCode::CONFLICT,
    };
    Ok((status, Json(shown(restored))))
}

fn refused(error: &HandlerError) -> Failure {
    let name = match error.code() {
        ErrorCode::METHOD_NOT_FOUND => "not_supported",
        ErrorCode::INVALID_REQUEST => "not_possible",
        _ => return Failure::agent("undo_failed", error),
    };
    let message = error.as_response().message.clone();
    Failure::new(StatusCode::CONFLICT, name).message(message)
}

fn shown(restored: TurnRestoration) -> Restored {
    let files = restored.files.into_iter().map(|file| RestoredPath {
        path: file.path,
        outcome: file.outcome.to_string(),
        reason: file.reason,
    });
    Restored {
        error: (!restored.applied).then_some("not_applied"),
        turn: restored.turn,
        applied: restored.applied,
        files: files.collect(),
        undoable: restored.undoable,
        redoable: restored.redoable,
    }
}
