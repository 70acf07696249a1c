//! What a comparison says, and what it refuses.

use std::borrow::Cow;

use std::path::PathBuf;

use super::comparison::VERSION;
use super::rows::merged;
use super::*;
use crate::Result;
use crate::report::tests::report;
use crate::report::{Document, Outcome};
use crate::requirements::Tier;
use crate::suite::{Coverage, MethodUse};
use crate::wire::Party;

const FAIL: Outcome = Outcome::Fail;
const PASS: Outcome = Outcome::Pass;

fn compared(reports: &[Document]) -> Result<Comparison> {
    let named = reports.iter().enumerate();
    let named =
        named.map(|(index, report)| (PathBuf::from(format!("{index}.json")), report.clone()));
    Comparison::of(&named.collect::<Vec<_>>())
}

/// Two reports: one is of a newer suite, which has a requirement more.
fn pair() -> [Document; 2] {
    let must = Tier::Must;
    let mut older = report(
        "Old",
        &[
            ("a.both-pass", must, PASS),
            ("a.differs", must, PASS),
            ("b.both-fail", must, FAIL),
        ],
    );
    let newer = report(
        "New",
        &[
            ("a.both-pass", must, PASS),
            ("a.added", must, FAIL),
            ("a.differs", must, FAIL),
            ("b.both-fail", must, FAIL),
        ],
    );
    older.suite = "0.0.0".to_owned();
    older.table = "9876543210".to_owned();
    [older, newer]
}

#[test]
fn only_what_differs_is_a_difference() {
    let comparison = compared(&pair()).unwrap();
    let [only] = comparison.differences.as_slice() else {
        panic!("{:?}", comparison.differences);
    };
    assert_eq!(only.requirement.id, "a.differs");
    let verdicts = only.cells.iter().flatten().map(|cell| cell.verdict);
    assert_eq!(verdicts.collect::<Vec<_>>(), [PASS, FAIL]);
    assert_eq!(comparison.broken_by_all, ["b.both-fail"]);
    assert_eq!(comparison.areas[0].cells[1].fail, 2);
}

#[test]
fn what_a_report_lacks_is_absent_and_neither_passed_nor_failed() {
    let comparison = compared(&pair()).unwrap();
    let [absent] = comparison.absent.as_slice() else {
        panic!("{:?}", comparison.absent);
    };
    assert_eq!(
        (absent.label.as_str(), absent.ids.as_slice()),
        ("1 Old", &["a.added".to_owned()][..])
    );
    let all = comparison.subjects[0].all;
    assert_eq!((all.pass, all.fail), (2, 1));
    let text = text_comparison(&comparison).unwrap();
    assert!(
        text.contains(
            "different versions of the suite (1 Old: 0.0.0, requirements 9876543210, \
             2 New: 0.0.1, requirements 0123456789)"
        ),
        "{text}"
    );
    assert!(
        text.contains("New, not in the report on 1 Old: a.added (fail)\n"),
        "{text}"
    );
}

#[test]
fn verdicts_that_were_not_reached_alike_are_pointed_out() {
    let said = |comparison: &Comparison| comparison.cautions().join("\n");
    let [older, mut newer] = pair();
    assert!(!said(&compared(&[older.clone(), newer.clone()]).unwrap()).contains("alike"));
    newer.strict = true;
    let said = said(&compared(&[older, newer]).unwrap());
    let caution = "The verdicts were not reached alike (1 Old: not strict, 2 New: strict).";
    assert!(said.contains(caution), "{said}");
}

#[test]
fn tables_of_one_version_that_differ_are_pointed_out() {
    let [mut older, newer] = pair();
    older.suite = newer.suite.clone();
    let cautions = compared(&[older.clone(), newer.clone()])
        .unwrap()
        .cautions();
    assert!(
        cautions[0].contains("requirements 9876543210"),
        "{cautions:?}"
    );
    older.table = newer.table.clone();
    let cautions = compared(&[older, newer]).unwrap().cautions();
    assert!(
        cautions.iter().all(|it| !it.contains("of the suite (")),
        "{cautions:?}"
    );
}

