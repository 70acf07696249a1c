//! Why a request is refused: a status, and JSON that says why and what to do.

use std::borrow::Cow;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a client should try again what there is no room for now.
const RETRY_AFTER: u64 = 5;

/// A refusal. Its response has the headers that belong to its status.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    status: StatusCode,
    pub(crate) body: Box<ErrorBody>,
    /// Seconds after which the client should try again.
    retry_after: Option<u64>,
}

/// The body of every refusal.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = Error)]
pub(crate) struct ErrorBody {
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
    pub(crate) detail: Option<String>,
    /// The path that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(crate) path: Option<String>,
    /// The command that is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = String)]
    pub(crate) name: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, error: &'static str) -> Self {
        let error = Cow::Borrowed(error);
        let retry_after = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(RETRY_AFTER);
        Self {
            status,
            body: Box::new(ErrorBody {
                error,
                ..ErrorBody::default()
            }),
            retry_after,
        }
    }

    /// The token is missing or not valid.
    pub(crate) fn unauthorized() -> Self {
        let message = "the token is missing or not valid; send Authorization: Bearer TOKEN";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized").message(message)
    }

    /// The token is valid, but not for this.
    pub(crate) fn forbidden() -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden").message("the token does not permit this")
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// Says what happened and what to do, for people.
    pub(crate) fn message(mut self, message: impl Into<String>) -> Self {
        self.body.message = Some(message.into());
        self
    }

    /// Sets after how many seconds the client should try again.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(*self.body)).into_response();
        let headers = response.headers_mut();
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
