//! Recordings of the protocols of other systems, judged by their documents.

use std::fs;
use std::path::Path;

use acp_conformance::judge::{self, CheckOptions, Diagnostic, Level, Spoken, Summary};
use acp_conformance::wire::{Basis, FindingKind, Schemas};

/// A conversation of a dialect with our server, as a recording.
fn recording(dialect: &str) -> String {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/dialects/tests/fixtures");
    let text = fs::read_to_string(fixtures.join(format!("{dialect}.txt"))).unwrap();
    let record = |line: &str| {
        let (from, message) = line.split_once(' ').unwrap();
        let direction = match from {
            ">" => "c2a",
            _ => "a2c",
        };
        format!("{{\"dir\":\"{direction}\",\"msg\":{message}}}\n")
    };
    text.lines().map(record).collect()
}

fn checked(dialect: &str, recording: &str) -> (Summary, Vec<Diagnostic>) {
    let mut found = Vec::new();
    let summary = judge::check(
        recording.as_bytes(),
        Schemas::dialect(dialect).unwrap(),
        &CheckOptions::default(),
        |finding| found.push(finding),
        |_| {},
    );
    (summary.unwrap(), found)
}

#[test]
fn recorded_conversations_fit_the_documents_of_their_dialects() {
    for dialect in Schemas::dialects() {
        let recording = recording(dialect);
        let lines = recording.lines().count() as u64;
        let (summary, found) = checked(dialect, &recording);
        assert_eq!(found, [], "{dialect}");
        assert_eq!((summary.messages(), summary.lines), (lines, lines));
        assert_eq!(
            summary.agent.valid + summary.client.valid,
            lines,
            "{dialect}"
        );
        let expected = Spoken {
            version: 0,
            dialect: Some(dialect),
            basis: Basis::Given,
        };
        assert_eq!(summary.protocol, Some(expected));
        // Without directions too, which follow from the methods.
        let plain = recording
            .replace("{\"dir\":\"c2a\",\"msg\":", "")
            .replace("{\"dir\":\"a2c\",\"msg\":", "");
        let plain: String = plain
            .lines()
            .map(|line| format!("{}\n", &line[..line.len() - 1]))
            .collect();
        let (summary, found) = checked(dialect, &plain);
        // Both sides may cancel.
        let of_both = recording.matches("$/cancelRequest").count() as u64;
        assert_eq!((found, summary.unknown), (Vec::new(), of_both), "{dialect}");
    }
}

/// A dialect, a line of its recording with what is replaced in it, and the method and the pointer of what is
/// found there.
type Broken = (
    &'static str,
    u64,
    [&'static str; 2],
    &'static str,
    &'static str,
);

const BROKEN: [Broken; 10] = [
    // Notifications, results, requests, methods, ids and errors.
    (
        "chimera",
        5,
        [r#""lo""#, "7"],
        "agent/messageChunk",
        "/params/text",
    ),
    (
        "chimera",
        2,
        [r#"{"session_id":"session-1"}"#, "{}"],
        "session/create",
        "/result",
    ),
    (
        "chimera",
        7,
        [r#""think""#, "null"],
        "session/sendMessage",
        "/params/message",
    ),
    (
        "chimera",
        8,
        ["thoughtChunk", "thought"],
        "agent/thought",
        "/method",
    ),
    ("chimera", 20, [r#""id":6,"#, ""], "session/fork", "/id"),
    (
        "otter-acp",
        3,
        [r#""/w""#, "1"],
        "session/new",
        "/params/cwd",
    ),
    (
        "otter-acp",
        28,
        ["-32000", r#""-32000""#],
        "session/message",
        "/error/code",
    ),
    (
        "otter-http-acp",
        9,
        [r#""status""#, r#""state""#],
        "session/turn",
        "/result",
    ),
    (
        "otter-http-acp",
        13,
        [r#""evt-10""#, "10"],
        "toolResult",
        "/params/id",
    ),
    (
        "otter-http-acp",
        19,
        ["-32603", "1.5"],
        "session/turn",
        "/error/code",
    ),
];

#[test]
fn what_breaks_the_document_is_an_error_at_its_place() {
    for (dialect, place, [from, to], method, pointer) in BROKEN {
        let recording = recording(dialect);
        let lines = (1..).zip(recording.lines()).map(|(number, line)| {
            let broken = line.replacen(from, to, 1);
            assert!(number != place || line != broken, "{line}");
            match number == place {
                true => broken + "\n",
                false => format!("{line}\n"),
            }
        });
        let (summary, found) = checked(dialect, &lines.collect::<String>());
        let at: Vec<_> = found
            .iter()
            .map(|found| {
                let method = found.finding.method.as_deref().unwrap_or_default();
                (found.finding.place, method, found.finding.pointer.as_str())
            })
            .collect();
        assert_eq!(
            at.first(),
            Some(&(place, method, pointer)),
            "{dialect}: {found:?}"
        );
        assert!(found.iter().all(|found| found.level == Level::Error));
        assert!(found.iter().all(|found| found.requirement.is_none()));
        assert_eq!(summary.errors, found.len() as u64);
    }
}

#[test]
fn the_rules_of_acp_are_not_those_of_a_dialect() {
    // A version of Otter, which ACP has not.
    let otter =
        recording("otter-acp").replacen("\"params\":{}", "\"params\":{\"protocolVersion\":9}", 1);
    let (_, found) = checked(
        "otter-acp",
        &otter.replace("\"protocolVersion\":2", "\"protocolVersion\":9"),
    );
    assert_eq!(found, []);
    // A result that may not be null.
    let chimera = recording("chimera").replace("{\"session_id\":\"session-2\"}", "null");
    let (_, found) = checked("chimera", &chimera);
    assert_eq!(found[0].finding.rule, FindingKind::Schema);
    assert!(Schemas::dialect("acp").is_err());
}
