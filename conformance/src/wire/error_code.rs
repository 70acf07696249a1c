//! Error codes in messages.

use acp_sdk::ErrorCode;
use serde_json::Value;

/// Returns the code of an error object; `None` if it has none, or no 32-bit integer.
#[must_use]
pub(crate) fn error_code(error: &Value) -> Option<ErrorCode> {
    let code = error.get("code")?.as_i64()?;
    Some(ErrorCode::new(i32::try_from(code).ok()?))
}
