//! Constructors of this layer's messages, and changes to messages of the client.

use acp_sdk::ErrorCode;
use acp_sdk::runtime::Method;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::reconnect::{OWN, mark};

/// Returns a request of this layer, without its id.
pub(super) fn request<M: Method>(params: &M::Params) -> Value {
    json!({"jsonrpc": "2.0", "id": null, "method": M::NAME, "params": params})
}

/// Returns the message with its id replaced by `id`, which is JSON.
pub(super) fn with_id(message: &[u8], id: &str) -> Option<Bytes> {
    let mut value: Value = serde_json::from_slice(message).ok()?;
    value["id"] = serde_json::from_str(id).ok()?;
    Some(value.to_string().into())
}

/// Returns the prompt with a `promptId` in its `_meta`, and that id: `name`, unless it
/// has one.
pub(super) fn with_prompt_id(message: &[u8], name: &str) -> Option<(Bytes, String)> {
    let mut value: Value = serde_json::from_slice(message).ok()?;
    let params = value.get_mut("params")?.as_object_mut()?;
    let meta = params.entry("_meta").or_insert(Value::Null);
    if meta.is_null() {
        *meta = json!({});
    }
    let ours = meta.as_object_mut()?.entry("acp-sdk").or_insert(json!({}));
    let id = ours.as_object_mut()?.entry("promptId");
    let id = id.or_insert_with(|| json!(name)).as_str()?.to_owned();
    Some((value.to_string().into(), id))
}

/// Returns the idempotency key of a prompt: in version 2 a member of its own.
pub(super) fn idempotency_key(message: &[u8], is_v2: bool) -> Option<String> {
    #[derive(Deserialize)]
    struct Prompt {
        params: Params,
    }
    #[derive(Deserialize)]
    struct Params {
        #[serde(default, rename = "idempotencyKey")]
        key: Value,
        #[serde(default, rename = "_meta")]
        meta: Value,
    }
    let Prompt { params } = serde_json::from_slice(message).ok()?;
    let key = match is_v2 {
        true => &params.key,
        false => &params.meta["acp-sdk"]["idempotencyKey"],
    };
    key.as_str().map(str::to_owned)
}

/// Returns the error object of a request that was lost with its connection.
pub(super) fn error(message: &str) -> Value {
    json!({"code": ErrorCode::INTERNAL_ERROR, "message": message, "data": {OWN: mark()}})
}

/// Returns notifications with the modes and config options of a load or resume response.
///
/// The client has sent no such request, so it would miss changes to them.
pub(super) fn settings(session: &str, result: &Value) -> Vec<Bytes> {
    let mut updates = Vec::new();
    if let mode @ Value::String(_) = &result["modes"]["currentModeId"] {
        updates.push(json!({"sessionUpdate": "current_mode_update", "currentModeId": mode}));
    }
    if let options @ Value::Array(_) = &result["configOptions"] {
        updates.push(json!({"sessionUpdate": "config_option_update", "configOptions": options}));
    }
    let notification = |update| {
        let params = json!({"sessionId": session, "update": update});
        let note = json!({"jsonrpc": "2.0", "method": "session/update", "params": params});
        note.to_string().into()
    };
    updates.into_iter().map(notification).collect()
}

/// Returns whether an error says that something does not exist.
pub(super) fn is_not_found(error: &RawValue) -> bool {
    let error: Value = serde_json::from_str(error.get()).unwrap_or_default();
    error["code"] == json!(ErrorCode::RESOURCE_NOT_FOUND)
}
