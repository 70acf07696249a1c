//! Permission requests of an agent that works for another one.

use acp_sdk::v1::{ClientHandle, RequestPermissionOutcome, SessionId};

use crate::permission::{Decision, PermissionRequest, Permissions};

/// Passes an agent's questions on, for an agent that delegates: its own client decides.
///
/// The question is asked in the session of the delegating agent and otherwise unchanged.
#[derive(Debug, Clone)]
pub struct Forward {
    client: ClientHandle,
    session: SessionId,
}

impl Forward {
    /// Asks `client` in `session`.
    #[must_use]
    pub fn new(client: ClientHandle, session: impl Into<SessionId>) -> Self {
        Self {
            client,
            session: session.into(),
        }
    }
}

impl Permissions for Forward {
    async fn decide(&self, question: &PermissionRequest) -> Decision {
        let mut request = question.request.clone();
        request.session_id = self.session.clone();
        // Our client has not heard of this tool call before.
        let call = &mut request.tool_call;
        call.title = call.title.take().or_else(|| question.title.clone());
        call.kind = call.kind.take().or_else(|| question.kind.clone());
        match self.client.request_permission(request).await {
            Ok(answer) => match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) => Decision::Option(chosen.option_id),
                _ => Decision::Cancelled,
            },
            Err(error) => {
                tracing::debug!(%error, "a question could not be passed on");
                Decision::Reject
            }
        }
    }
}
