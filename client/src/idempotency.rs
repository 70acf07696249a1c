//! Idempotency keys of prompts: with one, a prompt whose answer is lost can be sent again.

use acp_sdk::Meta;
use acp_sdk::v1::{InitializeResponse, PromptRequest, ProtocolVersion};
use serde_json::{Map, Value};

/// Returns whether the agent runs a prompt with a key once. In version 2 every agent with sessions does.
pub fn honors_keys(agent: &InitializeResponse) -> bool {
    let meta = agent.agent_capabilities.meta.as_ref();
    agent.protocol_version == ProtocolVersion::from(2)
        || ours(meta).get("idempotencyKey") == Some(&Value::Bool(true))
}

/// Returns the key of a prompt.
pub fn key_of(request: &PromptRequest) -> Option<String> {
    let ours = ours(request.meta.as_ref());
    ours.get("idempotencyKey")?.as_str().map(str::to_owned)
}

/// Gives a prompt a key, which is its `promptId`, too, if it has one.
pub fn with_key(mut request: PromptRequest, key: &str) -> PromptRequest {
    let meta = request.meta.take().unwrap_or_default();
    let mut ours = ours(Some(&meta));
    if let Some(id) = ours.get_mut("promptId") {
        *id = key.into();
    }
    ours.insert("idempotencyKey".to_owned(), key.into());
    request.with_meta(meta.with("acp-sdk", &ours))
}

/// Converts a prompt, whose key is a member of its own in version 2.
///
/// # Errors
///
/// Fails when version 2 has no equivalent.
pub fn prompt_to_v2(mut request: PromptRequest) -> crate::Result<acp_sdk::v2::PromptRequest> {
    let key = key_of(&request);
    if key.is_some()
        && let Some(meta) = request.meta.take()
    {
        let mut ours = ours(Some(&meta));
        ours.remove("idempotencyKey");
        let is_empty = ours.is_empty() && meta.to_map().len() == 1;
        request.meta = (!is_empty).then(|| meta.with("acp-sdk", &ours));
    }
    let request: acp_sdk::v2::PromptRequest = crate::v2::requests::request_to_v2(request)?;
    Ok(match key {
        Some(key) => request.with_idempotency_key(key),
        None => request,
    })
}

fn ours(meta: Option<&Meta>) -> Map<String, Value> {
    meta.and_then(|meta| meta.get("acp-sdk"))
        .unwrap_or_default()
}
