//! The frame of every page for a browser: one file that needs nothing else.
//!
//! A page holds no script, and its policy allows none: even text that got through the
//! escaping could not run. Colour is never the only sign of a verdict, wide tables
//! scroll by themselves, and both schemes of colour have enough contrast.

use std::fmt::Write as _;

use super::document::place;
use super::escape::html;
use super::{Conformity, Outcome};

/// The look of all pages.
const STYLE: &str = include_str!("page.css");

/// A page with this title; `style` has rules besides those of all pages, `body` is markup.
pub(super) fn page(title: &str, style: &str, body: &str) -> String {
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" \
         content=\"default-src 'none'; style-src 'unsafe-inline'; form-action 'none'\">\n\
         <title>{}</title>\n<style>\n{STYLE}{style}</style>\n</head>\n<body>\n<main>\n{body}</main>\n\
         </body>\n</html>\n",
        html(title)
    )
}

/// A verdict as a word with a sign before it.
pub(super) fn badge(word: Outcome) -> String {
    let sign = match word {
        Outcome::Pass => "✓",
        Outcome::Fail => "✗",
        Outcome::Inconclusive => "?",
        Outcome::Blocked | Outcome::Skip | Outcome::Excluded => "–",
    };
    let name = word.as_str();
    format!("<span class=\"{name}\"><span aria-hidden=\"true\">{sign}</span> {name}</span>")
}

/// Whether who was tested conforms, as a word with a sign before it.
pub(super) fn conformity(verdict: Conformity) -> String {
    let (class, sign) = match verdict {
        Conformity::Conformant => ("pass", "✓"),
        Conformity::NotConformant => ("fail", "✗"),
        Conformity::Incomplete => ("inconclusive", "?"),
    };
    let name = verdict.as_str();
    format!("<span class=\"{class}\"><span aria-hidden=\"true\">{sign}</span> {name}</span>")
}

/// The sentence with a link to where it stands.
pub(super) fn sentence(quote: &str, cite: &str, because: Option<&str>) -> String {
    let (quote, place) = (html(quote), html(place(cite)));
    // A report that was read from a file may name anything.
    let mut sentence = if cite.starts_with("https://") {
        let cite = html(cite);
        format!("<q>{quote}</q> <a href=\"{cite}\">{place}</a>")
    } else {
        format!("<q>{quote}</q> {place}")
    };
    if let Some(because) = because {
        sentence.push_str("<br>");
        sentence.push_str(&html(because));
    }
    sentence
}

/// A link to a file in the folder of the transcripts.
pub(super) fn transcript(folder: &str, file: &str) -> String {
    let mut address = String::new();
    for byte in folder.bytes().chain([b'/']).chain(file.bytes()) {
        // Nothing else, so that no name becomes a scheme.
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            address.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(address, "%{byte:02X}");
        }
    }
    let address = match folder.is_empty() {
        true => address.trim_start_matches('/').to_owned(),
        false => address,
    };
    format!("<a href=\"{address}\">{}</a>", html(file))
}

/// A table that scrolls by itself where it is too wide; `rows` is markup, from the
/// head of the table on.
pub(super) fn table(label: &str, rows: &str) -> String {
    let label = html(label);
    format!(
        "<div class=\"scroll\" role=\"region\" aria-label=\"{label}\" tabindex=\"0\">\
         <table>\n{rows}</table></div>\n"
    )
}

/// What was said, as it was said; long texts scroll.
pub(super) fn said(label: &str, text: &str) -> String {
    let label = html(label);
    format!(
        "<div class=\"said\"><span class=\"label\">{label}</span>\
         <pre tabindex=\"0\" aria-label=\"{label}\">{}</pre></div>\n",
        html(text)
    )
}

/// A cell with how many calls succeeded; a method whose calls all failed was called.
pub(super) fn successes(calls: usize, succeeded: usize) -> String {
    match (calls, succeeded) {
        (1.., 0) => "<td class=\"count fail\">none</td>".to_owned(),
        (_, succeeded) => uses(succeeded),
    }
}

/// A cell with a number of uses; none at all is a word, for colour alone would not say it.
pub(super) fn uses(count: usize) -> String {
    match count {
        0 => "<td class=\"count fail\">never</td>".to_owned(),
        count => format!("<td class=\"count pass\">{count}</td>"),
    }
}
