//! Which normative sentences are judged: by a requirement that quotes them, or by one that an entry of
//! `uncovered.toml` names.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write as _;

use super::entries::{self, Entry};
use super::{Facts, Quote, Strength, every_quote, quotes, schema};
use crate::wire::{Party, Version};

/// How far a normative sentence is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Judged {
    /// A requirement that decides has a check.
    Decides,
    /// A requirement that decides with `--strict`, or is for information, has one.
    Advises,
    /// It has requirements, none of them with a check.
    Unchecked,
    /// It has an entry with the reason why there is no requirement.
    Reason,
    /// Nobody has said anything about it.
    Nothing,
}

/// A sentence in a version; it may stand on several pages.
type Key<'a> = (Version, &'a str);

/// The requirements of all normative sentences of some facts.
#[derive(Debug)]
pub struct Coverage<'a> {
    facts: &'a Facts,
    entries: &'a [Entry],
    /// By their sentence: the requirements that quote it.
    quoting: HashMap<Key<'a>, Vec<Quote>>,
    /// All requirements.
    rows: Vec<Quote>,
}

impl<'a> Coverage<'a> {
    /// Joins facts with the requirements and entries of this crate.
    pub fn of(facts: &'a Facts) -> Self {
        Self::with(
            facts,
            &quotes().collect::<Vec<_>>(),
            every_quote().collect(),
            entries::all(),
        )
    }

    fn with(facts: &'a Facts, quotes: &[Quote], rows: Vec<Quote>, entries: &'a [Entry]) -> Self {
        let mut quoting: HashMap<_, Vec<Quote>> = HashMap::new();
        for quote in quotes {
            for sentence in facts.covered(quote) {
                let key = (version(quote.page), sentence);
                quoting.entry(key).or_default().push(*quote);
            }
        }
        Self {
            facts,
            entries,
            quoting,
            rows,
        }
    }

    /// Returns the entry of a sentence that no requirement of its version quotes.
    pub fn reason(&self, page: &str, sentence: &str) -> Option<String> {
        if self.quoting.contains_key(&(version(page), sentence)) {
            return None;
        }
        let entry = self.entry(sentence).map(Entry::text);
        Some(entry.unwrap_or_else(|| NO_REASON.to_owned()))
    }

