//! A page of the specification as sentences.

use std::collections::BTreeSet;
use std::path::Path;
use std::{fs, io};

/// Words of a sentence that demands, and of one that recommends, as RFC 2119 has them.
const MUST: [&str; 3] = ["MUST", "SHALL", "REQUIRED"];
const SHOULD: [&str; 2] = ["SHOULD", "RECOMMENDED"];

/// The proposal of the remote transport, by its name in citations and its file.
const TRANSPORT: (&str, &str) = (
    "remote-transport",
    "docs/rfds/streamable-http-websocket-transport.mdx",
);

/// A page that is not read, because it is made from a schema, which is read itself.
const EXCLUDED: &str = "schema";

/// A page.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// The name in citations, such as `prompt-turn`, `v2/content` or `v2/schema#promptrequest`.
    pub name: String,
    /// The anchors of its title and its headings.
    pub(super) anchors: BTreeSet<String>,
    /// All text without markup, with single blanks.
    text: String,
    /// The sentences in order.
    pub sentences: Vec<Sentence>,
}

/// How strong a normative sentence is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Strength {
    /// It has SHOULD or RECOMMENDED.
    Should,
    /// It has MUST, SHALL or REQUIRED.
    Must,
}

/// A sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sentence {
    /// The heading above it; empty before the first.
    pub heading: String,
    /// Its text without markup.
    pub text: String,
}

impl Sentence {
    /// Returns the strength of the strongest word; `None` if the sentence is not normative.
    #[must_use]
    pub fn strength(&self) -> Option<Strength> {
        let words = self.text.split(|c: char| !c.is_ascii_alphabetic());
        let strengths = words.filter_map(|word| match word {
            word if MUST.contains(&word) => Some(Strength::Must),
            word if SHOULD.contains(&word) => Some(Strength::Should),
            _ => None,
        });
        strengths.max()
    }
}

impl Page {
    /// Reads all pages of a checkout of the specification's repository, and the proposal of the remote
    /// transport.
    ///
    /// # Errors
    /// When there is no folder `docs/protocol` in it, or a page cannot be read.
    pub fn all(checkout: &Path) -> io::Result<Vec<Self>> {
        let mut pages = Vec::new();
        for (folder, prefix) in [("v1", ""), ("v2", "v2/")] {
            let folder = checkout.join("docs/protocol").join(folder);
            let failed = |error: io::Error| {
                io::Error::new(error.kind(), format!("{}: {error}", folder.display()))
            };
            for entry in fs::read_dir(&folder).map_err(failed)? {
                let path = entry?.path();
                if path.extension().is_some_and(|extension| extension == "mdx")
                    && let Some(name) = path.file_stem().and_then(|name| name.to_str())
                    && name != EXCLUDED
                {
                    let text = fs::read_to_string(&path)?;
                    pages.push(Self::parse(&format!("{prefix}{name}"), &text));
                }
            }
        }
        let (name, file) = TRANSPORT;
        let failed = |error: io::Error| io::Error::new(error.kind(), format!("{file}: {error}"));
        let text = fs::read_to_string(checkout.join(file)).map_err(failed)?;
        pages.push(Self::parse(name, &text));
        pages.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(pages)
    }

    /// Reads a page.
    #[must_use]
    pub fn parse(name: &str, text: &str) -> Self {
        let mut page = Self {
            name: name.to_owned(),
            ..Self::default()
        };
        let (mut heading, mut paragraph) = (String::new(), String::new());
        let mut is_code = false;
        for line in text.lines().map(str::trim) {
            if line.starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let is_item = line.starts_with("- ") || line.starts_with("* ");
            let is_heading = !is_code && line.starts_with('#');
            if line.is_empty() || is_item || is_heading || is_code {
                page.add(&heading, &std::mem::take(&mut paragraph));
            }
            let title = line
                .strip_prefix("title:")
                .filter(|_| page.anchors.is_empty());
            if let Some(title) = title {
                page.anchors.insert(anchor(title));
            }
            if is_heading {
                heading = plain(line.trim_start_matches('#'));
                page.anchors.insert(anchor(&heading));
            }
            if is_code {
                page.add(&heading, line);
            } else if !is_heading {
                paragraph.push_str(line);
                paragraph.push(' ');
            }
        }
        page.add(&heading, &paragraph);
        page
    }

