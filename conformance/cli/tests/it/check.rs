//! `acp-conformance check` on recordings small enough to read.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// A turn with a permission request whose id collides with the client's, an
/// error scenario at its end, and a client that probes.
const TURN: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientInfo":{"name":"c","version":"1"}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[]}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"s","prompt":[{"type":"text","text":"hi"}]}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"sessionId":7}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"no"}}}
{"dir":"c2a","raw":"{oops"}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}}
"#;

struct Folder(TempDir);

impl Folder {
    fn with(files: &[(&str, &str)]) -> Self {
        let folder = TempDir::new().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        Self(folder)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn check(&self, options: &[&str]) -> Ran {
        let mut args: Vec<String> = vec!["check".into()];
        args.extend(options.iter().map(|option| (*option).to_owned()));
        args.push(self.0.path().display().to_string());
        acp_conformance(args)
    }
}

#[test]
fn a_clean_recording_is_conformant() {
    let ran = Folder::with(&[("turn.jsonl", TURN)]).check(&[]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(
        ran.stdout
            .contains("agent   7 messages: 7 valid, 0 invalid")
    );
    assert!(ran.stdout.ends_with("conformant\n"), "{}", ran.stdout);
    assert_eq!(ran.stderr, "");
}

#[test]
fn one_broken_field_is_found_with_its_file_line_method_and_path() {
    let cases = [
        (
            r#""text":"hi"}}}}"#,
            r#""text":1}}}}"#,
            8,
            "session/update",
            "/params/update/content/text",
        ),
        (
            "allow_once",
            "maybe",
            6,
            "session/request_permission",
            "/params/options/0/kind",
        ),
        (
            "end_turn",
            "finished",
            9,
            "session/prompt",
            "/result/stopReason",
        ),
        (
            r#""result":{"sessionId":"s"}"#,
            r#""result":{"session":"s"}"#,
            4,
            "session/new",
            "/result",
        ),
        (
            r#""outcome":"selected""#,
            r#""outcome":"yes""#,
            7,
            "session/request_permission",
            "/result/outcome/outcome",
        ),
        (
            r#""cwd":"/w""#,
            r#""cwd":["/w"]"#,
            3,
            "session/new",
            "/params/cwd",
        ),
        ("-32602", "\"x\"", 11, "session/prompt", "/error/code"),
    ];
    for (whole, broken, line, method, pointer) in cases {
        let text = TURN.replacen(whole, broken, 1);
        assert_ne!(text, TURN, "{whole} is there to be broken");
        let folder = Folder::with(&[("turn.jsonl", &text)]);
        let ran = folder.check(&[]);
        assert_eq!(ran.code, Some(1), "{whole}: {}", ran.stdout);
        let row = match line {
            3 | 7 => "client.only-messages",
            _ => "jsonrpc.schema",
        };
        let place = format!("{}:{line}: error[{row}]", folder.at("turn.jsonl").display());
        let found = ran.stdout.lines().find(|text| text.starts_with(&place));
        let found = found.unwrap_or_else(|| panic!("{whole}: no {place} in {}", ran.stdout));
        assert!(
            found.contains(&format!("{method} at {pointer}: ")),
            "{found}"
        );
    }
}

#[test]
fn a_probe_of_the_client_is_a_note_and_notes_are_shown_when_asked() {
    let folder = Folder::with(&[("turn.jsonl", TURN)]);
    assert!(!folder.check(&[]).stdout.contains("note["));
    let ran = folder.check(&["--notes"]);
    assert_eq!(ran.code, Some(0));
    assert!(
        ran.stdout.contains(
            ":10: note[client.only-messages] client: session/prompt at /params/sessionId: "
        )
    );
}

#[test]
fn warnings_decide_only_when_strict() {
    let twice = r#""options":[{"optionId":"y","name":"Also","kind":"allow_always"},"#;
    let twice = TURN.replace(r#""options":["#, twice);
    let folder = Folder::with(&[("turn.jsonl", &twice)]);
    let ran = folder.check(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains(":6: warning[tool-calls.option-ids] agent: session/request_permission")
    );
    assert_eq!(folder.check(&["--strict"]).code, Some(1));
}

#[test]
fn a_subject_answers_for_its_own_messages() {
    let text = TURN.replace(r#""cwd":"/w""#, r#""cwd":["/w"]"#);
    let folder = Folder::with(&[("turn.jsonl", &text)]);
    assert_eq!(folder.check(&["--side", "agent"]).code, Some(0));
    assert_eq!(folder.check(&["--side", "client"]).code, Some(1));
}

#[test]
fn json_is_one_object_a_line() {
    let text = TURN.replace("end_turn", "finished");
    let ran = Folder::with(&[("turn.jsonl", &text)]).check(&["--json"]);
    let entries: Vec<Value> = ran
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let types: Vec<_> = entries
        .iter()
        .map(|entry| entry["type"].as_str().unwrap())
        .collect();
    assert_eq!(types, ["finding", "file", "total"]);
    assert_eq!(entries[0]["place"], 9);
    assert_eq!(entries[0]["pointer"], "/result/stopReason");
    assert_eq!(entries[0]["by"], "agent");
    assert_eq!(entries[2]["conformant"], false);
    assert_eq!(entries[2]["agent"]["valid"], 6);
}

#[test]
fn plain_ndjson_and_text_that_is_neither() {
    let plain = "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{}}\nnoise\n";
    let folder = Folder::with(&[("plain.ndjson", plain)]);
    let ran = folder.check(&[]);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stdout
            .contains(":1: error[jsonrpc.schema] agent: session/update at /params: ")
    );
    assert!(
        ran.stdout
            .contains(":2: error[transports.only-messages]: not JSON: "),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_cut_recording_is_checked_up_to_the_cut() {
    let folder = Folder::with(&[("turn.jsonl", &TURN[..TURN.len() - 20])]);
    let ran = folder.check(&[]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(
        ran.stdout
            .contains(":13: warning[lost]: the last line is cut off")
    );
}

#[test]
fn what_cannot_be_read_is_not_a_verdict() {
    let ran = acp_conformance(["check", "/no/such/file.jsonl"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr.contains("cannot read /no/such/file.jsonl: "),
        "{}",
        ran.stderr
    );
    let ran = Folder::with(&[("notes.txt", "")]).check(&[]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("holds no recording"), "{}", ran.stderr);
    assert_eq!(acp_conformance(["check"]).code, Some(2));
}

#[test]
fn of_several_files_only_those_with_findings_are_listed() {
    let broken = TURN.replace("allow_once", "maybe");
    let folder = Folder::with(&[("good.jsonl", TURN), ("bad.jsonl", &broken)]);
    let ran = folder.check(&[]);
    assert!(!ran.stdout.contains("good.jsonl"), "{}", ran.stdout);
    let says = "2 files (1 without errors and warnings; --notes lists all), ";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
    let all = folder.check(&["--notes"]).stdout;
    assert!(
        all.contains("good.jsonl: ") && all.contains("\n2 files, "),
        "{all}"
    );
}

/// A message of Chimera's client, whose agent sends a number as text.
const CHIMERA: &str = r#"{"dir":"c2a","msg":{"jsonrpc":"2.0","id":1,"method":"session/create","params":{"working_dir":"."}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":1,"result":{"session_id":"s"}}}
{"dir":"c2a","msg":{"jsonrpc":"2.0","id":2,"method":"session/sendMessage","params":{"session_id":"s","message":"hi"}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","method":"agent/messageChunk","params":{"text":7}}}
{"dir":"a2c","msg":{"jsonrpc":"2.0","id":2,"result":{}}}
"#;

#[test]
fn a_dialect_is_judged_by_its_document() {
    let folder = Folder::with(&[("chimera.jsonl", CHIMERA)]);
    let ran = folder.check(&["--dialect", "chimera"]);
    assert_eq!(ran.code, Some(1), "{ran:?}");
    let expected =
        "chimera.jsonl:4: error[schema] agent: agent/messageChunk at /params/text: 7 is not";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
    assert!(
        ran.stdout.contains(", dialect chimera: 1 error"),
        "{}",
        ran.stdout
    );
    let ran = folder.check(&["--dialect", "chimera", "--json"]);
    let total: Value = serde_json::from_str(ran.stdout.lines().nth(1).unwrap()).unwrap();
    let expected = serde_json::json!({ "dialect": "chimera", "basis": "given" });
    assert_eq!(total["protocol"], expected);
    let ran = folder.check(&["--dialect", "acp"]);
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(
        ran.stderr
            .contains("chimera, openoxide, otter-acp, otter-http-acp"),
        "{ran:?}"
    );
}
