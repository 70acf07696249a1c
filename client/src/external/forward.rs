//! Forwards permission requests of an agent that works for another agent.

use acp_sdk::v1::{ClientHandle, RequestPermissionOutcome, SessionId};

use crate::permission::{Decision, PermissionRequest, Permissions};

/// Forwards the permission requests of an external agent to the delegating agent's client.
///
/// The request has the delegating agent's session id and all known data of the tool call.
#[derive(Debug, Clone)]
pub struct Forward {
    client: ClientHandle,
    session: SessionId,
}

impl Forward {
    /// Creates a handler that sends requests to `client` in `session`.
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
        let mut request = question.complete();
        request.session_id = self.session.clone();
        match self.client.request_permission(request).await {
            Ok(answer) => match answer.outcome {
                RequestPermissionOutcome::Selected(chosen) => Decision::Option(chosen.option_id),
                _ => Decision::Cancelled,
            },
            Err(error) => {
                tracing::debug!(%error, "cannot forward a permission request");
                Decision::Reject
            }
        }
    }

    /// The user of the delegating agent's client decides.
    fn asks_person(&self) -> bool {
        true
    }
}
