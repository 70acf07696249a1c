//! Prompts and their cancellation, in the forms of both sets of routes.

use acp_sdk::v1::SessionId;
use acp_server::internal::session::Refusal;
use acp_server::{PromptHandle, Session};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::failure::{ErrorBody, Failure};
use super::state::{Id, Rest};
use crate::caller::Caller;

/// What the user says.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct Message {
    #[schema(value_type = String, required = true)]
    text: Option<String>,
}

/// A message that waits for its turn, or has begun it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedMessage {
    /// The events of the turn have it.
    message_id: String,
}

/// What the user says.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct NewTurn {
    #[schema(value_type = String, required = true)]
    prompt: Option<String>,
}

/// A turn that waits or runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AcceptedTurn {
    session_id: String,
    /// `running`.
    status: String,
    /// The events of the turn have it.
    message_id: String,
}

/// Sends a message. It is answered in a turn, after those that wait already.
#[utoipa::path(post, path = "/session/{id}/message", tag = "session",
    params(("id" = String, Path, description = "The session")),
    request_body = Message,
    responses(
        (status = 202, description = "The message", body = AcceptedMessage),
        (status = 400, description = "`missing_text`, or no JSON object", body = ErrorBody),
        (status = 404, description = "`session_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn send_message(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Object(message): Object<Message>,
) -> Result<(StatusCode, Json<AcceptedMessage>), Failure> {
    let prompt = submit(&rest, &caller, &id, message.text, "missing_text").await?;
    let message_id = prompt.message_id().to_string();
    Ok((StatusCode::ACCEPTED, Json(AcceptedMessage { message_id })))
}

/// Begins a turn, after those that wait already.
#[utoipa::path(post, path = "/sessions/{id}/turns", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = NewTurn,
    responses(
        (status = 202, description = "The turn", body = AcceptedTurn),
        (status = 400, description = "`missing_prompt`, or no JSON object", body = ErrorBody),
        (status = 404, description = "`session_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn create_turn(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Object(turn): Object<NewTurn>,
) -> Result<(StatusCode, Json<AcceptedTurn>), Failure> {
    let prompt = submit(&rest, &caller, &id, turn.prompt, "missing_prompt").await?;
    let accepted = accepted(&id, &prompt);
    Ok((StatusCode::ACCEPTED, Json(accepted)))
}

/// Cancels the running turn and all that wait. Without any, does nothing.
#[utoipa::path(post, path = "/session/{id}/cancel", tag = "session",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "The turns will end with the stop reason `cancelled`"),
        (status = 404, description = "`session_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn cancel_session(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    cancel(&rest, &caller, &id).await
}

/// Cancels the running turn and all that wait. Without any, does nothing.
#[utoipa::path(post, path = "/sessions/{id}/cancel", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses(
        (status = 204, description = "The turns will end with the stop reason `cancelled`"),
        (status = 404, description = "`session_not_found`", body = ErrorBody),
    )
)]
pub(super) async fn cancel_turn(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    cancel(&rest, &caller, &id).await
}

async fn cancel(rest: &Rest, caller: &Caller, id: &SessionId) -> Result<StatusCode, Failure> {
    caller.writes(id)?;
    match rest.in_memory(id) {
        Some(session) => session.cancel(),
        // Nothing runs in a session that is not in memory.
        None => drop(rest.record(id).await?),
    }
    Ok(StatusCode::NO_CONTENT)
}

pub(super) fn accepted(id: &SessionId, prompt: &PromptHandle) -> AcceptedTurn {
    AcceptedTurn {
        session_id: id.to_string(),
        status: "running".to_owned(),
        message_id: prompt.message_id().to_string(),
    }
}

/// Queues the prompt of a request, in which it may be missing.
async fn submit(
    rest: &Rest,
    caller: &Caller,
    id: &SessionId,
    text: Option<String>,
    missing: &'static str,
) -> Result<PromptHandle, Failure> {
    caller.writes(id)?;
    rest.record(id).await?;
    let text = text.ok_or_else(|| Failure::bad_request(missing))?;
    prompt(&rest.open(caller, id).await?, text)
}

/// Queues a prompt.
///
/// # Errors
///
/// 409, 413 or 503, depending on what refuses it.
pub(super) fn prompt(session: &Session, text: String) -> Result<PromptHandle, Failure> {
    let refused = |refusal: Refusal| {
        let failure = match refusal {
            Refusal::Closed => Failure::new(StatusCode::CONFLICT, "session_closed"),
            Refusal::Busy => Failure::new(StatusCode::CONFLICT, "turn_running"),
            Refusal::TooLarge => Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
            Refusal::QueueFull => Failure::overloaded("too_many_prompts"),
            Refusal::Draining => Failure::overloaded("stopping"),
        };
        failure.message(format!(
            "the session refused the prompt: {}",
            refusal.reason()
        ))
    };
    session.try_prompt(vec![text.into()]).map_err(refused)
}
