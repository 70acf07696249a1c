//! Messages, which version 2 sends in chunks, as a whole, or both.
//!
//! A whole message is converted to its missing chunks. To find them, the length and a digest of the
//! received part suffice. Memory: 512 messages of 32 bytes for each session.

use std::collections::VecDeque;
use std::hash::Hasher as _;

use acp_sdk::v2;

use super::{Digest, digest};

/// Maximum number of remembered messages. An older message counts as new when it is sent again.
const MOST_MESSAGES: usize = 512;

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writer {
    User,
    Agent,
    Thought,
}

/// The latest messages of a session.
#[derive(Debug, Default)]
pub(super) struct Messages(VecDeque<Message>);

#[derive(Debug)]
struct Message {
    writer: Writer,
    id: u64,
    shown: Shown,
}

/// The received part of a message: its length in bytes and a digest.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Shown {
    len: usize,
    digest: Digest,
}

impl Shown {
    /// Adds a block. Texts are concatenated; other blocks are enclosed in a byte that is not valid
    /// in text.
    fn add(&mut self, block: &v2::ContentBlock) {
        match plain(block) {
            Some(text) => self.write(text.as_bytes()),
            None => {
                self.write(&[0xff]);
                self.write(&serde_json::to_vec(block).unwrap_or_default());
                self.write(&[0xff]);
            }
        }
    }

    fn write(&mut self, bytes: &[u8]) {
        self.len += bytes.len();
        self.digest.write(bytes);
    }
}

/// Returns the text of a text block without annotations and metadata.
fn plain(block: &v2::ContentBlock) -> Option<&str> {
    match block {
        v2::ContentBlock::Text(text) if text.annotations.is_none() && text.meta.is_none() => {
            Some(&text.text)
        }
        _ => None,
    }
}

impl Messages {
    /// Records a chunk that continues a message.
    pub(super) fn chunk(&mut self, writer: Writer, id: &v2::MessageId, block: &v2::ContentBlock) {
        self.message(writer, id).shown.add(block);
    }

    /// Records the whole content of a message. Returns the missing blocks; `None` if the content
    /// does not begin with the received part.
    pub(super) fn whole(
        &mut self,
        writer: Writer,
        id: &v2::MessageId,
        blocks: &[v2::ContentBlock],
    ) -> Option<Vec<v2::ContentBlock>> {
        let message = self.message(writer, id);
        let shown = std::mem::take(&mut message.shown);
        let mut whole = Shown::default();
        let mut missing = (shown.len == 0).then(Vec::new);
        for block in blocks {
            let before = whole;
            whole.add(block);
            match &mut missing {
                Some(missing) => missing.push(block.clone()),
                None if whole.len >= shown.len => {
                    missing = rest(block, before, shown);
                    if missing.is_none() {
                        break;
                    }
                }
                None => {}
            }
        }
        match missing {
            Some(_) => message.shown = whole,
            // The remaining blocks were not compared.
            None => blocks.iter().for_each(|block| message.shown.add(block)),
        }
        missing
    }

    /// Clears the state, because the conversation is replayed from its beginning.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    fn message(&mut self, writer: Writer, id: &v2::MessageId) -> &mut Message {
        let id = digest(id.as_str());
        let is_it = |message: &Message| message.id == id && message.writer == writer;
        // Most chunks continue the latest message.
        let at = self.0.iter().rposition(is_it);
        let at = at.unwrap_or_else(|| {
            if self.0.len() == MOST_MESSAGES {
                self.0.pop_front();
            }
            let shown = Shown::default();
            self.0.push_back(Message { writer, id, shown });
            self.0.len() - 1
        });
        &mut self.0[at]
    }
}

/// Returns the part of a block after the received part; `None` if the two differ.
fn rest(block: &v2::ContentBlock, before: Shown, shown: Shown) -> Option<Vec<v2::ContentBlock>> {
    let Some(text) = plain(block) else {
        let mut with = before;
        with.add(block);
        return (with == shown).then(Vec::new);
    };
    let (old, new) = text.split_at_checked(shown.len.checked_sub(before.len)?)?;
    let mut with = before;
    with.write(old.as_bytes());
    let missing = match new {
        "" => Vec::new(),
        new => vec![v2::TextContent::new(new).into()],
    };
    (with == shown).then_some(missing)
}

#[cfg(test)]
mod tests {
    use acp_sdk::Meta;

    use super::*;

    fn text(text: &str) -> v2::ContentBlock {
        v2::TextContent::new(text).into()
    }

    fn image() -> v2::ContentBlock {
        v2::ImageContent::new("image/png", "AA==").into()
    }

    fn said(chunks: &[v2::ContentBlock]) -> Messages {
        let mut messages = Messages::default();
        let id = v2::MessageId::from("m");
        for chunk in chunks {
            messages.chunk(Writer::Agent, &id, chunk);
        }
        messages
    }

    fn whole(
        messages: &mut Messages,
        blocks: &[v2::ContentBlock],
    ) -> Option<Vec<v2::ContentBlock>> {
        messages.whole(Writer::Agent, &v2::MessageId::from("m"), blocks)
    }

    #[test]
    fn a_whole_message_adds_what_is_missing() {
        assert_eq!(
            whole(&mut said(&[]), &[text("a"), image()]),
            Some(vec![text("a"), image()])
        );
        let mut messages = said(&[text("He"), text("llo")]);
        assert_eq!(whole(&mut messages, &[text("Hello")]), Some(vec![]));
        assert_eq!(
            whole(&mut messages, &[text("Hello you")]),
            Some(vec![text(" you")])
        );
        let more = [text("Hello "), text("you"), image()];
        assert_eq!(whole(&mut messages, &more), Some(vec![image()]));
        messages.chunk(Writer::Agent, &"m".into(), &text("!"));
        let more = [text("Hello you"), image(), text("!"), text("?")];
        assert_eq!(whole(&mut messages, &more), Some(vec![text("?")]));
    }

    #[test]
    fn another_message_is_no_continuation() {
        let marked = v2::TextContent::new("Hello").with_meta(Meta::new());
        for other in [
            vec![text("Hallo")],
            vec![text("Hell")],
            vec![],
            vec![image(), text("Hello")],
            vec![marked.into()],
            vec![text("Hell"), image()],
        ] {
            let mut messages = said(&[text("Hello")]);
            assert_eq!(whole(&mut messages, &other), None, "{other:?}");
            // The replaced content is now the received part.
            let longer = [other.as_slice(), &[text("!")]].concat();
            assert_eq!(whole(&mut messages, &longer), Some(vec![text("!")]));
        }
        let mut messages = said(&[text("ü")]);
        assert_eq!(
            whole(&mut messages, &[text("\u{fb}")]),
            None,
            "half a character is the same"
        );
    }

    #[test]
    fn messages_are_kept_apart_and_bounded() {
        let mut messages = said(&[text("a")]);
        let id = v2::MessageId::from("m");
        let other = messages.whole(Writer::Thought, &id, &[text("b")]);
        assert_eq!(other, Some(vec![text("b")]));
        for number in 0..2 * MOST_MESSAGES {
            let id = v2::MessageId::from(number.to_string());
            messages.chunk(Writer::Agent, &id, &text("a"));
        }
        assert_eq!(messages.0.len(), MOST_MESSAGES);
        assert_eq!(whole(&mut messages, &[text("b")]), Some(vec![text("b")]));
    }
}
