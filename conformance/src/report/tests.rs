//! What every format must do with every report.

use serde_json::Value;

use super::*;
use crate::requirements::Tier;
use crate::suite::{CancelTimes, RootCause};
use crate::wire::Party;

/// What an agent may say to harm a reader, in a terminal or a browser.
const HOSTILE: &str =
    "\u{1b}[2J<script>alert(1)</script> `a`|b ``` \u{202e}\n\n# <img src=x onerror=y> {{ 7 + 7 }}";

fn entry(id: &str, tier: Tier, verdict: Outcome) -> Entry {
    let told = |text: &str| (verdict != Outcome::Pass).then(|| text.to_owned());
    let failed = |text: &str| (verdict == Outcome::Fail).then(|| text.to_owned());
    Entry {
        id: id.to_owned(),
        area: id.split('.').next().unwrap_or_default().to_owned(),
        tier,
        quote: "Agents MUST be kind".to_owned(),
        cite: "https://agentclientprotocol.com/protocol/v1/overview#kindness".to_owned(),
        because: (tier == Tier::Derived).then(|| format!("It follows. {HOSTILE}")),
        test: Some(format!("Sends a greeting. {HOSTILE}")),
        verdict,
        reason: told(&format!("it was unkind: {HOSTILE}")),
        sent: failed("{\"id\":1,\"sent\":true}"),
        came: failed(&format!("{{\"id\":1,\"came\":true}} {HOSTILE}")),
        again: failed(&format!("acp-conformance agent --only {id} -- an-agent")),
        seconds: 0.5,
        transcripts: failed(&format!("{id}.jsonl")).into_iter().collect(),
        accepted: None,
        prompts: 0,
    }
}

/// A report of these requirements.
pub(super) fn report(name: &str, entries: &[(&str, Tier, Outcome)]) -> Document {
    let entry = |row: &(&str, Tier, Outcome)| entry(row.0, row.1, row.2);
    let requirements: Vec<Entry> = entries.iter().map(entry).collect();
    let mut report = Document {
        version: VERSION,
        kind: Party::Agent,
        suite: "0.0.1".to_owned(),
        table: "0123456789".to_owned(),
        specification: "abc of 2026-01-01".to_owned(),
        date: "2026-01-02T03:04:05Z".to_owned(),
        protocol: 1,
        command: "an-agent".to_owned(),
        again: Some("acp-conformance agent -- an-agent".to_owned()),
        name: name.to_owned(),
        verdict: Conformity::Conformant,
        conformant: true,
        prompts: 0,
        cancel_times: Some(CancelTimes {
            turns: 4,
            median: 0.012,
            longest: 1.5,
        }),
        root_cause: None,
        interrupted: false,
        quick: None,
        words: Vec::new(),
        stale: Vec::new(),
        strict: false,
        seconds: 2.0,
        messages: Messages {
            agent: 5,
            client: 4,
            invalid: 1,
        },
        narrowed: false,
        left_out: Vec::new(),
        transcripts: Some("traffic".to_owned()),
        requirements,
        coverage: None,
    };
    report.decide();
    report
}

fn broken() -> Document {
    report(
        HOSTILE,
        &[
            ("one.info", Tier::Info, Outcome::Fail),
            ("one.must", Tier::Must, Outcome::Fail),
            ("two.pass", Tier::Must, Outcome::Pass),
            ("two.skip", Tier::Should, Outcome::Skip),
        ],
    )
}

/// What is broken, with texts of more than 100 kB.
fn broken_at_length() -> Document {
    let mut report = broken();
    for entry in &mut report.requirements {
        let long = HOSTILE.repeat(1_500);
        assert!(long.len() > 100_000);
        entry.reason = (entry.verdict != Outcome::Pass).then(|| long.clone());
        entry.came = entry.came.is_some().then_some(long);
    }
    report
}

