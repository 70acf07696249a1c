//! What is wrong with a message.
//!
//! A finding has no severity of its own: [`crate::passive`] takes it from the row of the table of
//! requirements that the finding breaks.

use std::fmt;

use serde::{Serialize, Serializer};

use super::Party;

/// Which rule a finding is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FindingKind {
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
    /// A value that the protocol reserves, where the schema has a fallback.
    ReservedValue,
    /// A version of the protocol that has no specification here.
    UnsupportedVersion,
    /// A requirement about a sequence of messages, by its id.
    Requirement(&'static str),
}

/// Why a finding is a note, whatever it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excuse {
    /// A message of the client that the agent refused: a probe.
    Refused,
    /// A `null` result where the schema requires an object without required members.
    EmptyResult,
    /// An update after a cancelled turn that describes the session or a tool call of an earlier turn.
    Background,
    /// A gap that the recorder left on purpose.
    OnPurpose,
    /// What was left undone when the connection ended with requests open.
    CutOff,
    /// A member that another release of the schema has.
    Release,
    /// A known extension, by its name in [`super::extensions`].
    Extension(&'static str),
}

impl FindingKind {
    /// All kinds but those of sequences.
    pub const ALL: [Self; 14] = [
        Self::Schema,
        Self::Envelope,
        Self::NotJson,
        Self::TooLong,
        Self::Record,
        Self::Lost,
        Self::MissingId,
        Self::NotificationAnswered,
        Self::UnmatchedAnswer,
        Self::UnknownMethod,
        Self::LateUpdate,
        Self::CustomField,
        Self::ReservedValue,
        Self::UnsupportedVersion,
    ];

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
            Self::ReservedValue => "reserved-value",
            Self::UnsupportedVersion => "unsupported-version",
            Self::Requirement(id) => id,
        }
    }
}

impl Serialize for FindingKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// One thing found in one message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where the message stands: the line of a file, or its number in a recording.
    pub place: u64,
    /// Which rule it is about.
    pub rule: FindingKind,
    /// Who wrote the message; `None` if unknown.
    pub by: Option<Party>,
    /// The method of the message, or of the request it answers.
    pub method: Option<String>,
    /// JSON Pointer into the message; empty for the message as a whole.
    pub pointer: String,
    /// What is wrong, in words.
    pub message: String,
    /// Why it is a note, if it is one whatever it breaks.
    #[serde(skip)]
    pub excuse: Option<Excuse>,
}

/// The method, the place and what is wrong, without the writer.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let method = self.method.as_deref().unwrap_or_default();
        f.write_str(method)?;
        if !self.pointer.is_empty() {
            let gap = if method.is_empty() { "" } else { " " };
            write!(f, "{gap}at {}", self.pointer)?;
        }
        if !method.is_empty() || !self.pointer.is_empty() {
            f.write_str(": ")?;
        }
        f.write_str(&self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding {
            place: 7,
            rule: FindingKind::Schema,
            by: Some(Party::Agent),
            method: Some("session/update".into()),
            pointer: "/params/update".into(),
            message: "missing `content`".into(),
            excuse: None,
        };
        let text = "session/update at /params/update: missing `content`";
        assert_eq!(finding.to_string(), text);
        let method = None;
        let answer = Finding { method, ..finding };
        assert_eq!(answer.to_string(), "at /params/update: missing `content`");
        let pointer = String::new();
        let line = Finding { pointer, ..answer };
        assert_eq!(line.to_string(), "missing `content`");
    }
}
