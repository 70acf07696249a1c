//! Methods of our own, `_acp-sdk/session/…`, and `session/fork`, a proposal that the protocol's version 1
//! does not contain yet.

use acp_sdk::extensions::methods::{
    PromptResult, RedoSession, ResumeEvents, SessionState, SteerSession, UndoSession,
};
use acp_sdk::extensions::{
    PromptResultRequest, PromptResultResponse, RedoSessionRequest, RedoSessionResponse,
    ResumeEventsRequest, ResumeEventsResponse, SessionStateRequest, SessionStateResponse,
    SteerFallback, SteerSessionRequest, SteerSessionResponse, TurnRestoration, UndoSessionRequest,
    UndoSessionResponse,
};
use acp_sdk::runtime::Method;
use acp_sdk::v1::{AgentContext, SessionId};
use acp_sdk::{HandlerError, HandlerResult, Json, Meta};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Replay;
use super::errors::{refused, store_failed};
use super::requests;
use super::server_connection::ServerConnection;
use crate::server::Joining;
use crate::session::{Input, Steered, Steering};
use crate::{AgentInfo, Session, UndoDirection, UndoRequest};

/// Returns what `agentCapabilities._meta` advertises, with that of the handler.
pub(super) fn advertised(info: &AgentInfo) -> Meta {
    let mut ours = json!({
        "eventId": true,
        "promptId": true,
        "idempotencyKey": true,
        "session": { "resume": true, "state": true, "fork": true, "promptResult": true },
    });
    if info.steering {
        ours["session"]["steer"] = true.into();
    }
    if info.undo {
        ours["session"]["undo"] = true.into();
    }
    if info.turn_limits {
        ours["session"]["turnLimits"] = true.into();
    }
    if let Some(tools) = &info.tools {
        ours["tools"] = json!(tools);
    }
    let meta = info.meta.clone().unwrap_or_default();
    meta.with("acp-sdk", &ours)
}

/// Returns the `_meta` of the answer to `initialize`, if the handler names prompts for tests. The key
/// is that of the suite, which any agent may use.
pub(super) fn test_prompts(prompts: &[(String, String)]) -> Option<Meta> {
    if prompts.is_empty() {
        return None;
    }
    let prompts = prompts
        .iter()
        .map(|(word, text)| (word.as_str(), json!(text)));
    let prompts: serde_json::Map<_, _> = prompts
        .map(|(word, text)| (word.to_owned(), text))
        .collect();
    Some(Meta::default().with("acp-conformance", &json!({ "prompts": prompts })))
}

/// Answers a method of ours; `None` if it is none.
pub(super) async fn request(
    connection: &ServerConnection,
    ctx: &AgentContext,
    method: &str,
    params: Option<&Json>,
) -> Option<HandlerResult<Json>> {
    Some(match method {
        ResumeEvents::NAME => {
            let resume = |params| resume(connection, ctx, params);
            answered::<ResumeEvents, _>(params, resume).await
        }
        SessionState::NAME => {
            let state = |params| state(connection, params);
            answered::<SessionState, _>(params, state).await
        }
        PromptResult::NAME => {
            let result = |params| prompt_result(connection, ctx, params);
            answered::<PromptResult, _>(params, result).await
        }
        SteerSession::NAME => {
            let steer = |params| steer(connection, ctx, params);
            answered::<SteerSession, _>(params, steer).await
        }
        UndoSession::NAME => {
            let undo = |params: UndoSessionRequest| async move {
                let (session, force) = (params.session_id, params.force);
                let restored = restore(connection, &session, UndoDirection::Undo, force);
                restored.await.map(UndoSessionResponse)
            };
            answered::<UndoSession, _>(params, undo).await
        }
        RedoSession::NAME => {
            let redo = |params: RedoSessionRequest| async move {
                let (session, force) = (params.session_id, params.force);
                let restored = restore(connection, &session, UndoDirection::Redo, force);
                restored.await.map(RedoSessionResponse)
            };
            answered::<RedoSession, _>(params, redo).await
        }
        "session/fork" => fork(connection, ctx, params).await,
        _ => return None,
    })
}

/// Answers a method with its types.
async fn answered<M: Method, F: Future<Output = HandlerResult<M::Result>>>(
    params: Option<&Json>,
    handle: impl FnOnce(M::Params) -> F,
) -> HandlerResult<Json> {
    let text = params.map_or("{}", |params| params.get());
    let params = acp_sdk::json::from_str(text);
    let params = params.map_err(|error| HandlerError::invalid_params("", error.to_string()))?;
    answer(&handle(params).await?)
}

/// Replays the events after a cursor, and leaves the client attached.
async fn resume(
    connection: &ServerConnection,
    ctx: &AgentContext,
    params: ResumeEventsRequest,
) -> HandlerResult<ResumeEventsResponse> {
    let since = params.since_event_id.unwrap_or(0);
    let joining = Joining::Existing {
        id: params.session_id.clone(),
        place: None,
        opening: connection.opening(None),
    };
    let before = connection.client.subscription(&params.session_id);
    let before = before.map_or(0, |subscription| subscription.sent());
    // Before, for a request that fails must leave nobody attached. What is removed later is announced
    // where the replay has the gap.
    let oldest = connection.core().oldest(&params.session_id).await?;
    // This one, whether or not the session is being closed again meanwhile.
    let subscription = connection.join(ctx, joining, Replay::After(since)).await?;
    let (session, last) = (subscription.session(), subscription.replayed_until());
    let replayed = subscription.sent().saturating_sub(before);
    let truncated = oldest > since.saturating_add(1);
    Ok(ResumeEventsResponse::new(
        session.id(),
        replayed,
        last,
        truncated,
    ))
}

