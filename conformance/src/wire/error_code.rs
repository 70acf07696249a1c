//! Error codes in messages.

use acp_sdk::ErrorCode;
use serde_json::Value;

/// Returns the code of an error object; `None` if it has none, or no 32-bit integer.
#[must_use]
pub(crate) fn error_code(error: &Value) -> Option<ErrorCode> {
    let code = error.get("code")?.as_i64()?;
    Some(ErrorCode::new(i32::try_from(code).ok()?))
}

/// Returns whether a message is the answer to what is no message: error -32600 with the id `null`.
#[must_use]
pub(crate) fn is_invalid_request(message: &Value) -> bool {
    let code = message.get("error").and_then(error_code);
    message.get("id") == Some(&Value::Null) && code == Some(ErrorCode::INVALID_REQUEST)
}
