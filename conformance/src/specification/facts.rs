//! Facts about the pages of one revision, and about the schemas of one release.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde::Deserialize;

use super::page::{Page, Sentence, plain};
use super::{Quote, schema};

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
    /// Hashes of the normative sentences.
    normative: BTreeSet<String>,
    /// Hashes of the quotes that were found.
    quotes: BTreeSet<String>,
}

impl PageFacts {
    fn is_empty(&self) -> bool {
        self.anchors.is_empty() && self.normative.is_empty() && self.quotes.is_empty()
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
                normative: normative(page)
                    .map(|sentence| hash(&sentence.text))
                    .collect(),
                quotes: found.map(|quote| hash(quote.words)).collect(),
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
                ("normative", &page.normative),
                ("quotes", &page.quotes),
            ];
            for (key, list) in lists.iter().filter(|(_, list)| !list.is_empty()) {
                let _ = writeln!(out, "{key} = [");
                for one in *list {
                    let _ = writeln!(out, "    \"{one}\",");
                }
                out.push_str("]\n");
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
        page.is_some_and(|page| page.quotes.contains(&hash(words)))
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
            let mut left = known.normative.clone();
            for sentence in normative(page) {
                let hash = hash(&sentence.text);
                left.remove(&hash);
                if !known.normative.contains(&hash) {
                    changes.added.push((page.name.clone(), sentence.clone()));
                }
            }
            if !left.is_empty() {
                changes.removed.insert(page.name.clone(), left.len());
            }
        }
        for (name, facts) in &self.pages {
            if !pages.iter().any(|page| page.name == *name) && !facts.normative.is_empty() {
                changes.removed.insert(name.clone(), facts.normative.len());
            }
        }
        changes
    }
}

/// Returns the normative sentences of a page that no quote is part of.
pub(crate) fn uncovered<'a>(
    page: &'a Page,
    quotes: &'a [Quote],
) -> impl Iterator<Item = &'a Sentence> {
    let quotes = quotes.iter().filter(move |quote| quote.page == page.name);
    let quotes: Vec<String> = quotes.map(|quote| plain(quote.words)).collect();
    normative(page).filter(move |sentence| {
        let covers =
            |quote: &String| sentence.text.contains(quote) || quote.contains(&sentence.text);
        !quotes.iter().any(covers)
    })
}

fn normative(page: &Page) -> impl Iterator<Item = &Sentence> {
    page.sentences
        .iter()
        .filter(|sentence| sentence.is_normative())
}

/// Returns the first 12 digits of the SHA-256 of a text without markup.
fn hash(text: &str) -> String {
    let mut digest = sha256(plain(text).as_bytes());
    digest.truncate(12);
    digest
}

/// Returns the SHA-256 of some bytes in hexadecimal digits.
pub(super) fn sha256(bytes: &[u8]) -> String {
    use sha2::{Digest as _, Sha256};
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUOTES: [Quote; 2] = [
        Quote {
            id: "a.one",
            page: "x",
            words: "One MUST do it",
        },
        Quote {
            id: "a.two",
            page: "x",
            words: "nowhere",
        },
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
    }

    #[test]
    fn a_quote_of_a_schema_belongs_to_its_definition() {
        let quote = |page| Quote {
            id: "a.three",
            page,
            words: "One MUST do it",
        };
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

    #[test]
    fn a_sentence_without_a_quote_is_uncovered() {
        let [page] = page("One MUST do it. Two MUST go.");
        let found: Vec<_> = uncovered(&page, &QUOTES).collect();
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].text, "Two MUST go.");
    }
}
