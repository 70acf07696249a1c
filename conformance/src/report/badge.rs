//! A badge for a README: the verdict, and how many of the requirements that apply passed.

use std::path::Path;

use serde_json::json;

use super::{Conformity, Document, Tally};

/// Extensions of the formats: a picture, and an endpoint of shields.io.
const EXTENSIONS: [&str; 2] = ["svg", "json"];

/// What a character takes, in tenths of a pixel of 11-pixel Verdana, on average.
const CHARACTER: usize = 68;

/// Space on both sides of a text, in pixels.
const MARGIN: usize = 6;

/// Whether the name of a file says which format of badge it is to have.
#[must_use]
pub fn is_badge(path: &Path) -> bool {
    extension(path).is_some()
}

/// The badge in the format that the file's name asks for: a self-contained SVG for `svg`, the JSON
/// of an endpoint badge of shields.io for `json`.
#[must_use]
pub fn badge_for(path: &Path, report: &Document) -> String {
    match extension(path) {
        Some("json") => endpoint(report),
        _ => svg(report),
    }
}

fn extension(path: &Path) -> Option<&'static str> {
    let found = path.extension()?;
    let mut known = EXTENSIONS.into_iter();
    known.find(|known| found.eq_ignore_ascii_case(known))
}

fn label(report: &Document) -> String {
    format!("ACP v{}", report.protocol)
}

/// The verdict; how many passed of the requirements that apply, in all tiers.
fn message(report: &Document) -> String {
    let tally = Tally::of(&report.requirements);
    let all = tally.pass + tally.fail + tally.inconclusive + tally.blocked;
    format!("{} {}/{all}", report.verdict.as_str(), tally.pass)
}

/// The name of the colour that shields.io has, and the colour.
fn colour(verdict: Conformity) -> (&'static str, &'static str) {
    match verdict {
        Conformity::Conformant => ("success", "#2c7a1f"),
        Conformity::NotConformant => ("critical", "#c0392b"),
        Conformity::Incomplete => ("yellow", "#8a6400"),
    }
}

fn endpoint(report: &Document) -> String {
    let badge = json!({
        "schemaVersion": 1,
        "label": label(report),
        "message": message(report),
        "color": colour(report.verdict).0,
    });
    format!("{badge}\n")
}

/// Both texts are of the suite, so nothing in them is markup.
fn svg(report: &Document) -> String {
    let (label, message) = (label(report), message(report));
    let text = |text: &str| text.chars().count() * CHARACTER / 10;
    let (left, right) = (text(&label), text(&message));
    let split = left + 2 * MARGIN;
    let width = split + right + 2 * MARGIN;
    let (rest, second) = (width - split, split + MARGIN);
    let colour = colour(report.verdict).1;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"20\" role=\"img\" \
         aria-label=\"{label}: {message}\">\n\
         <title>{label}: {message}</title>\n\
         <clipPath id=\"r\"><rect width=\"{width}\" height=\"20\" rx=\"3\"/></clipPath>\n\
         <g clip-path=\"url(#r)\"><rect width=\"{split}\" height=\"20\" fill=\"#444\"/>\
         <rect x=\"{split}\" width=\"{rest}\" height=\"20\" fill=\"{colour}\"/></g>\n\
         <g fill=\"#fff\" font-family=\"Verdana,DejaVu Sans,sans-serif\" font-size=\"11\">\
         <text x=\"{MARGIN}\" y=\"14\" textLength=\"{left}\">{label}</text>\
         <text x=\"{second}\" y=\"14\" textLength=\"{right}\">{message}</text></g>\n\
         </svg>\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Outcome;
    use crate::report::tests::report;
    use crate::requirements::Tier;

    /// One requirement that decides passes, another has this outcome, and one is for information.
    fn badge(file: &str, outcome: Outcome) -> String {
        let rows = [
            ("a.one", Tier::Must, Outcome::Pass),
            ("a.two", Tier::Must, outcome),
            ("a.three", Tier::Info, Outcome::Fail),
        ];
        badge_for(Path::new(file), &report("A", &rows))
    }

    #[test]
    fn a_badge_has_the_verdict_and_the_count_of_what_applies() {
        for (outcome, message) in [
            (Outcome::Pass, "conformant 2/3"),
            (Outcome::Skip, "conformant 1/2"),
            (Outcome::Fail, "not conformant 1/3"),
            (Outcome::Blocked, "incomplete 1/3"),
        ] {
            let svg = badge("a.svg", outcome);
            assert!(svg.starts_with("<svg "), "{svg}");
            assert!(
                svg.contains(&format!("<title>ACP v1: {message}</title>")),
                "{svg}"
            );
            assert!(!svg.contains("href") && !svg.contains("url(http"), "{svg}");
            let json: serde_json::Value = serde_json::from_str(&badge("a.JSON", outcome)).unwrap();
            assert_eq!(json["schemaVersion"], 1);
            assert_eq!(json["label"], "ACP v1");
            assert_eq!(json["message"], message);
        }
    }

    #[test]
    fn a_file_that_is_no_badge_is_refused_by_its_name() {
        assert!(is_badge(Path::new("a/b.svg")) && is_badge(Path::new("b.json")));
        assert!(!is_badge(Path::new("b.png")) && !is_badge(Path::new("svg")));
    }
}