/// Every format that people read.
fn formats(report: &Document) -> [(&'static str, String); 4] {
    [
        ("text", text(report).unwrap()),
        (
            "markdown",
            markdown_report(report, &RowPages::default()).unwrap(),
        ),
        ("html", html_report(report, &RowPages::default()).unwrap()),
        ("junit", junit(report).unwrap()),
    ]
}

#[test]
fn a_failure_says_all_in_every_format() {
    for (format, out) in formats(&broken()) {
        let plain = out.replace("&quot;", "\"").replace("\\_", "_");
        for what in [
            "one.must",
            "it was unkind",
            "Agents MUST be kind",
            "https://agentclientprotocol.com/protocol/v1/overview#kindness",
            "{\"id\":1,\"sent\":true}",
            "{\"id\":1,\"came\":true}",
            "acp-conformance agent --only one.must -- an-agent",
        ] {
            assert!(plain.contains(what), "{format} lacks {what}:\n{out}");
        }
    }
}

#[test]
fn the_root_cause_comes_first() {
    let mut report = broken();
    report.root_cause = Some(RootCause {
        step: "session".to_owned(),
        reason: "no network".to_owned(),
        remedy: String::new(),
        sent: None,
        came: None,
    });
    for out in [text(&report).unwrap(), failures_text(&report).unwrap()] {
        let cause = out.find("\n\nBLOCKED 0 requirements, session: no network\n");
        let failure = out.find("\n\nFAIL ");
        assert!(cause.is_some() && cause < failure, "{out}");
        assert!(out.find("passed of run") > cause || !out.contains("passed of run"));
    }
}

#[test]
fn nothing_that_was_said_takes_effect() {
    let reports = [broken(), broken_at_length()];
    for (format, out) in reports.iter().flat_map(formats) {
        assert!(!out.contains('\u{1b}'), "{format} acts on a terminal");
        assert!(!out.contains('\u{202e}'), "{format} turns around");
        assert!(
            out.contains("{{ 7 + 7 }}"),
            "{format} takes it for a template"
        );
        if format == "html" || format == "junit" {
            assert!(!out.contains("<script") && !out.contains("<img"), "{out}");
        }
    }
}

#[test]
fn markdown_keeps_what_was_said_in_its_place() {
    for report in [broken(), broken_at_length()] {
        keeps_its_place(&markdown_report(&report, &RowPages::default()).unwrap());
    }
}

fn keeps_its_place(out: &str) {
    let mut fence = None;
    for line in out.lines() {
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            None if ticks >= 3 => fence = Some(ticks),
            Some(open) if line.len() == ticks && ticks >= open => fence = None,
            Some(_) => {}
            None => {
                assert!(
                    !line.contains("<script") && !line.contains("<img"),
                    "{line}"
                );
                assert!(!line.starts_with("# "), "{line}");
            }
        }
    }
    assert_eq!(fence, None, "a block is left open:\n{out}");
    let cells: Vec<_> = out.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(cells.len(), 5, "{out}");
    assert_eq!(cells[2], "| one | 0/1 | - | - | - | 0/1 | 0 | 0 |");
    assert_eq!(cells[3], "| two | 1/1 | - | - | - | - | 0 | 1 |");
}

#[test]
fn what_weighs_most_comes_first() {
    for (format, out) in &formats(&broken())[..3] {
        let place = |id: &str| out.find(&format!("--only {id} ")).unwrap();
        assert!(place("one.must") < place("one.info"), "{format}");
    }
}

#[test]
fn an_empty_line_ends_a_failure_and_stands_in_none() {
    let out = text(&broken()).unwrap();
    let failure = out
        .split("\n\n")
        .find(|part| part.starts_with("FAIL one.must"));
    let failure = failure.unwrap_or_else(|| panic!("{out}"));
    assert!(failure.contains("\n  again "), "{out}");
    assert!(failure.lines().all(|line| !line.trim().is_empty()), "{out}");
}

#[test]
fn a_failure_that_does_not_decide_is_no_failed_case() {
    let mut report = report("a", &[("one.should", Tier::Should, Outcome::Fail)]);
    let xml = junit(&report).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"0\" errors=\"0\" skipped=\"1\""));
    assert!(xml.contains("<skipped message=\"fail, should: it was unkind"));
    report.strict = true;
    let xml = junit(&report).unwrap();
    assert!(xml.contains("tests=\"1\" failures=\"1\" errors=\"0\" skipped=\"0\""));
    assert!(xml.contains("<failure message=\"it was unkind"), "{xml}");
}

