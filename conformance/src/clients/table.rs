//! What the protocol demands of clients, as rows of data.

use std::sync::LazyLock;

use super::assertions::obeys;
use super::played::{ClientCheck, Played};
use super::rules::{self, ClientRule};
use super::scenarios::{SCENES, Scenario};
use super::{choices, handshake, ids, pages, questions, requests, robustness, services, v2};
use crate::embedded;
use crate::harness::Outcome;
use crate::passive::Rule;
use crate::requirements::{File, Tier};
use crate::wire::Version;
use crate::{Error, Result};

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
    /// How it follows from the sentence; present for [`Tier::Derived`].
    pub because: Option<&'static str>,
    /// What the scenario contains and what must come, in a sentence or two.
    pub test: Option<&'static str>,
    /// The scenario after which it is checked.
    pub scenario: &'static str,
    /// What the scenario must show.
    check: fn(&Played) -> Outcome,
    /// What must hold in any connection besides.
    pub(crate) rule: Option<Rule>,
}

impl ClientRequirement {
    /// Checks the client that played the requirement's scenario.
    ///
    /// # Errors
    /// When the requirement is broken, or could not be judged.
    pub fn check(&self, played: &Played) -> Outcome {
        (self.check)(played)?;
        self.rule.map_or(Ok(()), |rule| obeys(played, rule))
    }
}

/// All requirements of clients of version 1.
pub fn all() -> impl Iterator<Item = &'static ClientRequirement> {
    of(Version::V1)
}

/// All requirements of clients of a version.
pub fn of(version: Version) -> impl Iterator<Item = &'static ClientRequirement> {
    static FILE: LazyLock<File> = LazyLock::new(|| {
        embedded::read(
            "client.toml",
            include_str!("../../requirements/client.toml"),
        )
    });
    static V1: LazyLock<Vec<ClientRequirement>> = LazyLock::new(|| {
        let checks = [
            handshake::CHECKS,
            requests::CHECKS,
            services::CHECKS,
            robustness::CHECKS,
            choices::CHECKS,
            choices::MODES,
            pages::CHECKS,
            questions::CHECKS,
            ids::CHECKS,
        ];
        joined(&FILE, Version::V1, &checks, rules::of(Version::V1))
    });
    static V2: LazyLock<Vec<ClientRequirement>> =
        LazyLock::new(|| joined(&FILE, Version::V2, &v2::CHECKS, rules::of(Version::V2)));
    match version {
        Version::V1 => V1.iter(),
        Version::V2 => V2.iter(),
    }
}

/// The scenarios of a version.
#[must_use]
pub fn scenarios(version: Version) -> &'static [Scenario] {
    match version {
        Version::V1 => SCENES,
        Version::V2 => v2::SCENES,
    }
}

/// The scenario of this name, of either version.
pub(super) fn scenario(name: &str) -> Result<&'static Scenario> {
    let mut all = SCENES.iter().chain(v2::SCENES);
    let scenario = all.find(|scenario| scenario.name == name);
    scenario.ok_or_else(|| Error::NoRequirement(name.to_owned()))
}

/// The requirements of clients over the remote transport; none in a build without the feature
/// `remote`, and none for version 2 yet.
pub fn of_remote(version: Version) -> impl Iterator<Item = &'static ClientRequirement> {
    static V1: LazyLock<Vec<ClientRequirement>> = LazyLock::new(remote);
    V1.iter().filter(move |_| version == Version::V1)
}

#[cfg(all(unix, feature = "remote"))]
fn remote() -> Vec<ClientRequirement> {
    static FILE: LazyLock<File> = LazyLock::new(|| {
        let text = include_str!("../../requirements/client-remote.toml");
        embedded::read("client-remote.toml", text)
    });
    joined(
        &FILE,
        Version::V1,
        &[super::remote::rows::CHECKS],
        std::iter::empty(),
    )
}

#[cfg(not(all(unix, feature = "remote")))]
fn remote() -> Vec<ClientRequirement> {
    Vec::new()
}

fn joined(
    file: &'static File,
    version: Version,
    checks: &[&[ClientCheck]],
    rules: impl Iterator<Item = &'static ClientRule>,
) -> Vec<ClientRequirement> {
    let checks = checks.iter().copied().flatten();
    let checks = checks.map(|(id, check)| (*id, (*check, None)));
    let rules = rules.map(|(id, rule, check)| (*id, (*check, Some(*rule))));
    let rows = file.join(version, checks.chain(rules), |entry, check| {
        if entry.data.is_some() {
            return Err(format!("{} has steps, which are for agents", entry.id));
        }
        let (Some((check, rule)), Some(scenario)) = (check, entry.scenario) else {
            return Err(format!("{} has no check or no scenario", entry.id));
        };
        Ok(ClientRequirement {
            id: entry.id,
            tier: entry.tier,
            cite: entry.cite,
            quote: entry.quote,
            because: entry.because,
            test: entry.test,
            scenario,
            check,
            rule,
        })
    });
    embedded::valid("client.toml", rows)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::specification;

    #[test]
    fn every_row_has_an_id_a_citation_a_quote_a_test_and_a_scenario() {
        for version in [Version::V1, Version::V2] {
            let mut seen = HashSet::new();
            for row in of(version).chain(of_remote(version)) {
                assert!(seen.insert(row.id), "{} stands twice", row.id);
                assert!(row.id.starts_with("client."), "{}", row.id);
                assert!(
                    specification::address(row.cite).is_some(),
                    "{} cites {}",
                    row.id,
                    row.cite
                );
                assert!((8..=120).contains(&row.quote.chars().count()), "{}", row.id);
                let test = row.test.unwrap_or_default();
                assert!(
                    (30..=200).contains(&test.chars().count()),
                    "{}: {test:?}",
                    row.id
                );
                assert!(test.ends_with('.'), "{}: {test:?}", row.id);
                let mut scenarios = scenarios(version).iter();
                let is_known = scenarios.any(|scenario| scenario.name == row.scenario);
                assert!(
                    is_known || row.id.starts_with("client.remote-"),
                    "{}",
                    row.id
                );
            }
        }
    }
}
