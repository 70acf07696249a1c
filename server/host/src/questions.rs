//! Permissions and elicitations of an agent, as questions of the session.

use std::sync::Arc;

use acp_sdk::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationMode,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::connection::elicitation_needs;
use acp_server::internal::raw_object::RawObject;
use acp_server::internal::session::{Ask, Reply};
use acp_server::{Error, Session};

use super::messages::{answer_of, json, of, read};
use super::routes::Routes;
use super::session::HostedSession;

impl HostedSession {
    /// Asks for a permission. In a cancelled turn the answer is `cancelled`, as of any client.
    pub(super) async fn permission(&self, params: RawObject) -> HandlerResult<Json> {
        let session = self.session()?;
        let request: RequestPermissionRequest = read(&of(params, &session))?;
        let outcome = match self.ask(&session, Ask::Permission(request)).await {
            Ok(Reply::Permission(outcome)) => outcome,
            Ok(other) => return Err(HandlerError::internal(format!("got the answer {other:?}"))),
            Err(Error::Cancelled) => RequestPermissionOutcome::Cancelled,
            Err(error) => return Err(answer_of(error)),
        };
        json(&RequestPermissionResponse::new(outcome))
    }

    /// Asks the user. Where no client can, the answer is `cancel`: it was announced that some can.
    pub(super) async fn elicitation(
        self: &Arc<Self>,
        routes: &Routes,
        params: RawObject,
    ) -> HandlerResult<Json> {
        let session = self.session()?;
        let request: CreateElicitationRequest = read(&of(params, &session))?;
        let needed = elicitation_needs(&request);
        if let ElicitationMode::Url(mode) = &request.mode {
            routes.elicits(mode.elicitation_id.to_string(), self);
        }
        let mut clients = session.clients().into_iter();
        let action = if clients.any(|attached| attached.offers(needed)) {
            match self.ask(&session, Ask::Elicitation(request)).await {
                Ok(Reply::Elicitation(action)) => action,
                Ok(other) => {
                    return Err(HandlerError::internal(format!("got the answer {other:?}")));
                }
                Err(Error::Cancelled) => ElicitationAction::Cancel,
                Err(error) => return Err(answer_of(error)),
            }
        } else {
            ElicitationAction::Cancel
        };
        json(&CreateElicitationResponse::new(action))
    }

    /// Asks in the running turn, or outside.
    async fn ask(&self, session: &Session, ask: Ask) -> acp_server::Result<Reply> {
        if let Some(turn) = self.turn() {
            match turn.ask(ask.clone()).await {
                Err(Error::TurnEnded(..)) => {}
                asked => return asked,
            }
        }
        session.ask(ask).await
    }
}
