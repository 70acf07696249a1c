//! Joins adjacent text chunks of one message that a slow client has not been sent yet, if its
//! server is set to (`ServerBuilder::coalesce_chunks`).
//!
//! Lossless: the texts are concatenated as they are encoded, and only chunks that are equal except
//! for their text are joined. The joined chunk has the number of the last one.

use acp_sdk::json::{JoinableText, TextPattern};

use crate::event::Batch;

/// Returns the pattern of updates whose text may be joined, of the document of version 1.
fn pattern() -> Option<TextPattern<'static>> {
    let rules = acp_sdk::v1::COALESCING.iter();
    let mut patterns = rules.filter_map(|rule| rule.params.member("update"));
    patterns.next()
}

/// Joins the chunk `first` with those that follow it up to `last`. Returns the joined chunk and the
/// number of the last one in it; `None` if there is nothing to join.
pub(super) fn join(batch: &Batch, first: u64, last: u64) -> Option<(String, u64)> {
    let open = JoinableText::find(&pattern()?, batch.get(first)?)?;
    let mut joined = String::new();
    let (mut bytes, mut until) = (open.text.len(), first);
    for number in first + 1..=last {
        let Some(text) = batch.get(number).and_then(|next| open.next(next, bytes)) else {
            break;
        };
        bytes += text.len();
        if joined.is_empty() {
            joined.push_str(open.head);
            joined.push_str(open.text);
        }
        joined.push_str(text);
        until = number;
    }
    if until == first {
        return None;
    }
    joined.push_str(open.tail);
    Some((joined, until))
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate, TextContent};

    use super::*;

    fn chunk(text: &str, id: &str) -> String {
        let block = ContentBlock::Text(TextContent::new(text));
        let chunk = ContentChunk::new(block).with_message_id(id);
        serde_json::to_string(&SessionUpdate::AgentMessageChunk(chunk)).unwrap()
    }

    fn batch(texts: &[String]) -> Batch {
        let mut batch = Batch::new(1);
        for text in texts {
            batch.push(text);
        }
        batch
    }

    #[test]
    fn texts_of_one_message_are_joined() {
        let texts = ["a\"\\", "\\", "\u{1}ü\n", "", "end"].map(|text| chunk(text, "m"));
        let (joined, until) = join(&batch(&texts), 1, 5).unwrap();
        assert_eq!((joined, until), (chunk("a\"\\\\\u{1}ü\nend", "m"), 5));
        assert_eq!(
            join(&batch(&texts), 2, 3).unwrap().1,
            3,
            "not beyond the limit"
        );
    }

    #[test]
    fn chunks_that_differ_in_more_than_their_text_are_not() {
        let thought = chunk("x", "m").replace("message_chunk", "thought_chunk");
        let annotated = chunk("x", "m").replace("\"},\"mess", "\",\"annotations\":{}},\"mess");
        let tagged = chunk("x", "m").replace("\"m\"}", "\"m\",\"_meta\":{}}");
        let others = [thought, annotated, tagged, chunk("x", "n"), "{}".to_owned()];
        for other in others {
            let pair = [chunk("x", "m"), other];
            assert_eq!(join(&batch(&pair), 1, 2), None, "{pair:?}");
            let turned = [pair[1].clone(), pair[0].clone()];
            assert_eq!(join(&batch(&turned), 1, 2), None, "{turned:?}");
        }
        let large = chunk(&"x".repeat(16 << 10), "m");
        assert_eq!(join(&batch(&[chunk("y", "m"), large]), 1, 2), None);
    }
}
