//! Masks a message: replaces the strings that the rules do not show.
//!
//! Works on the text, token by token. Members, their order, any depth and any number are
//! preserved.

use super::place::Place;
use super::policy::Policy;
use super::rules::{Rules, Visible};

/// Replaces a string.
pub(super) const MASK: &str = "\"[redacted]\"";

/// Replaces a URI, and is one.
const MASKED_URI: &str = "\"about:redacted\"";

/// Masks a message. `text` must be one JSON value; it need not be a valid message.
pub(super) fn mask(text: &str, policy: Policy, rules: &Rules) -> String {
    let mut masker = Masker {
        policy,
        rules,
        levels: Vec::new(),
        next: Verdict {
            rule: Rule::Envelope,
            show: Show::Nothing,
        },
        place: Place::default(),
        out: String::with_capacity(text.len()),
    };
    masker.run(text);
    masker.out
}

/// Masks everything but the form.
#[cfg(any(test, fuzzing))]
pub(crate) fn everything(text: &str) -> String {
    mask(text, Policy::Nothing, &Rules::v1())
}

/// The rule for the members of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The members of JSON-RPC.
    Envelope,
    /// `params` or `result`: by the policy.
    Payload,
    /// An error object: only its code is shown.
    Error,
    /// Described by a document: by the members of the types at its place.
    Known,
    /// Of any form: masked.
    Free,
}

/// Which strings and numbers are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    All,
    /// Numbers only.
    Numbers,
    /// Numbers, and URIs of files.
    Files,
    Nothing,
}

/// The rules for a value.
#[derive(Debug, Clone, Copy)]
struct Verdict {
    /// For the members of objects in it.
    rule: Rule,
    show: Show,
}

struct Level {
    is_object: bool,
    /// Of the object or array itself.
    verdict: Verdict,
    place: Place,
    key_is_next: bool,
}

struct Masker<'a> {
    policy: Policy,
    rules: &'a Rules,
    levels: Vec<Level>,
    /// For the next value.
    next: Verdict,
    /// Of the next value, if it is described by a document.
    place: Place,
    out: String,
}

impl Masker<'_> {
    fn run(&mut self, mut rest: &str) {
        while let Some(first) = rest.bytes().next() {
            let end = match first {
                b'"' => string_end(rest),
                b'-' | b'0'..=b'9' => number_end(rest),
                // Everything else is copied up to the next token that may be masked.
                _ => 1,
            };
            let Some((token, after)) = rest.split_at_checked(end) else {
                // Only text that is not JSON has a character here that is no token.
                return;
            };
            rest = after;
            match first {
                b'"' => self.string(token),
                b'-' | b'0'..=b'9' if self.next.show == Show::Nothing => self.out.push('0'),
                b'{' | b'[' => {
                    self.levels.push(Level {
                        is_object: first == b'{',
                        verdict: self.next,
                        place: self.place.clone(),
                        key_is_next: first == b'{',
                    });
                    self.out.push_str(token);
                }
                b'}' | b']' => {
                    self.levels.pop();
                    self.next = self.levels.last().map_or(self.next, |level| level.verdict);
                    self.out.push_str(token);
                }
                b',' => {
                    if let Some(level) = self.levels.last_mut() {
                        level.key_is_next = level.is_object;
                        self.next = level.verdict;
                        self.place = level.place.clone();
                    }
                    self.out.push_str(token);
                }
                b'\n' | b'\r' => self.out.push(' '),
                _ => self.out.push_str(token),
            }
        }
    }

    fn string(&mut self, token: &str) {
        let top = self.levels.len() == 1;
        if let Some(level) = self.levels.last_mut()
            && level.key_is_next
        {
            level.key_is_next = false;
            let rule = level.verdict.rule;
            let key = token.trim_matches('"');
            let place = match (rule, &self.policy) {
                (Rule::Payload, Policy::Method(Visible::Members, place)) => Some(place),
                (Rule::Known, _) => Some(&level.place),
                _ => None,
            };
            let member = place.and_then(|place| place.member(key));
            self.next = match rule {
                Rule::Envelope if top => envelope(key),
                Rule::Payload | Rule::Known if member.is_some() => known(self.rules, key),
                Rule::Payload => payload(&self.policy, key),
                Rule::Error if key == "code" => CODE,
                Rule::Envelope | Rule::Error | Rule::Known | Rule::Free => FREE_VALUE,
            };
            self.place = member.unwrap_or_default();
            self.out.push_str(token);
            return;
        }
        let shown = match self.next.show {
            Show::All => token,
            Show::Files if token.starts_with("\"file:") => token,
            Show::Files => MASKED_URI,
            Show::Numbers | Show::Nothing => MASK,
        };
        self.out.push_str(shown);
    }
}

const FREE_VALUE: Verdict = Verdict {
    rule: Rule::Free,
    show: Show::Nothing,
};

/// An error code, if it is a number.
const CODE: Verdict = Verdict {
    rule: Rule::Known,
    show: Show::Numbers,
};

fn envelope(key: &str) -> Verdict {
    match key {
        "jsonrpc" | "id" | "method" => Verdict {
            rule: Rule::Free,
            show: Show::All,
        },
        "params" | "result" => Verdict {
            rule: Rule::Payload,
            show: Show::Nothing,
        },
        "error" => Verdict {
            rule: Rule::Error,
            show: Show::Nothing,
        },
        _ => FREE_VALUE,
    }
}

/// The verdict for a member of a payload of which some members are shown by name.
fn payload(policy: &Policy, key: &str) -> Verdict {
    match policy {
        Policy::Method(Visible::Only(shown), _) if shown.contains(&key) => Verdict {
            rule: Rule::Free,
            show: Show::All,
        },
        Policy::Method(..) | Policy::Nothing => FREE_VALUE,
    }
}

fn known(rules: &Rules, key: &str) -> Verdict {
    if rules.is_sensitive(key) {
        return FREE_VALUE;
    }
    let show = if rules.is_shown(key) {
        Show::All
    } else if rules.is_uri(key) {
        Show::Files
    } else {
        Show::Numbers
    };
    Verdict {
        rule: Rule::Known,
        show,
    }
}

/// Where the string literal that `text` begins with ends.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    let end = text.bytes().skip(1).position(|byte| {
        let closes = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        closes
    });
    end.map_or(text.len(), |end| end + 2)
}

/// Where the number that `text` begins with ends.
fn number_end(text: &str) -> usize {
    let is_part = |byte: &u8| byte.is_ascii_digit() || b"+-.eE".contains(byte);
    text.bytes().take_while(|byte| is_part(byte)).count()
}
