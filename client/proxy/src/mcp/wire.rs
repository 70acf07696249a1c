//! The messages that carry those of MCP.

use acp_sdk::{HandlerError, HandlerResult, Json};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::{RawValue, to_raw_value};

/// The method of requests to a server, and of notifications from it.
pub(crate) const MESSAGE: &str = "mcp/message";

/// The params of [`MESSAGE`].
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inner {
    /// The server, as it was declared.
    pub(super) server_id: String,
    /// The request of MCP, unlike the request that carries it.
    pub(super) request_id: String,
    pub(super) method: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) params: Option<Box<RawValue>>,
}

impl Inner {
    pub(super) fn read(params: Option<&RawValue>) -> HandlerResult<Self> {
        let text = params.map_or("null", RawValue::get);
        let read = serde_json::from_str(text);
        read.map_err(|error| HandlerError::invalid_params("", error))
    }

    pub(super) fn write(&self) -> HandlerResult<Box<RawValue>> {
        Ok(to_raw_value(self)?)
    }
}

/// A call of a tool, for who decides about it.
pub(crate) struct ToolCallOf {
    pub(crate) server: String,
    pub(crate) tool: String,
    pub(crate) arguments: Option<Json>,
}

impl ToolCallOf {
    /// Reads the params of [`MESSAGE`]; `None` if they call no tool.
    pub(crate) fn read(params: Option<&RawValue>) -> Option<Self> {
        Self::of(&Inner::read(params).ok()?)
    }

    pub(super) fn of(inner: &Inner) -> Option<Self> {
        #[derive(Deserialize)]
        struct Call {
            name: String,
            #[serde(default)]
            arguments: Option<Json>,
        }
        let params = inner
            .params
            .as_deref()
            .filter(|_| inner.method == "tools/call")?;
        let call: Call = serde_json::from_str(params.get()).ok()?;
        Some(Self {
            server: inner.server_id.clone(),
            tool: call.name,
            arguments: call.arguments,
        })
    }
}

/// The result of [`MESSAGE`]: one of both.
#[derive(Debug, Default, Deserialize, Serialize)]
pub(super) struct Outcome {
    /// Present also if it is null.
    #[serde(default, deserialize_with = "present")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Box<RawValue>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<Box<RawValue>>,
}

fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Box<RawValue>>, D::Error> {
    Box::<RawValue>::deserialize(value).map(Some)
}

/// Returns a text that nobody can guess, of 32 hexadecimal digits.
///
/// # Errors
///
/// Fails if the system has no randomness.
pub(super) fn random() -> HandlerResult<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)
        .map_err(|error| HandlerError::internal(format!("no randomness: {error}")))?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_that_is_null_is_one() {
        let outcome: Outcome = serde_json::from_str(r#"{"result":null,"_meta":{}}"#).unwrap();
        assert_eq!(outcome.result.unwrap().get(), "null");
        let outcome: Outcome = serde_json::from_str(r#"{"error":{"code":1}}"#).unwrap();
        assert!(outcome.result.is_none() && outcome.error.is_some());
    }
}
