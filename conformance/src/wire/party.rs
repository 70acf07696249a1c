//! Who wrote a message.

use std::fmt;

use acp_schema::Side;
use serde::{Deserialize, Serialize};

/// One end of a connection, named as the writer of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Party {
    /// The agent: what it writes goes to the client.
    Agent,
    /// The client: what it writes goes to the agent.
    Client,
}

impl Party {
    /// The end that reads what this one writes.
    #[must_use]
    pub fn peer(self) -> Self {
        match self {
            Self::Agent => Self::Client,
            Self::Client => Self::Agent,
        }
    }

    /// The side that handles the methods this party calls.
    #[must_use]
    pub fn calls(self) -> Side {
        match self {
            Self::Agent => Side::CLIENT,
            Self::Client => Side::AGENT,
        }
    }

    /// The direction tag of transcripts: `a2c` or `c2a`.
    #[must_use]
    pub fn tag(self) -> &'static str {
        match self {
            Self::Agent => "a2c",
            Self::Client => "c2a",
        }
    }

    /// The writer that a direction tag stands for.
    #[must_use]
    pub fn from_tag(tag: &str) -> Option<Self> {
        match tag {
            "a2c" => Some(Self::Agent),
            "c2a" => Some(Self::Client),
            _ => None,
        }
    }

    /// `agent` or `client`.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Client => "client",
        }
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
