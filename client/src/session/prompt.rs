//! The content of prompts.

use acp_sdk::v1::ContentBlock;

/// The content of a prompt: text, or blocks of any kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Prompt(Vec<ContentBlock>);

impl Prompt {
    /// Returns the blocks, in order.
    #[must_use]
    pub fn blocks(&self) -> &[ContentBlock] {
        &self.0
    }

    /// Returns the blocks, in order.
    #[must_use]
    pub fn into_blocks(self) -> Vec<ContentBlock> {
        self.0
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self(vec![ContentBlock::from(text)])
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self(vec![ContentBlock::from(text)])
    }
}

impl From<ContentBlock> for Prompt {
    fn from(block: ContentBlock) -> Self {
        Self(vec![block])
    }
}

impl From<Vec<ContentBlock>> for Prompt {
    fn from(blocks: Vec<ContentBlock>) -> Self {
        Self(blocks)
    }
}
