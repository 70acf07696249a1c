//! Prompts that agents repeat.

use super::item::ItemId;
use super::message::Message;
use crate::v1::ContentBlock;

/// A prompt that the agent may repeat, and how much of it the agent has repeated.
///
/// Agents of version 2 repeat each prompt as a user message, some agents of version 1 do.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Echo {
    pub(super) item: ItemId,
    /// The index of the block that is repeated next, and the bytes of it that have been.
    block: usize,
    bytes: usize,
}

impl Echo {
    pub(super) fn new(item: ItemId) -> Self {
        let (block, bytes) = (0, 0);
        Self { item, block, bytes }
    }

    /// Returns whether `block` is the next part of the prompt, and counts it.
    pub(super) fn advance(&mut self, prompt: &Message, block: &ContentBlock) -> bool {
        match (prompt.content.get(self.block), block) {
            (Some(ContentBlock::Text(whole)), ContentBlock::Text(part)) => {
                let rest = whole.text.get(self.bytes..).unwrap_or_default();
                if !rest.starts_with(&part.text) {
                    return false;
                }
                self.bytes += part.text.len();
                if self.bytes == whole.text.len() {
                    (self.block, self.bytes) = (self.block + 1, 0);
                }
                true
            }
            (Some(whole), part) if whole == part => {
                self.block += 1;
                true
            }
            _ => false,
        }
    }

    pub(super) fn is_complete(&self, prompt: &Message) -> bool {
        self.block == prompt.content.len()
    }
}
