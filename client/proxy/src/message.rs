//! Messages that a proxy writes itself.

use acp_client::internal::Envelope;
use acp_sdk::RpcError;
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

/// The notification that cancels a request.
pub(crate) const CANCEL_REQUEST: &str = "$/cancel_request";

/// Returns a request, or a notification without an `id`, which is JSON.
pub(crate) fn call(id: Option<&str>, method: &str, params: Option<&RawValue>) -> Bytes {
    let method = serde_json::Value::from(method);
    let id = id.map_or_else(String::new, |id| format!(r#""id":{id},"#));
    let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
    format!(r#"{{"jsonrpc":"2.0",{id}"method":{method}{params}}}"#).into()
}

/// Returns the cancellation of the request with an id, which is JSON.
pub(crate) fn cancellation(id: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","method":"{CANCEL_REQUEST}","params":{{"requestId":{id}}}}}"#)
        .into()
}

/// Returns the answer to the request with an id, which is JSON.
pub(crate) fn answer(id: &str, result: Result<&RawValue, &RpcError>) -> Bytes {
    let outcome = match result {
        Ok(result) => format!(r#""result":{result}"#),
        // An error object always has a text.
        Err(error) => format!(
            r#""error":{}"#,
            serde_json::to_string(error).unwrap_or_default()
        ),
    };
    format!(r#"{{"jsonrpc":"2.0","id":{id},{outcome}}}"#).into()
}

/// Returns the id of a message as JSON, also one that is `null`, which an [`Envelope`] takes for absent.
pub(crate) fn id<'a>(message: &'a [u8], envelope: &Envelope<'a>) -> Option<&'a str> {
    #[derive(Deserialize)]
    struct Id<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
    }
    fn present<'de, D: Deserializer<'de>>(id: D) -> Result<Option<&'de RawValue>, D::Error> {
        Deserialize::deserialize(id).map(Some)
    }
    if let Some(id) = envelope.id() {
        return Some(id);
    }
    let found: Id<'a> = serde_json::from_slice(message).ok()?;
    found.id.map(RawValue::get)
}

/// Returns a message with a part of it replaced; `part` is borrowed from the message.
pub(crate) fn replace(message: &[u8], part: &str, by: &str) -> Bytes {
    let at = (part.as_ptr() as usize).saturating_sub(message.as_ptr() as usize);
    let (before, rest) = message.split_at(at.min(message.len()));
    let after = rest.get(part.len()..).unwrap_or_default();
    [before, by.as_bytes(), after].concat().into()
}
