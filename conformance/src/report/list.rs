//! The table of requirements, before anything was run.

use std::fmt::Write as _;

use serde::Serialize;

use crate::clients::{self, ClientRequirement};
use crate::requirements::{self, Area, Check, Requirement, Steps, Tier};
use crate::specification;
use crate::wire::{Party, Version};
use crate::{Error, Result};

/// A requirement as it stands in the table.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    pub(super) id: &'static str,
    pub(super) area: &'static str,
    pub(super) tier: Tier,
    pub(super) side: Party,
    pub(super) quote: &'static str,
    pub(super) cite: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) because: Option<&'static str>,
    /// What the check does; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) test: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excluded: Option<&'static str>,
    #[serde(skip)]
    pub(super) checked: Checked,
    /// The steps of the check, if it consists of steps.
    #[serde(skip)]
    steps: Option<&'static Steps>,
}

/// How a requirement is checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Checked {
    /// By a check that sends messages of its own.
    Acts,
    /// By inspecting the messages of all checks; if this was not seen, it is skipped.
    Inspects(&'static str),
    /// After this scenario, which a client is played.
    After(&'static str),
    /// Not at all, for this reason.
    Not(&'static str),
}

/// The table for a person.
#[must_use]
pub fn list(version: Version) -> String {
    let rows = Listed::of(version);
    let mut out = String::new();
    let width = rows.iter().map(|row| row.id.len()).max();
    let width = width.unwrap_or_default();
    let mut side = Party::Agent;
    for row in &rows {
        if row.side != side {
            side = row.side;
            out.push('\n');
        }
        // Writing to a string does not fail.
        let tier = row.tier.as_str();
        let _ = writeln!(out, "{:<width$}  {tier:<10}  {}", row.id, row.quote);
        let _ = writeln!(out, "{:width$}  {:10}  {}", "", "", row.cite);
        if let Some(because) = row.because {
            let _ = writeln!(out, "{:width$}  {:10}  {because}", "", "");
        }
        if let Some(reason) = row.excluded {
            let _ = writeln!(out, "{:width$}  {:10}  not checked: {reason}", "", "");
        }
    }
    let of_agents = rows.iter().filter(|row| row.side == Party::Agent);
    let checked = of_agents.clone().filter(|row| row.excluded.is_none());
    let (of_agents, checked) = (of_agents.count(), checked.count());
    let _ = writeln!(
        out,
        "\n{} requirements: {of_agents} of agents, {checked} of them checked; {} of clients",
        rows.len(),
        rows.len() - of_agents
    );
    out
}

impl Listed {
    /// The whole table of a version.
    #[must_use]
    pub fn of(version: Version) -> Vec<Self> {
        let agents = requirements::of(version).chain(requirements::of_remote(version));
        let agents = agents.map(|(area, row)| Self::of_agents(area, row));
        let clients = clients::of(version).chain(clients::of_remote(version));
        agents.chain(clients.map(Self::of_clients)).collect()
    }

    /// A requirement of the table that agents are tested by.
    pub(super) fn of_agents(area: &Area, row: &Requirement) -> Self {
        Self {
            id: row.id,
            area: area.name,
            tier: row.tier,
            side: row.side,
            quote: row.quote,
            cite: address(row.cite),
            because: row.because,
            test: row.test,
            excluded: match row.check {
                Check::Excluded(reason) => Some(reason),
                _ => None,
            },
            checked: match row.check {
                Check::Excluded(reason) => Checked::Not(reason),
                Check::Watch { missing, .. } => Checked::Inspects(missing),
                Check::Run(_) | Check::Steps(_) => Checked::Acts,
            },
            steps: match row.check {
                Check::Steps(steps) => Some(steps),
                _ => None,
            },
        }
    }

    /// A requirement of the table that clients are tested by.
    pub(super) fn of_clients(row: &ClientRequirement) -> Self {
        Self {
            id: row.id,
            area: row.scenario,
            tier: row.tier,
            side: Party::Client,
            quote: row.quote,
            cite: address(row.cite),
            because: row.because,
            test: row.test,
            excluded: None,
            checked: Checked::After(row.scenario),
            steps: None,
        }
    }

    /// Returns one requirement for a person, with the steps of its check.
    ///
    /// # Errors
    /// When no requirement of the version has this id.
    pub fn show(version: Version, id: &str) -> Result<String> {
        let all = Self::of(version);
        let row = all.iter().find(|row| row.id == id);
        let row = row.ok_or_else(|| Error::NoRequirement(id.to_owned()))?;
        let mut out = format!("{id}, {}\n{}\n{}\n", row.tier.as_str(), row.quote, row.cite);
        let excluded = row.excluded.map(|reason| format!("Not checked: {reason}"));
        let texts = [row.because.map(str::to_owned), row.test.map(str::to_owned)];
        for text in texts.into_iter().chain([excluded]).flatten() {
            // Writing to a string does not fail.
            let _ = writeln!(out, "\n{text}");
        }
        if let Some(steps) = row.steps {
            out.push('\n');
            steps.lines().for_each(|line| out += &(line + "\n"));
        }
        Ok(out)
    }

    /// The name of the file of requirements that it stands in, and of its page.
    pub(super) fn page(&self) -> &'static str {
        match self.side {
            Party::Agent => self.area,
            Party::Client if self.id.starts_with("client.remote-") => "client-remote",
            Party::Client => "client",
        }
    }
}

fn address(cite: &str) -> String {
    specification::address(cite).unwrap_or_else(|| cite.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_shown_with_its_steps() {
        let shown = Listed::show(Version::V1, "jsonrpc.unknown-method").unwrap();
        assert_eq!(
            shown,
            "jsonrpc.unknown-method, derived\n\
             The method does not exist / is not available.\n\
             https://www.jsonrpc.org/specification#error_object\n\
             \nJSON-RPC defines the code for this case.\n\
             \nSends `no/such/method`; error -32601 must come.\n\
             \n{ call = \"no/such/method\", error = -32601 }\n"
        );
        let code = Listed::show(Version::V1, "jsonrpc.concurrent").unwrap();
        assert!(!code.contains('{'), "{code}");
        let unknown = Listed::show(Version::V1, "jsonrpc.none").unwrap_err();
        assert!(unknown.to_string().contains("jsonrpc.none"), "{unknown}");
    }
}
