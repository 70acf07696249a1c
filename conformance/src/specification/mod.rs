//! The specification that the requirements quote: pages of a pinned revision, and the descriptions of
//! the official schemas of a pinned release.
//!
//! They are not part of this crate. Its file `specification.toml` has facts about them: the revision
//! and the release, the anchors of headings, a hash of every normative sentence, and a hash of every
//! quote that was found in the page or definition that it cites. `acp-conformance specification` makes
//! these facts from a checkout of the specification's repository and a folder of schemas, and compares
//! them with others.

mod citation;
mod facts;
mod page;
mod reasons;
mod schema;

use std::sync::LazyLock;

pub use self::citation::address;
pub(crate) use self::facts::uncovered;
pub use self::facts::{Changes, Facts, Release};
pub use self::page::{Page, Sentence};
pub(crate) use self::reasons::reason;
pub(crate) use self::schema::read as schemas;

use crate::wire::Version;
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
}

/// Returns the quotes of all requirements from the pages and schemas of the protocol, and from the
/// proposal of the remote transport. Other standards, such as JSON-RPC, have pages of their own, which do
/// not change; their quotes are not verified.
pub fn quotes() -> impl Iterator<Item = Quote> {
    every_quote().filter(|quote| !citation::is_other(quote.page))
}

fn every_quote() -> impl Iterator<Item = Quote> {
    let versions = [Version::V1, Version::V2];
    let rows = versions.into_iter().flat_map(|version| {
        let agents = requirements::of(version).chain(requirements::of_remote(version));
        let agents = agents.map(|(_, row)| (row.id, row.cite, row.quote));
        let clients = clients::of(version).chain(clients::of_remote(version));
        agents.chain(clients.map(|row| (row.id, row.cite, row.quote)))
    });
    rows.filter_map(|(id, cite, words)| {
        let (page, _) = citation::parts(cite)?;
        Some(Quote { id, page, words })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_quote_was_found_in_its_page() {
        for quote in quotes() {
            let Quote { id, page, words } = quote;
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
