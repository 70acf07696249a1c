//! The requirements of the protocol: a table of data and the checks that it names.
//!
//! The folder `requirements` of this crate has a TOML file for each area. A row has an id, a tier, and
//! for each protocol version the sentence that it comes from; `table` reads them and joins them
//! with the checks of this module. A check performs something (`Run`, or `Steps` that stand in the row), or
//! inspects all messages (`Watch`). A row without a check says why (`Excluded`).

mod authentication;
mod cancellation;
mod choice;
mod commands;
mod config_options;
mod content;
mod conversation;
mod elicitation;
mod extensibility;
mod file_system;
mod initialization;
mod jsonrpc;
pub(crate) mod live;
mod mcp;
mod media;
mod modes;
mod option_lists;
mod passive;
mod plan;
mod prompt_turn;
#[cfg(all(unix, feature = "remote"))]
mod remote;
mod session_list;
mod session_load;
mod session_setup;
mod steps;
mod table;
mod terminals;
mod tool_calls;
mod transports;
pub mod v2;
mod working_directory;

use serde::{Deserialize, Serialize};

pub use self::choice::Choice;
pub(crate) use self::content::{agent_blocks, client_blocks};
pub(crate) use self::initialization::latest_version;
pub(crate) use self::passive::is_absolute;
pub use self::steps::Steps;
pub(crate) use self::table::File;
pub(crate) use self::tool_calls::agent_tool_content;
pub(crate) use self::transports::is_about_stdio;

use crate::harness::{Cx, Outcome};
use crate::passive::Rule;
use crate::wire::{Party, Version};

/// How much a requirement weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tier {
    /// MUST and MUST NOT, for every agent. Decides the verdict.
    Must,
    /// MUST and MUST NOT, for agents that declare a capability. Decides the verdict.
    Capability,
    /// What follows from the schema, from JSON-RPC or from a sentence without MUST or SHOULD, with
    /// the reasoning. Decides it only when asked.
    Derived,
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
    /// By the steps that its row has.
    Steps(&'static Steps),
    /// By looking at a connection's messages. The check yields how many instances
    /// it has seen; when there is none in the whole run, nothing is decided.
    Watch {
        /// Looks at one connection.
        look: Rule,
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
    /// How it follows from the sentence; present for [`Tier::Derived`].
    pub because: Option<&'static str>,
    /// What the check sends and what must come, in a sentence or two; absent if there is no check.
    pub test: Option<&'static str>,
    /// How it is checked.
    pub check: Check,
}

/// The requirements about one topic.
#[derive(Debug)]
pub struct Area {
    /// The first part of its requirements' ids.
    pub name: &'static str,
    /// Its requirements.
    pub rows: Vec<Requirement>,
}

/// A check and the id of the requirement that it is of.
type NamedCheck = (&'static str, Check);

/// All requirements of version 1 with their areas.
pub fn all() -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    of(Version::V1)
}

/// All requirements of a version with their areas.
pub fn of(version: Version) -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    rows(table::areas(version))
}

/// The requirements of the remote transport, which are run at a URL; none in a build without the
/// feature `remote`, and none for version 2 yet.
pub fn of_remote(version: Version) -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    rows(table::remote_areas(version))
}

fn rows(areas: &'static [Area]) -> impl Iterator<Item = (&'static Area, &'static Requirement)> {
    let rows = |area: &'static Area| area.rows.iter().map(move |row| (area, row));
    areas.iter().flat_map(rows)
}

impl Check {
    /// Whether it performs something.
    #[must_use]
    pub fn acts(&self) -> bool {
        matches!(self, Self::Run(_) | Self::Steps(_))
    }

    /// Performs it, if it performs something.
    pub(crate) fn perform(&self, cx: &mut Cx) -> Outcome {
        match self {
            Self::Run(check) => check(cx),
            Self::Steps(steps) => steps.run(cx),
            Self::Watch { .. } | Self::Excluded(_) => Ok(()),
        }
    }
}

impl Tier {
    /// All tiers, in the order of a report.
    pub const ALL: [Self; 5] = [
        Self::Must,
        Self::Capability,
        Self::Derived,
        Self::Should,
        Self::Info,
    ];

    /// The name in reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Must => "must",
            Self::Capability => "capability",
            Self::Derived => "derived",
            Self::Should => "should",
            Self::Info => "info",
        }
    }

    /// Whether breaking it makes an agent not conformant.
    #[must_use]
    pub fn decides(self, strict: bool) -> bool {
        match self {
            Self::Must | Self::Capability => true,
            Self::Derived | Self::Should => strict,
            Self::Info => false,
        }
    }
}

#[cfg(test)]
mod tests;
