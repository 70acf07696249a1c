//! Facts about the pages of one revision, and about the schemas of one release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use super::Quote;
use super::page::{Page, Sentence, Strength, plain};
use super::schema::{self, sha256};

/// Facts about the pages of one revision and the descriptions of one release of the schemas.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// The commit of the specification's repository.
    pub revision: String,
    /// Its date.
    pub date: String,
    /// The schemas, which may be newer than the pages.
    pub schema: Release,
    /// By the name of the page.
    pages: BTreeMap<String, PageFacts>,
}

/// A release of the official schemas.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The date of the release.
    pub date: String,
    /// The SHA-256 of the files `v1/schema.json` and `v2/schema.json`, one after the other.
    pub sha256: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PageFacts {
    /// The anchors of its headings.
    anchors: BTreeSet<String>,
    /// Hashes of the sentences with MUST.
    must: BTreeSet<String>,
    /// Hashes of the other normative sentences.
    should: BTreeSet<String>,
    /// By the hash of a quote that was found: the normative sentences that it is part of.
    quotes: BTreeMap<String, BTreeSet<String>>,
}

impl PageFacts {
    fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.normative().next().is_none() && self.quotes.is_empty()
    }

    fn normative(&self) -> impl Iterator<Item = (&String, Strength)> {
        let must = self.must.iter().map(|hash| (hash, Strength::Must));
        must.chain(self.should.iter().map(|hash| (hash, Strength::Should)))
    }
}

/// What differs between the recorded facts and a checkout.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Quotes that their page does not have.
    pub lost: Vec<Quote>,
    /// Normative sentences that are new, with their pages.
    pub added: Vec<(String, Sentence)>,
    /// By page, how many normative sentences are gone.
    pub removed: BTreeMap<String, usize>,
}

impl Facts {
    /// Reads a file of facts.
    ///
    /// # Errors
    /// A sentence that says what is wrong with it.
    pub fn read(text: &str) -> Result<Self, String> {
        basic_toml::from_str(text).map_err(|error| error.to_string())
    }

    /// Makes the facts of pages. A quote that is not found is left out.
    #[must_use]
    pub fn of(
        pages: &[Page],
        revision: &str,
        date: &str,
        schema: Release,
        quotes: &[Quote],
    ) -> Self {
        let facts = pages.iter().map(|page| {
            let found = quotes.iter().filter(|quote| quote.page == page.name);
            let found = found.filter(|quote| page.has(quote.words));
            let facts = PageFacts {
                anchors: page.anchors.clone(),
                must: hashes(page, Strength::Must),
                should: hashes(page, Strength::Should),
                quotes: found
                    .map(|quote| (hash(quote.words), covered(page, quote)))
                    .collect(),
            };
            (page.name.clone(), facts)
        });
        Self {
            revision: revision.to_owned(),
            date: date.to_owned(),
            schema,
            // Most definitions of a schema have nothing but explanations.
            pages: facts.filter(|(_, facts)| !facts.is_empty()).collect(),
        }
    }

    /// Returns the file of these facts.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = String::from(
            "# Facts about the pages of the specification, made by\n\
             # `acp-conformance specification facts DIR --schema SCHEMA`. Sentences and quotes are hashes.\n",
        );
        // Writing to a string does not fail.
        let _ = writeln!(
            out,
            "revision = \"{}\"\ndate = \"{}\"\n\n[schema]\ndate = \"{}\"\nsha256 = \"{}\"",
            self.revision, self.date, self.schema.date, self.schema.sha256
        );
        for (name, page) in &self.pages {
            let _ = writeln!(out, "\n[pages.\"{name}\"]");
            let lists = [
                ("anchors", &page.anchors),
                ("must", &page.must),
                ("should", &page.should),
            ];
            for (key, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
                let _ = writeln!(out, "{key} = [");
                for one in *list {
                    let _ = writeln!(out, "    \"{one}\",");
                }
                out.push_str("]\n");
            }
            if !page.quotes.is_empty() {
                let _ = writeln!(out, "[pages.\"{name}\".quotes]");
            }
            for (quote, sentences) in &page.quotes {
                let sentences: Vec<_> = sentences.iter().collect();
                let _ = writeln!(out, "{quote} = {sentences:?}");
            }
        }
        out
    }

    /// Returns the revision of the pages and the hash of the schemas with their dates, for reports.
    #[must_use]
    pub fn name(&self) -> String {
        let Self { date, schema, .. } = self;
        let short = |hash: &str| hash.get(..10).unwrap_or(hash).to_owned();
        let (revision, hash) = (short(&self.revision), short(&schema.sha256));
        format!("{revision} of {date}, schema {hash} of {}", schema.date)
    }

    /// Returns whether a page has a heading, or a schema a definition or method, with this anchor.
    #[must_use]
    pub fn has_anchor(&self, page: &str, anchor: &str) -> bool {
        if schema::is_schema(page) {
            return self.pages.contains_key(&format!("{page}#{anchor}"));
        }
        let page = self.pages.get(page);
        page.is_some_and(|page| page.anchors.contains(anchor))
    }

    /// Returns whether a quote was found in its page.
    #[must_use]
    pub fn has_quote(&self, page: &str, words: &str) -> bool {
        let page = self.pages.get(page);
        page.is_some_and(|page| page.quotes.contains_key(&hash(words)))
    }

    /// Returns the normative sentences: page, hash, strength.
    pub(super) fn normative(&self) -> impl Iterator<Item = (&str, &str, Strength)> {
        self.pages.iter().flat_map(|(name, page)| {
            let all = page.normative();
            all.map(move |(hash, strength)| (name.as_str(), hash.as_str(), strength))
        })
    }

    /// Returns the hashes of the normative sentences that a quote is part of.
    pub(super) fn covered(&self, quote: &Quote) -> impl Iterator<Item = &str> {
        let page = self.pages.get(quote.page);
        let sentences = page.and_then(|page| page.quotes.get(&hash(quote.words)));
        sentences.into_iter().flatten().map(String::as_str)
    }

    /// Compares these facts with the pages of another revision.
    #[must_use]
    pub fn changes(&self, pages: &[Page], quotes: &[Quote]) -> Changes {
        let mut changes = Changes::default();
        for quote in quotes {
            let mut pages = pages.iter().filter(|page| page.name == quote.page);
            if !pages.any(|page| page.has(quote.words)) {
                changes.lost.push(*quote);
            }
        }
        let none = PageFacts::default();
        for page in pages {
            let known = self.pages.get(&page.name).unwrap_or(&none);
            let known: BTreeSet<_> = known.normative().map(|(hash, _)| hash.as_str()).collect();
            let mut left = known.clone();
            let normative = page.sentences.iter();
            for sentence in normative.filter(|sentence| sentence.strength().is_some()) {
                let hash = sentence.hash();
                left.remove(hash.as_str());
                if !known.contains(hash.as_str()) {
                    changes.added.push((page.name.clone(), sentence.clone()));
                }
            }
            if !left.is_empty() {
                changes.removed.insert(page.name.clone(), left.len());
            }
        }
        for (name, facts) in &self.pages {
            let count = facts.normative().count();
            if !pages.iter().any(|page| page.name == *name) && count > 0 {
                changes.removed.insert(name.clone(), count);
            }
        }
        changes
    }
}

