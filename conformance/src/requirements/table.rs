//! The table of requirements: the files of the folder `requirements`, joined with their checks.
//!
//! A file is an area. It is part of the program, so an error in it is one of this crate; the tests
//! read all files.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::{Area, Check, NamedCheck, Requirement, Steps, Tier, v2};
use super::{
    authentication, cancellation, commands, config_options, content, elicitation, extensibility,
    file_system, initialization, jsonrpc, mcp, modes, option_lists, plan, prompt_turn,
    session_list, session_load, session_setup, terminals, tool_calls, transports,
    working_directory,
};
use crate::embedded;
use crate::passive::Rule;
use crate::wire::{FindingKind, Party, Version};

/// A file of requirements.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    /// How rows of the tier `derived` follow that do not say it themselves.
    because: Option<String>,
    #[serde(rename = "requirement")]
    rows: Vec<Row>,
}

/// A requirement as it stands in a file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    id: String,
    /// Absent if the versions differ in it.
    tier: Option<Tier>,
    because: Option<String>,
    /// What its check does; absent if that stands at the versions, if its steps say it, or if there is no
    /// check.
    test: Option<String>,
    /// What its check does, step by step; absent if it is code, or if the versions differ in it.
    steps: Option<Vec<Value>>,
    /// The kinds of findings that no message of the agent may have.
    free_of: Option<Vec<String>>,
    /// Of `free_of`: what was not seen if nothing could have such a finding.
    missing: Option<String>,
    v1: Option<Source>,
    v2: Option<Source>,
}

/// Where a version of the protocol demands it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Source {
    tier: Option<Tier>,
    cite: String,
    quote: String,
    /// Of clients: the scenario after which it is checked.
    scenario: Option<String>,
    /// What the check does in this version, where that differs.
    test: Option<String>,
    steps: Option<Vec<Value>>,
    /// Why there is no check.
    unchecked: Option<String>,
    /// Who holds another reading of the sentence, with a link: until that is settled the row decides nothing.
    disputed: Option<String>,
}

/// A requirement of one version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) id: &'static str,
    pub(crate) tier: Tier,
    pub(crate) cite: &'static str,
    pub(crate) quote: &'static str,
    pub(crate) because: Option<&'static str>,
    pub(crate) scenario: Option<&'static str>,
    /// What the check does; absent if there is none.
    pub(crate) test: Option<&'static str>,
    pub(crate) unchecked: Option<&'static str>,
    /// The check, if it is data.
    pub(crate) data: Option<Check>,
    /// Whether the data is of this version alone, and takes precedence over a check in code.
    is_own: bool,
}

impl File {
    /// Returns the requirements of a version.
    ///
    /// # Errors
    ///
    /// When a row has no tier, a derived one no reasoning, or a dispute no link.
    pub(crate) fn entries(&'static self, version: Version) -> Result<Vec<Entry>, String> {
        let rows = self.rows.iter().filter_map(|row| {
            let source = match version {
                Version::V1 => row.v1.as_ref(),
                Version::V2 => row.v2.as_ref(),
            };
            source.map(|source| (row, source))
        });
        rows.map(|(row, source)| {
            let tier = source.tier.or(row.tier);
            let tier = tier.ok_or_else(|| format!("{} has no tier", row.id))?;
            let because = row.because.as_deref().or(self.because.as_deref());
            let because = because.filter(|_| tier == Tier::Derived);
            if tier == Tier::Derived && because.is_none() {
                return Err(format!("{} does not say how it is derived", row.id));
            }
            let disputed = source.disputed.as_deref();
            if disputed.is_some_and(|text| !text.contains("https://")) {
                return Err(format!("{} does not link its dispute", row.id));
            }
            let tier = disputed.map_or(tier, |_| Tier::Info);
            let because = disputed.or(because);
            let steps = source.steps.as_ref().or(row.steps.as_ref());
            let steps = steps.map(|steps| Steps::read(steps)).transpose();
            let steps = steps.map_err(|reason| format!("{}, {reason}", row.id))?;
            // Tables live as long as the program.
            let steps: Option<&'static Steps> = steps.map(|steps| &*Box::leak(Box::new(steps)));
            let is_own = source.steps.is_some();
            let shared = row.test.as_deref().filter(|_| !is_own);
            let test = source.test.as_deref().or(shared);
            let test = test.or_else(|| Some(&*steps?.text().leak()));
            Ok(Entry {
                id: &row.id,
                tier,
                cite: &source.cite,
                quote: &source.quote,
                because,
                scenario: source.scenario.as_deref(),
                // Another version may be checked.
                test: test.filter(|_| source.unchecked.is_none()),
                unchecked: source.unchecked.as_deref(),
                data: match steps {
                    Some(steps) => Some(Check::Steps(steps)),
                    None => row.findings()?,
                },
                is_own,
            })
        })
        .collect()
    }

