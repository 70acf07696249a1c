//! Params of an agent's requests, and their answers.

use acp_sdk::json::Described;
use acp_sdk::{HandlerError, HandlerResult, Json};
use acp_server::internal::raw_object::{RawObject, json_text};
use acp_server::{Error, Session};
use serde::de::DeserializeOwned;

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
