//! The report that continuous integration reads: JUnit's XML.
//!
//! An area is a suite, a requirement a case. What does not decide the verdict is
//! not counted as a failure, for a red build would say otherwise: it is skipped,
//! with what was found.

use std::fmt::Write as _;

use super::escape::xml;
use super::{Document, Entry, Outcome};

/// The report as XML.
#[must_use]
pub fn junit(report: &Document) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let incomplete = report.why_incomplete();
    let errors = usize::from(incomplete.is_some());
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" {} time=\"{:.3}\">",
        xml(&report.name),
        counts(&report.requirements, report.strict, errors),
        report.seconds
    );
    for (area, entries) in report.areas() {
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" {}>",
            xml(area),
            counts(entries.iter().copied(), report.strict, 0)
        );
        properties(&mut out, report);
        for entry in entries {
            case(&mut out, entry, report.strict);
        }
        out.push_str("  </testsuite>\n");
    }
    if let Some(why) = incomplete {
        verdict(&mut out, report, &why);
    }
    out.push_str("</testsuites>\n");
    out
}

/// The provenance; the format has a place for it in suites only.
fn properties(out: &mut String, report: &Document) {
    out.push_str("    <properties>\n");
    for (name, value) in report.provenance() {
        let value = xml(&value);
        let _ = writeln!(out, "      <property name=\"{name}\" value=\"{value}\"/>");
    }
    out.push_str("    </properties>\n");
}

/// The case that fails when too little was judged; `errors` counts it.
fn verdict(out: &mut String, report: &Document, why: &str) {
    let cause = match &report.root_cause {
        Some(cause) => format!("; {}: {}. {}", cause.step, cause.reason, cause.remedy),
        None => String::new(),
    };
    let _ = writeln!(
        out,
        "  <testsuite name=\"verdict\" tests=\"1\" failures=\"0\" errors=\"1\" skipped=\"0\">\n    \
         <testcase classname=\"verdict\" name=\"enough-was-judged\">\n      \
         <error message=\"incomplete: {}{}\"/>\n    \
         </testcase>\n  </testsuite>",
        xml(why),
        xml(&cause)
    );
}

fn counts<'a>(entries: impl IntoIterator<Item = &'a Entry>, strict: bool, errors: usize) -> String {
    let (mut tests, mut failures, mut skipped) = (errors, 0, 0);
    for entry in entries {
        tests += 1;
        if entry.fails(strict) {
            failures += 1;
        } else if entry.verdict != Outcome::Pass {
            skipped += 1;
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" skipped=\"{skipped}\"")
}

fn case(out: &mut String, entry: &Entry, strict: bool) {
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
        xml(&entry.area),
        xml(&entry.id),
        entry.seconds
    );
    if entry.verdict == Outcome::Pass {
        out.push_str("/>\n");
        return;
    }
    let (reason, tier) = (xml(entry.why()), entry.tier.as_str());
    let evidence = match entry.verdict {
        Outcome::Fail => xml(&evidence(entry)),
        _ => String::new(),
    };
    let _ = if entry.fails(strict) {
        writeln!(
            out,
            ">\n      <failure message=\"{reason}\" type=\"{tier}\">{evidence}</failure>\n    </testcase>"
        )
    } else {
        let verdict = match &entry.accepted {
            Some(why) => format!("accepted, {tier}: {}", xml(why)),
            None => format!("{}, {tier}", entry.verdict.as_str()),
        };
        writeln!(
            out,
            ">\n      <skipped message=\"{verdict}: {reason}\">{evidence}</skipped>\n    </testcase>"
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
