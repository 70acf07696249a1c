//! Differences as text, JSON and Markdown.

use acp_codegen::Change;
use clap::ValueEnum;
use serde_json::{Value, json};

/// How differences are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A line per change, with a sum at the end.
    #[default]
    Text,
    /// A list of objects.
    Json,
    /// A table.
    Markdown,
}

/// Whom no change may break.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Denied {
    /// Agents that were written for the old document.
    Agents,
    /// Clients that were written for the old document.
    Clients,
    /// Neither of the two.
    Any,
}

/// What to say of each change that breaks whom none may break.
pub(crate) fn refusals(changes: &[Change], denied: Denied) -> Vec<String> {
    let is_denied = |change: &&Change| match denied {
        Denied::Agents => change.breaks_agents,
        Denied::Clients => change.breaks_clients,
        Denied::Any => change.breaks_agents || change.breaks_clients,
    };
    let denied = changes.iter().filter(is_denied);
    denied
        .map(|change| format!("denied: {}: {}{}", change.at, change.what, mark(change)))
        .collect()
}

pub(crate) fn render(changes: &[Change], format: Format) -> String {
    match format {
        Format::Text => text(changes),
        Format::Json => json(changes),
        Format::Markdown => markdown(changes),
    }
}

fn text(changes: &[Change]) -> String {
    let mut text = String::new();
    for change in changes {
        text.push_str(&format!("{}: {}{}\n", change.at, change.what, mark(change)));
    }
    text.push_str(&summary(changes));
    text.push('\n');
    text
}

fn mark(change: &Change) -> &'static str {
    match (change.breaks_agents, change.breaks_clients) {
        (true, true) => "  [breaking for agents and clients]",
        (true, false) => "  [breaking for agents]",
        (false, true) => "  [breaking for clients]",
        (false, false) => "",
    }
}

fn json(changes: &[Change]) -> String {
    let effect = |breaks| if breaks { "breaking" } else { "compatible" };
    let changes = changes.iter().map(|change| {
        json!({
            "at": change.at,
            "change": change.what,
            "agents": effect(change.breaks_agents),
            "clients": effect(change.breaks_clients),
        })
    });
    format!("{:#}\n", changes.collect::<Value>())
}

fn markdown(changes: &[Change]) -> String {
    let mut text = format!("{}\n", summary(changes));
    if !changes.is_empty() {
        text.push_str("\n| Place | Change | Agents | Clients |\n|---|---|---|---|\n");
    }
    let effect = |breaks| if breaks { "**breaking**" } else { "compatible" };
    for change in changes {
        text.push_str(&format!(
            "| `{}` | {} | {} | {} |\n",
            change.at,
            change.what.replace('|', "\\|"),
            effect(change.breaks_agents),
            effect(change.breaks_clients)
        ));
    }
    text
}

fn summary(changes: &[Change]) -> String {
    let count = |breaks: fn(&Change) -> bool| changes.iter().filter(|one| breaks(one)).count();
    let plural = if changes.len() == 1 { "" } else { "s" };
    format!(
        "{} change{plural}, {} breaking for agents, {} breaking for clients",
        changes.len(),
        count(|change| change.breaks_agents),
        count(|change| change.breaks_clients)
    )
}
