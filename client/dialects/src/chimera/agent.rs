//! The methods of ACP in terms of Chimera's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acp_client::ProcessEnd;
use acp_dialects::chimera::{
    AgentHandle, CreateSessionRequest, ForkSessionRequest, SendMessageRequest,
};
use acp_sdk::v1::{
    self, AgentContext, CancelNotification, ContentBlock, ErrorCode, NewSessionRequest,
    NewSessionResponse, PromptRequest, PromptResponse, ResumeSessionRequest, SessionId, StopReason,
};
use acp_sdk::{Error, HandlerError, HandlerResult, Json, Meta, Result};
use serde_json::json;
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::turns::Turns;

/// The method of ACP that copies a session, a proposal.
const FORK: &str = "session/fork";

/// The agent as one of ACP.
pub(super) struct Agent {
    agent: AgentHandle,
    turns: Arc<Turns>,
    process: Option<ProcessEnd>,
    drain_delay: Duration,
    /// Locked by the message that runs, until it is answered.
    message: Arc<Mutex<()>>,
    /// Whether a cancelled turn has ended the agent.
    has_ended: AtomicBool,
}

impl Agent {
    pub(super) fn new(
        agent: AgentHandle,
        turns: Arc<Turns>,
        process: Option<ProcessEnd>,
        drain_delay: Duration,
    ) -> Self {
        Self {
            agent,
            turns,
            process,
            drain_delay,
            message: Arc::default(),
            has_ended: AtomicBool::new(false),
        }
    }

    /// Awaits an answer of the agent. After the agent's end there is none: the client learns of it by the end
    /// of the connection, whose reason is that of the process.
    async fn answer<T>(
        &self,
        ctx: &AgentContext,
        call: impl Future<Output = Result<T>>,
    ) -> HandlerResult<T> {
        let answer = match self.has_ended.load(Ordering::Relaxed) {
            true => None,
            false => Some(call.await),
        };
        match answer {
            Some(Ok(answer)) => Ok(answer),
            Some(Err(error)) if !error.is_closed() => Err(refused(error)),
            _ => {
                ctx.request_cancelled().await;
                Err(HandlerError::internal("the agent has ended"))
            }
        }
    }

    /// Ends the agent when the request is answered. Drops its call to the agent after that: before, the
    /// connection would send the agent the notification of ACP that cancels requests.
    fn end(&self, ctx: &AgentContext, call: impl Send + 'static) {
        self.has_ended.store(true, Ordering::Relaxed);
        let (answered, process) = (ctx.answered(), self.process.clone());
        let peer = self.agent.peer().clone();
        tokio::spawn(async move {
            answered.await;
            if let Some(process) = process {
                process.terminate().await;
            }
            peer.close();
            peer.closed().await;
            drop(call);
        });
    }

    async fn fork(&self, ctx: &AgentContext, session: SessionId) -> HandlerResult<SessionId> {
        let request = ForkSessionRequest::new(session.clone());
        let copy = self.answer(ctx, self.agent.fork_session(request)).await?;
        self.turns.fork(&session, copy.session_id.clone());
        Ok(copy.session_id)
    }
}

impl v1::Agent for Agent {
    async fn new_session(
        &self,
        ctx: &AgentContext,
        req: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        let has_none = "Chimera's protocol has none";
        if !req.mcp_servers.is_empty() {
            return Err(HandlerError::invalid_params("/mcpServers", has_none));
        }
        if !req.additional_directories.is_empty() {
            let path = "/additionalDirectories";
            return Err(HandlerError::invalid_params(path, has_none));
        }
        let request = CreateSessionRequest::new().with_working_dir(req.cwd);
        let created = self.answer(ctx, self.agent.create_session(request)).await?;
        Ok(NewSessionResponse::new(created.session_id))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        let text = text(&req.prompt)?;
        let running = tokio::select! {
            biased;
            // It was not sent.
            () = ctx.cancelled() => return Ok(PromptResponse::new(StopReason::Cancelled)),
            running = self.message.clone().lock_owned() => running,
        };
        ctx.keep_until_answered(running);
        self.turns.begin(&req.session_id);
        let request = SendMessageRequest::new(req.session_id.clone(), text);
        let agent = self.agent.clone();
        let mut call = Box::pin(async move { agent.send_message(request).await });
        let answer = tokio::select! {
            biased;
            answer = self.answer(ctx, &mut call) => answer?,
            () = ctx.cancelled() => {
                self.end(ctx, call);
                return Ok(PromptResponse::new(StopReason::Cancelled));
            }
        };
        if !self.drain_delay.is_zero() {
            // Cancelling what has ended only ends the wait.
            let _ = timeout(self.drain_delay, ctx.cancelled()).await;
        }
        let stop = answer.stop_reason.as_deref();
        let stop = stop.map_or(StopReason::EndTurn, StopReason::from);
        Ok(PromptResponse::new(stop).with_meta(self.tokens(&req.session_id)))
    }

    /// The context of the prompt is cancelled by the connection.
    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }

    #[cfg(feature = "unstable")]
    async fn fork_session(
        &self,
        ctx: &AgentContext,
        req: v1::ForkSessionRequest,
    ) -> HandlerResult<v1::ForkSessionResponse> {
        let copy = self.fork(ctx, req.session_id).await?;
        Ok(v1::ForkSessionResponse::new(copy))
    }

    async fn ext_request(
        &self,
        ctx: &AgentContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        if method != FORK {
            return Err(HandlerError::method_not_found(method));
        }
        // The params have the form of those of `session/resume`.
        let params = params.as_ref().map_or("{}", Json::get);
        let request = acp_sdk::json::from_str::<ResumeSessionRequest>(params);
        let request =
            request.map_err(|error| HandlerError::invalid_params("", error.to_string()))?;
        let copy = self.fork(ctx, request.session_id).await?;
        Json::new(&NewSessionResponse::new(copy)).map_err(HandlerError::internal)
    }
}

impl Agent {
    /// Returns the tokens of the latest message of a session, in the form in which the client reads them.
    fn tokens(&self, session: &SessionId) -> Option<Meta> {
        let usage = self.turns.usage(session);
        if usage.input_tokens.is_none() && usage.output_tokens.is_none() {
            return None;
        }
        let count = json!({
            "input_tokens": usage.input_tokens.unwrap_or_default(),
            "output_tokens": usage.output_tokens.unwrap_or_default(),
        });
        Some(Meta::new().with("quota", &json!({ "token_count": count })))
    }
}

/// Returns the text of a prompt. A link is written as in Markdown.
fn text(prompt: &[ContentBlock]) -> HandlerResult<String> {
    let texts = prompt.iter().enumerate().map(|(index, block)| match block {
        ContentBlock::Text(text) => Ok(text.text.clone()),
        ContentBlock::ResourceLink(link) => Ok(format!("[{}]({})", link.name, link.uri)),
        _ => Err(HandlerError::invalid_params(
            &format!("/prompt/{index}"),
            "Chimera's protocol has text and links only",
        )),
    });
    Ok(texts.collect::<HandlerResult<Vec<_>>>()?.join("\n"))
}

/// Returns the agent's error. -32000 is any error of the agent; ACP has it for a missing login, which Chimera's
/// protocol does not have.
fn refused(error: Error) -> HandlerError {
    match error {
        Error::Response { mut error, .. } => {
            if error.code == ErrorCode::AUTHENTICATION_REQUIRED {
                error.code = ErrorCode::INTERNAL_ERROR;
            }
            HandlerError::response(*error)
        }
        error => HandlerError::internal(error),
    }
}
