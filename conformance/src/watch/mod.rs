//! Rules over sequences of messages: what a message means depends on what was said
//! before it.
//!
//! A rule is a function of one message and the [`State`] of the connection before it;
//! it keeps nothing itself. So the same rules judge a run of the suite, a recording
//! of any length and live traffic, in bounded memory.

mod live;
mod state;
mod view;

pub(crate) use self::live::Live;
pub use self::state::{Asked, Elicitation, Session, State, Terminal, Tool};
pub(crate) use self::view::at;
pub use self::view::{Said, Update, View};

use crate::wire::{Level, Rule};

/// How many instances a rule has seen, or what breaks it.
pub type Seen = Result<usize, Fault>;

/// What breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What is wrong, in words.
    pub reason: String,
    /// The message, if it is not the one that was looked at.
    pub place: Option<u64>,
}

/// How a rule looks at a connection.
#[derive(Clone, Copy, Debug)]
pub enum Look {
    /// Messages have no such finding of the wire at or above this level.
    Findings(&'static [Rule], Level),
    /// Each message but pieces of text, before the state takes it in.
    Messages(fn(&View<'_>) -> Seen),
    /// Each message without exception.
    Everything(fn(&View<'_>) -> Seen),
    /// What the connection has come to when it ends.
    End(fn(&State) -> Seen),
}

impl Look {
    /// The rule about single messages, if it is one and this message concerns it.
    pub(crate) fn at_message(self, view: &View<'_>) -> Option<fn(&View<'_>) -> Seen> {
        match self {
            Self::Everything(look) => Some(look),
            Self::Messages(look) => Some(look).filter(|_| !view.is_text()),
            Self::Findings(..) | Self::End(_) => None,
        }
    }
}

/// The rule is broken by this message.
pub fn fault<T>(reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault {
        reason: reason.into(),
        place: None,
    })
}

/// The rule is broken by the message at this place.
pub fn fault_at<T>(place: u64, reason: impl Into<String>) -> Result<T, Fault> {
    Err(Fault {
        reason: reason.into(),
        place: Some(place),
    })
}
