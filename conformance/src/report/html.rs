//! The report as a page for a browser.
//!
//! Every requirement has an anchor, which is its id: that of its failure, else that of its row.

use std::fmt::Write as _;

use super::escape::html;
use super::filters::Filters;
use super::page::{badge, conformity, page, said, sentence, successes, table, transcript, uses};
use super::{CANCEL_TIMES, Document, Entry, Outcome, Tally};
use crate::requirements::Tier;
use crate::suite::{Coverage, UnionUse};
use crate::wire::Party;

/// The report as a page.
#[must_use]
pub fn html_report(report: &Document) -> String {
    let filters = Filters::of(report);
    let mut out = String::new();
    head(&mut out, report);
    contents(&mut out, report);
    out.push_str(&filters.form());
    let failures = report.failures();
    if !failures.is_empty() {
        out.push_str("<h2 id=\"failures\">Failures</h2>\n");
    }
    for entry in failures {
        failure(&mut out, entry, report, &filters);
    }
    out.push_str("<h2 id=\"areas\">By area and tier</h2>\n");
    matrix(&mut out, report);
    out.push_str("<h2 id=\"requirements\">Requirements</h2>\n");
    for (area, entries) in report.areas() {
        requirements(&mut out, area, &entries, report, &filters);
    }
    if let Some(coverage) = &report.coverage {
        covered(&mut out, coverage);
    }
    page(
        &format!("{}: {}", report.name, report.verdict.as_str()),
        &filters.style(),
        &out,
    )
}

fn head(out: &mut String, report: &Document) {
    // Writing to a string does not fail.
    let _ = writeln!(
        out,
        "<h1>{}: {}</h1>\n<p class=\"dim\">Tested as {} of the Agent Client Protocol</p>",
        html(&report.name),
        conformity(report.verdict),
        match report.kind {
            Party::Agent => "an agent",
            Party::Client => "a client",
        }
    );
    out.push_str("<dl class=\"provenance\">\n");
    for (name, value) in report.provenance() {
        let value = html(&value);
        let _ = writeln!(out, "<div><dt>{name}</dt><dd>{value}</dd></div>");
    }
    out.push_str("</dl>\n");
    if !report.command.is_empty() {
        out.push_str(&said("command under test", &report.command));
    }
    if let Some(again) = &report.again {
        out.push_str(&said("run all of it again", again));
    }
    if !report.left_out.is_empty() {
        let names = html(&report.left_out.join(", "));
        let _ = writeln!(out, "<p>Left out: {names}</p>");
    }
    if let Some(why) = report.why_incomplete() {
        let why = html(&why);
        let _ = writeln!(out, "<p class=\"caution\">Incomplete, because {why}.</p>");
    }
    if let Some(cause) = &report.root_cause {
        let (reason, remedy) = (html(&cause.reason), html(&cause.remedy));
        let _ = writeln!(
            out,
            "<p class=\"caution\">Root cause ({}): {reason}. {remedy}</p>",
            html(&cause.step)
        );
    }
    for stale in &report.stale {
        let (id, reason) = (html(&stale.id), html(&stale.reason));
        let _ = writeln!(
            out,
            "<p class=\"caution\">Stale accepted finding {id}: {reason}</p>"
        );
    }
    let all = Tally::of(&report.requirements);
    out.push_str("<ul class=\"numbers\">\n");
    let invalid = match report.kind {
        Party::Agent => "invalid ones of the agent",
        Party::Client => "invalid ones of the client",
    };
    let numbers = [
        ("pass", all.pass, "passed"),
        ("fail", all.fail, "failed"),
        ("inconclusive", all.inconclusive, "inconclusive"),
        ("skip", all.skip, "skipped"),
        ("blocked", all.blocked, "blocked"),
        ("dim", report.messages.agent, "messages of the agent"),
        ("dim", report.messages.client, "messages of the client"),
        ("fail", report.messages.invalid, invalid),
    ];
    for (class, number, name) in numbers {
        let class = if number == 0 { "dim" } else { class };
        let _ = writeln!(out, "<li class=\"{class}\"><b>{number}</b> {name}</li>");
    }
    out.push_str("</ul>\n");
    if let Some(times) = &report.cancel_times {
        let times = times.in_words();
        let _ = writeln!(out, "<p class=\"dim\">{CANCEL_TIMES}: {times}</p>");
    }
}

