//! Permissions and elicitations of an agent, as questions of the session.

use std::sync::Arc;

use acp_sdk::json::Described;
use acp_sdk::v1::{
    CreateElicitationRequest, CreateElicitationResponse, ElicitationAction, ElicitationMode,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse,
};
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::connection::elicitation_needs;
use acp_server::internal::raw_object::{RawObject, json_text};
use acp_server::internal::session::{Ask, Reply};
use acp_server::{Error, Session};
use serde::de::DeserializeOwned;

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

/// Returns params with our session in place of the agent's.
pub(super) fn of(mut params: RawObject, session: &Session) -> Json {
    params.set("sessionId", json_text(session.id().as_str()));
    params.to_json()
}

/// Reads params as leniently as a connection does.
pub(super) fn read<T: DeserializeOwned + Described>(params: &Json) -> HandlerResult<T> {
    acp_sdk::json::from_str(params.get())
        .map_err(|error| HandlerError::invalid_params(&error.path, &error.message))
}

pub(super) fn json(answer: &impl serde::Serialize) -> HandlerResult<Json> {
    Json::new(answer).map_err(HandlerError::internal)
}

/// Returns the answer to the agent when a client could not be asked, or refused: the client's error
/// unchanged.
pub(super) fn answer_of(error: Error) -> HandlerError {
    match error {
        Error::Call(acp_sdk::Error::Response { error, .. }) | Error::Local { error, .. } => {
            HandlerError::response(*error)
        }
        Error::Cancelled => HandlerError::cancelled(),
        // As a client that does not have it.
        Error::Unsupported(_) => {
            HandlerError::new(acp_sdk::v1::ErrorCode::METHOD_NOT_FOUND, error.to_string())
        }
        error => HandlerError::internal(error),
    }
}
