//! Capabilities of clients.
//!
//! A capability that a client does not name is not offered, and an agent must not use it.
//! Spec: <https://agentclientprotocol.com/protocol/v1/initialization#client-capabilities>

use std::fmt;

use acp_sdk::v1::ClientCapabilities;

/// A capability that only some clients offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Capability {
    /// `fs/read_text_file`.
    ReadTextFile,
    /// `fs/write_text_file`.
    WriteTextFile,
    /// All of `terminal/*`, and terminals in tool calls.
    Terminal,
    /// `elicitation/create` with a form.
    ElicitForm,
    /// `elicitation/create` with a URL.
    ElicitUrl,
    /// The update `notice`.
    Notices,
    /// The updates `compaction_update` and `compaction_summary_chunk`.
    Compaction,
    /// Config options of type `boolean`.
    BooleanOptions,
}

impl Capability {
    /// Returns its path in `clientCapabilities`.
    #[must_use]
    pub fn path(self) -> &'static str {
        match self {
            Self::ReadTextFile => "fs.readTextFile",
            Self::WriteTextFile => "fs.writeTextFile",
            Self::Terminal => "terminal",
            Self::ElicitForm => "elicitation.form",
            Self::ElicitUrl => "elicitation.url",
            Self::Notices => "session.notices",
            Self::Compaction => "session.compaction",
            Self::BooleanOptions => "session.configOptions.boolean",
        }
    }

    /// Returns whether these capabilities include it.
    #[must_use]
    pub fn is_in(self, offered: &ClientCapabilities) -> bool {
        let elicitation = offered.elicitation.as_ref();
        let session = offered.session.as_ref();
        match self {
            Self::ReadTextFile => offered.fs.read_text_file,
            Self::WriteTextFile => offered.fs.write_text_file,
            Self::Terminal => offered.terminal,
            Self::ElicitForm => elicitation.is_some_and(|modes| modes.form.is_some()),
            Self::ElicitUrl => elicitation.is_some_and(|modes| modes.url.is_some()),
            Self::Notices => session.is_some_and(|session| session.notices.is_some()),
            Self::Compaction => session.is_some_and(|session| session.compaction.is_some()),
            Self::BooleanOptions => session
                .and_then(|session| session.config_options.as_ref())
                .is_some_and(|options| options.boolean.is_some()),
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadTextFile => "reading files",
            Self::WriteTextFile => "writing files",
            Self::Terminal => "terminals",
            Self::ElicitForm => "forms",
            Self::ElicitUrl => "opening URLs",
            Self::Notices => "notices",
            Self::Compaction => "compactions",
            Self::BooleanOptions => "boolean options",
        })
    }
}
