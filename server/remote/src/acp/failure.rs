//! Why a request is refused.

use acp_sdk::ErrorCode;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::bodies::BodyError;

/// A refusal: a status, and a body in JSON that says why and what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    status: StatusCode,
    /// A name for programs.
    error: &'static str,
    message: &'static str,
    /// The code of a JSON-RPC error, which is the body then.
    code: Option<ErrorCode>,
}

impl Failure {
    const fn new(status: StatusCode, error: &'static str, message: &'static str) -> Self {
        Self {
            status,
            error,
            message,
            code: None,
        }
    }

    const fn json_rpc(code: ErrorCode, message: &'static str) -> Self {
        Self {
            status: StatusCode::BAD_REQUEST,
            error: "",
            message,
            code: Some(code),
        }
    }

    pub(super) const NO_CONNECTION_ID: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "missing_connection_id",
        "the header Acp-Connection-Id is missing; the response to initialize has it",
    );
    pub(super) const UNKNOWN_CONNECTION: Self = Self::new(
        StatusCode::NOT_FOUND,
        "unknown_connection",
        "no connection has this id; it has ended, so call initialize again and resume the sessions",
    );
    pub(super) const BAD_HEADER: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "bad_header",
        "an Acp- header is doubled, longer than 1,024 bytes, or no plain text",
    );
    pub(super) const UNSUPPORTED_VERSION: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "unsupported_protocol_version",
        "the header Acp-Protocol-Version names a version that this server does not speak",
    );
    pub(super) const NOT_JSON: Self = Self::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "not_json",
        "the body must have the type application/json",
    );
    pub(super) const NOT_ACCEPTABLE: Self = Self::new(
        StatusCode::NOT_ACCEPTABLE,
        "not_acceptable",
        "a stream has the type text/event-stream, which the header Accept does not allow",
    );
    pub(super) const TOO_MANY_REQUESTS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_requests",
        "the connection has as many unanswered requests as it may have; await an answer first",
    );
    pub(super) const SESSIONS_DISAGREE: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "sessions_disagree",
        "the header Acp-Session-Id and params.sessionId name different sessions",
    );
    pub(super) const CONNECTED_ALREADY: Self = Self::new(
        StatusCode::BAD_REQUEST,
        "connected_already",
        "initialize opens a connection, so it must not name one",
    );
    pub(super) const TOO_MANY_CONNECTIONS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_connections",
        "as many connections are open as the server allows, all or this token's; try again later",
    );
    pub(super) const STOPPING: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "stopping",
        "the server is about to end; connect again, to another server if there are several",
    );
    pub(super) const TOO_MANY_STREAMS: Self = Self::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "too_many_streams",
        "the connection has as many session streams as it may have; close one first",
    );
    pub(super) const AGENT_FAILED: Self = Self::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "agent_failed",
        "the agent ended before it answered initialize",
    );
    pub(super) const NOT_JSON_TEXT: Self =
        Self::json_rpc(ErrorCode::PARSE_ERROR, "the body is no JSON");
    pub(super) const NOT_JSON_RPC: Self = Self::json_rpc(
        ErrorCode::INVALID_REQUEST,
        "the body is no JSON-RPC message",
    );
    pub(super) const BATCH: Self = Self::json_rpc(
        ErrorCode::INVALID_REQUEST,
        "batches are not accepted; send each message by itself",
    );
}

impl From<BodyError> for Failure {
    fn from(error: BodyError) -> Self {
        let (status, error, message) = error.parts();
        Self::new(status, error, message)
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let Some(code) = self.code else {
            let failure = crate::failure::Failure::new(self.status, self.error);
            return failure.message(self.message).into_response();
        };
        let body = serde_json::json!({
            "jsonrpc": "2.0",
            "id": null,
            "error": { "code": code, "message": self.message },
        });
        (self.status, axum::Json(body)).into_response()
    }
}
