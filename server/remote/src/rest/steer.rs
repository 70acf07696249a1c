//! Input for the running turn.

use acp_sdk::extensions::SteerRefusal;
use acp_server::{Input, Steered};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::body::Object;
use super::events;
use super::failure::Failure;
use super::state::{Id, Rest};
use super::turns::refused;
use super::wanted::Wanted;
use crate::caller::Caller;

/// What the user says during the turn.
#[derive(Debug, Default, Deserialize, ToSchema)]
pub(super) struct MoreInput {
    #[schema(value_type = String, required = true)]
    prompt: Option<String>,
    /// `queue`: becomes a prompt if no turn takes it; `refuse` (default): is refused.
    #[schema(value_type = Option<String>)]
    otherwise: Option<String>,
}

/// What happened to the input.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SteeredTurn {
    /// `injected`: the turn has it; `queued`: it is a prompt that waits.
    outcome: String,
    /// The message in the conversation, if it was injected.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    message_id: Option<String>,
    /// The last event of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = u64)]
    event_id: Option<u64>,
}

/// Gives the running turn further input. Hanging up takes it back, unless the turn has it.
pub(super) async fn steer_turn(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    wanted: Wanted,
    Object(input): Object<MoreInput>,
) -> Result<Response, Failure> {
    rest.record(&id).await?;
    let missing = || Failure::bad_request("missing_prompt");
    let prompt = input.prompt.ok_or_else(missing)?;
    let queues = match input.otherwise.as_deref() {
        None | Some("refuse") => false,
        Some("queue") => true,
        Some(_) => {
            let message = "`otherwise` is \"refuse\" or \"queue\"";
            return Err(Failure::bad_request("invalid_field").message(message));
        }
    };
    // As long as the turn runs.
    let _place = events::place(&rest, &caller)?;
    // Its log may know the input, and its queue may take it.
    let session = rest.open(&caller, &id).await?;
    let mut input = Input::from(prompt.as_str());
    if let Some(key) = wanted.key {
        let recalled = session.recall_names().await;
        recalled.map_err(|error| Failure::internal("session_read_failed", error.to_string()))?;
        input = input.named(key);
    }
    if queues {
        input = input.or_queue();
    }
    let steered = session.try_steer(input).await.map_err(refused)?;
    let steered = steered.map_err(|error| Failure::internal("store_failed", error.to_string()))?;
    let outcome = steered.outcome().to_string();
    let (status, message_id, event_id) = match steered {
        Steered::Injected { message, event } => {
            (StatusCode::OK, Some(message.to_string()), Some(event))
        }
        Steered::Refused(reason) => return Err(not_used(&reason)),
        _ => (StatusCode::ACCEPTED, None, None),
    };
    let body = SteeredTurn {
        outcome,
        message_id,
        event_id,
    };
    Ok((status, Json(body)).into_response())
}

fn not_used(reason: &SteerRefusal) -> Failure {
    let (error, message) = match reason {
        SteerRefusal::Limit => return Failure::overloaded("too_many_prompts"),
        SteerRefusal::NotSupported => (
            "not_supported",
            "the agent takes no input during turns; send a prompt",
        ),
        SteerRefusal::NoTurn => ("no_turn", "no turn is running; send a prompt"),
        SteerRefusal::Cancelled => ("cancelled", "the turn was cancelled"),
        _ => (
            "turn_ended",
            "the turn has ended without taking the input; send a prompt",
        ),
    };
    Failure::new(StatusCode::CONFLICT, error).message(message)
}
