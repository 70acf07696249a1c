//! Differences as text, JSON and Markdown.

use acp_codegen::{Change, Diff, Error, Side};
use clap::ValueEnum;
use serde_json::{Map, Value};

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

/// The value of `--deny-breaking` that stands for every role.
pub(crate) const ANY: &str = "any";

/// Returns a line for each change that breaks a denied role.
///
/// # Errors
/// When the documents have no such role.
pub(crate) fn refusals(diff: &Diff, denied: &str) -> Result<Vec<String>, Error> {
    let is_role = |role: &Side| role.as_str() == denied;
    if denied != ANY && !diff.roles.iter().any(is_role) {
        let roles: Vec<&str> = diff.roles.iter().map(Side::as_str).collect();
        return Err(Error::UnknownRole {
            role: denied.to_owned(),
            known: roles.join(", "),
        });
    }
    let is_denied = |change: &&Change| match denied {
        ANY => !change.breaks.is_empty(),
        _ => change.breaks.iter().any(is_role),
    };
    let denied = diff.changes.iter().filter(is_denied);
    Ok(denied
        .map(|change| format!("denied: {}: {}{}", change.at, change.what, mark(change)))
        .collect())
}

pub(crate) fn render(diff: &Diff, format: Format) -> String {
    match format {
        Format::Text => text(diff),
        Format::Json => json(diff),
        Format::Markdown => markdown(diff),
    }
}

fn text(diff: &Diff) -> String {
    let mut text = String::new();
    for change in &diff.changes {
        text.push_str(&format!("{}: {}{}\n", change.at, change.what, mark(change)));
    }
    text.push_str(&summary(diff));
    text.push('\n');
    text
}

fn mark(change: &Change) -> String {
    let roles: Vec<String> = change.breaks.iter().map(|role| plural(*role)).collect();
    match roles.is_empty() {
        true => String::new(),
        false => format!("  [breaking for {}]", roles.join(" and ")),
    }
}

fn json(diff: &Diff) -> String {
    let changes = diff.changes.iter().map(|change| {
        let mut members = Map::new();
        members.insert("at".to_owned(), change.at.as_str().into());
        members.insert("change".to_owned(), change.what.as_str().into());
        for role in &diff.roles {
            let effect = effect(change, *role);
            members.insert(plural(*role), effect.into());
        }
        Value::Object(members)
    });
    format!("{:#}\n", changes.collect::<Value>())
}

fn markdown(diff: &Diff) -> String {
    let mut text = format!("{}\n", summary(diff));
    if diff.changes.is_empty() {
        return text;
    }
    let cells = |cell: &dyn Fn(Side) -> String| -> String {
        let cells = diff.roles.iter().map(|role| format!(" {} |", cell(*role)));
        cells.collect()
    };
    let heads = cells(&|role| {
        let name = plural(role);
        let (first, rest) = name.split_at(1);
        first.to_uppercase() + rest
    });
    text.push_str(&format!("\n| Place | Change |{heads}\n|---|---|"));
    text.push_str(&"---|".repeat(diff.roles.len()));
    text.push('\n');
    for change in &diff.changes {
        let effects = cells(&|role| match effect(change, role) {
            BREAKING => format!("**{BREAKING}**"),
            other => other.to_owned(),
        });
        let what = change.what.replace('|', "\\|");
        text.push_str(&format!("| `{}` | {what} |{effects}\n", change.at));
    }
    text
}

fn summary(diff: &Diff) -> String {
    let changes = diff.changes.len();
    let plural_s = if changes == 1 { "" } else { "s" };
    let mut text = format!("{changes} change{plural_s}");
    for role in &diff.roles {
        let breaking = diff.changes.iter();
        let breaking = breaking.filter(|change| change.breaks.contains(role));
        text.push_str(&format!(
            ", {} breaking for {}",
            breaking.count(),
            plural(*role)
        ));
    }
    text
}

const BREAKING: &str = "breaking";

fn effect(change: &Change, role: Side) -> &'static str {
    match change.breaks.contains(&role) {
        true => BREAKING,
        false => "compatible",
    }
}

/// The implementations of a role.
fn plural(role: Side) -> String {
    match role {
        Side::BOTH => "both sides".to_owned(),
        role => format!("{role}s"),
    }
}
