//! Counts: what a recording holds, and what was found in it.

use serde::Serialize;

use super::{Diagnostic, Level};
use crate::wire::{Basis, Judged, Party};

/// Messages of one party, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tally {
    /// All messages.
    pub messages: u64,
    /// Those that the schema accepts.
    pub valid: u64,
    /// Those that the schema or the envelope forbids.
    pub invalid: u64,
    /// Those that the schema does not define, such as extensions.
    pub open: u64,
    /// Lines that its recorder marked as no message.
    pub raw: u64,
    /// Messages that its recorder lost.
    pub lost: u64,
}

impl Tally {
    pub(super) fn count(&mut self, judged: Judged) {
        self.messages += 1;
        match judged {
            Judged::Valid => self.valid += 1,
            Judged::Invalid => self.invalid += 1,
            Judged::Open => self.open += 1,
        }
    }

    /// Adds what another tally counted.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.valid += other.valid;
        self.invalid += other.invalid;
        self.open += other.open;
        self.raw += other.raw;
        self.lost += other.lost;
    }
}

/// The protocol that messages were judged by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spoken {
    /// The number of the version; 0 for a dialect.
    #[serde(skip_serializing_if = "is_zero")]
    pub version: u64,
    /// The name of the dialect, if it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dialect: Option<&'static str>,
    /// How it is known.
    pub basis: Basis,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde calls"
)]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a recording holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// The version that the last message was judged by; none for several recordings together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol: Option<Spoken>,
    /// Lines, blank ones included.
    pub lines: u64,
    /// What the agent wrote.
    pub agent: Tally,
    /// What the client wrote.
    pub client: Tally,
    /// Messages whose writer is unknown.
    pub unknown: u64,
    /// Findings that decide the verdict.
    pub errors: u64,
    /// Findings that do so only when asked.
    pub warnings: u64,
    /// Findings that do not.
    pub notes: u64,
}

impl Summary {
    /// Adds what another summary counted.
    pub fn add(&mut self, other: Self) {
        self.lines += other.lines;
        self.agent.add(other.agent);
        self.client.add(other.client);
        self.unknown += other.unknown;
        self.errors += other.errors;
        self.warnings += other.warnings;
        self.notes += other.notes;
    }

    /// All messages.
    #[must_use]
    pub fn messages(&self) -> u64 {
        self.agent.messages + self.client.messages + self.unknown
    }

    /// Counts a finding by its level.
    pub(super) fn found(&mut self, diagnostic: &Diagnostic) {
        match diagnostic.level {
            Level::Error => self.errors += 1,
            Level::Warning => self.warnings += 1,
            Level::Note => self.notes += 1,
        }
    }

    pub(super) fn tally(&mut self, of: Party) -> &mut Tally {
        match of {
            Party::Agent => &mut self.agent,
            Party::Client => &mut self.client,
        }
    }
}
