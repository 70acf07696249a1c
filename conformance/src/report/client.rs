//! The report on a client: as text, and as JSON.

use std::fmt::Write as _;

use serde::Serialize;

use crate::clients::ClientRequirement;
use crate::requirements::pages;
use crate::suite::Verdict;

/// What each requirement came to.
type Rows = [(&'static ClientRequirement, Verdict)];

/// The report for a person. `again` is what follows the options to run against the
/// same client.
#[must_use]
pub fn client_text(rows: &Rows, conformant: bool, again: &str) -> String {
    let mut out = String::new();
    let width = rows.iter().map(|(row, _)| row.id.len()).max();
    let width = width.unwrap_or_default();
    for (row, verdict) in rows {
        let (word, tier) = (verdict.as_str(), row.tier.as_str());
        let reason = match verdict {
            Verdict::Fail(failure) => failure.reason.as_str(),
            Verdict::Skip(reason) | Verdict::Inconclusive(reason) => reason,
            Verdict::Pass | Verdict::Excluded(_) => "",
        };
        // Writing to a string does not fail.
        let line = format!("{:<width$}  {tier:<10}  {word:<12}  {reason}", row.id);
        let _ = writeln!(out, "{}", line.trim_end());
    }
    for (row, verdict) in rows {
        let Verdict::Fail(failure) = verdict else {
            continue;
        };
        let _ = writeln!(
            out,
            "\nFAIL {} ({}): {}",
            row.id,
            row.tier.as_str(),
            failure.reason
        );
        let _ = writeln!(out, "  spec  {}", row.quote);
        let cite = pages::address(row.cite).unwrap_or_default();
        let _ = writeln!(out, "        {cite}");
        for (name, said) in [("sent", &failure.sent), ("came", &failure.came)] {
            if let Some(said) = said {
                let _ = writeln!(out, "  {name}  {said}");
            }
        }
        let _ = writeln!(
            out,
            "  again acp-conformance client --only {}{again}",
            row.id
        );
    }
    let count = |word: &str| {
        let with = rows.iter().filter(|(_, verdict)| verdict.as_str() == word);
        with.count()
    };
    let word = if conformant {
        "conformant"
    } else {
        "not conformant"
    };
    let _ = writeln!(
        out,
        "\n{word}: {} passed, {} broken, {} inconclusive, {} skipped",
        count("pass"),
        count("fail"),
        count("inconclusive"),
        count("skip")
    );
    out
}

/// The report for a machine. The member `version` counts its changes.
#[derive(Debug, Serialize)]
pub struct ClientDocument<'a> {
    version: u32,
    protocol: u32,
    conformant: bool,
    requirements: Vec<Entry<'a>>,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    id: &'static str,
    tier: &'static str,
    side: &'static str,
    scene: &'static str,
    quote: &'static str,
    cite: String,
    verdict: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    came: Option<&'a str>,
}

impl<'a> ClientDocument<'a> {
    /// The report of a run.
    #[must_use]
    pub fn of(rows: &'a Rows, conformant: bool) -> Self {
        Self {
            version: 1,
            protocol: 1,
            conformant,
            requirements: rows
                .iter()
                .map(|(row, verdict)| entry(row, verdict))
                .collect(),
        }
    }
}

fn entry<'a>(row: &ClientRequirement, verdict: &'a Verdict) -> Entry<'a> {
    let (reason, sent, came) = match verdict {
        Verdict::Fail(failure) => (
            Some(failure.reason.as_str()),
            failure.sent.as_deref(),
            failure.came.as_deref(),
        ),
        Verdict::Skip(reason) | Verdict::Inconclusive(reason) => {
            (Some(reason.as_str()), None, None)
        }
        Verdict::Pass | Verdict::Excluded(_) => (None, None, None),
    };
    Entry {
        id: row.id,
        tier: row.tier.as_str(),
        side: "client",
        scene: row.scene,
        quote: row.quote,
        cite: pages::address(row.cite).unwrap_or_else(|| row.cite.to_owned()),
        verdict: verdict.as_str(),
        reason,
        sent,
        came,
    }
}
