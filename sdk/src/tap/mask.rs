//! Replaces the strings of a message that are not known to be harmless.
//!
//! Works on the text, token by token: any depth, any number, every member and its order
//! survive, and nothing is built but the result.

use super::policy::Policy;

/// What stands in the place of a string.
pub(super) const MASK: &str = "\"[redacted]\"";

/// What stands in the place of a URI, as one.
const MASKED_URI: &str = "\"about:redacted\"";

/// Members whose strings say what something is, or what it is about. The schema allows only
/// certain strings in many of them, so masking those would make the message invalid.
pub(super) const KEPT: [&str; 40] = [
    "action",
    "additionalDirectories",
    "audience",
    "category",
    "code",
    "compactionId",
    "configId",
    "currency",
    "currentModeId",
    "cwd",
    "elicitationId",
    "format",
    "group",
    "id",
    "jsonrpc",
    "kind",
    "lastModified",
    "messageId",
    "method",
    "methodId",
    "mimeType",
    "mode",
    "modeId",
    "name",
    "optionId",
    "outcome",
    "path",
    "priority",
    "requestId",
    "sessionId",
    "sessionUpdate",
    "severity",
    "signal",
    "status",
    "stopReason",
    "terminalId",
    "toolCallId",
    "type",
    "updatedAt",
    "version",
];

/// Members that hold whatever their sender likes.
const FREE: [&str; 3] = ["_meta", "rawInput", "rawOutput"];

/// Members that hold an address, which may carry credentials unless it is a file's.
const ADDRESSES: [&str; 2] = ["uri", "url"];

/// Masks a message. `text` must be one JSON value; what else it is does not matter.
pub(super) fn mask(text: &str, policy: Policy) -> String {
    let mut masker = Masker {
        policy,
        levels: Vec::new(),
        next: Verdict {
            rule: Rule::Envelope,
            show: Show::Nothing,
        },
        out: String::with_capacity(text.len()),
    };
    masker.run(text);
    masker.out
}

/// Masks all that can be masked.
#[cfg(any(test, fuzzing))]
pub(crate) fn nothing(text: &str) -> String {
    mask(text, Policy::Nothing)
}

/// What is known of the members of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The members of JSON-RPC.
    Envelope,
    /// `params` or `result`: as the policy says.
    Payload,
    /// An error object, whose message and data may hold anything.
    Error,
    /// What the schema describes.
    Known,
    /// Anything at all.
    Free,
}

/// What becomes of a string or number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Show {
    All,
    /// Numbers only.
    Numbers,
    /// Numbers, and the addresses of files.
    Files,
    Nothing,
}

/// What becomes of a value.
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
    key_is_next: bool,
}

struct Masker {
    policy: Policy,
    levels: Vec<Level>,
    /// Of the value that comes next.
    next: Verdict,
    out: String,
}

impl Masker {
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
            self.next = match rule {
                Rule::Envelope if top => envelope(key),
                Rule::Payload => payload(self.policy, key),
                Rule::Known => known(key),
                Rule::Error if key == "code" => known(key),
                Rule::Envelope | Rule::Error | Rule::Free => FREE_VALUE,
            };
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

fn payload(policy: Policy, key: &str) -> Verdict {
    match policy {
        Policy::Known => known(key),
        Policy::Only(shown) if shown == key => Verdict {
            rule: Rule::Free,
            show: Show::All,
        },
        Policy::Only(_) | Policy::Nothing => FREE_VALUE,
    }
}

fn known(key: &str) -> Verdict {
    if FREE.contains(&key) {
        return FREE_VALUE;
    }
    let show = if KEPT.contains(&key) {
        Show::All
    } else if ADDRESSES.contains(&key) {
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
