//! Why a request is refused.

use std::borrow::Cow;
use std::error::Error as StdError;

use acp_sdk::HandlerError;
use acp_sdk::v1::ErrorCode;
use acp_server::Error;
use acp_server::store::{StoreError, StoreErrorKind};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use crate::bodies::BodyError;

/// A refusal: a status, and a body that says why.
#[derive(Clone, Debug)]
pub(super) struct Failure {
    status: StatusCode,
    body: Box<ErrorBody>,
}

/// The body of every refusal.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = Error)]
pub(super) struct ErrorBody {
    /// A name for programs, such as `session_not_found`.
    #[schema(value_type = String)]
    error: Cow<'static, str>,
    /// What happened and what to do, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    message: Option<String>,
    /// What is wrong with a query, or the cause of a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    detail: Option<String>,
    /// The path that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    path: Option<String>,
    /// The command that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    name: Option<String>,
}

impl Failure {
    pub(super) fn new(status: StatusCode, error: &'static str) -> Self {
        let body = ErrorBody {
            error: Cow::Borrowed(error),
            message: None,
            detail: None,
            path: None,
            name: None,
        };
        let body = Box::new(body);
        Self { status, body }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

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

    pub(super) fn message(mut self, message: impl Into<String>) -> Self {
        self.body.message = Some(message.into());
        self
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
        match error.code() {
            ErrorCode::RESOURCE_NOT_FOUND => Self::session_not_found(),
            ErrorCode::INVALID_PARAMS => {
                Self::bad_request("invalid_field").message(error.as_response().message.clone())
            }
            _ => Self::internal(operation, error.as_response().message.clone()),
        }
    }
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        Self::new(error.status(), error.name()).message(error.message())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(*self.body)).into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
        }
        response
    }
}
