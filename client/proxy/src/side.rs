//! The two sides of a proxy.

/// A side of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Where prompts come from: the client, or the proxy before this one.
    Client,
    /// Where they go to: the agent, or the next proxy.
    Agent,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Agent];

    /// Returns the other side.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Client => Self::Agent,
            Self::Agent => Self::Client,
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Agent => "agent",
        }
    }
}
