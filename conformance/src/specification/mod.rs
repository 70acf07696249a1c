//! The specification that the requirements quote, pinned to a revision.
//!
//! The pages are not part of this crate. Its file `specification.toml` has facts about them: the
//! revision, the anchors of its headings, a hash of every normative sentence, and a hash of every quote that was found in its
//! page. `acp-conformance specification` makes these facts from a checkout of the specification's
//! repository, and compares them with another one.

mod citation;
mod facts;
mod page;
mod reasons;

use std::sync::LazyLock;

pub use self::citation::address;
pub(crate) use self::facts::uncovered;
pub use self::facts::{Changes, Facts};
pub use self::page::{Page, Sentence};
pub(crate) use self::reasons::reason;

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
    /// The page without its heading, such as `prompt-turn` or `v2/content`.
    pub page: &'static str,
    /// The words.
    pub words: &'static str,
}

/// Returns the quotes of all requirements from the pages of the protocol. Other standards, such as
/// JSON-RPC, have pages of their own, which do not change.
pub fn quotes() -> impl Iterator<Item = Quote> {
    let versions = [Version::V1, Version::V2];
    let rows = versions.into_iter().flat_map(|version| {
        let agents = requirements::of(version).map(|(_, row)| (row.id, row.cite, row.quote));
        agents.chain(clients::of(version).map(|row| (row.id, row.cite, row.quote)))
    });
    let quotes = rows.filter_map(|(id, cite, words)| {
        let (page, _) = cite.split_once('#')?;
        Some(Quote { id, page, words })
    });
    quotes.filter(|quote| !citation::is_other(quote.page))
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
                "{id}: {words:?} was not found in {page} of revision {}; run \
                 `acp-conformance specification facts DIR` with a checkout of it",
                PINNED.revision
            );
        }
    }
}
