//! Agents that are not to blame: the suite gives them the time and the place that an editor does, and
//! says one thing once.
#![cfg(unix)]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::requirements::Choice;
use acp_conformance::suite::{Effort, Options, QuickLimits, Verdict, run};
use acp_conformance::target::Target;
use acp_conformance::wire::{Schema, Version};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// The suite in a folder, against an agent in shell.
fn suite_in(folder: &Path, options: &[&str], script: &str) -> Ran {
    let output = Command::new(env!("CARGO_BIN_EXE_acp-conformance"))
        .current_dir(folder)
        .args(["agent", "--jobs", "1"])
        .args(options)
        .args([
            "--",
            "sh",
            "-c",
            script,
            env!("CARGO_BIN_EXE_acp-conformance"),
        ])
        .output();
    output.unwrap().into()
}

#[test]
fn an_agent_that_is_ended_removes_its_lock() {
    let folder = TempDir::new().unwrap();
    // Only one may run at a time; what it is killed with would leave the lock behind.
    let script = r#"
        mkdir lock || { echo 'another one is running' >&2; exit 3; }
        "$0" reference-agent; rmdir lock"#;
    let options = [
        "--only",
        "initialization.answer",
        "--only",
        "initialization.same-version",
    ];
    let ran = suite_in(folder.path(), &options, script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(!folder.path().join("lock").exists());
}

/// The first process ignores the end of its input. The next ones need a moment to end, which they get.
#[test]
fn an_agent_that_ignores_the_end_of_its_input_can_clean_up() {
    let folder = TempDir::new().unwrap();
    let script = r#"
        trap 'rmdir lock; echo terminated >> ends; exit' TERM
        mkdir lock || { echo 'another one is running' >&2; exit 3; }
        "$0" reference-agent
        if mkdir first 2> /dev/null; then sleep 1000 & wait; fi
        sleep 0.2; rmdir lock; echo by itself >> ends"#;
    let options = [
        "--only",
        "initialization.answer",
        "--only",
        "initialization.same-version",
    ];
    let ran = suite_in(folder.path(), &options, script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(!folder.path().join("lock").exists());
    let ends = std::fs::read_to_string(folder.path().join("ends")).unwrap();
    let (first, others) = ends.split_once('\n').unwrap();
    assert_eq!(first, "terminated");
    assert!(!others.is_empty());
    for end in others.lines() {
        assert_eq!(end, "by itself");
    }
}

#[test]
fn an_agent_is_started_where_the_suite_is_and_its_sessions_elsewhere() {
    let folder = TempDir::new().unwrap();
    let script = r#"pwd > where; echo "$MARK" >> where; exec "$0" reference-agent"#;
    let options = ["--only", "session-setup.session-id", "--env", "MARK=a=b"];
    let ran = suite_in(folder.path(), &options, script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let place = std::fs::read_to_string(folder.path().join("where")).unwrap();
    let here = folder.path().canonicalize().unwrap();
    assert_eq!(place, format!("{}\na=b\n", here.display()));

    let other = TempDir::new().unwrap();
    let cwd = other.path().to_str().unwrap();
    let options = ["--only", "session-setup.session-id", "--cwd", cwd];
    let ran = suite_in(folder.path(), &options, script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(other.path().join("where").exists());
}

/// Answers that could be meant as one to `initialize`.
#[test]
fn an_answer_to_initialize_that_is_none_is_a_finding() {
    const RESULT: &str = r#""result":{"protocolVersion":1}"#;
    let text_id = format!(r#"echo '{{"jsonrpc":"2.0","id":"0",{RESULT}}}'"#);
    let no_id = format!(r#"echo '{{"jsonrpc":"2.0",{RESULT}}}'"#);
    let two_lines = format!(r#"printf '{{"jsonrpc":"2.0","id":0,\n{RESULT}}}\n'"#);
    for (script, id, reason) in [
        (
            &text_id,
            "jsonrpc.answers-once",
            r#"expected the id 0 (a number), got "0" (a string)"#,
        ),
        (
            &no_id,
            "jsonrpc.answers-once",
            "expected the id 0 (a number), got none",
        ),
        (
            &two_lines,
            "transports.only-messages",
            "expected one message per line in answer to initialize, got a part of one",
        ),
    ] {
        let script = format!("read -r line; {script}; cat > /dev/null");
        let limits = ["agent", "--timeout", "0.5", "--json", "-"];
        let started = Instant::now();
        let ran = acp_conformance(limits.into_iter().chain(["--", "sh", "-c", &script]));
        assert!(started.elapsed() < Duration::from_secs(30), "{script}");
        assert_eq!(ran.code, Some(1), "{script}: {}", ran.stderr);
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let of = |verdict: &str| -> Vec<&Value> {
            let rows = report["requirements"].as_array().unwrap();
            rows.iter()
                .filter(|row| row["verdict"] == verdict)
                .collect()
        };
        let failed: Vec<_> = of("fail").iter().map(|row| row["id"].clone()).collect();
        assert_eq!(failed, [id], "{script}");
        assert_eq!(of("fail")[0]["reason"], reason, "{script}");
        assert_eq!(of("pass").len(), 0, "{script}");
        for row in of("skip") {
            let reason = row["reason"].as_str().unwrap();
            assert!(reason.starts_with("blocked: "), "{reason}");
        }
    }
}

/// Answers the first of two concurrent requests a second after the other.
#[test]
fn an_answer_may_come_after_that_to_a_later_request() {
    let folder = TempDir::new().unwrap();
    let script = r#"
        id() { i=${line#*'"id":'}; i=${i%%,\"*}; i=${i%\}}; }
        new() { printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"%s"}}\n' "$1" "$2"; }
        while read -r line; do id; case "$line" in
            *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$i";;
            *'"id":"a-b'*) (sleep 1; new '"a-b c/ä"' first) & ;;
            *'"session/new"'*) new "$i" other;;
        esac; done; wait"#;
    let ran = suite_in(folder.path(), &["--only", "jsonrpc.string-id"], script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("1 passed"), "{}", ran.stdout);
}

/// An agent that starts in a second, in a quick run whose turns may take a third of it.
#[test]
fn a_quick_run_gives_the_agent_the_time_that_it_needs_to_start() {
    let script = "sleep 1; exec \"$0\" reference-agent";
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let words = ["sh", "-c", script, program].map(Into::into).to_vec();
    let folder = TempDir::new().unwrap();
    let env = Env {
        target: Target::command(words),
        profile: Profile::reference().unwrap(),
        schema: Schema::of(Version::V1).unwrap(),
        folder: folder.path().to_owned(),
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(60),
        quiet: Duration::from_millis(50),
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    let only = ["initialization.answer", "initialization.comes-first"];
    let options = Options {
        choice: Choice {
            only: only.map(str::to_owned).to_vec(),
            ..Choice::default()
        },
        jobs: 1,
        effort: Effort::Quick,
        quick: QuickLimits {
            turn: Duration::from_millis(300),
            ..QuickLimits::default()
        },
        adapts_turn_timeout: true,
        ..Options::default()
    };
    let report = run(&Arc::new(env), &options, |_, _| {}).unwrap();
    for row in &report.rows {
        assert_eq!(row.verdict, Verdict::Pass, "{}", row.requirement.id);
    }
    assert_eq!(report.rows.len(), only.len());
}

/// An agent that never asks for permission, and a run of requirements that it does not exercise.
#[test]
fn what_an_agent_may_do_and_did_not_is_skipped() {
    let folder = TempDir::new().unwrap();
    let profile = folder.path().join("profile.toml");
    std::fs::write(&profile, "[prompts]\nhello = \"Hello\"\ntool = \"Hello\"\n").unwrap();
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let ids = [
        "cancellation.while-asking",
        "tool-calls.permission-granted",
        "tool-calls.permission-rejected",
        // Never judged with these prompts, which makes no part of the suite incomplete.
        "authentication.authenticate",
    ];
    let only = ids.iter().flat_map(|id| ["--only", id]);
    let options = [
        "agent",
        "--json",
        "-",
        "--profile",
        profile.to_str().unwrap(),
    ];
    let agent = ["--", program, "reference-agent"];
    let ran = acp_conformance(options.into_iter().chain(only).chain(agent));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    for row in report["requirements"].as_array().unwrap() {
        assert_eq!(row["verdict"], "skip", "{row}");
    }
}

/// Valid updates of a megabyte each in the second turn, without an end.
#[test]
fn what_the_suite_has_ended_is_not_held_against_the_agent() {
    let folder = TempDir::new().unwrap();
    let script = r#"
        id() { i=${line#*'"id":'}; i=${i%%,\"*}; i=${i%\}}; }
        text() { head -c 1000000 /dev/zero | tr '\0' x; }
        flood() { t=$(text); while printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"%s"}}}}\n' "$t"; do :; done; }
        while read -r line; do id; case "$line" in
            *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}\n' "$i";;
            *'"session/new"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}\n' "$i";;
            *'"session/prompt"'*) mkdir first 2> /dev/null || flood
                printf '{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}\n' "$i";;
        esac; done"#;
    let ran = suite_in(folder.path(), &["--only", "prompt-turn.goes-on"], script);
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    let says = "prompt-turn.goes-on: the suite ended the agent after ";
    assert!(ran.stdout.contains(says), "{}", ran.stdout);
}
