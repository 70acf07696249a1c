//! Agents that break the rules, to prove that the checks see it.
//!
//! Each is the reference agent behind a filter, with the requirements that must
//! fail because of it. A test runs every one of them and compares: what is listed
//! must fail, and nothing else must. `acp-conformance agent --broken NAME` shows
//! what such a failure looks like.

pub mod clients;
mod content;
mod handshake;
mod jsonrpc;
mod lists;
mod questions;
mod second;
mod second_asked;
pub mod second_clients;
mod second_shown;
mod sessions;
mod settings;
mod tools;
mod turns;

use crate::subject::Filter;

/// A way to break the reference agent.
#[derive(Clone, Copy, Debug)]
pub struct Broken {
    /// What it does wrong, in a few words.
    pub name: &'static str,
    /// The requirements that fail because of it.
    pub breaks: &'static [&'static str],
    /// Whether nothing else fails.
    pub exact: bool,
    /// What it does to the messages.
    pub filter: Filter,
}

/// All of them, by subject.
const TABLES: [&[Broken]; 9] = [
    handshake::TABLE,
    jsonrpc::TABLE,
    sessions::TABLE,
    lists::TABLE,
    turns::TABLE,
    content::TABLE,
    tools::TABLE,
    settings::TABLE,
    questions::TABLE,
];

/// Every broken agent of version 1.
pub fn all() -> impl Iterator<Item = &'static Broken> {
    TABLES.iter().copied().flatten()
}

/// Every broken agent of version 2.
pub fn of_second() -> impl Iterator<Item = &'static Broken> {
    [second::TABLE, second_asked::TABLE, second_shown::TABLE]
        .into_iter()
        .flatten()
}

/// The broken agent of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Broken> {
    all().chain(of_second()).find(|broken| broken.name == name)
}

/// Breaks these requirements and no others.
const fn exactly(name: &'static str, breaks: &'static [&'static str], filter: Filter) -> Broken {
    Broken {
        name,
        breaks,
        exact: true,
        filter,
    }
}

/// Breaks these requirements and, being so basic, many more.
const fn at_least(name: &'static str, breaks: &'static [&'static str], filter: Filter) -> Broken {
    Broken {
        name,
        breaks,
        exact: false,
        filter,
    }
}