    fn entry(&self, sentence: &str) -> Option<&'a Entry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.sentences.contains_key(sentence))
    }

    /// Returns the requirements that quote a sentence, and those that its entry names.
    fn judges(&self, key: Key) -> Vec<Quote> {
        let quoting = self.quoting.get(&key).into_iter().flatten();
        let named = self.entry(key.1).into_iter().flat_map(Entry::judges);
        let named = named.flatten().filter(|(_, version)| *version == key.0);
        let named = named.filter_map(|(id, version)| self.row(id, version));
        quoting.chain(named).copied().collect()
    }

    fn row(&self, id: &str, version: Version) -> Option<&Quote> {
        let mut rows = self.rows.iter();
        rows.find(|row| row.id == id && row.version == version)
    }

    fn judged(&self, key: Key) -> Judged {
        let rows = self.judges(key);
        let checked: Vec<_> = rows.iter().filter(|row| row.is_checked).collect();
        if checked.iter().any(|row| row.tier.decides(false)) {
            Judged::Decides
        } else if !checked.is_empty() {
            Judged::Advises
        } else if !rows.is_empty() {
            Judged::Unchecked
        } else if self.entry(key.1).is_some() {
            Judged::Reason
        } else {
            Judged::Nothing
        }
    }

    /// Returns what is wrong with the entries, and the sentences without requirement and entry.
    pub fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let mut strengths: BTreeMap<&str, BTreeMap<Version, Strength>> = BTreeMap::new();
        for (page, hash, strength) in self.facts.normative() {
            let version = version(page);
            strengths.entry(hash).or_default().insert(version, strength);
            if self.judged((version, hash)) == Judged::Nothing {
                problems.push(format!(
                    "{hash} in {page}: no requirement quotes it, and it has no entry"
                ));
            }
        }
        for entry in self.entries {
            for (hash, words) in &entry.sentences {
                let mut add =
                    |what: String| problems.push(format!("entry {hash} ({words}): {what}"));
                let Some(versions) = strengths.get(hash.as_str()) else {
                    add("no page has this sentence".to_owned());
                    continue;
                };
                let same = |other: &&Entry| other.sentences.contains_key(hash);
                if self.entries.iter().filter(same).count() > 1 {
                    add("it has two entries".to_owned());
                }
                let is_quoted = |(version, strength): (&Version, &Strength)| {
                    let rows = self.quoting.get(&(*version, hash.as_str()));
                    rows.is_some_and(|rows| rows.iter().any(|row| suffices(row, *strength)))
                };
                if versions.iter().all(is_quoted) {
                    add("requirements quote it in every version; remove the entry".to_owned());
                }
                self.verify(entry, versions, &mut add);
            }
        }
        problems
    }

    /// Verifies the requirements that an entry names for a sentence of some versions.
    fn verify(
        &self,
        entry: &Entry,
        versions: &BTreeMap<Version, Strength>,
        add: &mut dyn FnMut(String),
    ) {
        let mut parties: BTreeSet<(Party, Version)> = BTreeSet::new();
        for judge in entry.judges() {
            let (id, version) = match judge {
                Ok(judge) => judge,
                Err(judge) => {
                    add(format!("`{judge}` is no id with `@v1` or `@v2`"));
                    continue;
                }
            };
            let name = format!("{id}@v{}", version.as_str());
            let Some(row) = self.row(id, version) else {
                add(format!("{name} does not exist"));
                continue;
            };
            let Some(strength) = versions.get(&version) else {
                continue;
            };
            if !entry.parties.contains(&row.party) {
                add(format!("{name} is about another party: {}", row.party));
            }
            if !row.is_checked {
                add(format!("{name} has no check"));
            } else if !suffices(row, *strength) {
                add(format!(
                    "{name} has the tier {}, which is too weak",
                    row.tier.as_str()
                ));
            }
            parties.insert((row.party, version));
        }
        let judged: BTreeSet<_> = parties.iter().map(|(_, version)| *version).collect();
        for party in &entry.parties {
            for version in &judged {
                if !parties.contains(&(*party, *version)) {
                    add(format!(
                        "no requirement of {party}s judges it in each version"
                    ));
                }
            }
        }
        if entry.parties.is_empty() != entry.judges().next().is_none() {
            add("`parties` stands beside `judged_by`, and only there".to_owned());
        }
    }

    /// Returns how many sentences are judged, as a table of Markdown with a line for each version and
    /// source.
    pub fn table(&self) -> String {
        let mut counts: BTreeMap<_, BTreeMap<&str, (Strength, Judged)>> = BTreeMap::new();
        for (page, hash, strength) in self.facts.normative() {
            let sentences = counts.entry(source(page)).or_default();
            let judged = self.judged((version(page), hash));
            sentences.insert(hash, (strength, judged));
        }
        let mut out = String::from(
            "| source | sentences | decided | advised | no check | reason | of them MUST | MUST decided |\n\
             |---|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for (source, sentences) in counts {
            let count = |is_wanted: &dyn Fn(&(Strength, Judged)) -> bool| {
                sentences
                    .values()
                    .filter(|sentence| is_wanted(sentence))
                    .count()
            };
            let judged = |wanted| count(&|(_, judged)| *judged == wanted);
            let musts = count(&|(strength, _)| *strength == Strength::Must);
            let decided = count(&|sentence| *sentence == (Strength::Must, Judged::Decides));
            // Writing to a string does not fail.
            let _ = writeln!(
                out,
                "| {source} | {} | {} | {} | {} | {} | {musts} | {decided} |",
                sentences.len(),
                judged(Judged::Decides),
                judged(Judged::Advises),
                judged(Judged::Unchecked),
                judged(Judged::Reason) + judged(Judged::Nothing),
            );
        }
        let musts = self
            .facts
            .normative()
            .filter(|(_, _, strength)| *strength == Strength::Must);
        let musts: HashMap<Key, Judged> = musts
            .map(|(page, hash, _)| (version(page), hash))
            .map(|key| (key, self.judged(key)))
            .collect();
        let decided = musts
            .values()
            .filter(|judged| **judged == Judged::Decides)
            .count();
        let _ = writeln!(
            out,
            "\n{} sentences have MUST, each counted once in a version; {decided} of them ({} %) are decided.",
            musts.len(),
            decided * 100 / musts.len().max(1),
        );
        out
    }
}

/// Whether a requirement judges a sentence of this strength.
fn suffices(row: &Quote, strength: Strength) -> bool {
    row.is_checked && row.tier.decides(strength == Strength::Should)
}

/// Returns the version that a page is of; that of the proposal of the remote transport is version 1.
fn version(page: &str) -> Version {
    match page.starts_with("v2/") {
        true => Version::V2,
        false => Version::V1,
    }
}

