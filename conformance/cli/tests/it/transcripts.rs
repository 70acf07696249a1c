//! `--transcripts`: the suite's own traffic as recordings, and `--badge`.

use std::collections::BTreeSet;
use std::fs;

use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// Runs a command with transcripts, and checks these. Returns the report, and the names of the files.
fn recorded(folder: &TempDir, command: &[&str], side: &str) -> (Value, BTreeSet<String>) {
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (traffic, json, html) = (at("traffic"), at("report.json"), at("out.html"));
    let outputs = ["--transcripts", &traffic, "--json", &json, "--html", &html];
    let ran = acp_conformance(command.iter().chain(&outputs));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let files = fs::read_dir(&traffic).unwrap();
    let files = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let files: BTreeSet<_> = files.collect();

    let ran = acp_conformance(["check", "--json", "--side", side, &traffic]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let lines = ran.stdout.lines();
    let lines: Vec<Value> = lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let checked = lines.iter().filter(|line| line["type"] == "file");
    let checked = checked.filter(|file| file["lines"].as_u64() > Some(0));
    assert_eq!(checked.count(), files.len());
    for line in &lines {
        // A line that is no record.
        assert_ne!(line["rule"], "record", "{line}");
        let is_error = line["level"] == "error" && line["by"] == side;
        assert!(!is_error, "{line}");
    }

    let report: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    assert_eq!(report["transcripts"], traffic.as_str());
    let page = fs::read_to_string(&html).unwrap();
    for row in report["requirements"].as_array().unwrap() {
        for file in row["transcripts"].as_array().into_iter().flatten() {
            let file = file.as_str().unwrap();
            assert!(files.contains(file), "{file}");
            assert!(
                page.contains(&format!("<a href=\"traffic/{file}\">")),
                "{file}"
            );
        }
    }
    (report, files)
}

/// The rows of a report that have transcripts.
fn rows(report: &Value) -> impl Iterator<Item = (&str, &Vec<Value>)> {
    let rows = report["requirements"].as_array().unwrap().iter();
    rows.filter_map(|row| Some((row["id"].as_str()?, row["transcripts"].as_array()?)))
}

#[test]
fn the_traffic_with_an_agent_is_recorded_and_can_be_checked() {
    for protocol in ["1", "2"] {
        let folder = TempDir::new().unwrap();
        let command = ["agent", "--protocol", protocol];
        let (report, files) = recorded(&folder, &command, "agent");
        for (id, transcripts) in rows(&report) {
            let first = transcripts[0].as_str().unwrap();
            assert_eq!(first, format!("{id}.jsonl"));
        }
        let named = rows(&report).flat_map(|(_, names)| names);
        let named: BTreeSet<_> = named.filter_map(Value::as_str).collect();
        let others = files.iter().map(String::as_str);
        let others: Vec<_> = others.filter(|file| !named.contains(file)).collect();
        let expected = [
            "exploration-2.jsonl",
            "exploration.jsonl",
            "preflight.jsonl",
        ];
        assert_eq!(others, expected);
        // What acts has a transcript, on a connection that it shares or on one of its own.
        for id in ["initialization.same-version", "content.text"] {
            assert!(files.contains(&format!("{id}.jsonl")), "{id}: {files:?}");
        }
    }
}

#[test]
fn what_an_agent_breaks_by_the_way_has_the_transcript_in_which_it_does() {
    let folder = TempDir::new().unwrap();
    let traffic = folder.path().join("traffic");
    let options = ["--only", "plan", "--broken", "empty-plan", "--transcripts"];
    let command = ["agent", "--json", "-"].iter().chain(&options);
    let ran = acp_conformance(command.chain([&traffic.to_str().unwrap()]));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let (_, files) = rows(&report).find(|(id, _)| *id == "plan.entries").unwrap();
    let text = fs::read_to_string(traffic.join(files[0].as_str().unwrap())).unwrap();
    assert!(text.contains("\"content\":\" \""), "{text}");
}

/// Runs a broken reference agent with transcripts. Returns the run, and the folder of the transcripts.
fn broken(folder: &TempDir, protocol: &str, mutant: &str, only: &str) -> (Ran, String) {
    let traffic = folder.path().join("traffic").to_str().unwrap().to_owned();
    let options = ["--strict", "--protocol", protocol, "--broken", mutant];
    let outputs = ["--only", only, "--json", "-", "--transcripts", &traffic];
    let ran = acp_conformance(["agent"].iter().chain(&options).chain(&outputs));
    (ran, traffic)
}

#[test]
fn a_run_and_a_check_of_its_transcripts_decide_the_same() {
    let id = "tool-calls.option-ids";
    // Version 2 has a sentence with MUST for it.
    for (protocol, mutant, level) in [
        ("1", "options-of-one-id", "warning"),
        ("2", "v2-same-options", "error"),
    ] {
        let folder = TempDir::new().unwrap();
        let (ran, traffic) = broken(&folder, protocol, mutant, id);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["requirements"][0]["verdict"], "fail");
        let checked = acp_conformance(["check", "--strict", "--side", "agent", &traffic]);
        assert_eq!(checked.code, ran.code, "{checked:?}");
        let found = format!("{level}[{id}] agent: session/request_permission");
        assert!(checked.stdout.contains(&found), "{checked:?}");
        let others = checked
            .stdout
            .lines()
            .filter(|line| line.contains("] agent: "));
        assert!(
            others.clone().all(|line| line.contains(&found)),
            "{checked:?}"
        );
    }
}