#[test]
fn an_absent_cell_of_a_difference_says_so() {
    let [older, newer] = pair();
    let mut third = older.clone();
    third.requirements.retain(|entry| entry.id != "a.differs");
    let comparison = compared(&[older, newer, third]).unwrap();
    assert_eq!(comparison.differences.len(), 1);
    for out in formats(&comparison) {
        assert!(out.contains("absent"), "{out}");
    }
}

#[test]
fn a_requirement_that_was_added_stands_where_it_belongs() {
    let [older, newer] = pair();
    let documents = [&older, &newer];
    let ids = merged(&documents, |entry| entry.id.as_str());
    assert_eq!(ids, ["a.both-pass", "a.added", "a.differs", "b.both-fail"]);
}

/// Sessions were opened, and loaded so often.
fn coverage(load: usize) -> Coverage {
    Coverage {
        methods: [("session/new", 3), ("session/load", load)]
            .map(|(name, succeeded)| MethodUse {
                side: Cow::Borrowed("agent"),
                method: name.to_owned(),
                calls: 3,
                succeeded,
            })
            .to_vec(),
        unions: Vec::new(),
        fields: Vec::new(),
    }
}

#[test]
fn coverage_differs_where_some_never_use_a_method() {
    let [mut older, mut newer] = pair();
    older.coverage = Some(coverage(0));
    newer.coverage = Some(coverage(7));
    let comparison = compared(&[older.clone(), newer]).unwrap();
    let [only] = comparison.coverage.as_slice() else {
        panic!("{:?}", comparison.coverage);
    };
    assert_eq!(only.name, "session/load of the agent");
    assert_eq!(only.cells, [Some(0), Some(7)]);

    let without = report("New", &[("a.both-pass", Tier::Must, PASS)]);
    let comparison = compared(&[older, without]).unwrap();
    assert!(comparison.coverage.is_empty());
    let cautions = comparison.cautions().join("\n");
    assert!(
        cautions.contains("Of 2 New it is not known what was exercised"),
        "{cautions}"
    );
}

#[test]
fn what_cannot_be_compared_names_the_file_and_what_to_do() {
    let [agent, other] = pair();
    let error = |report: &Document| {
        let error = compared(&[agent.clone(), report.clone()]).unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("1.json") && error.contains("unlike 0.json"),
            "{error}"
        );
        error
    };
    let mut client = other.clone();
    client.kind = Party::Client;
    assert!(error(&client).contains("compare agents with agents"));
    let mut draft = other;
    draft.protocol = 2;
    assert!(error(&draft).contains("version 2 of the protocol"));
    let error = compared(&[agent]).unwrap_err().to_string();
    assert!(error.contains("at least two"), "{error}");
}

#[test]
fn nothing_that_was_said_takes_effect() {
    let [older, mut newer] = pair();
    newer.name = "\u{1b}[2J<script>|`x`\n# ".to_owned();
    let comparison = compared(&[older, newer]).unwrap();
    let [text, markdown, html] = formats(&comparison);
    for out in [&text, &markdown, &html] {
        assert!(!out.contains('\u{1b}'), "{out}");
    }
    assert!(
        !html.contains("<script") && !html.contains("<img"),
        "{html}"
    );
    let mut cells = markdown.lines().filter(|line| line.starts_with("| "));
    let bars = |line: &str| line.replace("\\|", "").matches('|').count();
    assert!(cells.all(|line| [4, 7].contains(&bars(line))), "{markdown}");
    assert!(
        !markdown.contains("<script") && !markdown.contains("\n# "),
        "{markdown}"
    );
}

#[test]
fn a_failure_says_why_in_every_format() {
    let comparison = compared(&pair()).unwrap();
    for out in formats(&comparison) {
        assert!(out.contains("it was unkind"), "{out}");
        assert!(
            out.contains("a.differs") && !out.contains("a.both-pass"),
            "{out}"
        );
    }
}

fn formats(comparison: &Comparison) -> [String; 3] {
    [
        text_comparison(comparison).unwrap(),
        markdown_comparison(comparison).unwrap(),
        html_comparison(comparison).unwrap(),
    ]
}

/// Has every object of a schema refuse members that it does not describe.
fn close(schema: &mut serde_json::Value) {
    if let Some(members) = schema.as_object_mut() {
        if members.contains_key("properties") {
            members.insert("additionalProperties".to_owned(), false.into());
        }
        members.values_mut().for_each(close);
    } else if let Some(elements) = schema.as_array_mut() {
        elements.iter_mut().for_each(close);
    }
}