/// Returns the hashes of the sentences of a strength.
fn hashes(page: &Page, strength: Strength) -> BTreeSet<String> {
    let sentences = page.sentences.iter();
    let sentences = sentences.filter(|sentence| sentence.strength() == Some(strength));
    sentences.map(Sentence::hash).collect()
}

/// Returns the hashes of the normative sentences that a quote is part of, or that are part of it.
fn covered(page: &Page, quote: &Quote) -> BTreeSet<String> {
    let words = plain(quote.words);
    let sentences = page.sentences.iter().filter(|sentence| {
        let text = &sentence.text;
        sentence.strength().is_some() && (text.contains(&words) || words.contains(text.as_str()))
    });
    sentences.map(Sentence::hash).collect()
}

impl Sentence {
    /// Returns the hash by which the sentence is known.
    pub fn hash(&self) -> String {
        hash(&self.text)
    }
}

/// Returns the first 12 digits of the SHA-256 of a text without markup.
pub(super) fn hash(text: &str) -> String {
    let mut digest = sha256(plain(text).as_bytes());
    digest.truncate(12);
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTES: [Quote; 2] = [
        Quote::example("a.one", "x", "One MUST do it"),
        Quote::example("a.two", "x", "nowhere"),
    ];

    fn page(text: &str) -> [Page; 1] {
        [Page::parse("x", text)]
    }

    fn release() -> Release {
        Release {
            date: "2026-02-01".to_owned(),
            sha256: "0123456789ab".to_owned(),
        }
    }

    #[test]
    fn facts_are_read_as_they_are_written() {
        let pages = page("One **MUST** do it.");
        let facts = Facts::of(&pages, "abc", "2026-01-01", release(), &QUOTES);
        let read = Facts::read(&facts.text()).unwrap();
        assert_eq!(
            read.name(),
            "abc of 2026-01-01, schema 0123456789 of 2026-02-01"
        );
        assert!(read.has_quote("x", "One MUST do it") && !read.has_quote("x", "nowhere"));
        assert!(!read.has_quote("y", "One MUST do it"));
        let known: Vec<_> = read
            .normative()
            .map(|(page, _, strength)| (page, strength))
            .collect();
        assert_eq!(known, [("x", Strength::Must)]);
        let covered: Vec<_> = read.covered(&QUOTES[0]).collect();
        assert_eq!(covered, [pages[0].sentences[0].hash()]);
    }

    #[test]
    fn a_quote_of_a_schema_belongs_to_its_definition() {
        let quote = |page| Quote::example("a.three", page, "One MUST do it");
        let schema = serde_json::json!({ "$defs": {
            "One": { "description": "One MUST do it." }, "Two": { "description": "Two." },
        } });
        let pages = schema::pages("v2/schema", &schema);
        let quotes = [quote("v2/schema#one"), quote("v2/schema#two")];
        let facts = Facts::of(&pages, "abc", "", release(), &quotes);
        assert!(facts.has_quote("v2/schema#one", "One MUST do it"));
        assert!(!facts.has_quote("v2/schema#two", "One MUST do it"));
        assert!(facts.has_anchor("v2/schema", "one") && !facts.has_anchor("v2/schema", "two"));
        assert_eq!(facts.changes(&pages, &quotes).lost, [quotes[1]]);
    }

    #[test]
    fn another_revision_is_compared() {
        let pages = page("One MUST do it. Two MUST go.");
        let facts = Facts::of(&pages, "abc", "", release(), &QUOTES);
        let later = page("Two MUST go. Three MUST come.");
        let changes = facts.changes(&later, &QUOTES);
        let lost: Vec<_> = changes.lost.iter().map(|quote| quote.id).collect();
        assert_eq!(lost, ["a.one", "a.two"]);
        assert_eq!(changes.added.len(), 1);
        assert_eq!(changes.added[0].1.text, "Three MUST come.");
        assert_eq!(changes.removed, BTreeMap::from([("x".to_owned(), 1)]));
        assert_eq!(facts.changes(&[], &[]).removed["x"], 2);
    }
}
