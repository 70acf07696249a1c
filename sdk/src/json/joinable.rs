//! Joins the texts of adjacent encoded notifications.
//!
//! Lossless: encoded texts are concatenated in order, and only values that are equal except for
//! their text are joined. Which ones, and where the text is, is data of the document
//! (`x-coalesce`); a value with a member that its rule does not name is not joined.

use crate::json::TextPattern;

/// The most text of a joined value, in encoded bytes.
const LARGEST: usize = 16 << 10;

/// A notification that may be joined with the one before, generated from `x-coalesce`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoalescingRule {
    /// The name on the wire.
    pub method: &'static str,
    /// The members of the params.
    pub params: TextPattern<'static>,
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
        let rest = next.strip_prefix(self.head)?;
        let length = end_of_string(rest.as_bytes())?;
        let (text, tail) = rest.split_at_checked(length)?;
        (tail == self.tail && joined.checked_add(length)? <= LARGEST).then_some(text)
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const SAY: TextPattern<'static> = TextPattern::Object(&[
        ("id", TextPattern::Equal),
        (
            "block",
            TextPattern::Object(&[
                ("kind", TextPattern::Tag(&["a", "b"])),
                ("text", TextPattern::Text),
            ]),
        ),
    ]);

    /// Joins each of these values with those before, where the rule permits it.
    fn joined(values: &[&str]) -> Vec<String> {
        let mut joined: Vec<String> = Vec::new();
        for value in values {
            let last = joined.pop();
            let open = last
                .as_deref()
                .and_then(|last| JoinableText::find(&SAY, last));
            let text = open.and_then(|open| Some((open, open.next(value, open.text.len())?)));
            match text {
                Some((JoinableText { head, text, tail }, next)) => {
                    joined.push([head, text, next, tail].concat());
                }
                None => joined.extend(last.into_iter().chain([(*value).to_owned()])),
            }
        }
        joined
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
