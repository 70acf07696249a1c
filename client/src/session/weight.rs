//! The size of events in bytes.

use acp_sdk::json::encoded_len;
use acp_sdk::v1::{ContentBlock, SessionUpdate};

use super::reader::OVERHEAD;

/// Returns the approximate size of an update, in bytes.
pub(super) fn weight(update: &SessionUpdate) -> usize {
    let content = match update {
        // By far the most frequent kind; serializing it would be too expensive.
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
            match &chunk.content {
                ContentBlock::Text(text) => text.text.len(),
                other => encoded_len(other),
            }
        }
        other => encoded_len(other),
    };
    OVERHEAD + content
}
