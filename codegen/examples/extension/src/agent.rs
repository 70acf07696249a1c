//! An agent that indexes texts, and asks before it starts.

use acp_sdk::{HandlerError, HandlerResult};

use crate::acp::{
    Agent, AgentContext, CancelNotification, Choice, ConfirmRequest, ContentBlock, ContentChunk,
    IndexRequest, IndexResponse, NewSessionRequest, NewSessionResponse, ProgressNotification,
    PromptRequest, PromptResponse, SessionNotification, SessionUpdate, StopReason, Table,
};

/// Counts words when the user agrees, and answers a prompt with a table.
#[derive(Debug)]
pub struct Librarian;

impl Agent for Librarian {
    async fn new_session(
        &self,
        _: &AgentContext,
        _: NewSessionRequest,
    ) -> HandlerResult<NewSessionResponse> {
        Ok(NewSessionResponse::new("session-1"))
    }

    async fn prompt(&self, cx: &AgentContext, req: PromptRequest) -> HandlerResult<PromptResponse> {
        let trace = req.meta_trace().map_or("none".into(), |trace| trace.id);
        let table = Table::new(vec![vec!["trace".into(), trace]]);
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(table)));
        let note = SessionNotification::new(req.session_id, update);
        cx.client().session_update(note).await?;
        Ok(PromptResponse::new(StopReason::EndTurn))
    }

    async fn cancel(&self, _: &AgentContext, _: CancelNotification) -> HandlerResult<()> {
        Ok(())
    }

    async fn index(&self, cx: &AgentContext, req: IndexRequest) -> HandlerResult<IndexResponse> {
        let question = ConfirmRequest::new(req.session_id.clone(), "index the text?");
        let answer = cx
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
        cx.client().progress(done).await?;
        Ok(IndexResponse::new(words as u64))
    }
}
