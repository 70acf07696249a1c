//! The report that is looked at in a browser: one file that needs nothing else.

use std::fmt::Write as _;

use crate::requirements::pages;
use crate::suite::{Coverage, Report, Row, Verdict};

/// Colours for light and dark, a table that folds, and nothing from elsewhere.
const STYLE: &str = "\
:root{color-scheme:light dark;--good:#1a7f37;--bad:#cf222e;--warn:#9a6700;--dim:#656d76;--line:#d0d7de}
@media(prefers-color-scheme:dark){:root{--good:#3fb950;--bad:#f85149;--warn:#d29922;--dim:#8d96a0;--line:#30363d}}
body{font:15px/1.5 system-ui,sans-serif;max-width:64rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse;width:100%;margin:1rem 0}
td,th{text-align:left;padding:.25rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
pre{white-space:pre-wrap;overflow-wrap:anywhere;font-size:13px;margin:.3rem 0}
.pass{color:var(--good)}.fail{color:var(--bad)}.inconclusive{color:var(--warn)}
.skip,.excluded,.dim{color:var(--dim)}details{margin:.3rem 0}";

/// The report as a page.
#[must_use]
pub fn html(report: &Report, strict: bool) -> String {
    let mut out = String::new();
    let agent = escaped(&report.agent);
    let conformant = report.is_conformant(strict);
    let (class, verdict) = if conformant {
        ("pass", "conformant")
    } else {
        ("fail", "not conformant")
    };
    // Writing to a string does not fail.
    let _ = write!(
        out,
        "<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <title>{agent}: {verdict}</title>\n<style>{STYLE}</style>\n\
         <h1>{agent}: <span class=\"{class}\">{verdict}</span></h1>\n\
         <p>Agent Client Protocol, version 1. <code>{}</code></p>\n\
         <p class=\"dim\">{} passed, {} failed, {} inconclusive, {} skipped; \
         {} messages of the agent, {} of them invalid; {:.1} s</p>\n",
        escaped(&report.command),
        report.with("pass").count(),
        report.with("fail").count(),
        report.with("inconclusive").count(),
        report.with("skip").count(),
        report.from_agent,
        report.invalid,
        report.took.as_secs_f64()
    );
    let failed: Vec<&Row> = report.with("fail").collect();
    if !failed.is_empty() {
        out.push_str("<h2>Failures</h2>\n");
    }
    for row in failed {
        failure(&mut out, row);
    }
    out.push_str("<h2>Requirements</h2>\n<table>\n");
    out.push_str("<tr><th>requirement<th>tier<th>verdict<th>sentence\n");
    for row in &report.rows {
        requirement(&mut out, row);
    }
    out.push_str("</table>\n");
    if let Some(coverage) = &report.coverage {
        covered(&mut out, coverage);
    }
    out.push_str("</html>\n");
    out
}

fn failure(out: &mut String, row: &Row) {
    let Verdict::Fail(failure) = &row.verdict else {
        return;
    };
    let _ = writeln!(
        out,
        "<details open><summary><b>{}</b> ({}): {}</summary><blockquote>{} {}</blockquote>",
        row.requirement.id,
        row.requirement.tier.as_str(),
        escaped(&failure.reason),
        escaped(row.requirement.quote),
        citation(row)
    );
    for (name, said) in [("sent", &failure.sent), ("came", &failure.came)] {
        if let Some(said) = said {
            let _ = writeln!(out, "<p class=\"dim\">{name}<pre>{}</pre>", escaped(said));
        }
    }
    out.push_str("</details>\n");
}

fn requirement(out: &mut String, row: &Row) {
    let verdict = row.verdict.as_str();
    let reason = match &row.verdict {
        Verdict::Skip(reason) | Verdict::Inconclusive(reason) => reason.as_str(),
        Verdict::Excluded(reason) => reason,
        Verdict::Pass | Verdict::Fail(_) => "",
    };
    let _ = writeln!(
        out,
        "<tr><td>{}<td>{}<td class=\"{verdict}\">{verdict}<td>{} {}<br><span class=\"dim\">{}</span>",
        row.requirement.id,
        row.requirement.tier.as_str(),
        escaped(row.requirement.quote),
        citation(row),
        escaped(reason)
    );
}

fn citation(row: &Row) -> String {
    let address = pages::address(row.requirement.cite).unwrap_or_default();
    let name = escaped(row.requirement.cite);
    format!("<a href=\"{}\">{name}</a>", escaped(&address))
}

fn covered(out: &mut String, coverage: &Coverage) {
    let (used, all) = coverage.methods_used();
    let _ = writeln!(out, "<h2>Exercised {used} of {all} methods</h2>\n<table>");
    out.push_str("<tr><th>method<th>handled by<th>calls<th>succeeded\n");
    for method in &coverage.methods {
        let class = if method.succeeded > 0 { "pass" } else { "fail" };
        let _ = writeln!(
            out,
            "<tr><td>{}<td>{}<td>{}<td class=\"{class}\">{}",
            escaped(&method.method),
            method.side,
            method.calls,
            method.succeeded
        );
    }
    out.push_str("</table>\n");
    for union in &coverage.unions {
        let (used, all) = union.used();
        let name = union.name;
        let _ = writeln!(out, "<h3>{used} of {all} kinds of {name}</h3>\n<table>");
        out.push_str("<tr><th>kind<th>by the agent<th>by the client\n");
        for kind in &union.kinds {
            let class = if kind.by_agent > 0 { "pass" } else { "fail" };
            let _ = writeln!(
                out,
                "<tr><td>{}<td class=\"{class}\">{}<td>{}",
                escaped(&kind.kind),
                kind.by_agent,
                kind.by_client
            );
        }
        out.push_str("</table>\n");
    }
}

/// Text as HTML shows it.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_agent_says_is_no_markup() {
        assert_eq!(escaped("<b>&\"x\""), "&lt;b&gt;&amp;&quot;x&quot;");
    }
}
