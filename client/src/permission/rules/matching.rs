//! The result of matching a condition with a tool call.

/// Whether a rule, or a condition of it, fits a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Match {
    No,
    /// The request has too little information. Only rules that deny distinguish it from `No`.
    Unclear,
    Yes,
}

impl From<bool> for Match {
    fn from(matches: bool) -> Self {
        match matches {
            true => Self::Yes,
            false => Self::No,
        }
    }
}

impl Match {
    pub(super) fn unclear_if(unclear: bool) -> Self {
        match unclear {
            true => Self::Unclear,
            false => Self::No,
        }
    }
}