/// Links to the parts that follow.
fn contents(out: &mut String, report: &Document) {
    out.push_str("<nav aria-label=\"contents\">");
    let parts = [
        (
            "failures",
            "Failures",
            report.with(Outcome::Fail).next().is_some(),
        ),
        ("areas", "By area and tier", true),
        ("requirements", "Requirements", true),
        ("exercised", "Exercised", report.coverage.is_some()),
    ];
    for (id, title, _) in parts.iter().filter(|(.., present)| *present) {
        let _ = write!(out, "<a href=\"#{id}\">{title}</a> ");
    }
    out.push_str("</nav>\n");
}

fn failure(out: &mut String, entry: &Entry, report: &Document, filters: &Filters) {
    let id = html(&entry.id);
    let class = if entry.fails(report.strict) {
        "failure"
    } else {
        "failure advice"
    };
    let _ = writeln!(
        out,
        "<section class=\"{class} {}\" id=\"{id}\">\n<h3>{} <a href=\"#{id}\">{id}</a> <span class=\"dim\">({})</span></h3>\n\
         <p>{}</p>\n<blockquote>{}</blockquote>",
        filters.classes(entry),
        badge(entry.verdict),
        entry.tier.as_str(),
        html(entry.why()),
        sentence(&entry.quote, &entry.cite, entry.because.as_deref())
    );
    if let Some(test) = &entry.test {
        let _ = writeln!(out, "<p>Test: {}</p>", html(test));
    }
    if let Some(reason) = &entry.accepted {
        let _ = writeln!(out, "<p>Accepted: {}</p>", html(reason));
    }
    for (name, text) in entry.evidence() {
        out.push_str(&said(name, text));
    }
    if let Some(again) = &entry.again {
        out.push_str(&said("run this one again", again));
    }
    let transcripts = transcripts(entry, report);
    if !transcripts.is_empty() {
        let _ = writeln!(out, "<p>{transcripts}</p>");
    }
    out.push_str("</section>\n");
}

fn matrix(out: &mut String, report: &Document) {
    let mut rows = String::from("<thead><tr><th scope=\"col\">passed of run</th>");
    for tier in Tier::ALL {
        let _ = write!(
            rows,
            "<th scope=\"col\" class=\"count\">{}</th>",
            tier.as_str()
        );
    }
    rows.push_str("</tr></thead>\n<tbody>\n");
    for (area, entries) in report.areas() {
        let area = html(area);
        let title = format!("<a href=\"#area-{area}\">{area}</a>");
        cells(&mut rows, &title, &entries);
    }
    cells(
        &mut rows,
        "all",
        &report.requirements.iter().collect::<Vec<_>>(),
    );
    rows.push_str("</tbody>\n");
    out.push_str(&table("passed of run, by area and tier", &rows));
}

/// A row of the matrix; `title` is markup.
fn cells(rows: &mut String, title: &str, entries: &[&Entry]) {
    let _ = write!(rows, "<tr><th scope=\"row\" class=\"name\">{title}</th>");
    for tier in Tier::ALL {
        let of_tier = entries.iter().filter(|entry| entry.tier == tier);
        let tally = Tally::of(of_tier.copied());
        let class = match (tally.pass, tally.fail) {
            (0, 0) => "dim",
            (_, 0) => "pass",
            _ => "fail",
        };
        let _ = write!(rows, "<td class=\"count {class}\">{}</td>", tally.ratio());
    }
    rows.push_str("</tr>\n");
}

fn requirements(
    out: &mut String,
    area: &str,
    entries: &[&Entry],
    report: &Document,
    filters: &Filters,
) {
    let tally = Tally::of(entries.iter().copied());
    let mut counts = Vec::new();
    for (word, count) in [
        (Outcome::Pass, tally.pass),
        (Outcome::Fail, tally.fail),
        (Outcome::Inconclusive, tally.inconclusive),
        (Outcome::Blocked, tally.blocked),
        (Outcome::Skip, tally.skip),
        (Outcome::Excluded, tally.excluded),
    ] {
        if count > 0 {
            let name = word.as_str();
            counts.push(format!("<span class=\"{name}\">{count} {name}</span>"));
        }
    }
    let class = filters.area(area);
    let area = html(area);
    let _ = writeln!(
        out,
        "<details open class=\"whole-area {class}\" id=\"area-{area}\"><summary><b>{area}</b> {}</summary>",
        counts.join(", ")
    );
    let mut rows = String::from(
        "<thead><tr><th scope=\"col\">requirement</th><th scope=\"col\">verdict</th></tr></thead>\n<tbody>\n",
    );
    for entry in entries {
        requirement(&mut rows, entry, report, filters);
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table(&area, &rows));
    out.push_str("</details>\n");
}

