//! An agent that indexes texts after it has asked the user.

use acp_sdk::v1::{
    Agent, AgentContext, CancelNotification, ContentChunk, NewSessionRequest, NewSessionResponse,
    PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason,
};
use acp_sdk::{HandlerError, HandlerResult};

use crate::extension::{
    AgentExtension, Choice, ClientHandleExt as _, ConfirmRequest, IndexRequest, IndexResponse,
    ProgressNotification, PromptRequestExt as _, Table,
};

/// Counts words when the user agrees, and answers a prompt with a table.
#[derive(Clone, Debug)]
pub struct Librarian;

impl Agent for Librarian {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("session-1"))
    }

    async fn prompt(
        &self,
        ctx: &AgentContext,
        req: PromptRequest,
    ) -> HandlerResult<PromptResponse> {
        let trace = req.meta_trace().map_or("none".into(), |trace| trace.id);
        let table = Table::new(vec![vec!["trace".into(), trace]]);
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(table));
        let notification = SessionNotification::new(req.session_id, update);
        ctx.client().session_update(notification).await?;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }
}

impl AgentExtension for Librarian {
    async fn index(&self, ctx: &AgentContext, req: IndexRequest) -> HandlerResult<IndexResponse> {
        let question = ConfirmRequest::new(req.session_id.clone(), "index the text?");
        let answer = ctx
            .client()
            .confirm(question.with_fallback(Choice::No))
            .await?;
        if answer.choice != Choice::Yes {
            return Err(HandlerError::invalid_params(
                "/text",
                "the user does not want an index",
            ));
        }
        let words = req.text.split_whitespace().count();
        let done = ProgressNotification::new(req.session_id, 100);
        ctx.client().progress(done).await?;
        Ok(IndexResponse::new(words as u64))
    }
}
