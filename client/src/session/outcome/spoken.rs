//! The text of messages. An agent of version 2 may replace a message.

use acp_sdk::Patch;
use acp_sdk::json::UnknownVariant;
use acp_sdk::v1::{ContentBlock, ContentChunk, MessageId};

use super::{Joint, separator};

/// The positions of messages with ids in a text.
#[derive(Debug, Default)]
pub(super) struct Spoken {
    pub(super) joint: Joint,
    parts: Vec<Part>,
}

/// A piece of a message. Pieces of several messages may alternate.
#[derive(Debug)]
struct Part {
    id: MessageId,
    start: usize,
    end: usize,
}

impl Spoken {
    /// Adds a chunk to the text.
    pub(super) fn append(&mut self, text: &mut String, chunk: &ContentChunk) {
        let ContentBlock::Text(content) = &chunk.content else {
            return;
        };
        if self.joint.is_new_message(chunk) {
            text.push_str(separator(text));
        }
        let start = text.len();
        text.push_str(&content.text);
        let end = text.len();
        let Some(id) = &chunk.message_id else { return };
        match self.parts.last_mut() {
            Some(part) if part.id == *id && part.end == start => part.end = end,
            _ => self.parts.push(Part {
                id: id.clone(),
                start,
                end,
            }),
        }
    }

    /// Replaces a message by the content of a version 2 update.
    pub(super) fn replace(&mut self, text: &mut String, update: &UnknownVariant) {
        let id: Option<MessageId> = update.get("messageId").and_then(|id| id.parse().ok());
        let content: Option<Patch<Vec<ContentBlock>>> = update
            .get("content")
            .and_then(|content| content.parse().ok());
        let (Some(id), Some(Patch::Null | Patch::Value(_))) = (id, &content) else {
            return;
        };
        let blocks = content.iter().flat_map(Patch::value).flatten();
        let words = blocks.filter_map(|block| match block {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let mut words: String = words.collect();
        if !self.parts.iter().any(|part| part.id == id) {
            // The message belongs to an earlier turn.
            let chunk = ContentChunk::new(ContentBlock::from(words.as_str())).with_message_id(id);
            return self.append(text, &chunk);
        }
        let (mut before, mut after) = (0, 0);
        for part in &mut self.parts {
            // The offset changes by the change in length of the preceding text.
            let start = part.start + after - before;
            let end = part.end + after - before;
            if part.id == id {
                let words = std::mem::take(&mut words);
                text.replace_range(start..end, &words);
                (before, after) = (before + part.end - part.start, after + words.len());
                (part.start, part.end) = (start, start + words.len());
            } else {
                (part.start, part.end) = (start, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::SessionUpdate;
    use serde_json::{Value, json};

    use super::*;

    fn chunk(id: &str, text: &str) -> ContentChunk {
        ContentChunk::new(ContentBlock::from(text)).with_message_id(id)
    }

    fn replace(spoken: &mut Spoken, text: &mut String, id: &str, content: Value) {
        let update = json!({"sessionUpdate": "agent_message", "messageId": id, "content": content});
        match serde_json::from_value(update).unwrap() {
            SessionUpdate::Unknown(update) => spoken.replace(text, &update),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_message_is_replaced_where_it_stands() {
        let (mut spoken, mut text) = (Spoken::default(), String::new());
        for (id, word) in [("a", "one"), ("b", "two"), ("a", "more"), ("b", "end")] {
            spoken.append(&mut text, &chunk(id, word));
        }
        assert_eq!(text, "one\n\ntwo\n\nmore\n\nend");
        let block = |text: &str| json!({"type": "text", "text": text});
        replace(
            &mut spoken,
            &mut text,
            "a",
            json!([block("longer "), block("one")]),
        );
        assert_eq!(text, "longer one\n\ntwo\n\n\n\nend");
        replace(&mut spoken, &mut text, "b", json!([block("2")]));
        assert_eq!(text, "longer one\n\n2\n\n\n\n");
        replace(&mut spoken, &mut text, "a", Value::Null);
        assert_eq!(text, "\n\n2\n\n\n\n");
        spoken.append(&mut text, &chunk("b", "x"));
        replace(&mut spoken, &mut text, "b", json!([]));
        replace(&mut spoken, &mut text, "old", json!([block("from before")]));
        assert_eq!(text.trim(), "from before");
    }
}
