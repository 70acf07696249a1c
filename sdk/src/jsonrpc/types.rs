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

/// Declares the constants of codes that every version names, with their values in version 1.
macro_rules! shared {
    ($($name:ident)*) => {
        impl ErrorCode {
            $(
                #[doc = concat!(
                    "See [`error_codes::", stringify!($name), "`](crate::v1::error_codes::",
                    stringify!($name), ")."
                )]
                pub const $name: Self = crate::v1::error_codes::$name;
            )*
        }

        #[cfg(all(test, feature = "v2"))]
        const SHARED: &[ErrorCode] = &[$(ErrorCode::$name),*];
    };
}

shared! {
    PARSE_ERROR
    INVALID_REQUEST
    METHOD_NOT_FOUND
    INVALID_PARAMS
    INTERNAL_ERROR
    REQUEST_CANCELLED
    AUTHENTICATION_REQUIRED
    RESOURCE_NOT_FOUND
}

impl ErrorCode {
    /// Returns the name of the code in the documents, such as `Parse error`; `None` if no version
    /// names it.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        self.named().map(|named| named.name)
    }

    /// Returns the meaning of the code, in sentences; `None` if no version names it.
    #[must_use]
    pub fn description(self) -> Option<&'static str> {
        self.named().map(|named| named.description)
    }

    fn named(self) -> Option<&'static runtime::NamedValue<Self>> {
        let all = crate::v1::error_codes::ALL.iter();
        #[cfg(feature = "v2")]
        let all = all.chain(crate::v2::error_codes::ALL);
        let mut all = all;
        all.find(|named| named.value == self)
    }
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
        same::<crate::v1::RpcError>(&error, &error as &crate::v2::RpcError);
        same::<crate::v1::RequestId>(&RequestId::Null, &crate::v2::RequestId::Null);
    }

    #[cfg(feature = "v2")]
    #[test]
    fn the_constants_are_the_codes_that_every_version_names() {
        let in_v2 = |code: &ErrorCode| {
            let mut all = crate::v2::error_codes::ALL.iter();
            all.any(|named| named.value == *code)
        };
        let first = crate::v1::error_codes::ALL.iter().map(|named| named.value);
        let shared: Vec<ErrorCode> = first.filter(in_v2).collect();
        assert_eq!(shared, SHARED);
        let code = crate::v2::error_codes::UNSUPPORTED_PROTOCOL_VERSION;
        assert_eq!(code.name(), Some("Unsupported protocol version"));
        let meaning = "The message is not valid JSON.";
        assert_eq!(ErrorCode::PARSE_ERROR.description(), Some(meaning));
        assert_eq!(ErrorCode::new(7).name(), None);
    }
}
