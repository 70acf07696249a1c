//! The comparison as a page for a browser.

use std::fmt::Write as _;

use super::change::groups;
use super::{Comparison, Difference, requirements};
use crate::report::Tally;
use crate::report::escape::html;
use crate::report::page::{badge, conformity, page, sentence, successes, table, uses};

/// The comparison as a page.
#[must_use]
pub fn html_comparison(comparison: &Comparison) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<h1>{} {}s side by side</h1>\n<p class=\"dim\">Agent Client Protocol, version {}</p>",
        comparison.subjects.len(),
        comparison.kind,
        comparison.protocol
    );
    summary(&mut out, comparison);
    for caution in comparison.cautions() {
        let _ = writeln!(out, "<p class=\"caution\">{}</p>", html(&caution));
    }
    differences(&mut out, comparison);
    out.push_str("<h2>By area</h2>\n");
    areas(&mut out, comparison);
    coverage(&mut out, comparison);
    for absent in &comparison.absent {
        let ids = html(&absent.names().collect::<Vec<_>>().join(", "));
        let title = html(&absent.title());
        let _ = writeln!(
            out,
            "<details><summary>{title}: {}</summary><p>{ids}</p></details>",
            absent.ids.len()
        );
    }
    page(&format!("{}s side by side", comparison.kind), "", &out)
}

fn summary(out: &mut String, comparison: &Comparison) {
    let mut rows =
        String::from("<thead><tr><th scope=\"col\">subject</th><th scope=\"col\">verdict</th>");
    for name in ["passed", "failed", "inconclusive", "skipped"] {
        let _ = write!(rows, "<th scope=\"col\" class=\"count\">{name}</th>");
    }
    rows.push_str("</tr></thead>\n<tbody>\n");
    for subject in &comparison.subjects {
        let all = &subject.all;
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\" class=\"first\">{}<br><code class=\"dim\">{}</code></th><td>{}</td>{}</tr>",
            html(&subject.label),
            html(&subject.provenance()),
            conformity(subject.verdict),
            numbers(all)
        );
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table("subjects", &rows));
}

fn numbers(tally: &Tally) -> String {
    let counts = [
        ("pass", tally.pass),
        ("fail", tally.fail),
        ("inconclusive", tally.inconclusive),
        ("skip", tally.skip),
    ];
    let cell = |(class, count): (&str, usize)| {
        let class = if count == 0 { "dim" } else { class };
        format!("<td class=\"count {class}\">{count}</td>")
    };
    counts.map(cell).concat()
}

fn differences(out: &mut String, comparison: &Comparison) {
    let count = comparison.differences.len();
    let _ = writeln!(out, "<h2>Where they differ: {}</h2>", requirements(count));
    for (change, group) in groups(&comparison.differences) {
        let title = html(&change.title(comparison.subjects.len()));
        let _ = writeln!(out, "<h3>{title}</h3>");
        let mut rows = format!(
            "<thead>{}</thead>\n<tbody>\n",
            labels(comparison, "requirement", 1)
        );
        for row in group {
            difference(&mut rows, row);
        }
        rows.push_str("</tbody>\n");
        out.push_str(&table(&title, &rows));
    }
    if !comparison.broken_by_all.is_empty() {
        let ids = html(&comparison.broken_by_all.join(", "));
        let _ = writeln!(out, "<p>Broken by all of them: {ids}</p>");
    }
}

fn difference(rows: &mut String, row: &Difference) {
    let requirement = &row.requirement;
    let _ = write!(
        rows,
        "<tr><th scope=\"row\" class=\"first\">{} <span class=\"dim\">({})</span><br>{}</th>",
        html(&requirement.id),
        requirement.tier.as_str(),
        sentence(&requirement.quote, &requirement.cite, None)
    );
    for cell in &row.cells {
        let Some(cell) = cell else {
            rows.push_str("<td class=\"dim\">absent</td>");
            continue;
        };
        let _ = write!(rows, "<td class=\"cell\">{}", badge(cell.verdict));
        if let Some(reason) = &cell.reason {
            let _ = write!(rows, "<br><span class=\"dim\">{}</span>", html(reason));
        }
        rows.push_str("</td>");
    }
    rows.push_str("</tr>\n");
}

fn areas(out: &mut String, comparison: &Comparison) {
    let mut rows = format!("<thead>{}<tr><th></th>", labels(comparison, "area", 4));
    for _ in &comparison.subjects {
        for name in ["pass", "fail", "inc.", "skip"] {
            let _ = write!(rows, "<th scope=\"col\" class=\"count\">{name}</th>");
        }
    }
    rows.push_str("</tr></thead>\n<tbody>\n");
    for row in &comparison.areas {
        let cells: String = row.cells.iter().map(numbers).collect();
        let area = html(&row.area);
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\" class=\"name\">{area}</th>{cells}</tr>"
        );
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table("verdicts by area", &rows));
}

fn coverage(out: &mut String, comparison: &Comparison) {
    if comparison.coverage.is_empty() {
        return;
    }
    out.push_str("<h2>Exercised by some of them only</h2>\n");
    let mut rows = format!(
        "<thead>{}</thead>\n<tbody>\n",
        labels(comparison, "what", 1)
    );
    for row in &comparison.coverage {
        let _ = write!(
            rows,
            "<tr><th scope=\"row\" class=\"first\"><span class=\"dim\">{}</span> {}</th>",
            html(&row.of),
            html(&row.name)
        );
        for cell in &row.cells {
            match cell {
                None => rows.push_str("<td class=\"count dim\">unknown</td>"),
                // Its calls may have been refused.
                Some(0) if row.of == "method" => rows.push_str(&successes(1, 0)),
                Some(count) => rows.push_str(&uses(*count)),
            }
        }
        rows.push_str("</tr>\n");
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table("coverage in which they differ", &rows));
}

/// The first row of a table's head, with a column, or several, for each subject.
fn labels(comparison: &Comparison, first: &str, columns: usize) -> String {
    let mut row = format!("<tr><th scope=\"col\">{first}</th>");
    for subject in &comparison.subjects {
        let label = html(&subject.label);
        let _ = match columns {
            1 => write!(row, "<th scope=\"col\" class=\"cell\">{label}</th>"),
            _ => write!(
                row,
                "<th scope=\"colgroup\" colspan=\"{columns}\">{label}</th>"
            ),
        };
    }
    row + "</tr>"
}
