//! Takes secrets out of the lines of the log. Each line passes here, whoever has written it.
//!
//! Replaced are known secrets (tokens of the server, values of environment variables whose names say
//! that they are secret) and whatever follows `Bearer ` or the name of a secret: `token=…`,
//! `"apiKey":"…"`.

use std::borrow::Cow;
use std::env;
use std::sync::{Arc, PoisonError, RwLock};

/// Stands in the place of a secret.
const REDACTED: &str = "[redacted]";

/// The least characters of a known secret. Shorter values, such as numbers, are part of other words.
const SHORTEST: usize = 6;

/// Parts of names of environment variables whose values are secret.
const SECRET_VARIABLES: [&str; 4] = ["KEY", "TOKEN", "SECRET", "PASSWORD"];

/// Ends of names whose values are secret.
const SECRET_NAMES: [&str; 5] = ["key", "token", "secret", "password", "ticket"];

const BEARER: &str = "bearer ";

/// The secrets that are known, the longest first, because one may be part of another.
#[derive(Clone)]
pub(super) struct Secrets(Arc<RwLock<Vec<String>>>);

impl Secrets {
    /// Returns those of the environment.
    pub(super) fn of_environment() -> Self {
        let secrets = Self(Arc::default());
        for (name, value) in env::vars_os() {
            let name = name.to_string_lossy().to_uppercase();
            if SECRET_VARIABLES.iter().any(|part| name.contains(part)) {
                secrets.add(&value.to_string_lossy());
            }
        }
        secrets
    }

    /// Adds a secret. Each line of a key of several lines is one.
    pub(super) fn add(&self, secret: &str) {
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        for line in secret.lines().map(str::trim) {
            if line.chars().count() < SHORTEST {
                continue;
            }
            // As it stands in a JSON text, too.
            let json = serde_json::Value::from(line).to_string();
            let json = json
                .strip_prefix('"')
                .and_then(|json| json.strip_suffix('"'));
            for form in std::iter::once(line).chain(json) {
                if !known.iter().any(|old| old == form) {
                    known.push(form.to_owned());
                }
            }
        }
        known.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// Returns a line without its secrets.
    pub(super) fn redact(&self, line: &str) -> String {
        let mut line = Cow::Borrowed(line);
        for secret in &*self.0.read().unwrap_or_else(PoisonError::into_inner) {
            if line.contains(secret) {
                line = line.replace(secret, REDACTED).into();
            }
        }
        named(&line)
    }
}

/// Replaces what follows `Bearer ` and the names of secrets.
fn named(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(character) = rest.chars().next() {
        let value_at = match character {
            'b' | 'B' if starts_with(rest, BEARER) => Some(BEARER.len()),
            '=' | ':' if is_secret(&shown, character) => Some(1),
            _ => None,
        };
        let (kept, after) = rest.split_at(value_at.unwrap_or(character.len_utf8()));
        shown.push_str(kept);
        rest = after;
        if value_at.is_some() {
            rest = replace_value(&mut shown, rest);
        }
    }
    shown
}

/// Returns whether the text before a `=` or `:` ends with the name of a secret. Before a colon the
/// name must be in quotes: sentences have colons, too.
fn is_secret(before: &str, separator: char) -> bool {
    let name = before.trim_end_matches(['"', '\'', '\\']);
    if separator == ':' && name.len() == before.len() {
        return false;
    }
    SECRET_NAMES.iter().any(|end| {
        let last = name.len().checked_sub(end.len());
        let last = last.and_then(|at| name.as_bytes().get(at..));
        last.is_some_and(|last| last.eq_ignore_ascii_case(end.as_bytes()))
    })
}

/// Replaces the value at the start of `rest`. Returns what follows.
fn replace_value<'a>(shown: &mut String, rest: &'a str) -> &'a str {
    let value = rest.trim_start_matches([' ', '"', '\'', '\\']);
    let (before, _) = rest.split_at(rest.len() - value.len());
    shown.push_str(before);
    let quoted = before.ends_with(['"', '\'']);
    let is_end = |c: char| match quoted {
        true => matches!(c, '"' | '\'' | '\\'),
        false => c.is_whitespace() || "\"'\\&,;()<>[]{}".contains(c),
    };
    let end = value.find(is_end).unwrap_or(value.len());
    if end > 0 {
        shown.push_str(REDACTED);
    }
    &value[end..]
}

fn starts_with(text: &str, start: &str) -> bool {
    let head = text.as_bytes().get(..start.len());
    head.is_some_and(|head| head.eq_ignore_ascii_case(start.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets(known: &[&str]) -> Secrets {
        let secrets = Secrets(Arc::default());
        known.iter().for_each(|secret| secrets.add(secret));
        secrets
    }

    #[test]
    fn known_secrets_appear_nowhere_in_a_line() {
        let secrets = secrets(&[
            "abcdef",
            "abcdef-longer",
            "say \"hello\"",
            "-----BEGIN\nMIIEvQ==\nshort",
            "1",
        ]);
        for (line, expected) in [
            ("a abcdef b abcdef-longer", "a [redacted] b [redacted]"),
            (r#"{"m":"say \"hello\""}"#, r#"{"m":"[redacted]"}"#),
            ("say \"hello\"", "[redacted]"),
            ("MIIEvQ== is a line of it", "[redacted] is a line of it"),
            ("1 of 10 in short", "1 of 10 in short"),
        ] {
            assert_eq!(secrets.redact(line), expected);
        }
    }

    #[test]
    fn values_of_secret_names_are_replaced_up_to_their_end() {
        for (line, expected) in [
            (
                "Authorization: Bearer x.y-z, more",
                "Authorization: Bearer [redacted], more",
            ),
            ("bearer x", "bearer [redacted]"),
            (
                "GET /acp?a=1&ticket=t&b=2",
                "GET /acp?a=1&ticket=[redacted]&b=2",
            ),
            ("http://h/#token=t", "http://h/#token=[redacted]"),
            ("OPENAI_API_KEY=s next", "OPENAI_API_KEY=[redacted] next"),
            (
                r#"{"apiKey": "s s", "a": "b"}"#,
                r#"{"apiKey": "[redacted]", "a": "b"}"#,
            ),
            (
                r#"{"m":"{\"token\":\"s\"}"}"#,
                r#"{"m":"{\"token\":\"[redacted]\"}"}"#,
            ),
            ("Password='a b' c", "Password='[redacted]' c"),
            ("token=", "token="),
            (
                "cannot read the key: No such file",
                "cannot read the key: No such file",
            ),
            ("inputTokens=12 ü=1", "inputTokens=12 ü=1"),
        ] {
            assert_eq!(secrets(&[]).redact(line), expected);
        }
    }
}
