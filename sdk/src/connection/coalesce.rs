//! Joins adjacent texts of one message while they wait to be written.
//!
//! Lossless: encoded texts are concatenated in order, and only notifications that are equal except
//! for their text are joined. Which ones, and where the text is, is data of the document
//! (`x-coalesce`); a notification with a member that its rule does not name is not changed. Any
//! other message ends the text, so the order never changes.

use std::ops::Range;

use crate::json::TextPattern;

/// The most text of a joined notification, in encoded bytes.
const LARGEST: usize = 16 << 10;

/// A notification that may be joined with the one before, generated from `x-coalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoalescingRule {
    /// The name on the wire.
    pub method: &'static str,
    /// The members of the params.
    pub params: TextPattern<'static>,
}

impl CoalescingRule {
    /// Returns the position of the text in an encoded notification that the rule is for.
    fn find(&self, message: &str) -> Option<Range<usize>> {
        let envelope = [
            ("jsonrpc", TextPattern::Equal),
            ("method", TextPattern::Tag(&[self.method])),
            ("params", self.params),
        ];
        TextPattern::Object(&envelope).find(message)
    }
}

/// An encoded value whose text may be joined with that of the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JoinableText<'a> {
    /// Everything before the text.
    pub head: &'a str,
    /// The text with its escapes, without quotes.
    pub text: &'a str,
    /// Everything after the text.
    pub tail: &'a str,
}

impl<'a> JoinableText<'a> {
    /// Splits `json`; returns `None` when it does not match `pattern`.
    #[must_use]
    pub fn find(pattern: &TextPattern<'_>, json: &'a str) -> Option<Self> {
        let text = pattern.find(json)?;
        Some(Self {
            head: json.get(..text.start)?,
            tail: json.get(text.end..)?,
            text: json.get(text)?,
        })
    }

    /// Returns the text of `next`, when it is equal except for its text and is short enough to be
    /// joined with `joined` bytes of text.
    #[must_use]
    pub fn next<'b>(&self, next: &'b str, joined: usize) -> Option<&'b str> {
        let (head, tail) = (self.head.as_bytes(), self.tail.as_bytes());
        next.get(next_text(head, tail, next.as_bytes(), joined)?)
    }
}

/// Returns the position of the text in `next`, which is to be joined with `joined` bytes of text
/// between `head` and `tail`.
fn next_text(head: &[u8], tail: &[u8], next: &[u8], joined: usize) -> Option<Range<usize>> {
    let rest = next.strip_prefix(head)?;
    let length = end_of_string(rest)?;
    let is_joined = rest.get(length..) == Some(tail) && joined.checked_add(length)? <= LARGEST;
    is_joined.then(|| head.len()..head.len() + length)
}

/// Returns the position of the closing quote of a string whose opening quote was read.
fn end_of_string(text: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(at) == Some(&b'"') {
            return Some(at);
        }
        at += 2;
    }
}

/// The last message of a buffer, when more text may be joined to it.
#[derive(Debug)]
pub(super) struct LastText {
    message: Range<usize>,
    text: Range<usize>,
}

impl LastText {
    /// Finds the text of the message in `bytes` from `begin` on.
    pub(super) fn find(bytes: &[u8], begin: usize, rules: &[CoalescingRule]) -> Option<Self> {
        let message = str::from_utf8(bytes.get(begin..)?).ok()?;
        let text = rules.iter().find_map(|rule| rule.find(message))?;
        Some(Self {
            message: begin..bytes.len(),
            text: begin + text.start..begin + text.end,
        })
    }