#[test]
fn the_page_says_what_the_check_of_a_failure_does() {
    let mut report = broken();
    for entry in &mut report.requirements {
        entry.test = (entry.id == "one.must").then(|| "Sends <a> greeting.".to_owned());
    }
    let page = html_report(&report, &RowPages::default()).unwrap();
    assert_eq!(page.matches("<p>Test: ").count(), 1, "{page}");
    assert!(
        page.contains("<p>Test: Sends &lt;a&gt; greeting.</p>"),
        "{page}"
    );
}

#[test]
fn a_link_of_a_foreign_report_leads_nowhere() {
    let mut report = broken();
    for entry in &mut report.requirements {
        entry.cite = "javascript:alert(1)".to_owned();
    }
    assert!(
        !html_report(&report, &RowPages::default())
            .unwrap()
            .contains("href=\"javascript")
    );
    assert!(
        !markdown_report(&report, &RowPages::default())
            .unwrap()
            .contains("](javascript")
    );
}

#[test]
fn what_was_left_out_is_said() {
    let mut report = report("a", &[("one.must", Tier::Must, Outcome::Pass)]);
    report.left_out = vec!["two.must".to_owned()];
    for (format, out) in &formats(&report)[..3] {
        assert!(
            out.to_lowercase().contains("left out: two.must"),
            "{format}"
        );
    }
}

#[test]
fn a_report_that_is_read_back_has_the_same_formats() {
    let mut report = broken();
    report.narrowed = true;
    report.words = vec!["slow".to_owned()];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    std::fs::write(&path, serde_json::to_string(&report).unwrap()).unwrap();
    let again = read(&path).unwrap();
    assert_eq!(again, report);
    assert_eq!(formats(&again), formats(&report));
}

#[test]
fn what_is_no_report_says_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let error = |text: &str| {
        std::fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("report.json"), "{error}");
        error
    };
    assert!(error("[]").contains("it is no report"));
    let older = error("{\"version\": 1, \"agent\": \"x\"}");
    assert!(older.contains("is version 1, of an older"), "{older}");
    assert!(older.contains("write it anew"), "{older}");
    let newer = error("{\"version\": 99}");
    assert!(newer.contains("update acp-conformance"), "{newer}");
    assert!(error("{\"version\": 3}").contains("missing field `kind`"));
}

#[test]
fn the_schema_describes_reports() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(schema["properties"]["version"]["const"], VERSION);
    let id = format!("urn:acp-conformance:report:{VERSION}");
    assert_eq!(schema["$id"], id);
    let validator = jsonschema::validator_for(&schema).unwrap();
    let sound = serde_json::to_value(broken()).unwrap();
    assert!(validator.is_valid(&sound), "{sound}");
    let mut without = sound.clone();
    without["requirements"][0]["verdict"] = "maybe".into();
    assert!(!validator.is_valid(&without));
    let mut without = sound.clone();
    without["table"] = "the table".into();
    assert!(!validator.is_valid(&without));
    let mut older = sound.clone();
    older.as_object_mut().unwrap().remove("table");
    assert!(validator.is_valid(&older));
    let mut without = sound;
    without["requirements"][0]
        .as_object_mut()
        .unwrap()
        .remove("again");
    assert!(!validator.is_valid(&without));
}

#[test]
fn provenance_stands_in_every_format() {
    for (format, out) in formats(&broken()) {
        let plain = out.replace("\\-", "-");
        for what in [
            "v1",
            "abc of 2026-01-01",
            "acp-conformance 0.0.1, requirements 0123456789",
            "2026-01-02T03:04:05Z",
            "2.0 s",
            "prompts",
        ] {
            assert!(plain.contains(what), "{format} lacks {what}:\n{out}");
        }
    }
}

#[test]
fn the_times_of_cancelled_turns_are_shown() {
    let report = broken();
    for out in [
        text(&report).unwrap(),
        html_report(&report, &RowPages::default()).unwrap(),
    ] {
        let line = "From session/cancel to the end of the turn: \
                    median 0.012 s, longest 1.500 s (turns: 4)";
        assert!(out.contains(line), "{out}");
    }
    let json = serde_json::to_value(&report).unwrap();
    let expected = serde_json::json!({"turns": 4, "median": 0.012, "longest": 1.5});
    assert_eq!(json["cancel_times"], expected);
}

