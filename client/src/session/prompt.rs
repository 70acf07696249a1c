//! The content of prompts.

use acp_sdk::v1::ContentBlock;

/// The content of a prompt: text, or blocks of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt {
    blocks: Vec<ContentBlock>,
    id: Option<String>,
}

impl Prompt {
    /// Returns the blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.blocks
    }

    /// Returns the blocks, in order.
    #[must_use]
    pub fn into_blocks(self) -> Vec<ContentBlock> {
        self.blocks
    }

    /// Sets the id by which the agent knows the prompt, if it supports ids of prompts. No other prompt may
    /// have it. Without it, the client chooses one.
    #[must_use]
    pub fn with_id(mut self, id: impl Into<String>) -> Self {
        self.id = Some(id.into());
        self
    }

    pub(crate) fn take_id(&mut self) -> Option<String> {
        self.id.take()
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::from(ContentBlock::from(text))
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::from(ContentBlock::from(text))
    }
}

impl From<ContentBlock> for Prompt {
    fn from(block: ContentBlock) -> Self {
        Self::from(vec![block])
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self { blocks, id: None }
    }
}
