//! JSON-RPC batches: several messages in one array.

use serde_core::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;

/// The most messages in a batch; larger ones are refused as a whole.
pub(crate) const MOST: usize = 1000;

/// Why an array is not a batch.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadBatch {
    /// It is not JSON.
    NotJson(String),
    /// It has no messages.
    Empty,
    /// It has more than [`MOST`].
    TooMany,
}

/// Returns the messages of a batch as received.
///
/// # Errors
///
/// When the text is not an array of one to [`MOST`] values.
pub(crate) fn read_batch(text: &[u8]) -> Result<Vec<&RawValue>, BadBatch> {
    let text = std::str::from_utf8(text)
        .map_err(|error| BadBatch::NotJson(format!("the batch is not UTF-8: {error}")))?;
    let mut input = serde_json::Deserializer::from_str(text);
    let bad = |error: serde_json::Error| BadBatch::NotJson(error.to_string());
    let entries = input.deserialize_seq(Entries).map_err(bad)?;
    input.end().map_err(bad)?;
    match entries {
        None => Err(BadBatch::TooMany),
        Some(entries) if entries.is_empty() => Err(BadBatch::Empty),
        Some(entries) => Ok(entries),
    }
}

/// Keeps at most [`MOST`] entries and skips the rest, whose syntax is checked too.
struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Option<Vec<&'de RawValue>>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an array of messages")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let (mut entries, mut too_many) = (Vec::new(), false);
        while let Some(entry) = seq.next_element()? {
            if entries.len() < MOST {
                entries.push(entry);
            } else {
                too_many = true;
            }
        }
        Ok((!too_many).then_some(entries))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Result<Vec<&str>, BadBatch> {
        Ok(read_batch(text.as_bytes())?
            .into_iter()
            .map(RawValue::get)
            .collect())
    }

    #[test]
    fn entries_stay_as_they_are() {
        assert_eq!(
            texts(r#" [ {"a": 1}, 2 ,[]] "#),
            Ok(vec![r#"{"a": 1}"#, "2", "[]"])
        );
    }

    #[test]
    fn what_is_no_batch_says_why() {
        assert_eq!(texts("[ ]"), Err(BadBatch::Empty));
        assert!(matches!(
            read_batch(b"[\"\xff\"]"),
            Err(BadBatch::NotJson(_))
        ));
        for text in ["[", "[1,]", "[1] 2", "[1}", "[\"\u{1}\"]"] {
            assert!(matches!(texts(text), Err(BadBatch::NotJson(_))), "{text}");
        }
        let full = |count: usize| format!("[{}]", vec!["1"; count].join(","));
        assert_eq!(texts(&full(MOST)).map(|entries| entries.len()), Ok(MOST));
        assert_eq!(texts(&full(MOST + 1)), Err(BadBatch::TooMany));
        // Invalid syntax after the last entry that is kept.
        let text = full(MOST + 1).replace(']', ",x]");
        assert!(matches!(texts(&text), Err(BadBatch::NotJson(_))));
    }
}