    /// Returns whether the page has these words, whatever their markup. `[…]` stands for words between.
    #[must_use]
    pub fn has(&self, words: &str) -> bool {
        let words = plain(words);
        let mut parts = words.split(" […] ");
        let rest = parts.try_fold(self.text.as_str(), |rest, part| {
            Some(rest.split_once(part)?.1)
        });
        rest.is_some()
    }

    fn add(&mut self, heading: &str, paragraph: &str) {
        let text = plain(paragraph);
        if text.is_empty() {
            return;
        }
        self.text.push_str(&text);
        self.text.push(' ');
        for sentence in sentences(&text) {
            self.sentences.push(Sentence {
                heading: heading.to_owned(),
                text: sentence.to_owned(),
            });
        }
    }
}

/// Returns the anchor that the specification's site gives a heading.
fn anchor(heading: &str) -> String {
    let heading = heading.trim_matches(|c: char| c.is_whitespace() || c == '"');
    let kept = heading.chars().filter_map(|c| match c {
        c if c.is_whitespace() => Some('-'),
        '-' | '_' => Some(c),
        c if c.is_ascii_alphanumeric() => Some(c.to_ascii_lowercase()),
        _ => None,
    });
    kept.collect()
}

/// Splits a paragraph after full stops that a blank and a capital letter follow.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut ends = rest.match_indices(". ").map(|(at, _)| at + 1);
        let end = ends.find(|end| {
            let next = rest.get(end + 1..).and_then(|rest| rest.chars().next());
            next.is_some_and(|c| c.is_uppercase() || c == '`')
        });
        let (sentence, more) = rest.split_at(end.unwrap_or(rest.len()));
        rest = more.trim_start();
        Some(sentence.trim())
    })
}

/// Removes emphasis, links and tags, and joins blanks.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = match c {
            '*' => 1,
            '<' => tag(rest),
            '[' => match link(rest) {
                Some((shown, length)) => {
                    out.push_str(&plain(shown));
                    length
                }
                None => 0,
            },
            _ => 0,
        };
        if skipped == 0 {
            out.push(c);
        }
        rest = rest.get(skipped.max(c.len_utf8())..).unwrap_or_default();
    }
    let words: Vec<_> = out.split_whitespace().collect();
    words.join(" ")
}

/// Returns the length of a tag at the beginning; 0 if there is none.
fn tag(text: &str) -> usize {
    let name = text.trim_start_matches(['<', '/']);
    let is_tag = name.starts_with(|c: char| c.is_ascii_alphabetic());
    let end = text.find('>').map_or(0, |end| end + 1);
    if is_tag { end } else { 0 }
}

/// Returns the text of a link at the beginning, and its whole length.
fn link(text: &str) -> Option<(&str, usize)> {
    let end = text.find("](")?;
    let shown = text.get(1..end)?;
    if shown.contains('[') {
        return None;
    }
    let length = end + text.get(end..)?.find(')')? + 1;
    Some((shown, length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_sentences_below_headings() {
        let text = "# Title\n\nOne **MUST** do it. Two\nlines [shown](#a) are `e.g. x`.\n\n\
            ## Next\n- A SHOULD item\n- Other\n\n```json\n{\"a\": 1}\n```\n<Tip>Mustard.</Tip>";
        let page = Page::parse("x", text);
        let found: Vec<_> = page
            .sentences
            .iter()
            .map(|sentence| (sentence.heading.as_str(), sentence.text.as_str()))
            .collect();
        let expected = [
            ("Title", "One MUST do it."),
            ("Title", "Two lines shown are `e.g. x`."),
            ("Next", "- A SHOULD item"),
            ("Next", "- Other"),
            ("Next", "{\"a\": 1}"),
            ("Next", "Mustard."),
        ];
        assert_eq!(found, expected);
        let strengths = page.sentences.iter().map(Sentence::strength);
        let (must, should) = (Some(Strength::Must), Some(Strength::Should));
        assert!(strengths.eq([must, None, should, None, None, None]));
        assert!(page.anchors.iter().eq(["next", "title"]));
        assert_eq!(
            anchor("`$/cancel_request` Notification, in-depth"),
            "cancel_request-notification-in-depth"
        );
        assert!(page.has("**MUST** do") && page.has("lines shown are") && !page.has("nothing"));
        assert!(page.has("One MUST […] lines shown") && !page.has("lines shown […] One MUST"));
    }
}
