//! The types of JSON-RPC that reach users. They belong to no version of the protocol: the
//! modules of all versions re-export them.

use std::fmt;

use serde_core::{Serialize, Serializer};

use crate::json::Json;
use crate::runtime;

/// JSON-RPC error object of a failed request.
///
/// Spec: <https://www.jsonrpc.org/specification#error_object>
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RpcError {
    /// Error code for programs.
    pub code: ErrorCode,
    /// Error message for people, in one sentence.
    pub message: String,
    /// Additional data of any form; absent and `null` both mean none.
    pub data: Option<Json>,
}

impl RpcError {
    /// Creates the error object without data.
    #[must_use]
    pub fn new(code: impl Into<ErrorCode>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            data: None,
        }
    }

    /// Sets [`data`](Self::data).
    #[must_use]
    pub fn with_data(mut self, data: impl Into<Json>) -> Self {
        self.data = Some(data.into());
        self
    }
}

runtime::members!(RpcError {
    code "code": ErrorCode = required,
    message "message": String = required,
    data "data": Option<Json> = optional + or_default,
});

impl fmt::Display for RpcError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (code {})", self.message, self.code)
    }
}

impl std::error::Error for RpcError {}

/// JSON-RPC error code. Unknown codes are preserved.
///
/// The constants are the codes of JSON-RPC, and those that every version of the protocol has.
/// The module `error_codes` of a version has all codes that its document names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(i32);

impl ErrorCode {
    /// The message is not valid JSON.
    pub const PARSE_ERROR: Self = Self(-32700);
    /// The JSON is neither a request nor a notification nor a response.
    pub const INVALID_REQUEST: Self = Self(-32600);
    /// The method is unknown to the receiver, or not advertised by it.
    pub const METHOD_NOT_FOUND: Self = Self(-32601);
    /// The params have the wrong type or an invalid value for the method.
    pub const INVALID_PARAMS: Self = Self(-32602);
    /// The receiver failed for an internal reason.
    pub const INTERNAL_ERROR: Self = Self(-32603);
    /// The operation was aborted, at the caller's request or for lack of time or resources.
    pub const REQUEST_CANCELLED: Self = Self(-32800);
    /// The user must authenticate first.
    pub const AUTHENTICATION_REQUIRED: Self = Self(-32000);
    /// The params refer to something that does not exist, such as a session or file.
    pub const RESOURCE_NOT_FOUND: Self = Self(-32002);
}

runtime::integer!(ErrorCode, i32);

/// JSON-RPC request id, which correlates a response with its request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RequestId {
    /// Null id. Legal in JSON-RPC, but its response cannot be correlated reliably. Version 2 of
    /// the protocol does not allow it.
    Null,
    /// Integer id.
    Number(i64),
    /// String id.
    Str(String),
}

impl From<i64> for RequestId {
    fn from(value: i64) -> Self {
        Self::Number(value)
    }
}

impl From<String> for RequestId {
    fn from(value: String) -> Self {
        Self::Str(value)
    }
}

impl From<&str> for RequestId {
    fn from(value: &str) -> Self {
        Self::Str(value.to_owned())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Number(value) => value.serialize(serializer),
            Self::Str(value) => value.serialize(serializer),
        }
    }
}

runtime::value_union!(RequestId {
    Null: () = Null,
    Number: i64 = Number,
    Str: String = String
});

#[cfg(feature = "schemars")]
runtime::json_schemas!(
    r##"{
        "RpcError": {
            "description": "JSON-RPC error object of a failed request.",
            "type": "object",
            "properties": {
                "code": { "$ref": "#/$defs/ErrorCode" },
                "message": { "type": "string" },
                "data": {}
            },
            "required": ["code", "message"]
        },
        "ErrorCode": {
            "description": "JSON-RPC error code.",
            "type": "integer",
            "format": "int32"
        },
        "RequestId": {
            "description": "JSON-RPC request id.",
            "anyOf": [
                { "type": "null" },
                { "type": "integer", "format": "int64" },
                { "type": "string" }
            ]
        }
    }"## { RpcError, ErrorCode, RequestId }
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_codes_and_data_survive() {
        let text = r#"{"code":7,"message":"m","data":{"n":1e999,"a":[null]}}"#;
        let error: RpcError = serde_json::from_str(text).unwrap();
        assert_eq!(error.code, ErrorCode::new(7));
        assert_eq!(serde_json::to_string(&error).unwrap(), text);
        assert_eq!(error.to_string(), "m (code 7)");
    }

    #[cfg(feature = "v2")]
    #[test]
    fn the_versions_share_them() {
        fn same<T>(_: &T, _: &T) {}
        let error = RpcError::new(crate::v2::error_codes::UNSUPPORTED_PROTOCOL_VERSION, "m");
        same::<crate::v1::Error>(&error, &error as &crate::v2::Error);
        same::<crate::v1::RequestId>(&RequestId::Null, &crate::v2::RequestId::Null);
        assert_eq!(crate::v1::error_codes::PARSE_ERROR, ErrorCode::PARSE_ERROR);
    }
}