#[test]
fn every_requirement_has_one_anchor_and_a_filter() {
    let page = html_report(&broken(), &RowPages::default()).unwrap();
    for id in ["one.info", "one.must", "two.pass", "two.skip"] {
        let anchor = format!(" id=\"{id}\"");
        assert_eq!(page.matches(&anchor).count(), 1, "{id}: {page}");
        assert!(page.contains(&format!("href=\"#{id}\"")), "{page}");
    }
    assert!(
        page.contains("<tr id=\"two.skip\" class=\"outcome-4 tier-3 area-1\">"),
        "{page}"
    );
    assert!(
        page.contains("id=\"by-outcome-4\"> skip <span class=\"dim\">1<"),
        "{page}"
    );
    let hides = "main:has(#by-outcome :checked):not(:has(#by-outcome-4:checked)) .outcome-4 {";
    assert!(page.contains(hides), "{page}");
    // Nothing of it needs a script, and all rows are shown without a mark.
    assert!(
        !page.contains("<script") && !page.contains(" checked"),
        "{page}"
    );
    assert!(!page.contains("<details class"), "{page}");
    let hidden = "main:has(#by-tier :checked):not(:has(#by-tier-0:checked, #by-tier-4:checked)) \
                  .whole-area.area-0 {";
    assert!(page.contains(hidden), "{page}");
}

#[test]
fn a_page_links_to_transcripts_and_to_nothing_else() {
    let mut report = broken();
    let page = html_report(&report, &RowPages::default()).unwrap();
    assert!(
        page.contains("<a href=\"traffic/one.must.jsonl\">one.must.jsonl</a>"),
        "{page}"
    );
    report.transcripts = Some("javascript:alert(1)//\"".to_owned());
    let page = html_report(&report, &RowPages::default()).unwrap();
    assert!(
        page.contains("href=\"javascript%3Aalert%281%29//%22/one"),
        "{page}"
    );
    report.transcripts = None;
    assert!(
        !html_report(&report, &RowPages::default())
            .unwrap()
            .contains("one.must.jsonl")
    );
}

#[test]
fn a_failure_links_to_the_page_of_its_requirement_if_there_is_one() {
    let report = broken();
    let folder = tempfile::tempdir().unwrap();
    let pages = folder.path().join("requirements");
    std::fs::create_dir(&pages).unwrap();
    std::fs::write(pages.join("a b(c).md"), "## one.must\n## two.pass\n").unwrap();
    let pages = RowPages::beside(&folder.path().join("report"));
    let address = "requirements/a%20b%28c%29.md#onemust";
    let html = html_report(&report, &pages).unwrap();
    assert_eq!(html.matches("href=\"requirements/").count(), 1, "{html}");
    assert!(html.contains(&format!("href=\"{address}\"")), "{html}");
    let markdown = markdown_report(&report, &pages).unwrap();
    assert_eq!(markdown.matches("](requirements/").count(), 1, "{markdown}");
    assert!(markdown.contains(&format!("]({address})")), "{markdown}");
}

#[test]
fn what_is_skipped_is_listed_by_the_kind_of_its_reason() {
    let ids: Vec<String> = (0..12).map(|index| format!("area.row-{index}")).collect();
    let rows: Vec<_> = ids
        .iter()
        .map(|id| (id.as_str(), Tier::Must, Outcome::Skip))
        .collect();
    let mut report = report("agent", &rows);
    for (index, entry) in report.requirements.iter_mut().enumerate() {
        entry.reason = Some(match index {
            0 => "the profile has no prompt `fail`".to_owned(),
            _ => "the agent does not declare `loadSession`".to_owned(),
        });
    }
    let text = text(&report).unwrap();
    assert!(
        text.contains("not declared:\n           area.row-1, area.row-2,"),
        "{text}"
    );
    assert!(
        text.contains("lacks the prompt:\n  area.row-0: the profile has no"),
        "{text}"
    );
    assert!(!text.contains("not seen in this run"), "{text}");
}
