//! The report that a machine reads. The member `version` counts its changes.

use serde::Serialize;

use crate::clients;
use crate::requirements::{self, Check, Requirement, pages};
use crate::suite::{Coverage, Report, Row, Verdict};

/// A report.
#[derive(Debug, Serialize)]
pub struct Document<'a> {
    version: u32,
    protocol: u32,
    command: &'a str,
    agent: &'a str,
    conformant: bool,
    strict: bool,
    seconds: f64,
    messages: Messages,
    requirements: Vec<Entry<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    coverage: Option<&'a Coverage>,
}

#[derive(Debug, Serialize)]
struct Messages {
    agent: usize,
    invalid: usize,
    client: usize,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    #[serde(flatten)]
    requirement: Listed,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    came: Option<&'a str>,
    seconds: f64,
}

/// A requirement as it stands in the table.
#[derive(Debug, Serialize)]
pub struct Listed {
    id: &'static str,
    area: &'static str,
    tier: &'static str,
    side: &'static str,
    quote: &'static str,
    cite: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    excluded: Option<&'static str>,
}

impl<'a> Document<'a> {
    /// The report of a run.
    #[must_use]
    pub fn of(report: &'a Report, strict: bool) -> Self {
        Self {
            version: 1,
            protocol: 1,
            command: &report.command,
            agent: &report.agent,
            conformant: report.is_conformant(strict),
            strict,
            seconds: report.took.as_secs_f64(),
            messages: Messages {
                agent: report.from_agent,
                invalid: report.invalid,
                client: report.from_client,
            },
            requirements: report.rows.iter().map(Entry::of).collect(),
            coverage: report.coverage.as_ref(),
        }
    }
}

impl Listed {
    /// The whole table.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let agents = requirements::all().map(|(area, row)| Self::of(area.name, row));
        let clients = clients::all().map(|row| Self {
            id: row.id,
            area: "client",
            tier: row.tier.as_str(),
            side: "client",
            quote: row.quote,
            cite: pages::address(row.cite).unwrap_or_else(|| row.cite.to_owned()),
            excluded: None,
        });
        agents.chain(clients).collect()
    }

    fn of(area: &'static str, row: &Requirement) -> Self {
        Self {
            id: row.id,
            area,
            tier: row.tier.as_str(),
            side: row.side.as_str(),
            quote: row.quote,
            cite: pages::address(row.cite).unwrap_or_else(|| row.cite.to_owned()),
            excluded: match row.check {
                Check::Excluded(reason) => Some(reason),
                _ => None,
            },
        }
    }
}

impl<'a> Entry<'a> {
    fn of(row: &'a Row) -> Self {
        let (reason, sent, came) = match &row.verdict {
            Verdict::Pass | Verdict::Excluded(_) => (None, None, None),
            Verdict::Skip(reason) | Verdict::Inconclusive(reason) => {
                (Some(reason.as_str()), None, None)
            }
            Verdict::Fail(failure) => (
                Some(failure.reason.as_str()),
                failure.sent.as_deref(),
                failure.came.as_deref(),
            ),
        };
        Self {
            requirement: Listed::of(row.area.name, row.requirement),
            verdict: row.verdict.as_str(),
            reason,
            sent,
            came,
            seconds: row.took.as_secs_f64(),
        }
    }
}
