//! Error codes in messages.

use acp_sdk::ErrorCode;
use serde_json::Value;

/// The code of version 2 for a version that the agent does not speak, which is judged without the types
/// of that version.
pub(crate) const UNSUPPORTED_PROTOCOL_VERSION: ErrorCode = ErrorCode::new(-32022);

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

#[cfg(all(test, feature = "v2"))]
mod tests {
    use acp_sdk::v2::error_codes;

    #[test]
    fn the_code_is_that_of_the_document() {
        let code = error_codes::UNSUPPORTED_PROTOCOL_VERSION;
        assert_eq!(super::UNSUPPORTED_PROTOCOL_VERSION, code);
    }
}
