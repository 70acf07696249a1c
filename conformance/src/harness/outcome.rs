//! What a check comes to.

use crate::wire::Party;

use super::Recording;

/// A check that got to its end has passed; everything else stops it early.
pub type Outcome<T = ()> = Result<T, Stop>;

/// Why a check ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The agent broke the requirement, or what the check needs is missing.
    Fail(Box<Failure>),
    /// The agent does not declare the optional capability that this is about.
    Skip(String),
    /// Nothing was seen that decides.
    Inconclusive(String),
}

/// What was sent, what came, and why that is wrong.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// What is wrong, in words.
    pub reason: String,
    /// The message that led to it.
    pub sent: Option<String>,
    /// What came instead of what should have.
    pub came: Option<String>,
}

/// The requirement is broken.
pub fn fail<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::failed(reason))
}

/// The agent does not declare the capability.
pub fn skip<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::Skip(reason.into()))
}

/// Nothing was seen that decides.
pub fn inconclusive<T>(reason: impl Into<String>) -> Outcome<T> {
    Err(Stop::Inconclusive(reason.into()))
}

impl Stop {
    /// A failure without an excerpt of the traffic.
    pub fn failed(reason: impl Into<String>) -> Self {
        Self::Fail(Box::new(Failure {
            reason: reason.into(),
            ..Failure::default()
        }))
    }

    /// A failure at one message of a recording: the message is what came, and the
    /// last one of the other side before it is what was sent.
    #[must_use]
    pub fn at(recording: &Recording, index: usize, reason: impl Into<String>) -> Self {
        let came = recording.entries.get(index);
        let by = came.map_or(Party::Agent, |entry| entry.from);
        let asked = came.and_then(|entry| entry.request);
        let before = recording.entries.iter().take(index);
        let sent = match asked {
            Some(request) => recording.entries.get(request),
            None => before.rev().find(|entry| entry.from != by),
        };
        Self::Fail(Box::new(Failure {
            reason: reason.into(),
            sent: sent.map(super::Entry::excerpt),
            came: came.map(super::Entry::excerpt),
        }))
    }
}
