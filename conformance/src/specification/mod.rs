//! The specification that the requirements quote: pages of a pinned revision, and the descriptions of
//! the official schemas of a pinned release.
//!
//! They are not part of this crate. Its file `specification.toml` has facts about them: the revision
//! and the release, the anchors of headings, a hash of every normative sentence, and a hash of every
//! quote that was found in the page or definition that it cites, with the sentences that it is part of.
//! `coverage` tells from these facts which sentences are judged; `entries` has the reasons of the others.
//! `acp-conformance specification` makes
//! these facts from a checkout of the specification's repository and a folder of schemas, and compares
//! them with others.

mod citation;
mod coverage;
mod entries;
mod facts;
mod page;
mod schema;

use std::sync::LazyLock;

pub use self::citation::address;
pub use self::coverage::Coverage;
pub use self::facts::{Changes, Facts, Release};
pub use self::page::{Page, Sentence, Strength};
pub use self::schema::read as schemas;
pub(crate) use self::schema::sha256;

use crate::requirements::{Check, Tier};
use crate::wire::{Party, Version};
use crate::{clients, embedded, requirements};

/// The facts that the requirements were verified against.
pub static PINNED: LazyLock<Facts> = LazyLock::new(|| {
    let text = include_str!("../../specification.toml");
    embedded::valid("specification.toml", Facts::read(text))
});

/// A quote of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The requirement.
    pub id: &'static str,
    /// The page without its heading, such as `prompt-turn` or `v2/content`, or a definition of a schema,
    /// such as `v2/schema#errorcode`.
    pub page: &'static str,
    /// The words.
    pub words: &'static str,
    /// The version whose requirement it is.
    pub version: Version,
    /// Who must obey the requirement.
    pub party: Party,
    /// How much the requirement weighs.
    pub tier: Tier,
    /// Whether the requirement has a check.
    pub is_checked: bool,
}

/// Returns the quotes of all requirements from the pages and schemas of the protocol, and from the
/// proposal of the remote transport. Other standards, such as JSON-RPC, have pages of their own, which do
/// not change; their quotes are not verified.
pub fn quotes() -> impl Iterator<Item = Quote> {
    every_quote().filter(|quote| !citation::is_other(quote.page))
}

fn every_quote() -> impl Iterator<Item = Quote> {
    [Version::V1, Version::V2].into_iter().flat_map(|version| {
        let agents = requirements::of(version).chain(requirements::of_remote(version));
        let agents = agents.filter_map(move |(_, row)| {
            Some(Quote {
                id: row.id,
                page: citation::parts(row.cite)?.0,
                words: row.quote,
                version,
                party: row.side,
                tier: row.tier,
                is_checked: !matches!(row.check, Check::Excluded(_)),
            })
        });
        let clients = clients::of(version).chain(clients::of_remote(version));
        let clients = clients.filter_map(move |row| {
            Some(Quote {
                id: row.id,
                page: citation::parts(row.cite)?.0,
                words: row.quote,
                version,
                party: Party::Client,
                tier: row.tier,
                is_checked: true,
            })
        });
        agents.chain(clients)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Quote {
        /// Returns a quote of a requirement of agents that decides.
        pub(super) const fn example(
            id: &'static str,
            page: &'static str,
            words: &'static str,
        ) -> Self {
            Self {
                id,
                page,
                words,
                version: Version::V1,
                party: Party::Agent,
                tier: Tier::Must,
                is_checked: true,
            }
        }
    }

    #[test]
    fn every_quote_was_found_in_its_page() {
        for quote in quotes() {
            let Quote {
                id, page, words, ..
            } = quote;
            let is_known = PINNED.has_quote(page, words);
            assert!(
                is_known,
                "{id}: {words:?} was not found in {page} of {}; run \
                 `acp-conformance specification facts DIR --schema SCHEMA` with a checkout of it",
                PINNED.name()
            );
        }
    }

    /// The standards whose text is not pinned, as the README lists them.
    #[test]
    fn quotes_that_are_not_verified_are_of_the_standards_that_the_readme_names() {
        let readme = include_str!("../../README.md");
        let all = every_quote().count();
        let others = every_quote().filter(|quote| citation::is_other(quote.page));
        let mut pages: Vec<_> = others.map(|quote| quote.page).collect();
        assert!(pages.len() * 5 < all, "{} of {all}", pages.len());
        pages.sort_unstable();
        pages.dedup();
        for page in pages {
            assert!(readme.contains(&format!("`{page}`")), "{page}");
        }
    }
}
