//! How many bytes events take.

use std::io;

use acp_sdk::v1::{ContentBlock, SessionUpdate};

use super::reader::OVERHEAD;

/// How many bytes an update takes, about.
pub(super) fn weight(update: &SessionUpdate) -> usize {
    let content = match update {
        // By far the most frequent, so it is not worth writing as JSON.
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
    // What cannot be written as JSON did not come from JSON.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}
