//! Prompts, and answers to what their turns ask.

use std::sync::Arc;

use acp_sdk::v1::{ContentBlock, ElicitationAction, RequestPermissionOutcome, SessionId};
use acp_sdk::{HandlerError, Json};
use acp_server::event::QuestionId;
use acp_server::internal::connection::{self, check};
use acp_server::internal::raw_object::RawObject;
use acp_server::internal::session::Reply;
use acp_server::usage;
use acp_server::{Access, Error, Session};
use jsonrpsee::RpcModule;
use jsonrpsee::core::RegisterMethodError;
use serde::{Deserialize, Serialize};

use super::context::{Answer, Context, refusal};
use super::request_id::RequestId;
use super::typed_method::register as method;

pub(super) fn register(module: &mut RpcModule<()>) -> Result<(), RegisterMethodError> {
    method(module, "session_prompt", prompt)?;
    method(module, "session_prompt_start", start)?;
    method(module, "session_cancel", cancel)?;
    method(module, "permission_respond", permit)?;
    method(module, "elicitation_respond", elicit)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Prompt {
    session_id: SessionId,
    prompt: Vec<ContentBlock>,
}

/// Answers at the end of the turn, with all members of the answer, the duration and the cost.
async fn prompt(context: Arc<Context>, prompt: Prompt) -> Answer<Json> {
    let (session, prompt) = checked(&context, prompt).await?;
    let handle = session.prompt(prompt).map_err(|error| refused(&error))?;
    let result = handle.result().await;
    let answered = async {
        let answer = connection::answer(&result.stop?, result.members.as_ref())?;
        let turn = usage::of_turn_with_end(&session, result.last_event).await;
        let Some(turn) = turn.map_err(HandlerError::internal)? else {
            return Ok(answer);
        };
        let mut answer = RawObject::parse(answer.get()).unwrap_or_default();
        answer.set("durationMs", json(&turn.duration())?);
        answer.set("costs", json(&turn.costs)?);
        Ok(answer.to_json())
    };
    answered.await.map_err(|error| refusal(&error))
}

fn json<T: Serialize>(value: &T) -> Result<Json, HandlerError> {
    Json::new(value).map_err(HandlerError::internal)
}

#[derive(Clone, Serialize)]
#[serde(rename_all = "camelCase")]
struct Started {
    session_id: SessionId,
    /// The id of the user's message, with which the turn's events begin.
    message_id: String,
    /// The session's last event before the turn: the cursor to read it from.
    last_event_id: u64,
}

/// Answers as soon as the store has the prompt.
async fn start(context: Arc<Context>, prompt: Prompt) -> Answer<Started> {
    let session_id = prompt.session_id.clone();
    let (session, prompt) = checked(&context, prompt).await?;
    let last_event_id = session.last_event();
    let handle = session.prompt_kept(prompt).await;
    let handle = handle.map_err(|error| refused(&error))?;
    Ok(Started {
        session_id,
        message_id: handle.message_id().to_string(),
        last_event_id,
    })
}

/// Returns the session, and the prompt if the agent takes its content.
async fn checked(context: &Context, prompt: Prompt) -> Answer<(Session, Vec<ContentBlock>)> {
    let session = context
        .session("session/prompt", &prompt.session_id)
        .await?;
    let checked = check::prompt(&prompt.prompt, &context.server.info().prompt);
    checked.map_err(|error| refusal(&error))?;
    Ok((session, prompt.prompt))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancel {
    session_id: SessionId,
    /// Also the queued prompts of clients at `/acp`.
    #[serde(default)]
    all: bool,
}

#[derive(Clone, Serialize)]
struct Done {}

async fn cancel(context: Arc<Context>, params: Cancel) -> Answer<Done> {
    let session = context
        .session("session/cancel", &params.session_id)
        .await?;
    if !params.all {
        session.cancel_turn();
    } else if context.caller.access == Access::Full {
        session.cancel();
    } else {
        let reason = "cancelling the prompts of all clients needs the server's token";
        let code = acp_sdk::v1::ErrorCode::INVALID_REQUEST;
        return Err(refusal(&HandlerError::new(code, reason)));
    }
    let stored = session.cancellations_stored().await;
    stored.map(|()| Done {}).map_err(|error| refused(&error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Permit {
    request_id: RequestId,
    outcome: RequestPermissionOutcome,
}

async fn permit(context: Arc<Context>, params: Permit) -> Answer<Done> {
    let (session, question) = asked(&context, params.request_id).await?;
    let answerer = context.caller.answerer("rpc");
    let answered = session.answer_for(&answerer, question, Reply::Permission(params.outcome));
    answered.map(|()| Done {}).map_err(|error| refused(&error))
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Elicit {
    request_id: RequestId,
    #[serde(flatten)]
    action: ElicitationAction,
}

async fn elicit(context: Arc<Context>, params: Elicit) -> Answer<Done> {
    let (session, question) = asked(&context, params.request_id).await?;
    let answerer = context.caller.answerer("rpc");
    let answered = session.answer_for(&answerer, question, Reply::Elicitation(params.action));
    answered.map(|()| Done {}).map_err(|error| refused(&error))
}

async fn asked(context: &Context, id: RequestId) -> Answer<(Session, QuestionId)> {
    let session = context.session("session/prompt", &id.session).await?;
    Ok((session, id.question))
}

fn refused(error: &Error) -> jsonrpsee::types::ErrorObjectOwned {
    let code = match error {
        Error::UnknownOption(_) => acp_sdk::v1::ErrorCode::INVALID_PARAMS,
        Error::Store(_) => acp_sdk::v1::ErrorCode::INTERNAL_ERROR,
        _ => acp_sdk::v1::ErrorCode::INVALID_REQUEST,
    };
    refusal(&HandlerError::new(code, error.to_string()))
}
