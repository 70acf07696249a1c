//! The command as its users meet it.

#![allow(clippy::unwrap_used, reason = "a helper of tests fails by panicking")]

use std::path::Path;
use std::process::{Command, Output};

/// Runs the command in `directory`.
fn run(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-codegen"));
    command
        .current_dir(directory)
        .args(arguments)
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn methods_as_a_table_and_as_json() {
    let directory = tempfile::tempdir().unwrap();
    let table = text(&run(directory.path(), &["methods"]).stdout);
    assert_eq!(table.lines().count(), 26, "{table}");
    let prompt = table
        .lines()
        .find(|line| line.starts_with("session/prompt "))
        .unwrap();
    let words: Vec<&str> = prompt.split_whitespace().collect();
    assert_eq!(
        words,
        ["session/prompt", "agent", "PromptRequest", "PromptResponse"]
    );

    let json = text(&run(directory.path(), &["methods", "--json"]).stdout);
    let methods: Vec<serde_json::Value> = serde_json::from_str(&json).unwrap();
    let cancel = methods
        .iter()
        .find(|method| method["method"] == "session/cancel")
        .unwrap();
    assert_eq!(cancel["params"], "CancelNotification");
    assert!(cancel["result"].is_null());
}

#[test]
fn a_file_is_replaced_whole_or_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("schema.json");
    let out = directory.path().join("out.rs");
    std::fs::write(&schema, r#"{"$defs": {"A": {"type": "string"}}}"#).unwrap();
    let output = run(
        directory.path(),
        &["generate", "schema.json", "--out", "out.rs"],
    );
    assert!(output.status.success(), "{output:?}");
    let first = std::fs::read_to_string(&out).unwrap();
    assert!(first.contains("pub struct A("), "{first}");
    assert_eq!(
        text(&run(directory.path(), &["generate", "schema.json"]).stdout),
        first
    );

    for broken in ["{", r#"{"$defs": {"A": false}}"#] {
        std::fs::write(&schema, broken).unwrap();
        let output = run(
            directory.path(),
            &["generate", "schema.json", "--out", "out.rs"],
        );
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert_eq!(std::fs::read_to_string(&out).unwrap(), first);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

/// Whoever runs this as root must not lose a device, nor whoever links to a file the link.
#[cfg(unix)]
#[test]
fn what_is_no_file_is_written_to_and_not_replaced() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("doc.json"), r#"{"$defs": {"A": {"type": "string"}}}"#).unwrap();
    std::fs::write(at("target.rs"), "old").unwrap();
    std::os::unix::fs::symlink("target.rs", at("link.rs")).unwrap();
    std::os::unix::fs::symlink("/dev/stdout", at("stream")).unwrap();
    let text_of = |out: &str| {
        let output = run(directory.path(), &["generate", "doc.json", "--out", out]);
        assert!(output.status.success(), "{output:?}");
        assert!(at(out).symlink_metadata().unwrap().is_symlink(), "{out}");
        text(&output.stdout)
    };
    assert_eq!(text_of("link.rs"), "");
    let written = std::fs::read_to_string(at("target.rs")).unwrap();
    assert!(written.contains("pub struct A("), "{written}");
    assert_eq!(text_of("stream"), written);
}

#[test]
fn a_place_that_cannot_be_written_is_explained() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("doc.json"),
        r#"{"$defs": {"A": {"type": "string"}}}"#,
    )
    .unwrap();
    for (command, out, words) in [
        (
            "generate",
            "no/such/out.rs",
            "no/such/out.rs: there is no directory no/such; make it",
        ),
        ("generate", ".", "acp-codegen: .: is a directory"),
        (
            "vectors",
            "doc.json",
            "doc.json: it is no directory; name another one",
        ),
    ] {
        let output = run(directory.path(), &[command, "doc.json", "--out", out]);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let said = text(&output.stderr);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn vectors_as_files_and_as_a_list() {
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("schema.json");
    std::fs::write(
        &schema,
        r#"{"$defs": {"A": {"type": "boolean"}, "B": {"type": "string"}}}"#,
    )
    .unwrap();
    let list = run(directory.path(), &["vectors", "schema.json"]);
    let list: Vec<serde_json::Value> = serde_json::from_slice(&list.stdout).unwrap();
    let output = run(
        directory.path(),
        &["vectors", "schema.json", "--out", "deep/vectors"],
    );
    assert!(output.status.success(), "{output:?}");
    for (name, listed) in ["A", "B"].iter().zip(&list) {
        let file = directory.path().join(format!("deep/vectors/{name}.json"));
        let file: serde_json::Value =
            serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        assert_eq!(&file, listed);
        assert!(!file["valid"].as_array().unwrap().is_empty(), "{file}");
    }

    std::fs::write(&schema, r##"{"$defs": {"A": {"$ref": "#/$defs/B"}}}"##).unwrap();
    let output = run(
        directory.path(),
        &["vectors", "schema.json", "--out", "other"],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(!directory.path().join("other").exists());
}

#[test]
fn differences_as_text_json_and_markdown() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(directory.path().join(name), text).unwrap();
    let document = |property: &str| {
        format!(
            r##"{{"$defs": {{"ANotification": {{
                "type": "object", "x-side": "agent", "x-method": "a",
                "properties": {{"n": {property}}}
            }}, "CNotification": {{"x-side": "client", "x-method": "c"}}}}}}"##
        )
    };
    write("old.json", &document(r#"{"type": "integer"}"#));
    write("new.json", &document(r#"{"type": "number"}"#));
    write(
        "more.json",
        r#"{"$defs": {"BNotification": {"x-side": "client", "x-method": "b"}}}"#,
    );
    let diff = |more: &[&str]| {
        let arguments = [&["diff", "old.json", "new.json"], more].concat();
        let output = run(directory.path(), &arguments);
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    };
    assert_eq!(
        diff(&[]),
        "ANotification.n: is number in place of integer  [breaking for agents]\n\
         1 change, 1 breaking for agents, 0 breaking for clients\n"
    );
    assert_eq!(
        diff(&["--overlay", "more.json"]).lines().next(),
        Some("b: notification to clients added")
    );
    let json: serde_json::Value = serde_json::from_str(&diff(&["--format", "json"])).unwrap();
    assert_eq!(
        json,
        serde_json::json!([{
            "at": "ANotification.n",
            "change": "is number in place of integer",
            "agents": "breaking",
            "clients": "compatible",
        }])
    );
    let markdown = diff(&["--format", "markdown"]);
    assert_eq!(
        markdown.lines().last(),
        Some("| `ANotification.n` | is number in place of integer | **breaking** | compatible |")
    );
    // Each side can be protected from what breaks it.
    let denied = |side: &[&str]| {
        let arguments = [&["diff", "old.json", "new.json", "--deny-breaking"], side].concat();
        let output = run(directory.path(), &arguments);
        assert!(text(&output.stdout).starts_with("ANotification.n: is number"));
        (output.status.code(), text(&output.stderr))
    };
    let refusal = "denied: ANotification.n: is number in place of integer  [breaking for agents]\n";
    assert_eq!(denied(&[]), (Some(1), refusal.to_owned()));
    assert_eq!(denied(&["agent"]), (Some(1), refusal.to_owned()));
    assert_eq!(denied(&["client"]), (Some(0), String::new()));
    let (code, message) = denied(&["kernel"]);
    assert_eq!(code, Some(1));
    assert!(
        message.contains("no role `kernel`") && message.contains("agent, client"),
        "{message}"
    );
    write("new.json", "{");
    let output = run(directory.path(), &["diff", "old.json", "new.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("new.json"), "{output:?}");
}

#[test]
fn derived_schemas_become_an_overlay_that_the_document_takes() {
    let directory = tempfile::tempdir().unwrap();
    let schema = directory.path().join("schemas.json");
    let marked = |title: &str| {
        format!(
            r#"{{"title": "{title}", "type": "object", "x-method": "_example/ping", "x-side": "agent"}}"#
        )
    };
    let both = format!("[{}, {}]", marked("PingRequest"), marked("PingResponse"));
    std::fs::write(&schema, both).unwrap();
    let output = run(
        directory.path(),
        &["export", "schemas.json", "--out", "overlay.json"],
    );
    assert!(output.status.success(), "{output:?}");
    let table = run(directory.path(), &["methods", "--overlay", "overlay.json"]);
    assert!(text(&table.stdout).contains("_example/ping"), "{table:?}");

    // A request without a response is no overlay.
    std::fs::write(&schema, marked("PingRequest")).unwrap();
    let output = run(
        directory.path(),
        &["export", "schemas.json", "--out", "other.json"],
    );
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr).contains("/$defs/PingRequest"),
        "{output:?}"
    );
    assert!(!directory.path().join("other.json").exists());
}

#[test]
fn errors_name_the_file_and_what_to_do() {
    let directory = tempfile::tempdir().unwrap();
    let output = run(directory.path(), &["generate", "absent.json"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("absent.json"), "{output:?}");
    assert!(output.stdout.is_empty());
    let output = run(directory.path(), &["generate", "--out", "no/such/out.rs"]);
    assert!(
        text(&output.stderr).contains("no/such/out.rs"),
        "{output:?}"
    );
    assert_eq!(
        run(directory.path(), &["generate", "--nonsense"])
            .status
            .code(),
        Some(2)
    );
}

#[test]
fn a_document_comes_from_standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_acp-codegen"));
    let mut child = command
        .current_dir(directory.path())
        .args(["methods", "-"])
        .stdin(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    use std::io::Write as _;
    let document = "\u{feff}{\"$defs\": {\n\"A\": {},\n\"A\": {}}}";
    let mut input = child.stdin.take().unwrap();
    input.write_all(document.as_bytes()).unwrap();
    drop(input);
    let said = text(&child.wait_with_output().unwrap().stderr);
    let expected = "acp-codegen: standard input: a second member `A` in one object";
    assert!(said.starts_with(expected), "{said}");
}

#[test]
fn the_bundled_documents_of_both_versions_are_at_hand() {
    let directory = tempfile::tempdir().unwrap();
    let methods = |arguments: &[&str]| {
        let output = run(directory.path(), &[&["methods"], arguments].concat());
        assert!(output.status.success(), "{output:?}");
        text(&output.stdout)
    };
    let (first, second) = (methods(&[]), methods(&["--protocol", "2"]));
    assert!(first.contains("\nsession/load ") && !first.contains("\nauth/login "));
    assert!(second.contains("\nauth/login ") && !second.contains("\nproviders/list "));
    assert!(methods(&["--protocol", "2", "--unstable"]).contains("\nproviders/list "));
    assert!(methods(&["--unstable"]).contains("\nproviders/list "));
    let output = run(
        directory.path(),
        &["methods", "--protocol", "2", "doc.json"],
    );
    assert_eq!(
        output.status.code(),
        Some(2),
        "a file is of no bundled version"
    );
    let arguments = ["generate", "--protocol", "2", "--unstable"];
    let generated = run(directory.path(), &arguments);
    assert!(text(&generated.stdout).contains("pub struct ListProvidersRequest"));
}