    /// Joins the requirements of a version with their checks. Of two checks of a row, the later one
    /// takes precedence.
    ///
    /// # Errors
    ///
    /// As [`entries`](Self::entries) and `row`, and when a check has no row in any version.
    pub(crate) fn join<C: Copy, R>(
        &'static self,
        version: Version,
        checks: impl Iterator<Item = (&'static str, C)>,
        row: impl Fn(Entry, Option<C>) -> Result<R, String>,
    ) -> Result<Vec<R>, String> {
        let checks: HashMap<_, _> = checks.collect();
        let is_known = |id: &str| self.rows.iter().any(|row| row.id == id);
        if let Some(id) = checks.keys().find(|id| !is_known(id)) {
            return Err(format!("{id} has a check and no row"));
        }
        let entries = self.entries(version)?.into_iter();
        entries
            .map(|entry| row(entry, checks.get(entry.id).copied()))
            .collect()
    }
}

impl Row {
    /// The check of a row with `free_of`.
    fn findings(&'static self) -> Result<Option<Check>, String> {
        let (names, missing) = match (&self.free_of, &self.missing) {
            (Some(names), Some(missing)) => (names, missing),
            (None, None) => return Ok(None),
            _ => return Err(format!("{} has one of `free_of` and `missing`", self.id)),
        };
        let kinds = names.iter().map(|name| {
            let mut all = FindingKind::ALL.into_iter();
            let kind = all.find(|kind| kind.as_str() == name);
            kind.ok_or_else(|| format!("{} names an unknown finding `{name}`", self.id))
        });
        let kinds: Vec<_> = kinds.collect::<Result<_, _>>()?;
        // Tables live as long as the program.
        let look = Rule::Findings(kinds.leak());
        Ok(Some(Check::Watch { look, missing }))
    }
}

/// An area: its file and its checks.
struct Part {
    name: &'static str,
    file: LazyLock<File>,
    /// Checks of both versions, as far as these have a row.
    checks: &'static [&'static [NamedCheck]],
    /// Checks of v2, which take precedence there.
    v2: &'static [NamedCheck],
}

macro_rules! part {
    ($name:literal, $checks:expr, $v2:expr) => {
        Part {
            name: $name,
            file: LazyLock::new(|| {
                embedded::read(
                    concat!($name, ".toml"),
                    include_str!(concat!("../../requirements/", $name, ".toml")),
                )
            }),
            checks: $checks,
            v2: $v2,
        }
    };
}

/// In the order of a report.
static PARTS: [Part; 20] = [
    part!("transports", &[transports::CHECKS], v2::arrays::CHECKS),
    part!("jsonrpc", &[jsonrpc::CHECKS], &[]),
    part!(
        "initialization",
        &[initialization::CHECKS],
        v2::initialization::CHECKS
    ),
    part!(
        "authentication",
        &[authentication::CHECKS],
        v2::authentication::CHECKS
    ),
    part!(
        "session-setup",
        &[
            session_setup::CHECKS,
            mcp::CHECKS,
            working_directory::CHECKS
        ],
        &[]
    ),
    part!(
        "session-load",
        &[session_load::CHECKS],
        v2::sessions::CHECKS
    ),
    part!("session-list", &[session_list::CHECKS], &[]),
    part!("prompt-turn", &[prompt_turn::CHECKS], &[]),
    part!(
        "prompt-lifecycle",
        &[v2::background::CHECKS],
        v2::prompt_lifecycle::CHECKS
    ),
    part!(
        "cancellation",
        &[cancellation::CHECKS],
        v2::cancellation::CHECKS
    ),
    part!("content", &[content::CHECKS], &[]),
    part!("tool-calls", &[tool_calls::CHECKS], v2::tool_calls::CHECKS),
    part!("plan", &[plan::CHECKS], v2::plan::CHECKS),
    part!("file-system", &[file_system::CHECKS], &[]),
    part!("terminals", &[terminals::CHECKS], &[]),
    part!("modes", &[modes::CHECKS], &[]),
    part!(
        "config-options",
        &[config_options::CHECKS, option_lists::CHECKS],
        &[]
    ),
    part!("commands", &[commands::CHECKS], &[]),
    part!("elicitation", &[elicitation::CHECKS], &[]),
    part!("extensibility", &[extensibility::CHECKS], &[]),
];

#[cfg(all(unix, feature = "remote"))]
static REMOTE: [Part; 1] = [part!("remote", super::remote::CHECKS, &[])];
#[cfg(not(all(unix, feature = "remote")))]
static REMOTE: [Part; 0] = [];

/// Returns the areas of a version.
pub(super) fn areas(version: Version) -> &'static [Area] {
    static V1: LazyLock<Vec<Area>> = LazyLock::new(|| joined(&PARTS, Version::V1));
    static V2: LazyLock<Vec<Area>> = LazyLock::new(|| joined(&PARTS, Version::V2));
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

/// Returns the area of the remote transport, which version 2 does not have yet.
pub(super) fn remote_areas(version: Version) -> &'static [Area] {
    static V1: LazyLock<Vec<Area>> = LazyLock::new(|| joined(&REMOTE, Version::V1));
    match version {
        Version::V1 => &V1,
        Version::V2 => &[],
    }
}

fn joined(parts: &'static [Part], version: Version) -> Vec<Area> {
    let areas = parts
        .iter()
        .map(|part| embedded::valid(part.name, area(part, version)));
    areas.filter(|area| !area.rows.is_empty()).collect()
}

/// Joins the rows of an area with their checks.
///
/// # Errors
///
/// When a row has no check and does not say why, or as [`File::join`].
fn area(part: &'static Part, version: Version) -> Result<Area, String> {
    let own: &[NamedCheck] = match version {
        Version::V1 => &[],
        Version::V2 => part.v2,
    };
    let shared = part.checks.iter().copied().flatten();
    let rows = part
        .file
        .join(version, shared.chain(own).copied(), |entry, check| {
            let check = match (check, entry.data, entry.unchecked) {
                // Another version may be checked.
                (.., Some(reason)) => Check::Excluded(reason),
                (Some(_), Some(_), None) if !entry.is_own => {
                    return Err(format!("{} has a check in its row and in code", entry.id));
                }
                (_, Some(check), None) | (Some(check), None, None) => check,
                (None, None, None) => {
                    return Err(format!("{} has no check and no reason", entry.id));
                }
            };
            Ok(Requirement {
                id: entry.id,
                tier: entry.tier,
                side: Party::Agent,
                cite: entry.cite,
                quote: entry.quote,
                because: entry.because,
                test: entry.test,
                check,
            })
        });
    Ok(Area {
        name: part.name,
        rows: rows?,
    })
}
