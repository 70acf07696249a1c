//! The size of events in bytes.

use std::io;

use acp_sdk::v1::{ContentBlock, SessionUpdate};

use super::reader::OVERHEAD;

/// Returns the approximate size of an update, in bytes.
pub(super) fn weight(update: &SessionUpdate) -> usize {
    let content = match update {
        // By far the most frequent kind; serializing it would be too expensive.
        SessionUpdate::AgentMessageChunk(chunk) | SessionUpdate::AgentThoughtChunk(chunk) => {
            match &chunk.content {
                ContentBlock::Text(text) => text.text.len(),
                other => counted(other),
            }
        }
        other => counted(other),
    };
    OVERHEAD + content
}

/// The length of a value as JSON.
pub(super) fn counted(value: &impl serde::Serialize) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value that cannot be serialized was not received as JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
