//! A client that answers questions and reports events to a channel.

use acp_sdk::HandlerResult;
use acp_sdk::v1::{
    Client, ClientContext, RequestPermissionOutcome, RequestPermissionRequest,
    RequestPermissionResponse, SessionNotification, SessionUpdate,
};
use tokio::sync::mpsc;

use crate::extension::{
    Choice, ClientExtension, ConfirmRequest, ConfirmResponse, ProgressNotification, Table,
};

/// What the agent reported.
#[derive(Debug, PartialEq)]
pub enum Event {
    /// The progress of an index, in percent.
    Progress(u8),
    /// A table to show.
    Table(Table),
}

/// Answers yes to every question that ends in a question mark.
#[derive(Clone, Debug)]
pub struct Desk(pub mpsc::Sender<Event>);

impl Client for Desk {
    async fn session_update(
        &self,
        _: &ClientContext,
        notification: SessionNotification,
    ) -> HandlerResult<()> {
        if let SessionUpdate::AgentMessageChunk(chunk) = notification.update
            && let Some(table) = Table::from_content_block(&chunk.content)
        {
            // The receiver may be gone.
            let _ = self.0.send(Event::Table(table)).await;
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
}

impl ClientExtension for Desk {
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

    async fn progress(
        &self,
        _: &ClientContext,
        notification: ProgressNotification,
    ) -> HandlerResult<()> {
        let _ = self.0.send(Event::Progress(notification.percent)).await;
        Ok(())
    }
}
