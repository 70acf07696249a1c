//! The report that continuous integration reads: JUnit's XML.
//!
//! An area is a suite, a requirement a case. What does not decide the verdict is
//! not counted as a failure, for a red build would say otherwise: it is skipped,
//! with what was found.

use std::fmt::Write as _;

use crate::requirements::{AREAS, pages};
use crate::suite::{Report, Row, Verdict};

/// The report as XML.
#[must_use]
pub fn junit(report: &Report, strict: bool) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<testsuites name=\"{}\" {} time=\"{:.3}\">",
        escaped(&report.agent),
        counts(report.rows.iter(), strict),
        report.took.as_secs_f64()
    );
    for area in AREAS {
        let rows = || report.rows.iter().filter(|row| row.area.name == area.name);
        if rows().next().is_none() {
            continue;
        }
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" {}>",
            area.name,
            counts(rows(), strict)
        );
        for row in rows() {
            case(&mut out, row, strict);
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

fn counts<'a>(rows: impl Iterator<Item = &'a Row>, strict: bool) -> String {
    let (mut tests, mut failures, mut skipped) = (0, 0, 0);
    for row in rows {
        tests += 1;
        if fails(row, strict) {
            failures += 1;
        } else if row.verdict != Verdict::Pass {
            skipped += 1;
        }
    }
    format!("tests=\"{tests}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"")
}

fn fails(row: &Row, strict: bool) -> bool {
    matches!(row.verdict, Verdict::Fail(_)) && row.requirement.tier.decides(strict)
}

fn case(out: &mut String, row: &Row, strict: bool) {
    let requirement = row.requirement;
    let _ = write!(
        out,
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
        row.area.name,
        requirement.id,
        row.took.as_secs_f64()
    );
    let (reason, evidence) = match &row.verdict {
        Verdict::Pass => {
            out.push_str("/>\n");
            return;
        }
        Verdict::Fail(failure) => {
            let sent = failure.sent.as_deref().unwrap_or("nothing");
            let came = failure.came.as_deref().unwrap_or("nothing");
            let cite = pages::address(requirement.cite).unwrap_or_default();
            let quote = requirement.quote;
            let evidence = format!("spec: {quote}\n{cite}\nsent: {sent}\ncame: {came}");
            (failure.reason.as_str(), evidence)
        }
        Verdict::Skip(reason) | Verdict::Inconclusive(reason) => (reason.as_str(), String::new()),
        Verdict::Excluded(reason) => (*reason, String::new()),
    };
    let (reason, evidence) = (escaped(reason), escaped(&evidence));
    let tier = requirement.tier.as_str();
    let _ = if fails(row, strict) {
        writeln!(
            out,
            ">\n      <failure message=\"{reason}\" type=\"{tier}\">{evidence}</failure>\n    </testcase>"
        )
    } else {
        let verdict = row.verdict.as_str();
        writeln!(
            out,
            ">\n      <skipped message=\"{verdict}, {tier}: {reason}\"/>\n    </testcase>"
        )
    };
}

/// Text as XML allows it: characters that it forbids are replaced.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push_str("&#9;"),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push(char::REPLACEMENT_CHARACTER),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::harness::Failure;
    use crate::requirements::{self, Tier};

    fn report(tier: Tier) -> Report {
        let (area, requirement) = requirements::all()
            .find(|(_, row)| row.tier == tier)
            .unwrap();
        let failure = Failure {
            reason: "a < b & \"c\"\u{1}".into(),
            sent: Some("{\"a\":1}".into()),
            came: None,
        };
        let row = |verdict| Row {
            area,
            requirement,
            verdict,
            took: Duration::from_millis(1500),
        };
        Report {
            command: String::new(),
            agent: "an agent".into(),
            rows: vec![row(Verdict::Pass), row(Verdict::Fail(Box::new(failure)))],
            coverage: None,
            from_agent: 0,
            invalid: 0,
            from_client: 0,
            took: Duration::from_secs(2),
        }
    }

    #[test]
    fn a_failure_that_decides_is_one() {
        let xml = junit(&report(Tier::Must), false);
        assert!(xml.contains("tests=\"2\" failures=\"1\" errors=\"0\" skipped=\"0\""));
        assert!(xml.contains("<failure message=\"a &lt; b &amp; &quot;c&quot;\u{fffd}\""));
        assert!(xml.contains("sent: {&quot;a&quot;:1}&#10;came: nothing</failure>"));
    }

    #[test]
    fn one_that_does_not_is_skipped_unless_strict() {
        let xml = junit(&report(Tier::Should), false);
        assert!(
            xml.contains("failures=\"0\" errors=\"0\" skipped=\"1\""),
            "{xml}"
        );
        assert!(xml.contains("<skipped message=\"fail, should: a &lt; b"));
        let xml = junit(&report(Tier::Should), true);
        assert!(xml.contains("failures=\"1\""), "{xml}");
    }
}
