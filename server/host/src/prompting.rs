//! A prompt: sent to the agent, cancelled, answered.

use std::sync::Arc;

use acp_client::internal::{honors_keys, key_of, new_prompt_id, prompt_to_v2, with_key};
use acp_sdk::runtime::Method;
use acp_sdk::v1::{PromptRequest, StopReason};
use acp_sdk::{HandlerError, HandlerResult, Json, Peer, RpcError, v2};
use acp_server::Turn;
use acp_server::internal::raw_object::RawObject;

use super::process::{Process, TurnOf};
use super::processes::Processes;
use super::session::{HostedSession, UsedSession};
use super::steering::steer;
use super::uses::InUse;
use super::v2::Conversion;
use super::version::Version;

/// `session/prompt` with all members of its answer.
struct Prompt;

impl Method for Prompt {
    const NAME: &'static str = "session/prompt";
    type Params = PromptRequest;
    type Result = Json;
}

/// `session/prompt` with any form of its answer: agents of older drafts do not name the message.
struct PromptV2;

impl Method for PromptV2 {
    const NAME: &'static str = "session/prompt";
    type Params = v2::PromptRequest;
    type Result = Json;
}

/// A prompt without an answer. Dropped, it has ignored the cancellation for too long.
struct Unanswered<'a> {
    process: &'a Arc<Process>,
    answered: bool,
}

impl Drop for Unanswered<'_> {
    fn drop(&mut self) {
        if !self.answered {
            self.process.retire();
        }
    }
}

/// The running turn of a session and of a process.
struct Running<'a> {
    session: &'a HostedSession,
    _turn: Option<(TurnOf, InUse)>,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.session.set_turn(None);
    }
}

impl HostedSession {
    pub(super) async fn prompt(
        self: &Arc<Self>,
        processes: &Processes,
        turn: &Turn,
    ) -> HandlerResult<StopReason> {
        self.set_turn(Some(turn.clone()));
        let mut running = Running {
            session: self,
            _turn: None,
        };
        let ensured = tokio::select! {
            biased;
            ensured = self.ensure(processes) => ensured,
            () = turn.cancelled() => return Ok(StopReason::Cancelled),
        };
        let UsedSession {
            session: link,
            used,
        } = ensured?;
        let process = &link.process;
        running._turn = Some((process.turn(), used));
        let mut request = PromptRequest::new(link.id.clone(), turn.prompt().to_vec())
            .with_meta(turn.meta().cloned());
        // A process has no other connection on which the prompt could be sent again.
        let is_remote = process.tree.is_none();
        if is_remote && key_of(&request).is_none() && honors_keys(&process.info) {
            request = with_key(request, &new_prompt_id());
        }
        let mut unanswered = Unanswered {
            process,
            answered: false,
        };
        let mut call = std::pin::pin!(self.call(process, &request));
        let steering = std::pin::pin!(steer(process, &link.id, turn));
        let answer = tokio::select! {
            biased;
            answer = &mut call => answer,
            never = steering => match never {},
            () = turn.cancelled() => {
                // Without a connection the call fails, too.
                let _ = process.version.cancel(&process.agent, &link.id).await;
                call.await
            }
        };
        unanswered.answered = true;
        match answer {
            Ok(answer) => read(&answer, process, turn),
            Err(error) => Err(process.failed(error).await),
        }
    }
}

impl HostedSession {
    /// Sends the prompt, and waits for the end of its turn.
    async fn call(
        self: &Arc<Self>,
        process: &Process,
        request: &PromptRequest,
    ) -> acp_sdk::Result<Json> {
        match process.version {
            Version::V1 => process.agent.peer().call::<Prompt>(request).await,
            Version::V2 => prompt_v2(self, process.agent.peer(), request).await,
        }
    }
}

/// Sends a prompt and waits for the end of its turn, which is in the form of an answer of version 1.
///
/// # Errors
///
/// The agent's error, or the end of the connection.
async fn prompt_v2(
    session: &Arc<HostedSession>,
    peer: &Peer,
    request: &PromptRequest,
) -> acp_sdk::Result<Json> {
    let failed = |error: RpcError| acp_sdk::Error::Response {
        method: PromptV2::NAME.to_owned(),
        error: Box::new(error),
    };
    let converted = prompt_to_v2(request.clone());
    let request =
        converted.map_err(|error| failed(HandlerError::internal(error).as_response().clone()))?;
    let ended = session.converting(Conversion::begin);
    let accepting = session.clone();
    let accepted = move |response: std::result::Result<&str, &RpcError>| {
        accepting.converting(|conversion| match response {
            Ok(answer) => {
                let answer = RawObject::parse(answer).unwrap_or_default();
                conversion.accepted(answer.text("messageId").as_deref());
            }
            Err(_) => conversion.refused(),
        });
    };
    peer.call_then::<PromptV2>(&request, accepted).await?;
    let end = tokio::select! {
        biased;
        Ok(end) = ended => end,
        reason = peer.closed() => return Err(acp_sdk::Error::Closed(reason)),
    };
    let stop = end.stop.map_err(failed)?;
    let mut answer = serde_json::json!({ "stopReason": stop });
    if let Some(meta) = &end.meta {
        let mut meta = serde_json::to_value(meta).unwrap_or_default();
        let ours = meta.as_object_mut().and_then(|meta| meta.remove("acp-sdk"));
        if let Some(usage) = ours.as_ref().and_then(|ours| ours.get("usage")) {
            answer["usage"] = usage.clone();
        }
        answer["_meta"] = meta;
    }
    Ok(answer.into())
}

/// Reads the stop reason. The other members are the turn's answer.
fn read(answer: &Json, process: &Process, turn: &Turn) -> HandlerResult<StopReason> {
    let invalid = || {
        let command = process.command();
        HandlerError::internal(format!(
            "`{command}` answered session/prompt without stopReason"
        ))
    };
    let mut members = RawObject::parse(answer.get()).ok_or_else(invalid)?;
    let stop = members.remove("stopReason").ok_or_else(invalid)?;
    let stop: StopReason = stop.parse().map_err(|_| invalid())?;
    if !members.is_empty() {
        turn.set_answer(members.to_json());
    }
    Ok(stop)
}
