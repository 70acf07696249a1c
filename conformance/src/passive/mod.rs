//! Rules over sequences of messages: what a message means depends on what was said
//! before it.
//!
//! A rule is a function of one message and the [`State`] of the connection before it;
//! it keeps nothing itself. So the same rules judge a run of the suite, a recording
//! of any length and live traffic, in bounded memory.

mod session;
mod state;
mod view;

pub use self::session::{Session, Tool};
pub(crate) use self::state::is_final;
pub use self::state::{Asked, Elicitation, State, Terminal};
pub(crate) use self::view::at;
pub use self::view::{Said, Update, View};

use crate::wire::extensions::Extension;
use crate::wire::{Excuse, FindingKind, Kind};

/// How many instances a rule has seen, or what breaks it.
pub type RuleResult = Result<usize, Violation>;

/// What breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// What is wrong, in words.
    pub reason: String,
    /// The message, if it is not the inspected one.
    pub place: Option<u64>,
    /// JSON Pointer into the message; empty for the message as a whole.
    pub pointer: String,
    /// Why it breaks nothing.
    pub excuse: Option<Excuse>,
}

impl Violation {
    /// A violation by the inspected message.
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            place: None,
            pointer: String::new(),
            excuse: None,
        }
    }

    /// The same at a place in the message.
    #[must_use]
    pub fn at(self, pointer: impl Into<String>) -> Self {
        Self {
            pointer: pointer.into(),
            ..self
        }
    }

    /// The same, if it is not excused.
    #[must_use]
    pub(crate) fn unless(self, known: Option<&'static Extension>) -> Self {
        let Some(known) = known else { return self };
        Self {
            reason: format!("{}: {}", self.reason, known.because),
            excuse: Some(Excuse::Extension(&known.name)),
            ..self
        }
    }
}

/// How a rule inspects a connection.
#[derive(Clone, Copy, Debug)]
pub enum Rule {
    /// Messages have no such finding of the wire that is not excused.
    Findings(&'static [FindingKind]),
    /// Each message but pieces of text, before the state takes it in.
    Messages(fn(&View<'_>) -> RuleResult),
    /// Each message without exception.
    Everything(fn(&View<'_>) -> RuleResult),
    /// The state of the connection at its end.
    End(fn(&State) -> RuleResult),
}

impl Rule {
    /// The rule about single messages, if it is one and this message concerns it. What is no message
    /// concerns none of them.
    pub(crate) fn at_message(self, view: &View<'_>) -> Option<fn(&View<'_>) -> RuleResult> {
        match self {
            _ if view.said.kind == Kind::Malformed => None,
            Self::Everything(look) => Some(look),
            Self::Messages(look) => Some(look).filter(|_| !view.is_text()),
            Self::Findings(..) | Self::End(_) => None,
        }
    }
}

/// The rule is broken by this message.
pub fn violation<T>(reason: impl Into<String>) -> Result<T, Violation> {
    Err(Violation::new(reason))
}

/// The rule is broken by the message at this place.
pub fn violation_at<T>(place: u64, reason: impl Into<String>) -> Result<T, Violation> {
    Err(Violation {
        place: Some(place),
        ..Violation::new(reason)
    })
}