/// Returns the name of a page's line in the table.
fn source(page: &str) -> &'static str {
    let is_schema = page
        .split_once('#')
        .is_some_and(|(page, _)| schema::is_schema(page));
    match (page, version(page), is_schema) {
        ("remote-transport", ..) => "remote transport",
        ("v2/migration", ..) => "v2: migration page",
        (_, Version::V1, false) => "v1: pages",
        (_, Version::V1, true) => "v1: schema",
        (_, Version::V2, false) => "v2: pages",
        (_, Version::V2, true) => "v2: schema",
    }
}

/// The group of sentences that should have a requirement.
pub(crate) const NO_REASON: &str = "No requirement yet:";

#[cfg(test)]
mod tests {
    use super::super::{Page, Release};
    use super::*;
    use crate::requirements::Tier;

    const QUOTE: Quote = Quote::example("a.one", "x", "One MUST do it");

    fn facts(text: &str) -> Facts {
        let pages = [Page::parse("x", text), Page::parse("v2/x", text)];
        Facts::of(&pages, "", "", Release::default(), &[QUOTE])
    }

    /// What is wrong with entries for a demand and a recommendation that name this requirement.
    fn problems(judged_by: &str, row: Quote) -> Vec<String> {
        let facts = facts("One MUST do it. Two SHOULD go.");
        let hashes = ["One MUST do it.", "Two SHOULD go."].map(super::super::facts::hash);
        let entries = hashes.map(|hash| {
            let text = format!(
                "because = 'so'\nparties = ['agent']\njudged_by = ['{judged_by}']\n[sentences]\n{hash} = 'words'"
            );
            basic_toml::from_str::<Entry>(&text).unwrap()
        });
        let coverage = Coverage::with(&facts, &[QUOTE], vec![row], &entries);
        coverage.problems()
    }

    #[test]
    fn what_an_entry_names_judges_the_sentence() {
        let row = Quote {
            version: Version::V2,
            ..QUOTE
        };
        assert_eq!(problems("a.one@v2", row), Vec::<String>::new());
        let broken = [
            ("a.one", row, "no id with"),
            ("a.two@v2", row, "a.two@v2 does not exist"),
            ("a.one@v1", row, "a.one@v1 does not exist"),
            (
                "a.one@v2",
                Quote {
                    is_checked: false,
                    ..row
                },
                "has no check",
            ),
            (
                "a.one@v2",
                Quote {
                    party: Party::Client,
                    ..row
                },
                "another party",
            ),
            (
                "a.one@v2",
                Quote {
                    tier: Tier::Info,
                    ..row
                },
                "too weak",
            ),
        ];
        for (judge, row, expected) in broken {
            let found = problems(judge, row);
            assert!(
                found.iter().any(|found| found.contains(expected)),
                "{found:?}"
            );
        }
        // Enough for a recommendation.
        let weak = problems(
            "a.one@v2",
            Quote {
                tier: Tier::Should,
                ..row
            },
        );
        assert_eq!(weak.len(), 1, "{weak:?}");
    }

    #[test]
    fn a_sentence_without_requirement_and_entry_is_a_problem_and_an_entry_without_sentence() {
        let facts = facts("One MUST do it. Two SHOULD go.");
        let coverage = Coverage::with(&facts, &[QUOTE], vec![QUOTE], &[]);
        assert_eq!(coverage.problems().len(), 3, "{:?}", coverage.problems());
        let entry = "because = 'so'\n[sentences]\n000000000000 = 'Three MUST come'";
        let entries = [basic_toml::from_str::<Entry>(entry).unwrap()];
        let coverage = Coverage::with(&facts, &[QUOTE], vec![QUOTE], &entries);
        let problems = coverage.problems();
        assert!(problems.contains(
            &"entry 000000000000 (Three MUST come): no page has this sentence".to_owned()
        ));
        let table = coverage.table();
        assert!(
            table.contains("| v1: pages | 2 | 1 | 0 | 0 | 1 | 1 | 1 |"),
            "{table}"
        );
        assert!(
            table.contains(
                "2 sentences have MUST, each counted once in a version; 1 of them (50 %)"
            ),
            "{table}"
        );
    }

    #[cfg(all(unix, feature = "remote"))]
    #[test]
    fn every_normative_sentence_has_a_requirement_or_an_entry() {
        let problems = Coverage::of(&super::super::PINNED).problems();
        assert!(problems.is_empty(), "{}", problems.join("\n"));
    }
}
