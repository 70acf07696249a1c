//! Prompts of OpenOxide's clients: the body is the prompt, and the answer its turn.

use acp_server_dialects::openoxide::{EndedTurn, PromptRequest, prompted};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use utoipa::ToSchema;
use utoipa::openapi::HttpMethod::Post;
use utoipa::openapi::Required::True;

use super::body::Object;
use super::events::{self, Dialect, EventReader};
use super::failure::Failure;
use super::route::{Right, Route};
use super::state::Rest;
use super::turns;
use super::wanted::{Answer, KeyHeader, Wanted};
use crate::caller::Caller;

/// A prompt, for the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document")]
struct OpenOxidePrompt {
    /// `prompt`.
    r#type: Option<String>,
    session_id: String,
    content: Vec<OpenOxideBlock>,
}

/// A block of a prompt, for the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document")]
struct OpenOxideBlock {
    /// `text`.
    r#type: String,
    text: String,
}

/// The response to a prompt, for the document.
#[derive(ToSchema)]
#[expect(dead_code, reason = "for the document")]
struct OpenOxideResponse {
    session_id: String,
    /// All text of the agent's answer.
    text: String,
    stop_reason: String,
    /// The number of the turn's last event.
    event_id: u64,
    /// Bytes of a very long turn that are missing.
    omitted_bytes: Option<u64>,
}

pub(super) fn route() -> Route {
    Route::new(Post, "/openoxide/prompt", Right::Full, prompt)
        .about(
            "openoxide",
            "openoxide_prompt",
            "Sends a prompt in the form of OpenOxide. Hanging up cancels it.",
        )
        .takes::<KeyHeader>()
        .body::<OpenOxidePrompt>(True)
        .answers::<OpenOxideResponse>(200, "The response at the end of the turn; or the events")
        .answers_text(200, "", "text/event-stream")
        .refuses(400, "`invalid_field`, or no JSON object")
        .refuses(404, "`session_not_found`")
        .refuses(409, "`no_turn`: the prompt was cancelled before its turn")
        .refuses(500, "`turn_failed`")
        .refuses(
            503,
            "`too_many_prompts`, `too_many_streams`, `turn_lost`, `stopping`",
        )
}

async fn prompt(
    State(rest): State<Rest>,
    caller: Caller,
    wanted: Wanted,
    Object(request): Object<PromptRequest>,
) -> Result<Response, Failure> {
    let content = prompted(request);
    let (id, content) = content.map_err(|error| Failure::agent("invalid_prompt", &error))?;
    let place = events::place(&rest, &caller)?;
    rest.record(&id).await?;
    let session = rest.open(&caller, &id).await?;
    let prompt = turns::prompt(&session, content, wanted.key.as_deref(), None).await?;
    let reader = events::of_prompt(
        &rest,
        caller,
        session,
        prompt.prompt,
        Dialect::OpenOxide,
        place,
    );
    match wanted.answer {
        Answer::Events => Ok(events::response(reader)),
        // A time limit would leave the client without a way to the rest.
        Answer::Accepted | Answer::Result { .. } => whole(reader).await,
    }
}

/// Reads a turn to its end, and returns its response.
///
/// # Errors
///
/// 500 when the turn has failed or cannot be read, 409 when it never began, 503 when the server stops.
async fn whole(mut reader: EventReader) -> Result<Response, Failure> {
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
