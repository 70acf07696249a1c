//! What the protocol demands of clients, as rows of data.

use super::{Played, conduct, handshake, second, services};
use crate::harness::Outcome;
use crate::requirements::Tier;
use crate::wire::Version;

/// A requirement of clients.
#[derive(Clone, Copy, Debug)]
pub struct ClientRequirement {
    /// `client-area.name`.
    pub id: &'static str,
    /// How much it weighs.
    pub tier: Tier,
    /// The page and heading of the sentence.
    pub cite: &'static str,
    /// The sentence, or the part of it that matters.
    pub quote: &'static str,
    /// The scene after which it is checked.
    pub scene: &'static str,
    /// The check.
    pub check: fn(&Played) -> Outcome,
}

/// All requirements of clients of version 1.
pub fn all() -> impl Iterator<Item = &'static ClientRequirement> {
    [handshake::ROWS, services::ROWS, conduct::ROWS]
        .into_iter()
        .flatten()
}

/// All requirements of clients of a version.
pub fn of(version: Version) -> impl Iterator<Item = &'static ClientRequirement> {
    let second = second::TABLES
        .into_iter()
        .flatten()
        .filter(move |_| version == Version::V2);
    all().filter(move |_| version == Version::V1).chain(second)
}

/// The requirements of clients over the remote transport; none in a build without the feature
/// `remote`, and none for version 2 yet.
pub fn of_remote(version: Version) -> impl Iterator<Item = &'static ClientRequirement> {
    #[cfg(all(unix, feature = "remote"))]
    const ROWS: &[ClientRequirement] = super::remote::ROWS;
    #[cfg(not(all(unix, feature = "remote")))]
    const ROWS: &[ClientRequirement] = &[];
    ROWS.iter().filter(move |_| version == Version::V1)
}

/// One requirement.
pub(super) const fn row(
    tier: Tier,
    id: &'static str,
    scene: &'static str,
    cite: &'static str,
    quote: &'static str,
    check: fn(&Played) -> Outcome,
) -> ClientRequirement {
    ClientRequirement {
        id,
        tier,
        cite,
        quote,
        scene,
        check,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::clients::scenes;
    use crate::requirements::pages;

    #[test]
    fn every_row_has_an_id_a_citation_a_quote_and_a_scene() {
        for version in [Version::V1, Version::V2] {
            let mut seen = HashSet::new();
            for row in of(version).chain(of_remote(version)) {
                assert!(seen.insert(row.id), "{} stands twice", row.id);
                assert!(row.id.starts_with("client."), "{}", row.id);
                assert!(
                    pages::address(row.cite).is_some(),
                    "{} cites {}",
                    row.id,
                    row.cite
                );
                assert!((8..=120).contains(&row.quote.chars().count()), "{}", row.id);
                let mut scenes = scenes(version).iter();
                let is_known = scenes.any(|scene| scene.name == row.scene);
                assert!(
                    is_known || row.id.starts_with("client.remote-"),
                    "{}",
                    row.id
                );
            }
        }
    }
}
