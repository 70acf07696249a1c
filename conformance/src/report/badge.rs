//! A badge for a README: the verdict, and how many of the requirements that apply passed.

use std::path::Path;

use serde_json::json;

use super::document::{Conformity, Document};
use super::render::render;
use super::tally::Tally;
use crate::Result;

/// Extensions of the formats: a picture, and an endpoint of shields.io.
const EXTENSIONS: [&str; 2] = ["svg", "json"];

/// Whether the name of a file says which format of badge it is to have.
#[must_use]
pub fn is_badge(path: &Path) -> bool {
    extension(path).is_some()
}

/// The badge in the format that the file's name asks for: a self-contained SVG for `svg`, the JSON
/// of an endpoint badge of shields.io for `json`.
///
/// # Errors
/// When it does not fit its template.
pub fn badge_for(path: &Path, report: &Document) -> Result<String> {
    let label = format!("ACP v{}", report.protocol);
    // How many passed of the requirements that apply, in all tiers.
    let tally = Tally::of(&report.requirements);
    let all = tally.pass + tally.fail + tally.inconclusive + tally.blocked;
    let message = format!("{} {}/{all}", report.verdict.as_str(), tally.pass);
    let (name, colour) = match report.verdict {
        Conformity::Conformant => ("success", "#2c7a1f"),
        Conformity::NotConformant => ("critical", "#c0392b"),
        Conformity::Incomplete => ("yellow", "#8a6400"),
    };
    if extension(path) == Some("json") {
        let badge = json!({"schemaVersion": 1, "label": label, "message": message, "color": name});
        return Ok(format!("{badge}\n"));
    }
    let values = json!({"label": label, "message": message, "colour": colour});
    render("badge.svg", values)
}

fn extension(path: &Path) -> Option<&'static str> {
    let found = path.extension()?;
    let mut known = EXTENSIONS.into_iter();
    known.find(|known| found.eq_ignore_ascii_case(known))
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
        badge_for(Path::new(file), &report("A", &rows)).unwrap()
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