#[test]
fn a_comparison_is_what_its_schema_says_and_no_more() {
    let mut schema: serde_json::Value = serde_json::from_str(SCHEMA).unwrap();
    assert_eq!(schema["properties"]["version"]["const"], VERSION);
    let id = format!("urn:acp-conformance:comparison:{VERSION}");
    assert_eq!(schema["$id"], id);
    close(&mut schema);
    let schema = jsonschema::validator_for(&schema).unwrap();
    let [mut older, mut newer] = pair();
    older.coverage = Some(coverage(0));
    newer.coverage = Some(coverage(7));
    let third = report("Third", &[("b.both-fail", Tier::Must, FAIL)]);
    let comparison = compared(&[older, newer, third]).unwrap();
    // Every list has something to look at.
    assert!(!comparison.differences.is_empty() && !comparison.absent.is_empty());
    assert!(!comparison.broken_by_all.is_empty() && !comparison.coverage.is_empty());
    let written = serde_json::to_value(&comparison).unwrap();
    let errors: Vec<_> = schema
        .iter_errors(&written)
        .map(|e| e.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

#[test]
fn regressions_come_first_and_accepted_failures_are_none() {
    let must = Tier::Must;
    let rows = |outcomes: [Outcome; 4]| {
        let ids = ["a.other", "a.fixed", "a.accepted", "a.worse"];
        let rows = ids.into_iter().zip(outcomes);
        rows.map(|(id, outcome)| (id, must, outcome))
            .collect::<Vec<_>>()
    };
    let older = report("A", &rows([PASS, FAIL, PASS, PASS]));
    let mut newer = report("A", &rows([Outcome::Skip, PASS, FAIL, FAIL]));
    newer.requirements[2].accepted = Some("known".to_owned());
    let comparison = compared(&[older.clone(), newer.clone()]).unwrap();
    let changes = comparison.differences.iter();
    let changes: Vec<_> = changes
        .map(|row| (row.requirement.id.as_str(), row.change))
        .collect();
    assert_eq!(
        changes,
        [
            ("a.worse", Change::Regression),
            ("a.fixed", Change::Fixed),
            ("a.other", Change::Other),
            ("a.accepted", Change::Other),
        ]
    );
    assert_eq!(comparison.regressions().count(), 1);
    for out in formats(&comparison) {
        let place = |text: &str| out.find(text).unwrap_or_else(|| panic!("{text}: {out}"));
        let regressions = place("Regressions: pass in 1, fail in 2");
        let fixed = place("Fixed: fail in 1, pass in 2");
        assert!(regressions < place("a.worse") && place("a.worse") < fixed);
        assert!(fixed < place("a.fixed") && place("a.fixed") < place("Otherwise different"));
    }
    let reversed = compared(&[newer, older]).unwrap();
    let regressions = reversed.regressions();
    let regressions: Vec<_> = regressions.map(|row| &row.requirement.id).collect();
    assert_eq!(regressions, ["a.fixed"]);
}

#[test]
fn new_and_removed_requirements_say_what_they_are_and_which_fail() {
    let [older, newer] = pair();
    let comparison = compared(&[older.clone(), newer.clone()]).unwrap();
    for out in formats(&comparison) {
        let plain = out.replace("<p>", " ").replace("1</summary>", "");
        assert!(plain.contains("New, not in the report on 1 Old: "), "{out}");
        assert!(plain.contains("a.added (fail)"), "{out}");
    }
    let reversed = compared(&[newer, older]).unwrap();
    assert_eq!(reversed.absent[0].change, Change::Removed);
}

#[test]
fn a_comparison_names_when_and_by_what_each_report_was_made() {
    let [older, mut newer] = pair();
    newer.date = "2026-02-03T04:05:06Z".to_owned();
    newer.specification = "def of 2026-02-01".to_owned();
    let comparison = compared(&[older, newer]).unwrap();
    for out in formats(&comparison) {
        let plain = out.replace("\\-", "-");
        for what in ["began 2026-01-02T03:04:05Z", "began 2026-02-03T04:05:06Z"] {
            assert!(plain.contains(what), "{what}: {out}");
        }
        assert!(plain.contains("2 New: def of 2026-02-01"), "{out}");
    }
}
