//! The task of a prompt: sends it, cancels it, and ends its turn.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{CancelNotification, PromptRequest, StopReason, methods};
use serde::Deserialize;
use serde_json::Value;
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};

use super::super::request::read;
use super::v2;
use super::{Open, PromptIn};
use crate::error::{Error, Result};
use crate::session::{Signal, TokenUsage, TurnState};

/// Members of the response to `session/prompt`.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Answer {
    stop_reason: Option<StopReason>,
    usage: Value,
    #[serde(rename = "_meta")]
    meta: Value,
}

/// Runs one prompt. The task continues when the turn is dropped, because the next turn must not start
/// before a cancelled one has ended.
pub(super) async fn run(
    open: Arc<Open>,
    request: PromptIn,
    state: Arc<TurnState>,
    sender: oneshot::Sender<Result<StopReason>>,
) {
    match request {
        PromptIn::V1(request) => {
            let late = match state.has_prompt_id() {
                true => Duration::ZERO,
                false => open.client.wire.limits.late,
            };
            let prompting = prompting(&open, request, state.clone(), late.is_zero());
            run_to_end(open, prompting, &state, late, sender).await;
        }
        PromptIn::V2(request, _) => {
            let prompting = v2::prompting(&open, request, state.clone());
            Box::pin(run_to_end(open, prompting, &state, Duration::ZERO, sender)).await;
        }
    }
}

/// Sends a prompt and completes with its response, which `ends` the turn or not. Does not keep the
/// session open.
fn prompting(
    open: &Open,
    request: PromptRequest,
    state: Arc<TurnState>,
    ends: bool,
) -> impl Future<Output = acp_sdk::Result<StopReason>> + Send + use<> {
    let (peer, inbox) = (open.client.agent.peer().clone(), open.inbox.clone());
    async move {
        let answered = move |response: std::result::Result<&str, &acp_sdk::RpcError>| {
            let answer: Answer = read(response).unwrap_or_default();
            state.end(TokenUsage::of(answer.usage, &answer.meta));
            if ends {
                inbox.end_turn(&state, answer.stop_reason);
            }
        };
        let response = peer.call_then::<methods::Prompt>(&request, answered).await;
        response.map(|response| response.stop_reason)
    }
}

async fn run_to_end(
    open: Arc<Open>,
    prompting: impl Future<Output = acp_sdk::Result<StopReason>>,
    state: &TurnState,
    late: Duration,
    sender: oneshot::Sender<Result<StopReason>>,
) {
    let inbox = open.inbox.clone();
    let mut prompting = std::pin::pin!(prompting);
    let result = result(&open, prompting.as_mut(), state).await;
    if let Ok(stop_reason) = &result
        && !late.is_zero()
    {
        Box::pin(late_updates(&open, state, late)).await;
        inbox.end_turn(state, Some(stop_reason.clone()));
    }
    state.signals.set(Signal::CancelSent);
    let overdue = matches!(result, Err(Error::NotCancelled { .. }));
    match overdue {
        true => inbox.give_up_turn(state),
        // The prompt may have no response.
        false => inbox.end_turn(state, None),
    }
    // Before the result is sent, because its receiver may reopen the session immediately. A wait for an
    // unresponsive agent must not keep the connection open.
    drop(open);
    match result {
        Ok(_) => Box::pin(state.reviewed()).await,
        // Nothing is left to decide.
        Err(_) => state.cancel(),
    }
    // The turn may have been dropped.
    let _ = sender.send(result);
    if overdue {
        // Until the response, updates belong to this turn and not to a later one.
        let _ = prompting.await;
        inbox.end_turn(state, None);
    }
}

/// Waits for updates after the response.
async fn late_updates(open: &Open, state: &TurnState, late: Duration) {
    tokio::select! {
        () = sleep(late) => {}
        () = state.signals.until(Signal::Cancel) => {}
        () = open.client.wire.ended.cancelled() => {}
    }
}

async fn result(
    open: &Open,
    mut prompting: Pin<&mut impl Future<Output = acp_sdk::Result<StopReason>>>,
    state: &TurnState,
) -> Result<StopReason> {
    let client = &open.client;
    let answer = tokio::select! {
        biased;
        answer = &mut prompting => answer,
        () = state.signals.until(Signal::Cancel) => {
            let limit = client.cancel_limit();
            let ending = async {
                let cancel = CancelNotification::new(open.id.clone());
                // On a closed connection the prompt has already failed.
                let _ = client.agent.cancel(cancel).await;
                // After the notification, so that the agent can interpret the `cancelled` answers.
                state.signals.set(Signal::CancelSent);
                (&mut prompting).await
            };
            // Rare, and its state is not for every turn.
            match Box::pin(timeout(limit, ending)).await {
                Ok(answer) => answer,
                Err(_) => return Err(Error::NotCancelled { session: open.id.clone(), limit }),
            }
        }
    };
    match answer {
        Ok(stop_reason) => Ok(stop_reason),
        Err(error) => {
            if error.is_closed() {
                // A response follows earlier updates; the end of the connection does not.
                Box::pin(client.drained()).await;
            }
            Err(Box::pin(client.explain(methods::Prompt::NAME, error)).await)
        }
    }
}
