//! Modes: when the user is asked.

use acp_sdk::v1::{SessionMode, SessionModeState};

/// When an agent asks the user.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Before each change of a file, and before anything else that has an effect.
    #[default]
    Ask,
    /// There are no tools but those that read.
    Plan,
    /// Before commands and the like; files of the session are changed without a question.
    Code,
}

impl Mode {
    const ALL: [(Self, &'static str, &'static str); 3] = [
        (
            Self::Ask,
            "Ask",
            "Asks before it changes a file or runs a command",
        ),
        (Self::Plan, "Plan", "Reads and plans, and changes nothing"),
        (
            Self::Code,
            "Code",
            "Changes files without a question, and asks before it runs a command",
        ),
    ];

    /// Returns the id of the mode.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::Plan => "plan",
            Self::Code => "code",
        }
    }

    /// Returns the mode with an id.
    #[must_use]
    pub fn from_id(id: &str) -> Option<Self> {
        let mut modes = Self::ALL.iter().map(|(mode, ..)| *mode);
        modes.find(|mode| mode.as_str() == id)
    }

    /// Returns the modes as clients see them, with the one that sessions begin in.
    pub(super) fn state(self) -> SessionModeState {
        let modes = Self::ALL.map(|(mode, name, description)| {
            SessionMode::new(mode.as_str(), name).with_description(description)
        });
        SessionModeState::new(self.as_str(), modes.to_vec())
    }
}

impl std::str::FromStr for Mode {
    type Err = String;

    fn from_str(id: &str) -> Result<Self, String> {
        Self::from_id(id)
            .ok_or_else(|| format!("there is no mode {id:?}; there are: ask, plan, code"))
    }
}
