//! Mutants that need more than edits: functions that rows of the table name.

mod agents;
mod clients;
mod settings;

use crate::target::Filter;

/// Returns the function of this name.
pub(super) fn find(name: &str) -> Option<Filter> {
    let mut functions = all();
    functions.find_map(|(known, filter)| (known == name).then_some(filter))
}

/// All functions with their names.
pub(super) fn all() -> impl Iterator<Item = (&'static str, Filter)> {
    let tables = [agents::FUNCTIONS, settings::FUNCTIONS, clients::FUNCTIONS];
    tables.into_iter().flatten().copied()
}
