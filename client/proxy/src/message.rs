//! Messages that a proxy reads as values, and those that it writes itself.

use acp_client::internal::{Envelope, message};
use acp_sdk::{HandlerResult, RpcError};
use bytes::Bytes;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

pub(crate) use acp_client::internal::message::{cancel_request, replace};

/// Returns a request, or a notification without an `id`, which is JSON.
pub(crate) fn call(id: Option<&str>, method: &str, params: Option<&RawValue>) -> Bytes {
    message::call(id, method, params.map(RawValue::get))
}

/// Returns the answer to the request with an id, which is JSON.
pub(crate) fn answer(id: &str, result: Result<&RawValue, &RpcError>) -> Bytes {
    match result {
        Ok(result) => message::answer(id, "result", result.get()),
        Err(error) => {
            // An error object always has a text.
            let error = serde_json::to_string(error).unwrap_or_default();
            message::answer(id, "error", &error)
        }
    }
}

/// Returns the start of ids that no peer knows, as JSON: `use_of` names what they are for.
pub(crate) fn prefix(use_of: &str) -> String {
    let mut nonce = [0; 8];
    // Without randomness the ids are still unlikely to be a peer's.
    let _ = getrandom::fill(&mut nonce);
    format!("\"{use_of}-{:016x}-", u64::from_le_bytes(nonce))
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

/// Returns params, or a result, as a value; `null` without one.
pub(crate) fn value(raw: Option<&RawValue>) -> Value {
    let text = raw.map_or("null", RawValue::get);
    serde_json::from_str(text).unwrap_or_default()
}

/// Returns a value as params or a result.
pub(crate) fn raw(value: &Value) -> HandlerResult<Box<RawValue>> {
    Ok(to_raw_value(value)?)
}
