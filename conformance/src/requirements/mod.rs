//! The requirements of the protocol, as rows of data: those of version 1 here, those of the
//! draft of version 2 in [`second`].
//!
//! A row quotes the sentence it comes from and says how it is checked: by doing
//! something (`Run`), by looking at everything that was said (`Watch`), or not at
//! all, with the reason (`Excluded`). One file holds one area: its table first,
//! then its checks.

mod authentication;
mod cancellation;
mod choice;
mod commands;
mod config_options;
mod content;
mod elicitation;
mod extensibility;
mod file_system;
mod initialization;
mod jsonrpc;
mod modes;
pub mod pages;
mod plan;
mod prompt_turn;
#[cfg(all(unix, feature = "remote"))]
mod remote;
pub mod second;
mod session_list;
mod session_load;
mod session_setup;
mod terminals;
mod tool_calls;
mod transports;
mod watch;

use serde::{Deserialize, Serialize};

pub use self::choice::Choice;
pub(crate) use self::content::{agent_blocks, client_blocks};
pub(crate) use self::tool_calls::agent_tool_content;
pub(crate) use self::transports::is_about_stdio;
pub(crate) use self::watch::is_absolute;

use crate::harness::Outcome;
use crate::suite::Cx;
use crate::watch::Look;
use crate::wire::{Party, Version};

/// How much a requirement weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// MUST and MUST NOT, for every agent. Decides the verdict.
    Must,
    /// MUST and MUST NOT, for agents that declare a capability. Decides the verdict.
    Capability,
    /// SHOULD and SHOULD NOT. Decides it only when asked.
    Should,
    /// What the protocol leaves open and users run into. Never decides.
    Info,
}

/// How a requirement is checked.
#[derive(Clone, Copy, Debug)]
pub enum Check {
    /// By doing something.
    Run(fn(&mut Cx) -> Outcome),
    /// By looking at a connection's messages. The check yields how many instances
    /// it has seen; when there is none in the whole run, nothing is decided.
    Watch {
        /// Looks at one connection.
        look: Look,
        /// What was not seen.
        missing: &'static str,
    },
    /// Not checked, for this reason.
    Excluded(&'static str),
}

/// One requirement.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    /// `area.name`; never reused for something else.
    pub id: &'static str,
    /// How much it weighs.
    pub tier: Tier,
    /// Who must obey it.
    pub side: Party,
    /// The page and heading of the sentence.
    pub cite: &'static str,
    /// The sentence, or the part of it that matters.
    pub quote: &'static str,
    /// How it is checked.
    pub check: Check,
}

/// The requirements about one subject.
#[derive(Clone, Copy, Debug)]
pub struct Area {
    /// The first part of its requirements' ids.
    pub name: &'static str,
    /// Its requirements.
    pub rows: &'static [Requirement],
}

/// All areas, in the order of a report.
pub const AREAS: &[Area] = &[
    area("transports", transports::ROWS),
    area("jsonrpc", jsonrpc::ROWS),
    area("initialization", initialization::ROWS),
    area("authentication", authentication::ROWS),
    area("session-setup", session_setup::ROWS),
    area("session-load", session_load::ROWS),
    area("session-list", session_list::ROWS),
    area("prompt-turn", prompt_turn::ROWS),
    area("cancellation", cancellation::ROWS),
    area("content", content::ROWS),
    area("tool-calls", tool_calls::ROWS),
    area("plan", plan::ROWS),
    area("file-system", file_system::ROWS),
    area("terminals", terminals::ROWS),
    area("modes", modes::ROWS),
    area("config-options", config_options::ROWS),
    area("commands", commands::ROWS),
    area("elicitation", elicitation::ROWS),
    area("extensibility", extensibility::ROWS),
];

/// All requirements of version 1 with their areas.
pub fn all() -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    of(Version::V1)
}

/// All requirements of a version with their areas.
pub fn of(version: Version) -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    let areas = match version {
        Version::V1 => AREAS,
        Version::V2 => second::AREAS,
    };
    areas
        .iter()
        .flat_map(|area| area.rows.iter().map(move |row| (area, row)))
}

/// The requirements of the remote transport, which are run at a URL; none in a build without the
/// feature `remote`, and none for version 2 yet.
pub fn of_remote(version: Version) -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    #[cfg(all(unix, feature = "remote"))]
    const AREAS: &[Area] = &[remote::AREA];
    #[cfg(not(all(unix, feature = "remote")))]
    const AREAS: &[Area] = &[];
    let areas = AREAS.iter().filter(move |_| version == Version::V1);
    areas.flat_map(|area| area.rows.iter().map(move |row| (area, row)))
}

impl Tier {
    /// All tiers, in the order of a report.
    pub const ALL: [Self; 4] = [Self::Must, Self::Capability, Self::Should, Self::Info];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Capability => "capability",
            Self::Should => "should",
            Self::Info => "info",
        }
    }

    /// Whether breaking it makes an agent not conformant.
    #[must_use]
    pub fn decides(self, strict: bool) -> bool {
        match self {
            Self::Must | Self::Capability => true,
            Self::Should => strict,
            Self::Info => false,
        }
    }
}

const fn area(name: &'static str, rows: &'static [Requirement]) -> Area {
    Area { name, rows }
}

const fn row(
    tier: Tier,
    id: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: Check,
) -> Requirement {
    Requirement {
        id,
        tier,
        side: Party::Agent,
        cite,
        quote,
        check,
    }
}

const fn must(
    id: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: Check,
) -> Requirement {
    row(Tier::Must, id, cite, quote, check)
}

const fn capability(
    id: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: Check,
) -> Requirement {
    row(Tier::Capability, id, cite, quote, check)
}

const fn should(
    id: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: Check,
) -> Requirement {
    row(Tier::Should, id, cite, quote, check)
}

const fn info(
    id: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: Check,
) -> Requirement {
    row(Tier::Info, id, cite, quote, check)
}

#[cfg(test)]
mod tests;
