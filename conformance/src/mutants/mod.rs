//! Peers that break the rules, to prove that the checks see it.
//!
//! The folder `mutants` of this crate is their table: a row names a mutant, the requirements that
//! must fail because of it, and how it is made from the reference agent or client: by edits of
//! messages ([`Edits`]), by a function of `code`, or, for clients, by a shell script. A test runs
//! each of them and compares: what is listed must fail, and nothing else must. `acp-conformance
//! agent --broken NAME` shows what such a failure looks like.

mod code;
mod data;
mod edit;
mod matcher;
mod pointer;

pub use self::data::{How, Mutant};
pub use self::edit::Edits;

use crate::wire::{Party, Version};

/// Returns all mutants: agents and clients of all versions.
pub fn all() -> impl Iterator<Item = &'static Mutant> {
    data::table().iter()
}

/// Returns the broken agents of a version.
pub fn agents(version: Version) -> impl Iterator<Item = &'static Mutant> {
    of(Party::Agent, version)
}

/// Returns the broken clients of a version.
pub fn clients(version: Version) -> impl Iterator<Item = &'static Mutant> {
    of(Party::Client, version)
}

/// Returns the mutant of this side with this name.
#[must_use]
pub fn find(side: Party, name: &str) -> Option<&'static Mutant> {
    all().find(|mutant| mutant.side == side && mutant.name == name)
}

fn of(side: Party, version: Version) -> impl Iterator<Item = &'static Mutant> {
    all().filter(move |mutant| mutant.side == side && mutant.versions.contains(&version))
}

#[cfg(test)]
mod tests;
