//! The table of requirements, before anything was run.

use std::fmt::Write as _;

use serde::Serialize;

use crate::clients;
use crate::requirements::{self, Check, Tier, pages};
use crate::wire::{Party, Version};

/// A requirement as it stands in the table.
#[derive(Clone, Debug, Serialize)]
pub struct Listed {
    id: &'static str,
    area: &'static str,
    tier: Tier,
    side: Party,
    quote: &'static str,
    cite: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    because: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    excluded: Option<&'static str>,
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
        let agents = agents.map(|(area, row)| Self {
            id: row.id,
            area: area.name,
            tier: row.tier,
            side: row.side,
            quote: row.quote,
            cite: address(row.cite),
            because: row.because,
            excluded: match row.check {
                Check::Excluded(reason) => Some(reason),
                _ => None,
            },
        });
        let clients = clients::of(version).chain(clients::of_remote(version));
        let clients = clients.map(|row| Self {
            id: row.id,
            area: row.scene,
            tier: row.tier,
            side: Party::Client,
            quote: row.quote,
            cite: address(row.cite),
            because: row.because,
            excluded: None,
        });
        agents.chain(clients).collect()
    }
}

fn address(cite: &str) -> String {
    pages::address(cite).unwrap_or_else(|| cite.to_owned())
}
