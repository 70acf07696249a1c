//! Prompts and their cancellation, in the forms of both sets of routes.

use acp_sdk::Meta;
use acp_sdk::v1::{ContentBlock, SessionId};
use acp_server::internal::session::Refusal;
use acp_server::{PromptHandle, Session};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::answer::Accepted;
use super::body::Object;
use super::events::Dialect;
use super::failure::Failure;
use super::query::Parameters;
use super::route::Right;
use super::state::{Id, Rest};
use super::wanted::Wanted;
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
    /// The session's last event before the turn. As `Last-Event-ID` it opens a stream of the turn's events.
    last_event_id: u64,
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
    /// `running`; `ended`, if it was sent before with its key, and its turn has ended.
    status: String,
    /// The events of the turn have it.
    message_id: String,
    /// The session's last event before the turn. As `Last-Event-ID` it opens a stream of the turn's events.
    last_event_id: u64,
}

pub(super) async fn send_message(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    wanted: Wanted,
    Object(message): Object<Message>,
) -> Result<Response, Failure> {
    let waiting = rest.waiting(&caller, &wanted)?;
    let (session, queued) =
        submit(&rest, &caller, &id, message.text, "missing_text", &wanted).await?;
    let body = AcceptedMessage {
        message_id: queued.prompt.message_id().to_string(),
        last_event_id: queued.last_event_id,
    };
    let accepted = Accepted {
        response: (StatusCode::ACCEPTED, Json(body)).into_response(),
        ended: StatusCode::OK,
        dialect: Dialect::Otter,
        opened_after: queued.opened_after,
    };
    rest.answer(caller, session, queued.prompt, wanted, waiting, accepted)
        .await
}

pub(super) async fn create_turn(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    wanted: Wanted,
    Object(turn): Object<NewTurn>,
) -> Result<Response, Failure> {
    let waiting = rest.waiting(&caller, &wanted)?;
    let (session, queued) =
        submit(&rest, &caller, &id, turn.prompt, "missing_prompt", &wanted).await?;
    let accepted = accepted(&queued, &id, StatusCode::ACCEPTED, StatusCode::OK);
    rest.answer(caller, session, queued.prompt, wanted, waiting, accepted)
        .await
}

pub(super) async fn close_session(
    State(rest): State<Rest>,
    Id(id): Id,
) -> Result<StatusCode, Failure> {
    let agent = rest.agent_of(&id).await?;
    let closed = agent.server().close_session(&id).await;
    closed.map_err(|error| Failure::agent("session_close_failed", &error))?;
    Ok(StatusCode::NO_CONTENT)
}

/// Whose prompts are cancelled.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct CancelQuery {
    /// Also the queued prompts of clients. Needs the server's token.
    #[serde(default)]
    #[param(required = false)]
    all: bool,
}

pub(super) async fn cancel(
    State(rest): State<Rest>,
    caller: Caller,
    Id(id): Id,
    Parameters(of): Parameters<CancelQuery>,
) -> Result<StatusCode, Failure> {
    if of.all {
        Right::Full.check(&caller.access, None)?;
    }
    let Some(session) = rest.in_memory(&id) else {
        // Nothing runs in a session that is not in memory, but prompts may wait in the store.
        let agent = rest.record(&id).await?.agent;
        let cancelled = agent.server().cancel_unopened(&id).await;
        cancelled.map_err(|error| Failure::agent("cancel_failed", &error))?;
        return Ok(StatusCode::NO_CONTENT);
    };
    match of.all {
        true => session.cancel(),
        false => session.cancel_turn(),
    }
    let stored = session.cancellations_stored().await;
    stored.map_err(|error| Failure::internal("store_failed", error.to_string()))?;
    Ok(StatusCode::NO_CONTENT)
}

/// A prompt in the queue of its session.
pub(super) struct Queued {
    pub(super) prompt: PromptHandle,
    /// The session's last event before the turn, or before the prompt if its turn has not begun.
    pub(super) last_event_id: u64,
    /// The session's last event before it was opened, if the request has opened it.
    opened_after: Option<u64>,
}

/// Returns what the routes of Otter's document say of a prompt, with these statuses.
pub(super) fn accepted(
    queued: &Queued,
    id: &SessionId,
    running: StatusCode,
    ended: StatusCode,
) -> Accepted {
    let body = AcceptedTurn {
        session_id: id.to_string(),
        status: match queued.prompt.has_ended() {
            true => "ended".to_owned(),
            false => "running".to_owned(),
        },
        message_id: queued.prompt.message_id().to_string(),
        last_event_id: queued.last_event_id,
    };
    Accepted {
        response: (running, Json(body)).into_response(),
        ended,
        dialect: Dialect::Documented,
        opened_after: queued.opened_after,
    }
}

/// Queues the prompt of a request, in which it may be missing.
async fn submit(
    rest: &Rest,
    caller: &Caller,
    id: &SessionId,
    text: Option<String>,
    missing: &'static str,
    wanted: &Wanted,
) -> Result<(Session, Queued), Failure> {
    let record = rest.record(id).await?;
    let text = text.ok_or_else(|| Failure::bad_request(missing))?;
    let is_stored = rest.in_memory(id).is_none();
    let session = rest.open(caller, id).await?;
    let mut queued = prompt(&session, vec![text.into()], wanted.key.as_deref(), None).await?;
    if is_stored {
        // An agent may say when it is opened that it has forgotten the conversation.
        queued.last_event_id = queued.last_event_id.min(record.last_event);
        queued.opened_after = Some(record.last_event);
    }
    Ok((session, queued))
}

/// Returns the answer to what a session has refused.
pub(super) fn refused(refusal: Refusal) -> Failure {
    let failure = match refusal {
        Refusal::Closed => Failure::new(StatusCode::CONFLICT, "session_closed"),
        Refusal::Busy => Failure::new(StatusCode::CONFLICT, "turn_running"),
        Refusal::NameLength => Failure::bad_request("invalid_idempotency_key"),
        Refusal::OtherContent => {
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, "idempotency_key_reused")
        }
        Refusal::TooLarge => Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large"),
        Refusal::QueueFull => Failure::overloaded("too_many_prompts"),
        Refusal::Draining => Failure::overloaded("stopping"),
    };
    failure.message(format!(
        "the session refused the prompt: {}",
        refusal.reason()
    ))
}

/// Queues a prompt, and waits until the store has it; one with a key, if it was not queued before.
///
/// # Errors
///
/// 409, 413, 422 or 503, depending on what refuses it; 503 when it cannot be committed; 500 when the log
/// cannot be read.
pub(super) async fn prompt(
    session: &Session,
    content: Vec<ContentBlock>,
    key: Option<&str>,
    meta: Option<Meta>,
) -> Result<Queued, Failure> {
    let last = session.last_event();
    if key.is_some() {
        let recalled = session.recall_names().await;
        recalled.map_err(|error| Failure::internal("session_read_failed", error.to_string()))?;
    }
    let kept = session.try_prompt_kept(key, content, meta).await;
    let prompt = kept.map_err(refused)?.map_err(|error| {
        let message = format!("the prompt could not be committed: {error}. Send it again");
        Failure::overloaded("turn_lost").message(message)
    })?;
    // The turn of one that was sent before may be far back.
    let turn = prompt.turn().filter(|_| prompt.is_repeated());
    Ok(Queued {
        last_event_id: turn.map_or(last, |turn| turn.0.saturating_sub(1)),
        opened_after: None,
        prompt,
    })
}
