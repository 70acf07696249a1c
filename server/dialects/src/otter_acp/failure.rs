//! Errors in the form of Otter.

use acp_dialects::otter_acp::{AgentError, ErrorCode, error_codes};
use acp_sdk::{HandlerError, Json, RpcError};

/// Returns an error of a session or an agent as Otter's clients know it. Its data names no place in a
/// program.
pub(super) fn failed(error: HandlerError) -> HandlerError {
    let RpcError { code, message, .. } = error.into_response();
    match code {
        ErrorCode::METHOD_NOT_FOUND | ErrorCode::INVALID_PARAMS => HandlerError::new(code, message),
        // A session that does not exist: Otter has no code of its own for it.
        ErrorCode::RESOURCE_NOT_FOUND => HandlerError::new(ErrorCode::INVALID_PARAMS, message),
        _ => {
            let name = code.name().unwrap_or("Agent error");
            let data = AgentError::new(name, message.as_str(), "");
            let error = RpcError::new(error_codes::APPLICATION_ERROR, message);
            HandlerError::response(match Json::new(&data) {
                Ok(data) => error.with_data(data),
                Err(_) => error,
            })
        }
    }
}

/// The same for an error of the runtime.
pub(super) fn refused(error: acp_server::Error) -> HandlerError {
    failed(error.into())
}

/// Returns the answer to what comes before `initialize`.
pub(super) fn not_initialized() -> HandlerError {
    let reason = "the connection is not initialized; call initialize first";
    HandlerError::new(error_codes::NOT_INITIALIZED, reason)
}

pub(super) fn invalid(reason: impl Into<String>) -> HandlerError {
    HandlerError::new(ErrorCode::INVALID_PARAMS, reason)
}
