//! The answers to requests that are refused.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::hosts::Refusal;

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let (status, error, message) = match self {
            Self::InvalidHost(reason) => (StatusCode::BAD_REQUEST, "invalid_host", reason),
            Self::ForbiddenHost => (
                StatusCode::FORBIDDEN,
                "forbidden_host",
                "the host of the request is not allowed. `--allow-host NAME` allows it",
            ),
            Self::ForbiddenOrigin => (
                StatusCode::FORBIDDEN,
                "forbidden_origin",
                "the origin of the request is not allowed. `--cors ORIGIN` allows it",
            ),
        };
        (status, Json(json!({ "error": error, "message": message }))).into_response()
    }
}

pub(super) fn unauthorized() -> Response {
    let challenge = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    let message = "the token is missing or not valid; send Authorization: Bearer TOKEN";
    let body = Json(json!({ "error": "unauthorized", "message": message }));
    (StatusCode::UNAUTHORIZED, [challenge], body).into_response()
}

pub(crate) fn forbidden() -> Response {
    let message = "the token does not permit this";
    let body = Json(json!({ "error": "forbidden", "message": message }));
    (StatusCode::FORBIDDEN, body).into_response()
}

pub(super) fn too_many_requests(wait: Duration) -> Response {
    // Whole seconds, and never zero.
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    let retry = (header::RETRY_AFTER, HeaderValue::from(seconds.max(1)));
    let body = Json(json!({ "error": "too_many_requests" }));
    (StatusCode::TOO_MANY_REQUESTS, [retry], body).into_response()
}