fn requirement(rows: &mut String, entry: &Entry, report: &Document, filters: &Filters) {
    let id = html(&entry.id);
    let anchor = match entry.verdict {
        // The failure has the other.
        Outcome::Fail => format!("row-{id}"),
        _ => id.clone(),
    };
    let _ = write!(
        rows,
        "<tr id=\"{anchor}\" class=\"{}\"><td><b><a href=\"#{id}\">{id}</a></b><br>{}",
        filters.classes(entry),
        sentence(&entry.quote, &entry.cite, entry.because.as_deref())
    );
    if !entry.why().is_empty() {
        let _ = write!(rows, "<br><span class=\"dim\">{}</span>", html(entry.why()));
    }
    let transcripts = transcripts(entry, report);
    if !transcripts.is_empty() {
        let _ = write!(rows, "<br>{transcripts}");
    }
    let (tier, badge) = (entry.tier.as_str(), badge(entry.verdict));
    let _ = writeln!(
        rows,
        "</td><td>{badge}<br><span class=\"dim\">{tier}</span></td></tr>"
    );
}

/// Links to the transcripts; empty where there are none.
fn transcripts(entry: &Entry, report: &Document) -> String {
    let Some(folder) = &report.transcripts else {
        return String::new();
    };
    let links = entry
        .transcripts
        .iter()
        .map(|file| transcript(folder, file));
    match links.collect::<Vec<_>>().join(", ") {
        links if links.is_empty() => links,
        links => format!("<span class=\"dim\">transcript:</span> {links}"),
    }
}

fn covered(out: &mut String, coverage: &Coverage) {
    let (used, all) = coverage.methods_used();
    let _ = writeln!(
        out,
        "<h2 id=\"exercised\">Exercised {used} of {all} methods</h2>"
    );
    let mut rows = String::from(
        "<thead><tr><th scope=\"col\">method</th><th scope=\"col\">handled by</th>\
         <th scope=\"col\" class=\"count\">calls</th><th scope=\"col\" class=\"count\">succeeded</th></tr></thead>\n<tbody>\n",
    );
    for method in &coverage.methods {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td class=\"count\">{}</td>{}</tr>",
            html(&method.method),
            html(&method.side),
            method.calls,
            successes(method.calls, method.succeeded)
        );
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table("methods", &rows));
    for union in &coverage.unions {
        kinds(out, union);
    }
    members(out, coverage, Party::Agent);
    members(out, coverage, Party::Client);
}

/// The members that a party never sent; those that it sent are many.
fn members(out: &mut String, coverage: &Coverage, by: Party) {
    let (used, all) = coverage.fields_used(by);
    if all == 0 {
        return;
    }
    let _ = writeln!(out, "<h3>{used} of {all} fields by the {by}</h3>");
    let mut rows = String::from(
        "<thead><tr><th scope=\"col\">object</th><th scope=\"col\">fields that were never sent</th></tr></thead>\n<tbody>\n",
    );
    for (of, names) in coverage.never_sent(by) {
        let (of, names) = (html(of), html(&names.join(", ")));
        let _ = writeln!(rows, "<tr><th scope=\"row\">{of}</th><td>{names}</td></tr>");
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table(&format!("fields by the {by}"), &rows));
}

fn kinds(out: &mut String, union: &UnionUse) {
    let (used, all) = union.used();
    let name = html(&union.name);
    let _ = writeln!(out, "<h3>{used} of {all} kinds of {name} by the agent</h3>");
    let mut rows = String::from(
        "<thead><tr><th scope=\"col\">kind</th><th scope=\"col\" class=\"count\">by the agent</th>\
         <th scope=\"col\" class=\"count\">by the client</th></tr></thead>\n<tbody>\n",
    );
    for kind in &union.kinds {
        let _ = writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th>{}<td class=\"count\">{}</td></tr>",
            html(&kind.kind),
            uses(kind.by_agent),
            kind.by_client
        );
    }
    rows.push_str("</tbody>\n");
    out.push_str(&table(&union.name, &rows));
}
