//! `acp-conformance agent` and `list`: verdicts, exit codes, what a failure says.

use acp_conformance::requirements::{self, Tier};
use acp_conformance::wire::Version;
use serde_json::Value;
use tempfile::TempDir;

use crate::command::acp_conformance;

#[test]
fn the_reference_agent_is_conformant_and_everything_is_exercised() {
    let ran = acp_conformance(["agent"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let says = |text: &str| assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    says("Exercised 25 of 25 methods");
    says("Exercised 14 of 14 kinds of SessionUpdate");
    says("Exercised 5 of 5 kinds of ContentBlock");
    says(" of the agent, 0 of them invalid");
    says("\nconformant: ");
    says(" failed: 0 MUST, 0 derived, 0 SHOULD, 0 info; 0 inconclusive, 0 skipped");
}

#[test]
fn the_reference_agent_of_the_draft_is_conformant_and_skips_nothing() {
    let ran = acp_conformance(["agent", "--protocol", "2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let counts = " failed: 0 MUST, 0 derived, 0 SHOULD, 0 info; 0 inconclusive, 0 skipped";
    assert!(ran.stdout.contains(counts), "{}", ran.stdout);
}

#[test]
fn one_requirement_can_be_run_alone() {
    let ran = acp_conformance(["agent", "--json", "-", "--only", "initialization.answer"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let rows = report["requirements"].as_array().unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0]["id"], "initialization.answer");
    assert_eq!(rows[0]["verdict"], "pass");
    assert_eq!(report["conformant"], true);
    assert!(report.get("coverage").is_none());
}

#[test]
fn a_report_can_go_to_a_file_beside_the_text() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("report.json");
    let xml = folder.path().join("report.xml");
    let (json, junit) = (path.to_str().unwrap(), xml.to_str().unwrap());
    let ran = acp_conformance(["agent", "--only", "plan", "--json", json, "--junit", junit]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let xml = std::fs::read_to_string(xml).unwrap();
    assert!(
        xml.contains("<testcase classname=\"plan\" name=\"plan.entries\""),
        "{xml}"
    );
    assert!(ran.stdout.contains("plan "), "{}", ran.stdout);
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    assert_eq!(report["requirements"][0]["area"], "plan");
}

#[test]
fn the_whole_report_is_as_its_schema_says() {
    let options = [
        "agent",
        "--skip",
        "cancellation",
        "--skip",
        "info",
        "--json",
    ];
    let ran = acp_conformance(options);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let schema = serde_json::from_str(acp_conformance::report::SCHEMA).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<_> = validator
        .iter_errors(&report)
        .map(|violation| violation.to_string())
        .collect();
    assert!(faults.is_empty(), "{faults:?}");
    assert_eq!(report["kind"], "agent");
    assert_eq!(
        report["left_out"],
        serde_json::json!(["cancellation", "info"])
    );
    let rows = report["requirements"].as_array().unwrap();
    let all = requirements::of(Version::V1);
    let chosen = all.filter(|(area, row)| area.name != "cancellation" && row.tier != Tier::Info);
    assert_eq!(rows.len(), chosen.count());
    let left = rows
        .iter()
        .any(|row| row["area"] == "cancellation" || row["tier"] == "info");
    assert!(!left, "{}", ran.stdout);
    assert!(report["coverage"]["methods"].is_array());
}

#[cfg(unix)]
#[test]
fn a_build_shows_markdown_with_the_command_that_repeats_a_failure() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("summary.md");
    let options = [
        "agent",
        "--only",
        "initialization.answer",
        "--timeout",
        "2",
        "--prompt",
        "it's me",
        "--markdown",
        path.to_str().unwrap(),
    ];
    let ran = acp_conformance(options.iter().chain(&["--", "sh", "-c", REFUSES]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let summary = std::fs::read_to_string(path).unwrap();
    let says = |text: &str| assert!(summary.contains(text), "{text}: {summary}");
    says("### an agent without a name: not conformant\n");
    says("| initialization | 0/1 |");
    says("<b>initialization.answer</b> (must): expected a result of initialize");
    let again = "agent --only initialization.answer --prompt 'it'\\''s me' --timeout 2 -- sh -c";
    says(again);
    assert!(ran.stdout.contains(again), "{}", ran.stdout);
}

#[test]
fn a_file_that_cannot_be_written_is_named_before_anything_is_run() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("no/such/report.html");
    let path = path.to_str().unwrap();
    for target in ["agent", "client"] {
        let ran = acp_conformance([target, "--only", "no-such-row", "--html", path]);
        assert_eq!(ran.code, Some(2));
        let said = format!("cannot write {path}: ");
        assert!(ran.stderr.contains(&said), "{}", ran.stderr);
    }
    // Nothing is left behind when the run itself fails.
    let path = folder.path().join("report.json");
    let only = ["--only", "no-such-row", "--json", path.to_str().unwrap()];
    let ran = acp_conformance(["agent"].iter().chain(&only));
    assert!(ran.stderr.contains("no-such-row"), "{}", ran.stderr);
    assert!(!path.exists());
    // What is there is not touched.
    std::fs::write(&path, "earlier").unwrap();
    acp_conformance(["agent"].iter().chain(&only));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "earlier");
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_in_the_end_is_not_lost() {
    // Opens, and takes nothing.
    let ran = acp_conformance(["agent", "--only", "plan", "--html", "/dev/full"]);
    assert_eq!(ran.code, Some(2));
    let said = "cannot write /dev/full: ";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
    assert!(ran.stdout.contains("\nconformant: "), "{}", ran.stdout);
}

#[test]
fn a_report_names_the_version_of_the_protocol() {
    for version in ["1", "2"] {
        let only = ["--only", "initialization", "--json"];
        let ran = acp_conformance(["agent", "--protocol", version].iter().chain(&only));
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!(report["protocol"].to_string(), version, "{}", ran.stderr);
    }
}

#[test]
fn an_unknown_requirement_is_a_mistake_in_the_command() {
    let ran = acp_conformance(["agent", "--only", "no.such"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.stderr
            .contains("no requirement, area or tier is called no.such")
    );
}

#[test]
fn a_command_that_does_not_exist_is_named() {
    let ran = acp_conformance(["agent", "--", "/no/such/agent", "--acp"]);
    assert_eq!(ran.code, Some(2));
    let says = "cannot start /no/such/agent --acp: ";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert_eq!(ran.stdout, "");
}

#[cfg(unix)]
#[test]
fn a_command_is_found_from_where_the_suite_was_started() {
    let folder = TempDir::new().unwrap();
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    std::os::unix::fs::symlink(program, folder.path().join("agent")).unwrap();
    let mut command = std::process::Command::new(program);
    let command = command.args(["agent", "--only", "initialization.answer", "--"]);
    let command = command.args(["./agent", "reference-agent"]);
    let output = command.current_dir(&folder).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{stderr}");
}

#[cfg(unix)]
#[test]
fn an_agent_that_exits_at_once_shows_its_last_words() {
    let ran = acp_conformance(["agent", "--", "sh", "-c", "echo no key given >&2; exit 3"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("exit status: 3"), "{}", ran.stderr);
    assert!(ran.stderr.contains("no key given"), "{}", ran.stderr);
}

#[cfg(unix)]
#[test]
fn an_agent_that_never_answers_has_a_report_in_every_format() {
    let folder = TempDir::new().unwrap();
    let files = ["--json", "--junit", "--html", "--markdown"];
    let files = files.map(|option| (option, folder.path().join(&option[2..])));
    let files_option = files
        .iter()
        .flat_map(|(option, path)| [*option, path.to_str().unwrap()]);
    let options = ["agent", "--turn-timeout", "0.2"]
        .into_iter()
        .chain(files_option);
    let ran = acp_conformance(options.chain(["--", "sh", "-c", "cat > /dev/null"]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    assert!(ran.stdout.contains("timed out after"), "{}", ran.stdout);
    for (option, path) in files {
        let report = std::fs::read_to_string(path).unwrap();
        assert!(
            report.contains("initialization.answer"),
            "{option}: {report}"
        );
    }
}

#[cfg(unix)]
#[test]
fn an_agent_may_start_slowly() {
    let slow = r#"sleep 1; exec "$0" reference-agent"#;
    let command = [
        "--",
        "sh",
        "-c",
        slow,
        env!("CARGO_BIN_EXE_acp-conformance"),
    ];
    let options = ["agent", "--only", "modes.set", "--timeout", "0.5"];
    let ran = acp_conformance(options.iter().chain(&command));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stdout.contains("1 passed"), "{}", ran.stdout);
}

#[cfg(unix)]
#[test]
fn a_page_shows_the_failure_and_nothing_that_runs() {
    let folder = TempDir::new().unwrap();
    let page = folder.path().join("report.html");
    let options = ["agent", "--only", "initialization.answer", "--html"];
    let options = options.into_iter().chain([page.to_str().unwrap()]);
    let ran = acp_conformance(options.chain(["--", "sh", "-c", REFUSES]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains("✗</span> not conformant</span></h1>"),
        "{page}"
    );
    assert!(page.contains("initialization.answer</a> <span class=\"dim\">(must)</span></h3>"));
    assert!(page.contains(">{&quot;jsonrpc&quot;:&quot;2.0&quot;,&quot;id&quot;:0"));
    assert!(!page.contains("<script") && !page.contains("src="));
}

/// An agent in shell that answers every request with the same error.
#[cfg(unix)]
const REFUSES: &str = r#"while read -r line; do
    id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
    echo "{\"jsonrpc\":\"2.0\",\"id\":${id:-null},\"error\":{\"code\":-32601,\"message\":\"no\"}}"
done"#;

#[cfg(unix)]
#[test]
fn a_failure_shows_the_evidence_the_sentence_and_the_command() {
    let only = ["agent", "--only", "initialization.same-version"];
    let ran = acp_conformance(only.iter().chain(&["--", "sh", "-c", REFUSES]));
    assert_eq!(ran.code, Some(1), "{}", ran.stderr);
    let says = |text: &str| assert!(ran.stdout.contains(text), "{text}: {}", ran.stdout);
    says("FAIL initialization.same-version (must): expected a result of initialize, got an error");
    says("spec  If the Agent supports the requested version");
    says("https://agentclientprotocol.com/protocol/v1/initialization#version-negotiation");
    says("sent  {\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\"");
    says("came  {\"jsonrpc\":\"2.0\",\"id\":0,\"error\":");
    says("again acp-conformance agent --only initialization.same-version -- sh -c 'while read");
    says("\nnot conformant: 0 passed; failed: 1 MUST");
}

#[test]
fn a_profile_that_cannot_be_read_is_a_mistake_in_the_command() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("profile.toml");
    std::fs::write(&path, "promt = 'x'").unwrap();
    let ran = acp_conformance(["agent", "--profile", path.to_str().unwrap()]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot use the profile"));
    assert!(ran.stderr.contains("promt"), "{}", ran.stderr);
}

#[test]
fn the_list_has_every_requirement_with_its_citation() {
    let ran = acp_conformance(["list"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("cancellation.stop-reason"));
    let table = acp_conformance(["list", "--json"]);
    let table: Value = serde_json::from_str(&table.stdout).unwrap();
    let rows = table.as_array().unwrap();
    let last = ran.stdout.lines().last().unwrap();
    assert!(last.starts_with(&format!("{} requirements: ", rows.len())));
    for row in rows {
        assert!(row["cite"].as_str().unwrap().starts_with("https://"));
    }
}

/// An agent in shell that shakes hands, opens one session and never ends.
#[cfg(unix)]
const OUTLIVES: &str = r#"answer() { echo "{\"jsonrpc\":\"2.0\",\"id\":$1,\"result\":$2}"; }
read -r line; answer 0 "{\"protocolVersion\":$0}"
read -r line; answer 1 '{"sessionId":"s"}'
while true; do sleep 1; done"#;

#[cfg(unix)]
#[test]
fn an_agent_that_outlives_its_input_is_seen() {
    for version in ["1", "2"] {
        outlives_its_input(version);
    }
}

#[cfg(unix)]
fn outlives_its_input(version: &str) {
    let only = [
        "--protocol",
        version,
        "--only",
        "transports.ends-with-its-input",
        "--timeout",
        "0.3",
    ];
    let agent = ["--", "sh", "-c", OUTLIVES, version];
    let ran = acp_conformance(["agent"].iter().chain(&only).chain(&agent));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let says = "FAIL transports.ends-with-its-input (info): expected the agent to end";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}

#[test]
fn a_list_whose_reader_has_read_enough_ends_well() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut list = std::process::Command::new(env!("CARGO_BIN_EXE_acp-conformance"));
    let output = list.arg("list").stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}
