//! What is wrong with a message, and how bad that is.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Party;

/// How much a finding weighs.
///
/// An error is a message that the schema or the envelope forbids; it decides the
/// verdict. A warning is a message that is well formed but does not belong where
/// it stands. A note says what a reader may want to know and what the protocol
/// leaves open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Worth knowing, not wrong.
    Note,
    /// Wrong by a rule other than the schema.
    Warning,
    /// Not a valid message.
    Error,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// Which rule a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// Params, a result or an error object that the schema forbids.
    Schema,
    /// Not a JSON-RPC message.
    Envelope,
    /// A line that is not JSON.
    NotJson,
    /// A line longer than the limit.
    TooLong,
    /// A line of a transcript that is no record.
    Record,
    /// Messages that were not judged.
    Lost,
    /// An error without `id`.
    MissingId,
    /// An answer to a notification.
    NotificationAnswered,
    /// An answer that no open request waits for.
    UnmatchedAnswer,
    /// A method that is neither the protocol's nor marked as an extension.
    UnknownMethod,
    /// An update that follows the answer of a cancelled turn.
    LateUpdate,
    /// A member that the schema does not have, where it reserves all names.
    CustomField,
    /// A malformed message of the client that the agent refused.
    Probe,
    /// A requirement about a sequence of messages, by its id.
    Requirement(&'static str),
    /// A `null` result where the schema wants an object without required members.
    NullResult,
}

impl Rule {
    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::Envelope => "envelope",
            Self::NotJson => "not-json",
            Self::TooLong => "too-long",
            Self::Record => "record",
            Self::Lost => "lost",
            Self::MissingId => "missing-id",
            Self::NotificationAnswered => "notification-answered",
            Self::UnmatchedAnswer => "unmatched-answer",
            Self::UnknownMethod => "unknown-method",
            Self::LateUpdate => "late-update",
            Self::CustomField => "custom-field",
            Self::Probe => "probe",
            Self::Requirement(id) => id,
            Self::NullResult => "null-result",
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One thing found in one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where the message stands: the line of a file, or its number in a recording.
    pub place: u64,
    /// How much it weighs.
    pub level: Level,
    /// Which rule it is about.
    pub rule: Rule,
    /// Who wrote the message; `None` when that cannot be told.
    pub by: Option<Party>,
    /// The method of the message, or of the request it answers.
    pub method: Option<String>,
    /// JSON Pointer into the message; empty for the message as a whole.
    pub pointer: String,
    /// What is wrong, in words.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.level, self.rule.as_str())?;
        if let Some(by) = self.by {
            write!(f, " {by}:")?;
        }
        if let Some(method) = &self.method {
            write!(f, " {method}")?;
        }
        if !self.pointer.is_empty() {
            write!(f, " at {}", self.pointer)?;
        }
        // Without a method or a place, the writer's colon is the only one.
        let colon = if self.by.is_some() && self.method.is_none() && self.pointer.is_empty() {
            ""
        } else {
            ":"
        };
        write!(f, "{colon} {}", self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_weight() {
        assert!(Level::Note < Level::Warning && Level::Warning < Level::Error);
    }

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding {
            place: 7,
            level: Level::Error,
            rule: Rule::Schema,
            by: Some(Party::Agent),
            method: Some("session/update".into()),
            pointer: "/params/update".into(),
            message: "missing `content`".into(),
        };
        assert_eq!(
            finding.to_string(),
            "error[schema] agent: session/update at /params/update: missing `content`"
        );
        let noise = Finding {
            rule: Rule::NotJson,
            method: None,
            pointer: String::new(),
            message: "no message".into(),
            ..finding
        };
        assert_eq!(noise.to_string(), "error[not-json] agent: no message");
        let line = Finding { by: None, ..noise };
        assert_eq!(line.to_string(), "error[not-json]: no message");
    }
}
