//! What several areas look for in a connection's messages.

use std::path::Path;

use serde_json::Value;

use super::Check;
use crate::harness::{Entry, Outcome, Recording, Stop};
use crate::wire::{Level, Party, Rule};

/// Looks at everything that was said.
pub(super) const fn watch(check: fn(&Recording) -> Outcome<usize>, missing: &'static str) -> Check {
    Check::Watch { check, missing }
}

/// Every message of the agent must be free of errors by these rules.
pub(super) fn free_of(recording: &Recording, rules: &[Rule], floor: Level) -> Outcome<usize> {
    let mut seen = 0;
    for (index, entry) in recording.entries.iter().enumerate() {
        seen += usize::from(entry.from == Party::Agent);
        let broken = |finding: &&crate::wire::Finding| {
            finding.by == Some(Party::Agent)
                && finding.level >= floor
                && rules.contains(&finding.rule)
        };
        if let Some(finding) = entry.findings.iter().find(broken) {
            return Err(Stop::at(recording, index, finding.to_string()));
        }
    }
    Ok(seen)
}

/// The method must not be called.
pub(super) fn never_calls(recording: &Recording, method: &str) -> Outcome {
    match recording.calls(Party::Agent, method).next() {
        Some((index, _)) => Err(Stop::at(
            recording,
            index,
            format!("{method} was called although the client does not declare it"),
        )),
        None => Ok(()),
    }
}

/// The agent's calls of methods that start like this.
pub(super) fn agent_calls<'a>(
    recording: &'a Recording,
    prefix: &'a str,
) -> impl Iterator<Item = (usize, &'a Entry)> {
    let entries = recording.entries.iter().enumerate();
    entries.filter(move |(_, entry)| {
        let method = entry.method.as_deref().unwrap_or_default();
        entry.from == Party::Agent && entry.is_call() && method.starts_with(prefix)
    })
}

/// Whether a turn was started on this connection.
pub(super) fn has_turns(recording: &Recording) -> bool {
    let mut prompts = recording.calls(Party::Client, "session/prompt");
    prompts.any(|(index, _)| recording.result(index).is_some())
}

/// Whether a path is absolute, on this system or on another.
pub(super) fn is_absolute(path: &str) -> bool {
    let drive = path
        .get(1..3)
        .is_some_and(|root| root == ":\\" || root == ":/");
    Path::new(path).is_absolute() || path.starts_with('/') || path.starts_with("\\\\") || drive
}

/// The string at a place.
pub(super) fn text<'a>(value: &'a Value, pointer: &str) -> Option<&'a str> {
    value.pointer(pointer)?.as_str()
}

/// The elements at a place; none when there is no array.
pub(super) fn items<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value
        .pointer(pointer)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

/// The first text that occurs twice.
pub(super) fn repeated<'a>(texts: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = std::collections::HashSet::new();
    texts.into_iter().find(|text| !seen.insert(*text))
}