async fn state(
    connection: &ServerConnection,
    params: SessionStateRequest,
) -> HandlerResult<SessionStateResponse> {
    let (session, _) = connection.attached(&params.session_id).await?;
    let state = requests::state(&connection.client, &session);
    Ok(SessionStateResponse(state))
}

/// Answers as the prompt with this name is answered, once it is: for a client that has lost the
/// connection on which it prompted.
async fn prompt_result(
    connection: &ServerConnection,
    ctx: &AgentContext,
    params: PromptResultRequest,
) -> HandlerResult<PromptResultResponse> {
    let (session, subscription) = connection.attached(&params.session_id).await?;
    let progress = session.state().queue.progress_of(&params.prompt_id);
    let name = || HandlerError::resource_not_found(format!("prompt {}", params.prompt_id));
    let progress = progress.ok_or_else(name)?;
    let end = tokio::select! {
        end = progress.end.wait() => end,
        () = ctx.request_cancelled() => return Err(HandlerError::cancelled()),
    };
    // As for the prompt itself: its events come first.
    let _ = subscription.sent_through(end.last_event).await;
    let answer = super::answer::answer(&end.stop.clone()?, end.members.as_ref())?;
    answer.parse().map_err(HandlerError::internal)
}

/// Gives input to the running turn, and answers when it has it or has ended.
async fn steer(
    connection: &ServerConnection,
    ctx: &AgentContext,
    params: SteerSessionRequest,
) -> HandlerResult<SteerSessionResponse> {
    let (session, subscription) = connection.attached(&params.session_id).await?;
    super::check::prompt(&params.prompt, &connection.core().info.prompt)?;
    let mut input = Input::new(params.prompt).with_meta(params.meta);
    if let Some(name) = params.prompt_id {
        session.recall_names().await?;
        input = input.named(name);
    }
    input = match params.otherwise {
        None | Some(SteerFallback::Refuse) => input,
        Some(SteerFallback::Queue) => input.or_queue(),
        Some(other) => {
            let reason = format!("{other} is neither \"refuse\" nor \"queue\"");
            return Err(HandlerError::invalid_params("/otherwise", reason));
        }
    };
    let given = session.give(input, Some(connection.prompter(&subscription)));
    let steering = given.map_err(|refusal| refused(session.id(), refusal))?;
    let settled = match steering {
        Steering::Settled(settled) => settled,
        Steering::Given(mut given) => {
            let settled = tokio::select! {
                biased;
                settled = given.settled() => settled,
                () = ctx.request_cancelled() => match given.take_back() {
                    true => return Err(HandlerError::cancelled()),
                    false => given.settled().await,
                }
            };
            settled.map_err(|error| store_failed(session.id(), &error))?
        }
        queued @ Steering::Queued(_) => queued.settled().await?,
    };
    let mut response = SteerSessionResponse::new(settled.steered.outcome());
    match settled.steered {
        Steered::Injected { message, event } => {
            // As for a prompt: the events before come first, and those after follow the answer.
            let _ = subscription.sent_through(event).await;
            ctx.keep_until_answered(settled.barrier);
            response = response
                .with_message_id(message.to_string())
                .with_event_id(event);
        }
        Steered::Queued => {}
        Steered::Refused(reason) => response = response.with_reason(reason),
    }
    Ok(response)
}

async fn restore(
    connection: &ServerConnection,
    session: &SessionId,
    direction: UndoDirection,
    force: Option<bool>,
) -> HandlerResult<TurnRestoration> {
    let (session, _) = connection.attached(session).await?;
    let request = UndoRequest::new(direction).with_force(force.unwrap_or_default());
    session.undo(request).await
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ForkParams {
    session_id: SessionId,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default, rename = "_meta")]
    meta: Option<Meta>,
}

/// Returns what the response to a request says whose working directory is not the session's.
pub(super) fn kept_cwd(session: &Session, cwd: &str) -> Option<Meta> {
    let differs = session.cwd() != cwd;
    differs.then(|| Meta::new().with("acp-sdk", &json!({ "cwd": session.cwd() })))
}

async fn fork(
    connection: &ServerConnection,
    ctx: &AgentContext,
    params: Option<&Json>,
) -> HandlerResult<Json> {
    let params: ForkParams = read(params)?;
    if let Some(cwd) = &params.cwd {
        super::check::absolute("/cwd", cwd)?;
    }
    let ours: Option<Value> = params.meta.as_ref().and_then(|meta| meta.get("acp-sdk"));
    let up_to = ours.and_then(|ours| ours["eventId"].as_u64());
    let joining = Joining::Fork {
        source: params.session_id,
        up_to,
        cwd: params.cwd,
        opening: connection.opening(params.meta),
    };
    let joined = connection.join(ctx, joining, Replay::Nothing).await?;
    let session = joined.session();
    let (modes, options) = connection.settings(session);
    answer(&json!({
        "sessionId": session.id(),
        "modes": modes,
        "configOptions": options,
    }))
}

fn read<T: serde::de::DeserializeOwned>(params: Option<&Json>) -> HandlerResult<T> {
    let text = params.map_or("null", |params| params.get());
    serde_json::from_str(text).map_err(|error| HandlerError::invalid_params("", error.to_string()))
}

fn answer<T: Serialize>(value: &T) -> HandlerResult<Json> {
    Json::new(value).map_err(HandlerError::internal)
}
