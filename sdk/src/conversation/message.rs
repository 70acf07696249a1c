//! Messages: joined from chunks, and replaced as a whole.

use std::borrow::Cow;

use super::weight;
use crate::v1::{ContentBlock, MessageId, TextContent};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// The user.
    User,
    /// The agent.
    Agent,
    /// The agent, in its reasoning.
    Thought,
}

/// A message or thought.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Message {
    /// The author.
    pub role: Role,
    /// The id that the agent assigned, if it did.
    pub message_id: Option<MessageId>,
    /// The content. Consecutive texts without annotations and metadata are one block.
    pub content: Vec<ContentBlock>,
}

impl Message {
    pub(super) fn new(role: Role, message_id: Option<MessageId>) -> Self {
        Self {
            role,
            message_id,
            content: Vec::new(),
        }
    }

    /// Returns the text of all text blocks.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let mut texts = self.content.iter().filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        match (texts.next(), texts.next()) {
            (None, _) => Cow::Borrowed(""),
            (Some(only), None) => Cow::Borrowed(only),
            (Some(first), Some(second)) => {
                let first = [first, second].into_iter();
                Cow::Owned(first.chain(texts).collect())
            }
        }
    }

    /// Returns the text of all text blocks, without copying it if it is one block.
    #[must_use]
    pub fn into_text(self) -> String {
        match <[_; 1]>::try_from(self.content) {
            Ok([ContentBlock::Text(text)]) => text.text,
            Ok(_) => String::new(),
            Err(content) => {
                let message = Self {
                    content,
                    ..Self::new(self.role, None)
                };
                message.text().into_owned()
            }
        }
    }

    /// Appends a block. Returns its size in bytes.
    pub(super) fn append(&mut self, block: &ContentBlock) -> usize {
        if let (ContentBlock::Text(next), Some(ContentBlock::Text(last))) =
            (block, self.content.last_mut())
            && is_plain(next)
            && is_plain(last)
        {
            last.text.push_str(&next.text);
            return next.text.len();
        }
        self.content.push(block.clone());
        weight::block(block)
    }

    /// Removes about `bytes` bytes from the beginning. Returns how many.
    pub(super) fn cut(&mut self, bytes: usize) -> usize {
        let (mut freed, mut whole) = (0, 0);
        while let Some(block) = self.content.get(whole) {
            let rest = bytes.saturating_sub(freed);
            let size = weight::block(block);
            let is_text = matches!(block, ContentBlock::Text(text) if is_plain(text));
            if rest == 0 || (size > rest && is_text) {
                break;
            }
            freed += size;
            whole += 1;
        }
        self.content.drain(..whole);
        if let Some(ContentBlock::Text(text)) = self.content.first_mut() {
            let rest = bytes.saturating_sub(freed).min(text.text.len());
            let end = (rest..=text.text.len()).find(|at| text.text.is_char_boundary(*at));
            let end = end.unwrap_or(text.text.len());
            text.text.drain(..end);
            freed += end;
        }
        freed
    }
}

/// Returns whether a text can be joined with its neighbours.
fn is_plain(text: &TextContent) -> bool {
    text.annotations.is_none() && text.meta.is_none()
}
