//! Secrets in lines that are no JSON, such as a message that was cut off.

use super::{REDACTED, is_secret};

/// Takes the strings out of `text` that follow a secret's name or `"value"` and a
/// colon. There is no structure to go by, so this errs on the side of taking out.
#[must_use]
pub fn redact_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut named = false;
    while let Some((before, literal)) = rest.split_once('"') {
        let secret = named && before.trim() == ":";
        let end = closing_quote(literal).unwrap_or(literal.len());
        let (content, after) = literal.split_at(end);
        let closed = after.strip_prefix('"');
        out.push_str(before);
        out.push('"');
        out.push_str(if secret { REDACTED } else { content });
        if closed.is_some() {
            out.push('"');
        }
        named = !secret && (content == "value" || is_secret(content));
        rest = closed.unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Where the string literal ends whose opening quote was before `text`.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_the_name_of_a_secret_goes() {
        let cases = [
            (
                r#"{"env":[{"name":"K","value": "s\"3"}],"apiKey":"s","#,
                r#"{"env":[{"name":"K","value": "[redacted]"}],"apiKey":"[redacted]","#,
            ),
            (r#"{"token":"cut of"#, r#"{"token":"[redacted]"#),
            (r#"["token","kept"]"#, r#"["token","kept"]"#),
            ("Listening on stdio", "Listening on stdio"),
            (r#"a \" "ü"#, r#"a \" "ü"#),
            ("\"", "\""),
        ];
        for (text, expected) in cases {
            assert_eq!(redact_text(text), expected);
        }
    }
}
