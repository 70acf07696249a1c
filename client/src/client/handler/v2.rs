//! Handles requests of an agent of version 2 by converting them to version 1.

use std::sync::Arc;

use acp_sdk::convert::convert_logged;
use acp_sdk::v1::{self, Client as _};
use acp_sdk::v2::{
    Client, ClientContext, CompleteElicitationNotification, CreateElicitationRequest,
    CreateElicitationResponse, RequestPermissionRequest, RequestPermissionResponse, SessionUpdate,
    UpdateSessionNotification,
};
use acp_sdk::{HandlerError, HandlerResult, Json};

use super::Handler;
use crate::session::{self, Inbox};

/// The client's handler for a connection of version 2.
pub(in crate::client) struct HandlerV2(pub(in crate::client) Arc<Handler>);

impl Client for HandlerV2 {
    async fn session_update(
        &self,
        _: &ClientContext,
        note: UpdateSessionNotification,
    ) -> HandlerResult<()> {
        let session = note.session_id.as_str().into();
        let receiver = self.0.sessions.receiver(&session, note.meta.as_ref());
        let origin = session::Origin::of(note.meta.as_ref());
        let ends_history = matches!(note.update, SessionUpdate::ReplayComplete(_));
        let (updates, end) = receiver.inbox.convert(note.update);
        for update in updates {
            let rest = self.0.deliver(&session, &receiver, update, origin.clone());
            if let Some(rest) = rest {
                rest.await;
            }
        }
        if ends_history {
            receiver.inbox.end_history();
        }
        if let Some(end) = end {
            receiver.inbox.end_work(end);
        }
        Ok(())
    }

    async fn request_permission(
        &self,
        ctx: &ClientContext,
        req: RequestPermissionRequest,
    ) -> HandlerResult<RequestPermissionResponse> {
        let none = || HandlerError::invalid_params("", "the request has no form in version 1");
        let request = convert_logged(req).ok_or_else(none)?;
        let ctx = &same(ctx);
        let answer = self.0.permission(ctx, request, Inbox::is_foreground);
        let answer = answer.await?;
        convert_logged(answer).ok_or_else(|| no_form("the answer"))
    }

    async fn create_elicitation(
        &self,
        ctx: &ClientContext,
        req: CreateElicitationRequest,
    ) -> HandlerResult<CreateElicitationResponse> {
        let refused = |reason| HandlerError::invalid_params("/mode", reason);
        if self.0.hooks.elicitation.is_none() {
            return Err(refused("this client offers no elicitation"));
        }
        let request =
            convert_logged(req).ok_or_else(|| refused("this client cannot display the form"))?;
        let ctx = &same(ctx);
        let answer = self.0.elicitation(ctx, request, Inbox::is_foreground);
        let answer = answer.await?;
        convert_logged(answer).ok_or_else(|| no_form("the answer"))
    }

    async fn complete_elicitation(
        &self,
        _: &ClientContext,
        note: CompleteElicitationNotification,
    ) -> HandlerResult<()> {
        if let Some(hook) = &self.0.hooks.elicitation {
            hook.completed(&note.elicitation_id.as_str().into());
        }
        Ok(())
    }

    async fn ext_request(
        &self,
        ctx: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        self.0.ext_request(&same(ctx), method, params).await
    }

    async fn ext_notification(
        &self,
        ctx: &ClientContext,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<()> {
        self.0.ext_notification(&same(ctx), method, params).await
    }
}

fn no_form(what: &str) -> HandlerError {
    HandlerError::internal(format!("{what} has no form in version 2"))
}

/// Converts the context of a request to version 1.
fn same(ctx: &ClientContext) -> v1::ClientContext {
    v1::ClientContext::new((**ctx).clone())
}
