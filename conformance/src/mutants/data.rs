//! The table of mutants: the files of the folder `mutants`.
//!
//! They are part of the program, so an error in one of them is one of this crate; a test reads all.

use std::sync::LazyLock;

use serde::Deserialize;

use super::code;
use super::edit::{Edit, Edits};
use crate::embedded;
use crate::target::{Filter, Rewrite};
use crate::wire::{Party, Version};

/// A peer that breaks a rule.
#[derive(Debug)]
pub struct Mutant {
    /// What it does wrong, in a few words; unique among the agents and among the clients.
    pub name: &'static str,
    /// The requirements that fail because of it.
    pub breaks: Vec<&'static str>,
    /// Whether nothing else fails.
    pub exact: bool,
    /// Whether it is an agent or a client.
    pub side: Party,
    /// The protocol versions that it speaks.
    pub versions: Vec<Version>,
    /// The scenario in which a client shows it.
    pub scenario: Option<&'static str>,
    /// How it is broken.
    pub how: How,
}

/// How a peer is broken.
#[derive(Debug)]
pub enum How {
    /// Its messages are edited, and so are those to it.
    Edits(Edits),
    /// The messages of both sides pass through this filter.
    Code(Filter),
    /// It is started by this shell script, as `"$@"`.
    Shell(&'static str),
}

impl Mutant {
    /// Returns what its messages pass through; `None` for one that is started otherwise.
    #[must_use]
    pub fn rewrite(&'static self) -> Option<Rewrite> {
        match &self.how {
            How::Edits(edits) => Some(Rewrite::Data(edits)),
            How::Code(filter) => Some(Rewrite::Code(*filter)),
            How::Shell(_) => None,
        }
    }
}

/// A file of mutants.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    /// The versions of rows that name none.
    #[serde(default = "first_version")]
    versions: Vec<SpokenVersion>,
    /// The side of all rows.
    #[serde(default = "agent")]
    side: Party,
    #[serde(rename = "mutant")]
    rows: Vec<Row>,
}

/// A mutant as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    name: String,
    breaks: Vec<String>,
    #[serde(default = "yes")]
    exact: bool,
    versions: Option<Vec<SpokenVersion>>,
    scenario: Option<String>,
    #[serde(default)]
    edit: Vec<Edit>,
    /// A function of [`code`].
    code: Option<String>,
    shell: Option<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SpokenVersion {
    V1,
    V2,
}

impl From<SpokenVersion> for Version {
    fn from(version: SpokenVersion) -> Self {
        match version {
            SpokenVersion::V1 => Self::V1,
            SpokenVersion::V2 => Self::V2,
        }
    }
}

fn first_version() -> Vec<SpokenVersion> {
    vec![SpokenVersion::V1]
}

const fn agent() -> Party {
    Party::Agent
}

const fn yes() -> bool {
    true
}

impl File {
    /// Reads the mutants of a file.
    ///
    /// # Errors
    ///
    /// A sentence that says what is wrong with it.
    pub(super) fn mutants(text: &str) -> Result<Vec<Mutant>, String> {
        let file: Self = basic_toml::from_str(text).map_err(|error| error.to_string())?;
        let (side, versions) = (file.side, file.versions);
        let mutants = file.rows.into_iter().map(|row| {
            let name = row.name.clone();
            let mutant = row.mutant(side, &versions);
            mutant.map_err(|error| format!("mutant {name}: {error}"))
        });
        mutants.collect()
    }
}

impl Row {
    fn mutant(self, side: Party, versions: &[SpokenVersion]) -> Result<Mutant, String> {
        if (side == Party::Client) != self.scenario.is_some() {
            return Err("clients have a scenario, agents none".to_owned());
        }
        let how = match (self.edit, self.code, self.shell) {
            (edits, None, None) if !edits.is_empty() => How::Edits(Edits::new(side, edits)?),
            (edits, Some(name), None) if edits.is_empty() => {
                let code = code::find(&name);
                How::Code(code.ok_or_else(|| format!("no function `{name}` in the module code"))?)
            }
            (edits, None, Some(script)) if edits.is_empty() && side == Party::Client => {
                How::Shell(script.leak())
            }
            _ => return Err("expected edits, `code`, or `shell` for a client".to_owned()),
        };
        let versions = self.versions.as_deref().unwrap_or(versions);
        Ok(Mutant {
            name: self.name.leak(),
            breaks: self.breaks.into_iter().map(|id| &*id.leak()).collect(),
            exact: self.exact,
            side,
            versions: versions.iter().copied().map(Into::into).collect(),
            scenario: self.scenario.map(|scenario| &*scenario.leak()),
            how,
        })
    }
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!("../../mutants/", $name, ".toml")))),*]
    };
}

/// The files by name.
pub(super) const FILES: &[(&str, &str)] = files![
    "handshake",
    "jsonrpc",
    "sessions",
    "lists",
    "turns",
    "content",
    "tools",
    "settings",
    "questions",
    "v2",
    "v2-asked",
    "v2-shown",
    "clients",
    "v2-clients",
];

/// Returns the mutants of all files. They are kept until the process ends.
pub(super) fn table() -> &'static [Mutant] {
    static TABLE: LazyLock<Vec<Mutant>> = LazyLock::new(|| {
        let files = FILES
            .iter()
            .flat_map(|(name, text)| embedded::valid(name, File::mutants(text)));
        files.collect()
    });
    &TABLE
}
