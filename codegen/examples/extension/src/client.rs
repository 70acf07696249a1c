//! A client that answers questions, and passes on what it hears.

use acp_sdk::HandlerResult;
use tokio::sync::mpsc;

use crate::acp::{
    Choice, Client, ClientContext, ConfirmRequest, ConfirmResponse, ContentBlock,
    ProgressNotification, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionNotification, SessionUpdate, Table,
};

/// What a client heard of the agent.
#[derive(Debug, PartialEq)]
pub enum Heard {
    /// How far an index has come.
    Progress(u8),
    /// A table to show.
    Table(Table),
}

/// Says yes to every question that ends in a question mark.
#[derive(Debug)]
pub struct Desk(pub mpsc::UnboundedSender<Heard>);

impl Client for Desk {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: SessionNotification,
    ) -> HandlerResult<()> {
        if let SessionUpdate::AgentMessageChunk(chunk) = note.update
            && let ContentBlock::ExampleTable(table) = chunk.content
        {
            // Whoever listens may have left.
            let _ = self.0.send(Heard::Table(table));
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        _: &ClientContext,
        _: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        let outcome = RequestPermissionOutcome::Cancelled;
        Ok(RequestPermissionResponse::new(outcome))
    }

    async fn confirm(
        &self,
        _: &ClientContext,
        req: ConfirmRequest,
    ) -> HandlerResult<ConfirmResponse> {
        let choice = match req.question.ends_with('?') {
            true => Choice::Yes,
            false => req.fallback.unwrap_or(Choice::No),
        };
        Ok(ConfirmResponse::new(choice))
    }

    async fn progress(&self, _: &ClientContext, note: ProgressNotification) -> HandlerResult<()> {
        let _ = self.0.send(Heard::Progress(note.percent));
        Ok(())
    }
}
