//! One line of a recording.
//!
//! Two formats, distinguished line by line:
//!
//! - a **transcript**: `{"dir": "c2a" | "a2c", "msg": {…}}`; instead of `"msg"`,
//!   `"raw": "text"` is a line that was not a message and `"lost": n` stands for
//!   messages that were not recorded, both with the reason in `"why"`; `"onPurpose": true`
//!   beside `"lost"` says that the recorder left them out on purpose; other members are left
//!   alone;
//! - **plain NDJSON**: the messages themselves, without a direction.

use serde_json::Value;

use crate::wire::Party;

/// What a line of a recording holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A message and who wrote it.
    Message(Party, Value),
    /// A line that its recorder did not take for a message.
    Raw {
        /// Who wrote it.
        from: Party,
        /// The line, without what is not UTF-8.
        text: String,
        /// What is wrong with it. Absent if the recorder wrote it on purpose, as
        /// a probe.
        why: Option<String>,
    },
    /// Messages that their recorder could not keep.
    Lost {
        /// Who wrote them.
        from: Party,
        /// How many.
        messages: u64,
        /// What prevented it.
        why: String,
        /// Whether their recorder left them out on purpose; such a gap decides nothing.
        on_purpose: bool,
    },
    /// A message without a direction.
    Plain(Value),
}

/// Why a line is no record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The line is not UTF-8.
    #[error("not UTF-8 from byte {0} on")]
    Utf8(usize),
    /// The line is not JSON.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The line has a member `dir` that is no direction.
    #[error("`dir` must be \"c2a\" or \"a2c\", is {0}")]
    Direction(String),
    /// A record without content.
    #[error("a record needs `msg`, `raw` with a string, or `lost` with a number")]
    Empty,
}

/// Reads one line.
///
/// # Errors
/// When the line is not JSON, or a transcript's record without direction or
/// content.
pub fn parse(line: &[u8]) -> Result<Record, RecordError> {
    let text = std::str::from_utf8(line).map_err(|error| RecordError::Utf8(error.valid_up_to()))?;
    let mut value: Value = serde_json::from_str(text)?;
    let Some(dir) = value.get("dir") else {
        return Ok(Record::Plain(value));
    };
    let from = dir
        .as_str()
        .and_then(Party::from_tag)
        .ok_or_else(|| RecordError::Direction(dir.to_string()))?;
    if let Some(message) = value.get_mut("msg") {
        return Ok(Record::Message(from, message.take()));
    }
    let why = match value.get_mut("why").map(Value::take) {
        Some(Value::String(why)) => Some(why),
        _ => None,
    };
    if let Some(messages) = value.get("lost").and_then(Value::as_u64) {
        let why = why.unwrap_or_else(|| "the recorder lost it".to_owned());
        let on_purpose = value.get("onPurpose") == Some(&Value::Bool(true));
        return Ok(Record::Lost {
            from,
            messages,
            why,
            on_purpose,
        });
    }
    match value.get_mut("raw").map(Value::take) {
        Some(Value::String(text)) => Ok(Record::Raw { from, text, why }),
        _ => Err(RecordError::Empty),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn both_formats_are_read() {
        assert_eq!(
            parse(br#"{"dir": "a2c", "at": 3, "msg": {"id": 1}}"#).unwrap(),
            Record::Message(Party::Agent, json!({"id": 1}))
        );
        assert_eq!(
            parse(br#"{"dir": "c2a", "raw": "{oops"}"#).unwrap(),
            Record::Raw {
                from: Party::Client,
                text: "{oops".into(),
                why: None
            }
        );
        assert_eq!(
            parse(br#"{"id": 1}"#).unwrap(),
            Record::Plain(json!({"id": 1}))
        );
    }

    #[test]
    fn what_is_no_record_is_named() {
        let because = |line: &[u8]| parse(line).unwrap_err().to_string();
        assert_eq!(
            because(br#"{"dir": "up", "msg": {}}"#),
            r#"`dir` must be "c2a" or "a2c", is "up""#
        );
        assert!(because(br#"{"dir": "a2c", "raw": 1}"#).contains("needs `msg`"));
        assert!(because(b"{").starts_with("not JSON: EOF"));
        assert_eq!(because(b"ab\xff"), "not UTF-8 from byte 2 on");
    }
}
