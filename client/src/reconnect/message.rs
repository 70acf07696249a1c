//! Messages as texts, for those who pass messages on without reading them.

use bytes::Bytes;
use serde_json::Value;

use super::envelope::CANCEL_REQUEST;

/// Returns a request, or a notification without an id; `id` and `params` are JSON.
pub fn call(id: Option<&str>, method: &str, params: Option<&str>) -> Bytes {
    let method = Value::from(method);
    let id = id.map_or_else(String::new, |id| format!(r#""id":{id},"#));
    let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
    format!(r#"{{"jsonrpc":"2.0",{id}"method":{method}{params}}}"#).into()
}

/// Returns a response with the member `result` or `error`; `id` and `value` are JSON.
pub fn answer(id: &str, member: &str, value: &str) -> Bytes {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"{member}":{value}}}"#).into()
}

/// Returns the notification that cancels a request; `id` is JSON.
pub fn cancel_request(id: &str) -> Bytes {
    let params = format!(r#"{{"requestId":{id}}}"#);
    call(None, CANCEL_REQUEST, Some(&params))
}

/// Returns a message with a part of it replaced; `part` is borrowed from the message.
pub fn replace(message: &[u8], part: &str, by: &str) -> Bytes {
    let at = (part.as_ptr() as usize).saturating_sub(message.as_ptr() as usize);
    let (before, rest) = message.split_at(at.min(message.len()));
    let after = rest.get(part.len()..).unwrap_or_default();
    [before, by.as_bytes(), after].concat().into()
}
