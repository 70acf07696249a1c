//! Documents that are damaged: an error that says where, what and what to do, never a
//! panic, and never half-written output.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use acp_codegen::vectors::vectors;
use acp_codegen::{Document, Options, generate};
use serde_json::{Map, Value, json};

/// Files, arguments, and what the error must have in it: file, place, remedy.
type Row = (
    &'static [(&'static str, &'static str)],
    &'static [&'static str],
    &'static [&'static str],
);

const ROWS: &[Row] = &[
    (
        &[("doc.json", r#"{"$defs": {"A": {"type": "string"}"#)],
        &["doc.json"],
        &["doc.json: not JSON", "line 1 column 34"],
    ),
    (
        &[("doc.json", r#"{"definitions": {}}"#)],
        &["doc.json"],
        &["doc.json: /$defs: not an object; put the definitions here"],
    ),
    (
        &[(
            "doc.json",
            r##"{"$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}}}}}"##,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A/properties/b/$ref: no definition `B`; define it or correct the name"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"ARequest": {"type": "object", "x-method": "a", "x-side": "agent"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/ARequest: no response for `a`", "mark one"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"AResponse": {"type": "object", "x-method": "a", "x-side": "agent"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/AResponse: no request for `a`", "mark one"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"ANotification": {"type": "object", "x-method": "a", "x-side": "The User"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/ANotification/x-side: missing or not a name; use a role such as agent"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"type": "string", "x-sied": "agent"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A/x-sied: unknown keyword; expected one of x-method"],
    ),
    (
        &[
            ("doc.json", r#"{"$defs": {"A": {"type": "string"}}}"#),
            ("more.json", r#"{"$defs": {"A": {"type": "string"}}}"#),
        ],
        &["doc.json", "--overlay", "more.json"],
        &["more.json: /$defs/A: already defined in doc.json; change it with `x-patch`"],
    ),
    (
        &[
            ("doc.json", r#"{"$defs": {"A": {"type": "string"}}}"#),
            (
                "more.json",
                r#"{"x-patch": [{"op": "remove", "path": "/$defs/B"}]}"#,
            ),
        ],
        &["doc.json", "--overlay", "more.json"],
        &[
            "more.json: /x-patch/0: remove at `/$defs/B`",
            "the path is that of the document",
        ],
    ),
    (
        &[
            ("doc.json", r#"{"$defs": {"A": {"type": "string"}}}"#),
            (
                "more.json",
                r#"{"$defs": {"B": {"allOf": [{"type": "string"}, {"type": "integer"}]}}}"#,
            ),
        ],
        &["doc.json", "--overlay", "more.json"],
        // The file of the overlay, for the place is in it.
        &["more.json: /$defs/B: the parts of an `allOf` differ in `type`; compose objects only"],
    ),
    (
        &[(
            "doc.json",
            r##"{"$defs": {"A": {"type": "object", "properties": {"b": {"$ref": "#/$defs/B"}},
                "required": ["b"]}, "B": {"allOf": [{"$ref": "#/$defs/A"}]}}}"##,
        )],
        &["doc.json"],
        &[
            "doc.json: /$defs/A: infinitely recursive",
            "`A` > `B` > `A`",
            "make a member of the cycle optional",
        ],
    ),
    (
        &[("doc.json", r#"{"$defs": {"A": {"type": "strin"}}}"#)],
        &["doc.json"],
        &[r#"doc.json: /$defs/A/type: unknown type "strin"; expected one of null, boolean"#],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"ANotification": {"type": "object", "x-method": "", "x-side": "agent"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/ANotification/x-method: not the name of a method"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"ANotification": {"type": "object", "x-side": "agent"}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/ANotification/x-side: a side without a method"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["b"]}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A/required: no member `b` among the properties; correct the name"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"type": "object", "properties": {"a": {"type": "string", "default": 5}}}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A/properties/a/default: 5 does not match the `type` beside it"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "A"}]}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A: the values `a` and `A` would both be `A` in Rust; give them names"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"oneOf": [{"type": "string", "const": "a"}, {"type": "string", "const": "a"}]}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A: two values are called `a`"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"anyOf": [{"type": "integer", "const": 1, "title": "a"}, {"type": "integer", "const": 2, "title": "A"}, {"type": "integer"}]}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A: the values `a` and `A` would both be `A` in Rust"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"oneOf": [{"type": "object", "properties": {"t": {"const": "x"}}, "required": ["t"]}, {"type": "object", "properties": {"t": {"const": "x"}}, "required": ["t"]}]}}}"#,
        )],
        &["doc.json"],
        &["doc.json: /$defs/A: two variants are called `x`"],
    ),
    (
        &[(
            "doc.json",
            r#"{"$defs": {"A": {"type": "object", "properties": {"a-b": {"type": "string"}, "a_b": {"type": "string"}}}}}"#,
        )],
        &["doc.json"],
        &["the members `a-b` and `a_b` would both be `a_b` in Rust"],
    ),
    (
        &[
            ("doc.json", r#"{"$defs": {"A": {"type": "string"}}}"#),
            ("more.json", "["),
        ],
        &["doc.json", "--overlay", "more.json"],
        &["more.json: not JSON"],
    ),
];

#[test]
fn each_fault_is_told_with_file_place_and_remedy_and_nothing_is_written() {
    for (files, arguments, expected) in ROWS {
        for (command, out) in [("generate", "out.rs"), ("vectors", "vectors")] {
            let directory = tempfile::tempdir().unwrap();
            for (name, text) in *files {
                std::fs::write(directory.path().join(name), text).unwrap();
            }
            let output = Command::new(env!("CARGO_BIN_EXE_acp-codegen"))
                .current_dir(directory.path())
                .arg(command)
                .args(*arguments)
                .args(["--out", out])
                .output()
                .unwrap();
            let error = String::from_utf8(output.stderr).unwrap();
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(output.stdout.is_empty());
            for part in *expected {
                assert!(error.contains(part), "{part}\nis not in\n{error}");
            }
            let written = std::fs::read_dir(directory.path()).unwrap().count();
            assert_eq!(written, files.len(), "{error}");
        }
    }
}

/// What takes the place of each part of a document in turn.
fn damages() -> Vec<Value> {
    vec![
        Value::Null,
        (-1).into(),
        "".into(),
        "1type".into(),
        json!([]),
        json!({ "type": "object" }),
    ]
}

/// What takes the place of each name in turn.
const NAMES: [&str; 3] = ["", "self", "a/b~c"];

/// Returns whether the generator panics for a document, or generates code without vectors for it.
fn panics(text: &str) -> bool {
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        if let Ok(document) = Document::parse("damaged.json", text) {
            let generated = generate(&document, &Options::other());
            // What can be generated has vectors.
            let vectors = vectors(&document);
            assert!(
                generated.is_err() || vectors.is_ok(),
                "no vectors: {vectors:?}"
            );
        }
    }));
    outcome.is_err()
}

#[test]
fn no_damage_to_a_document_makes_the_generator_panic() {
    let cases = std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases")).unwrap();
    let mut texts = Vec::new();
    for case in cases {
        let text = std::fs::read_to_string(case.unwrap().path().join("schema.json")).unwrap();
        let document: Value = serde_json::from_str(&text).unwrap();
        // Each eleventh is enough to meet every pass with every damage: the number shares no factor
        // with those of values and names that take a place in turn.
        let damaged = all_damages(&document).into_iter().step_by(11);
        texts.extend(damaged.map(|damaged| damaged.to_string()));
    }
    let tried = texts.len();
    // No other test runs for this long, so it takes all cores.
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let panics: Vec<&String> = std::thread::scope(|scope| {
        let texts = &texts;
        let panicking = move |first| {
            let part = texts.iter().skip(first).step_by(threads);
            part.filter(|text| panics(text)).collect::<Vec<_>>()
        };
        let started: Vec<_> = (0..threads)
            .map(|first| scope.spawn(move || panicking(first)))
            .collect();
        let ended = started.into_iter();
        ended.flat_map(|part| part.join().unwrap()).collect()
    });
    assert!(tried > 1_000, "only {tried}");
    assert!(
        panics.is_empty(),
        "{} of {tried} panic:\n{}",
        panics.len(),
        panics
            .iter()
            .take(20)
            .map(|text| text.as_str())
            .collect::<Vec<_>>()
            .join("\n")
    );
}

/// The document with each part replaced, each name changed, each member removed.
fn all_damages(value: &Value) -> Vec<Value> {
    let mut all = damages();
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let with = |changed: Option<(&str, Value)>| {
                    let mut copy = Map::new();
                    for (other, value) in members {
                        match &changed {
                            _ if other != name => drop(copy.insert(other.clone(), value.clone())),
                            Some((name, value)) => {
                                copy.insert((*name).to_owned(), value.clone());
                            }
                            None => {}
                        }
                    }
                    Value::Object(copy)
                };
                all.push(with(None));
                all.extend(NAMES.map(|other| with(Some((other, member.clone())))));
                let inner = all_damages(member).into_iter();
                all.extend(inner.map(|damaged| with(Some((name, damaged)))));
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                for damaged in all_damages(item) {
                    let mut copy = items.clone();
                    copy[index] = damaged;
                    all.push(copy.into());
                }
                let mut copy = items.clone();
                copy.remove(index);
                all.push(copy.into());
            }
        }
        _ => {}
    }
    all
}

#[test]
fn a_file_that_is_not_utf8_says_where() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("doc.json"), b"{\n\"$defs\xff\": {}}").unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_acp-codegen"))
        .current_dir(directory.path())
        .args(["methods", "doc.json"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    let expected = "acp-codegen: doc.json: not UTF-8 from byte 8 on, in line 2; save it as UTF-8\n";
    assert_eq!(said, expected);
}

/// A list of its like has a value, the empty list, though none that is full.
#[test]
fn a_list_of_lists_has_vectors() {
    let text = r##"{"$defs": {"A": {"type": "array", "items": {"$ref": "#/$defs/A"}}}}"##;
    let document = Document::parse("doc.json", text).unwrap();
    let all = vectors(&document).unwrap();
    assert!(
        all[0]
            .vectors
            .iter()
            .any(|vector| vector.value == json!([]))
    );
}
