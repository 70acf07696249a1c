//! The refusals of the REST interface.

use std::error::Error as StdError;

use acp_sdk::HandlerError;
use acp_sdk::v1::ErrorCode;
use acp_server::Error;
use acp_server::store::{StoreError, StoreErrorKind};
use axum::http::StatusCode;

pub(super) use crate::failure::{ErrorBody, Failure};

/// Seconds after which the node of a session is looked for again.
const MOVED: u64 = 2;

impl Failure {
    pub(super) fn bad_request(error: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, error)
    }

    pub(super) fn not_found(error: &'static str) -> Self {
        Self::new(StatusCode::NOT_FOUND, error)
    }

    pub(super) fn internal(error: &'static str, detail: impl Into<String>) -> Self {
        let mut failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, error);
        failure.body.detail = Some(detail.into());
        failure
    }

    /// Another server has failed.
    pub(super) fn bad_gateway(error: &'static str, detail: impl Into<String>) -> Self {
        let mut failure = Self::new(StatusCode::BAD_GATEWAY, error);
        failure.body.detail = Some(detail.into());
        failure
    }

    /// A refusal for now: the response says when to try again.
    pub(super) fn overloaded(error: &'static str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, error)
    }

    pub(super) fn session_not_found() -> Self {
        Self::not_found("session_not_found")
    }

    pub(super) fn login_required() -> Self {
        Self::new(StatusCode::FORBIDDEN, "login_required").message(
            "the agent requires a login, which this interface does not have: use /acp or /rpc, or a \
             read-only token",
        )
    }

    pub(super) fn session_not_open() -> Self {
        Self::new(StatusCode::CONFLICT, "session_not_open").message(
            "the token is for reading only, which opens no session; \
             its transcript is read from the store",
        )
    }

    pub(super) fn invalid_query(detail: impl Into<String>) -> Self {
        let mut failure = Self::bad_request("invalid_query");
        failure.body.detail = Some(detail.into());
        failure
    }

    pub(super) fn path(mut self, path: impl Into<String>) -> Self {
        self.body.path = Some(path.into());
        self
    }

    pub(super) fn name(mut self, name: impl Into<String>) -> Self {
        self.body.name = Some(name.into());
        self
    }

    /// The failure of the store in an operation that has this error name.
    pub(super) fn store(operation: &'static str, error: &StoreError) -> Self {
        match error.kind() {
            StoreErrorKind::NotFound => Self::session_not_found(),
            // Each node passes requests on to it: the session has moved since this one looked.
            StoreErrorKind::InUse if error.owner().is_some() => {
                let failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, "session_moved");
                failure.message(error.to_string()).retry_after(MOVED)
            }
            StoreErrorKind::InUse => {
                Self::new(StatusCode::CONFLICT, "session_in_use").message(error.to_string())
            }
            StoreErrorKind::Full => Self::overloaded("store_full").message(error.to_string()),
            _ => Self::internal(operation, error.to_string()),
        }
    }

    /// The failure of the agent or the core in an operation that has this error name.
    pub(super) fn agent(operation: &'static str, error: &HandlerError) -> Self {
        let source = error
            .source()
            .map(|source| source as &(dyn StdError + 'static));
        if let Some(error) = source.and_then(|source| source.downcast_ref::<StoreError>()) {
            return Self::store(operation, error);
        }
        if let Some(Error::Full(reason)) = source.and_then(|source| source.downcast_ref()) {
            return Self::overloaded("server_full").message(reason);
        }
        if let Some(Error::Ending) = source.and_then(|source| source.downcast_ref()) {
            return Self::overloaded("stopping").message(Error::Ending.to_string());
        }
        match error.code() {
            ErrorCode::RESOURCE_NOT_FOUND => Self::session_not_found(),
            ErrorCode::INVALID_PARAMS => {
                Self::bad_request("invalid_field").message(error.as_response().message.clone())
            }
            _ => Self::internal(operation, error.as_response().message.clone()),
        }
    }
}

/// Returns `None` for a session that was deleted while it was listed.
///
/// # Errors
///
/// Every other failure.
pub(super) fn unless_deleted<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.status() == StatusCode::NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use acp_server::store::SessionOwner;

    use super::*;

    #[test]
    fn a_session_of_a_node_that_can_be_reached_has_moved() {
        let refused = |address: Option<&str>| {
            let address = address.map(str::to_owned);
            let owner = SessionOwner::new(address, false, Duration::ZERO);
            Failure::store("open", &StoreError::in_use_by(&"s".into(), &owner)).status()
        };
        assert_eq!(refused(Some("http://a:1")), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused(None), StatusCode::CONFLICT);
    }
}