    /// Moves the text of the message in `bytes` from `begin` on into this message, and removes the
    /// rest of it. Returns `false`, and changes nothing, when they differ in more than their text
    /// or are not adjacent.
    pub(super) fn join(&mut self, bytes: &mut Vec<u8>, begin: usize) -> bool {
        let Range { start, end } = self.text;
        if self.message.end != begin {
            return false;
        }
        let parts = (
            bytes.get(self.message.start..start),
            bytes.get(end..begin),
            bytes.get(begin..),
        );
        let (Some(head), Some(tail), Some(next)) = parts else {
            return false;
        };
        let Some(text) = next_text(head, tail, next, end - start) else {
            return false;
        };
        // The tail of the next message is equal, so it follows the text to its new place.
        bytes.copy_within(begin + text.start.., end);
        bytes.truncate(bytes.len() - (begin + text.start - end));
        self.text.end += text.len();
        self.message.end = bytes.len();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: &[CoalescingRule] = &[CoalescingRule {
        method: "_say",
        params: TextPattern::Object(&[
            ("id", TextPattern::Equal),
            (
                "block",
                TextPattern::Object(&[
                    ("kind", TextPattern::Tag(&["a", "b"])),
                    ("text", TextPattern::Text),
                ]),
            ),
        ]),
    }];

    /// Returns the lines of a buffer that these params were written to.
    fn joined(params: &[&str]) -> Vec<String> {
        let (mut bytes, mut last) = (Vec::new(), None::<LastText>);
        for params in params {
            let begin = bytes.len();
            let message =
                format!("{{\"jsonrpc\":\"2.0\",\"method\":\"_say\",\"params\":{params}}}\n");
            bytes.extend_from_slice(message.as_bytes());
            if !last
                .as_mut()
                .is_some_and(|last| last.join(&mut bytes, begin))
            {
                last = LastText::find(&bytes, begin, RULES);
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let lines = text.lines().map(|line| {
            let params = line.split_once("\"params\":").unwrap().1;
            params.strip_suffix('}').unwrap().to_owned()
        });
        lines.collect()
    }

    #[test]
    fn texts_are_joined_as_they_are_encoded() {
        let say = |text: &str| format!(r#"{{"block":{{"text":"{text}","kind":"a"}},"id":[1]}}"#);
        let texts = [r#"a\"\\"#, r"\\", "\\u0001ü\\n", "", "end"].map(say);
        let texts = texts.each_ref().map(String::as_str);
        assert_eq!(joined(&texts), [say("a\\\"\\\\\\\\\\u0001ü\\nend")]);
    }

    #[test]
    fn notifications_with_other_members_are_not_joined() {
        let unnamed = [
            r#"{"block":{"text":"x","kind":"c"}}"#,
            r#"{"block":{"text":"x","kind":1}}"#,
            r#"{"block":{"text":"x"}}"#,
            r#"{"block":{"text":1,"kind":"a"}}"#,
            r#"{"block":{"kind":"a"}}"#,
            r#"{"block":{"text":"x","text":"y","kind":"a"}}"#,
            r#"{"block":{"text":"x","kind":"a","more":1}}"#,
            r#"{"block":{"text":"x","kind":"a"},"_meta":null}"#,
            r#"{"block":"x"}"#,
            r#"{"id":1}"#,
            "[]",
            "null",
        ];
        for params in unnamed {
            assert_eq!(joined(&[params, params]), [params, params]);
        }
    }

    #[test]
    fn notifications_that_differ_are_not_joined() {
        let first = r#"{"block":{"text":"x","kind":"a"},"id":1}"#;
        for other in [
            r#"{"block":{"text":"x","kind":"b"},"id":1}"#,
            r#"{"block":{"text":"x","kind":"a"},"id":2}"#,
            r#"{"block":{"text":"x","kind":"a"}}"#,
            r#"{"block":{"kind":"a","text":"x"},"id":1}"#,
            r#"{"block":{"text":"x" ,"kind":"a"},"id":1}"#,
        ] {
            assert_eq!(joined(&[first, other]), [first, other]);
            assert_eq!(joined(&[other, first]), [other, first]);
        }
        let third = joined(&[first, "{}", first, first]);
        let both = first.replace("\"x\"", "\"xx\"");
        assert_eq!(third, [first, "{}", &both]);
    }

    #[test]
    fn a_joined_text_has_at_most_16_kib() {
        let say = |length: usize| {
            let text = "x".repeat(length);
            format!(r#"{{"block":{{"text":"{text}","kind":"a"}}}}"#)
        };
        let [one, rest, full] = [say(1), say(LARGEST - 1), say(LARGEST)];
        assert_eq!(joined(&[&one, &rest]), [full.as_str()]);
        assert_eq!(joined(&[&full, &one]), [full, one]);
    }
}
