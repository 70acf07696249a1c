//! Checks of params beyond their schema.

use std::path::Path;

use acp_sdk::v1::{ContentBlock, EmbeddedResourceResource, PromptCapabilities, SessionId};
use acp_sdk::{HandlerError, HandlerResult, Meta};

/// Spec: <https://agentclientprotocol.com/protocol/v1/session-setup#working-directory>
///
/// # Errors
///
/// Invalid params when a path is relative.
pub(crate) fn directories(cwd: &str, additional: &[String]) -> HandlerResult<()> {
    absolute("/cwd", cwd)?;
    for (at, directory) in additional.iter().enumerate() {
        absolute(&format!("/additionalDirectories/{at}"), directory)?;
    }
    Ok(())
}

/// # Errors
///
/// Invalid params when the path is relative.
pub(crate) fn absolute(at: &str, path: &str) -> HandlerResult<()> {
    if Path::new(path).is_absolute() {
        return Ok(());
    }
    Err(HandlerError::invalid_params(
        at,
        format!("{path:?} is not an absolute path"),
    ))
}

/// Spec: <https://agentclientprotocol.com/protocol/v1/initialization#prompt-capabilities>
///
/// # Errors
///
/// Invalid params when a block is of a kind that the agent has not announced.
pub fn prompt(prompt: &[ContentBlock], announced: &PromptCapabilities) -> HandlerResult<()> {
    for (at, block) in prompt.iter().enumerate() {
        let missing = match block {
            ContentBlock::Image(_) if !announced.image => "image",
            ContentBlock::Audio(_) if !announced.audio => "audio",
            ContentBlock::Resource(_) if !announced.embedded_context => "embeddedContext",
            _ => continue,
        };
        let reason = format!("the agent does not announce promptCapabilities.{missing}");
        return Err(HandlerError::invalid_params(
            &format!("/prompt/{at}"),
            reason,
        ));
    }
    Ok(())
}

/// Where a prompt has its idempotency key.
pub(crate) const IDEMPOTENCY_KEY: &str = "/_meta/acp-sdk/idempotencyKey";

/// Returns the idempotency key of a prompt.
///
/// # Errors
///
/// Invalid params when it is no text.
pub(crate) fn idempotency_key(meta: Option<&Meta>) -> HandlerResult<Option<String>> {
    let ours: Option<serde_json::Value> = meta.and_then(|meta| meta.get("acp-sdk"));
    match ours.as_ref().and_then(|ours| ours.get("idempotencyKey")) {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(key)) => Ok(Some(key.clone())),
        Some(_) => {
            let reason = "expected a text of 1 to 128 bytes";
            Err(HandlerError::invalid_params(IDEMPOTENCY_KEY, reason))
        }
    }
}

/// Returns the bytes of a block's payload, which may be large.
pub(crate) fn size(block: &ContentBlock) -> usize {
    match block {
        ContentBlock::Text(text) => text.text.len(),
        ContentBlock::Image(image) => image.data.len(),
        ContentBlock::Audio(audio) => audio.data.len(),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            EmbeddedResourceResource::TextResourceContents(text) => text.text.len(),
            EmbeddedResourceResource::BlobResourceContents(blob) => blob.blob.len(),
            _ => 0,
        },
        _ => 0,
    }
}

/// Returns the cursor of the page after a session.
pub(crate) fn cursor(updated_at: &str, id: &SessionId) -> String {
    format!("{updated_at}/{id}")
}

/// Reads a cursor.
///
/// # Errors
///
/// Invalid params when the text is no cursor of this agent.
pub(crate) fn read_cursor(text: &str) -> HandlerResult<(String, SessionId)> {
    let parts = text.split_once('/');
    let parts =
        parts.filter(|(time, id)| time.len() == 24 && time.ends_with('Z') && !id.is_empty());
    match parts {
        Some((time, id)) => Ok((time.to_owned(), SessionId::from(id))),
        None => {
            let reason = format!("{text:?} is not a cursor of this agent");
            Err(HandlerError::invalid_params("/cursor", reason))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_block_is_that_of_its_payload() {
        for block in [
            r#"{ "type": "text", "text": "1234" }"#,
            r#"{ "type": "image", "data": "1234", "mimeType": "image/png" }"#,
            r#"{ "type": "audio", "data": "1234", "mimeType": "audio/wav" }"#,
            r#"{ "type": "resource", "resource": { "uri": "file:///a", "text": "1234" } }"#,
            r#"{ "type": "resource", "resource": { "uri": "file:///a", "blob": "1234" } }"#,
        ] {
            let block: ContentBlock = serde_json::from_str(block).unwrap();
            assert_eq!(size(&block), 4, "{block:?}");
        }
    }
}
