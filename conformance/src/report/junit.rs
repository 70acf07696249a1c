//! The report that continuous integration reads: JUnit's XML.
//!
//! An area is a suite, a requirement a case. What does not decide the verdict is
//! not counted as a failure, for a red build would say otherwise: it is skipped,
//! with what was found.

use std::fmt::Write as _;

use super::escape::xml;
use super::{Document, Entry, Word};

/// The report as XML.
#[must_use]
pub fn junit(report: &Document) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" {} time=\"{:.3}\">",
        xml(&report.name),
        counts(&report.requirements, report.strict),
        report.seconds
    );
    for (area, entries) in report.areas() {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" {}>",
            xml(area),
            counts(entries.iter().copied(), report.strict)
        );
        for entry in entries {
            case(&mut out, entry, report.strict);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts<'a>(entries: impl IntoIterator<Item = &'a Entry>, strict: bool) -> String {
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for entry in entries {
        tests += 1;
        if entry.fails(strict) {
            failures += 1;
        } else if entry.verdict != Word::Pass {
            skipped += 1;
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"")
}

fn case(out: &mut String, entry: &Entry, strict: bool) {
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
        xml(&entry.area),
        xml(&entry.id),
        entry.seconds
    );
    if entry.verdict == Word::Pass {
        out.push_str("/>\n");
        return;
    }
    let (reason, tier) = (xml(entry.why()), entry.tier.as_str());
    let evidence = match entry.verdict {
        Word::Fail => xml(&evidence(entry)),
        _ => String::new(),
    };
    let _ = if entry.fails(strict) {
        writeln!(
            out,
            ">\n      <failure message=\"{reason}\" type=\"{tier}\">{evidence}</failure>\n    </testcase>"
        )
    } else {
        let verdict = entry.verdict.as_str();
        writeln!(
            out,
            ">\n      <skipped message=\"{verdict}, {tier}: {reason}\">{evidence}</skipped>\n    </testcase>"
        )
    };
}

/// The sentence, what was said, and how to run it alone.
fn evidence(entry: &Entry) -> String {
    let mut out = format!("spec: {}\n{}", entry.quote, entry.cite);
    if let Some(because) = &entry.because {
        let _ = write!(out, "\n{because}");
    }
    for (name, said) in entry.evidence() {
        let _ = write!(out, "\n{name}: {said}");
    }
    if let Some(again) = &entry.again {
        let _ = write!(out, "\nagain: {again}");
    }
    out
}