/// An agent that answers a login with a token.
#[test]
fn reports_and_transcripts_of_a_login_have_no_secrets() {
    for (protocol, mutant, login) in [
        ("1", "login-with-a-result", "authenticate"),
        ("2", "v2-login-with-a-result", "auth/login"),
    ] {
        let folder = TempDir::new().unwrap();
        let only = "authentication.authenticate";
        let (ran, traffic) = broken(&folder, protocol, mutant, only);
        assert_eq!(ran.code, Some(1), "{}{}", ran.stdout, ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let failure = &report["requirements"][0];
        assert!(
            failure["sent"].as_str().unwrap().contains(login),
            "{failure}"
        );
        let shown = r#""token":"[redacted]""#;
        assert!(
            failure["came"].as_str().unwrap().contains(shown),
            "{failure}"
        );
        let file = std::path::Path::new(&traffic).join(format!("{only}.jsonl"));
        let text = fs::read_to_string(file).unwrap();
        assert!(
            text.contains(shown) && !text.contains(r#""token":"x""#),
            "{text}"
        );
    }
}

#[test]
fn the_traffic_with_a_client_is_recorded_by_scenario() {
    let folder = TempDir::new().unwrap();
    let (report, files) = recorded(&folder, &["client"], "client");
    let rows: Vec<_> = rows(&report).collect();
    assert_eq!(rows.len(), report["requirements"].as_array().unwrap().len());
    assert!(files.contains("hello.jsonl"), "{files:?}");
}

#[test]
fn a_folder_with_files_is_refused_before_anything_is_run() {
    let folder = TempDir::new().unwrap();
    fs::write(folder.path().join("old.jsonl"), "").unwrap();
    let path = folder.path().to_str().unwrap();
    for kind in ["agent", "client"] {
        let ran = acp_conformance([kind, "--transcripts", path]);
        assert_eq!((ran.code, ran.stdout.as_str()), (Some(2), ""));
        assert!(ran.stderr.contains("is not empty"), "{}", ran.stderr);
    }
}

#[test]
fn badges_have_the_format_that_their_names_say() {
    let folder = TempDir::new().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (svg, json, other) = (at("b.svg"), at("b.json"), at("b.png"));
    let only = ["agent", "--only", "initialization.answer"];
    let badges = ["--badge", &svg, "--badge", &json];
    assert_eq!(acp_conformance(only.iter().chain(&badges)).code, Some(0));
    assert!(fs::read_to_string(svg).unwrap().contains("conformant 1/1"));
    let json: Value = serde_json::from_str(&fs::read_to_string(json).unwrap()).unwrap();
    assert_eq!(json["message"], "conformant 1/1");
    let ran = acp_conformance(only.iter().chain(&["--badge", &other]));
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains(".svg or .json"), "{}", ran.stderr);
}
