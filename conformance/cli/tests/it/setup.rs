//! The steps that checks depend on: one cause is reported once, and what depends on it is blocked.
#![cfg(unix)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::requirements::Choice;
use acp_conformance::suite::{Effort, Options, QuickLimits, run};
use acp_conformance::target::Target;
use acp_conformance::wire::{Schema, Version};
use serde_json::Value;
use tempfile::TempDir;

use crate::command::{Ran, acp_conformance};

/// An agent in shell: `SESSION` and `PROMPT` are what it answers to these requests, `LOGIN` what it
/// does then, all as commands in which `say` answers the request at hand.
fn agent(session: &str, prompt: &str) -> String {
    format!(
        r#"say() {{ printf '{{"jsonrpc":"2.0","id":%s,%s}}\n' "$i" "$1"; }}
        methods='"authMethods":[{{"id":"key","methodId":"key","name":"API key","type":"agent"}},
            {{"id":"tui","methodId":"tui","name":"Browser","type":"terminal"}}]'
        while read -r line; do
            i=${{line#*'"id":'}}; i=${{i%%,\"*}}; i=${{i%\}}}}
            case "$line" in
            *'"method":"initialize"'*'"protocolVersion":2'*)
                say '"result":{{"protocolVersion":2,"info":{{"name":"a","version":"1"}},"capabilities":{{"session":{{}}}},'"$(echo $methods)"'}}';;
            *'"method":"initialize"'*) say '"result":{{"protocolVersion":1,"agentCapabilities":{{"sessionCapabilities":{{"close":{{}}}}}},'"$(echo $methods)"'}}';;
            *'"method":"authenticate"'*'"key"'*|*'"method":"auth/login"'*'"key"'*) login=1; say '"result":{{}}';;
            *'"method":"session/new"'*) n=$((n+1)); {session};;
            *'"method":"session/prompt"'*) p=$((p+1)); {prompt};;
            *'"method":"session/close"'*|*'"method":"session/set_mode"'*) echo "$line" >> "${{LOG:-/dev/null}}"; say '"result":{{}}';;
            *'"id":'*) say '"error":{{"code":-32601,"message":"no"}}';;
            esac
        done"#
    )
}

const OPENS: &str = r#"say '"result":{"sessionId":"s'$n-$$'"}'"#;
const LOCKED: &str = r#"if [ "$login" ]; then say '"result":{"sessionId":"s'$n-$$'"}'
    else say '"error":{"code":-32000,"message":"Authentication required"}'; fi"#;
const ENDS: &str = r#"say '"result":{"stopReason":"end_turn"}'"#;

fn suite(options: &[&str], script: &str) -> (Ran, Value) {
    let limits = ["agent", "--timeout", "5", "--turn-timeout", "5", "--json"];
    let ran = acp_conformance(
        limits
            .iter()
            .chain(options)
            .chain(&["--", "sh", "-c", script]),
    );
    let report = serde_json::from_str(&ran.stdout);
    let report = report.unwrap_or_else(|_| panic!("{}{}", ran.stdout, ran.stderr));
    (ran, report)
}

/// The requirements with this verdict; of failures those that decide, for the agent is a poor one.
fn ids(report: &Value, verdict: &str) -> Vec<String> {
    let rows = report["requirements"].as_array().unwrap().iter();
    let rows = rows.filter(|row| row["verdict"] == verdict);
    let decides = |row: &&Value| row["tier"] == "must" || row["tier"] == "capability";
    let rows = rows.filter(|row| verdict != "fail" || decides(row));
    rows.map(|row| row["id"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn a_missing_login_is_one_cause_and_no_failure() {
    let script = agent(LOCKED, ENDS);
    for version in ["1", "2"] {
        let only = [
            "--protocol",
            version,
            "--only",
            "session-setup",
            "--only",
            "cancellation",
        ];
        let (ran, report) = suite(&only, &script);
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        assert_eq!(report["verdict"], "incomplete");
        assert_eq!(ids(&report, "fail"), [""; 0], "{}", ran.stdout);
        let passed = ids(&report, "pass");
        // A cancellation of what does not exist needs no session.
        let needs_session = |id: &String| {
            let is_about_cancellation = id.starts_with("cancellation.");
            id.starts_with("session-setup.")
                || (is_about_cancellation && !id.starts_with("cancellation.unknown-"))
        };
        assert!(!passed.iter().any(needs_session), "{passed:?}");
        let cause = &report["root_cause"];
        assert_eq!(cause["step"], "login");
        let remedy = cause["remedy"].as_str().unwrap();
        for what in [
            "--auth-method ID",
            "`key` (API key)",
            "In a terminal, before the run: `tui`",
        ] {
            assert!(remedy.contains(what), "{what}: {remedy}");
        }
        assert!(cause["came"].as_str().unwrap().contains("-32000"));
        assert_eq!(report["prompts"], 0);
        let shown = acp_conformance(
            ["agent"]
                .iter()
                .chain(&only)
                .chain(&["--", "sh", "-c", &script]),
        );
        assert_eq!(
            shown.stdout.matches("--auth-method").count(),
            1,
            "{}",
            shown.stdout
        );
        assert!(
            shown
                .stdout
                .contains(", login: the agent refuses session/new"),
            "{}",
            shown.stdout
        );
    }
}

#[test]
fn a_chosen_method_logs_in_where_sessions_need_it() {
    let script = agent(LOCKED, ENDS);
    let id = "session-setup.unique-id";
    for version in ["1", "2"] {
        let options = ["--protocol", version, "--only", id, "--auth-method"];
        let (ran, report) = suite(&[&options[..], &["key"]].concat(), &script);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(ids(&report, "pass"), [id]);
        let (ran, report) = suite(&[&options[..], &["other"]].concat(), &script);
        assert_eq!(ran.code, Some(3), "{}{}", ran.stdout, ran.stderr);
        assert_eq!(report["root_cause"]["reason"], "the login failed");
        let always = r#"say '"error":{"code":-32000,"message":"Authentication required"}'"#;
        let (_, report) = suite(&[&options[..], &["key"]].concat(), &agent(always, ENDS));
        let rows = report["requirements"].as_array().unwrap();
        let is_failed =
            |row: &Value| row["id"] == "authentication.opens-sessions" && row["verdict"] == "fail";
        assert!(rows.iter().any(is_failed), "{rows:#?}");
    }
}

#[test]
fn without_a_session_all_that_needs_one_is_blocked() {
    let refused = r#"say '"error":{"code":-32603,"message":"no network"}'"#;
    let only = ["--only", "initialization", "--only", "session-setup"];
    let (ran, report) = suite(&only, &agent(refused, ENDS));
    assert_eq!(ids(&report, "fail"), [""; 0], "{}", ran.stdout);
    assert!(ids(&report, "pass").contains(&"initialization.answer".to_owned()));
    assert!(ids(&report, "blocked").contains(&"session-setup.unique-id".to_owned()));
    let reason = report["root_cause"]["reason"].as_str().unwrap();
    assert_eq!(
        reason,
        "expected a result of session/new, got the error: no network"
    );
    // The request was sound: whoever calls its params invalid breaks the protocol, and only once.
    let refused = r#"say '"error":{"code":-32602,"message":"no"}'"#;
    let (ran, report) = suite(&only, &agent(refused, ENDS));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert_eq!(ids(&report, "fail"), ["session-setup.session-id"]);
}

#[test]
fn a_model_in_trouble_blocks_what_needs_a_turn() {
    let overloaded = r#"say '"error":{"code":-32603,"message":"HTTP 529: overloaded"}'"#;
    let folder = TempDir::new().unwrap();
    let junit = folder.path().join("report.xml");
    let junit_option = junit.to_str().unwrap();
    let only = [
        "--only",
        "session-setup",
        "--only",
        "prompt-turn",
        "--only",
        "cancellation",
        "--junit",
        junit_option,
    ];
    let (ran, report) = suite(&only, &agent(OPENS, overloaded));
    assert_eq!(ran.code, Some(3), "{}", ran.stdout);
    assert_eq!(ids(&report, "fail"), [""; 0], "{}", ran.stdout);
    assert!(ids(&report, "pass").contains(&"session-setup.unique-id".to_owned()));
    let blocked = ids(&report, "blocked");
    for id in ["prompt-turn.stop-reason", "cancellation.stop-reason"] {
        assert!(blocked.contains(&id.to_owned()), "{id}: {blocked:?}");
    }
    let remedy = report["root_cause"]["remedy"].as_str().unwrap();
    assert!(remedy.contains("try again later"), "{remedy}");
    let xml = std::fs::read_to_string(&junit).unwrap();
    assert!(
        xml.contains("errors=\"1\"") && xml.contains("<error message=\"incomplete: "),
        "{xml}"
    );
}

/// No check waits for a turn again, or pays for it.
#[test]
fn no_prompt_is_sent_after_a_first_turn_that_failed() {
    let overloaded = r#"say '"error":{"code":-32603,"message":"HTTP 529: overloaded"}'"#;
    let areas = ["extensibility", "cancellation", "session-load", "content"];
    let only = areas.iter().flat_map(|area| ["--only", area]);
    for version in ["1", "2"] {
        let options: Vec<&str> = ["--protocol", version]
            .into_iter()
            .chain(only.clone())
            .collect();
        let (ran, report) = suite(&options, &agent(OPENS, overloaded));
        assert_eq!(report["prompts"], 1, "{}", ran.stdout);
    }
}

/// The first prompt is answered, the next one meets a model in trouble.
#[test]
fn a_model_that_fails_later_leaves_rows_inconclusive() {
    let folder = TempDir::new().unwrap();
    let later = |folder: &Path, error: &str| {
        let mark = folder.join("mark");
        let mark = mark.display();
        format!("if mkdir {mark} 2>/dev/null; then {ENDS}; else say '\"error\":{error}'; fi")
    };
    let only = ["--only", "prompt-turn.goes-on"];
    let error = r#"{"code":-32603,"message":"Internal error","data":{"status":429}}"#;
    let script = agent(OPENS, &later(folder.path(), error));
    let (ran, report) = suite(&only, &script);
    let row = &report["requirements"][0];
    assert_eq!(row["verdict"], "inconclusive", "{}", ran.stdout);
    assert_eq!(row["reason"], "the model failed: Internal error");
    // Repeated only by a thorough run: the preflight, and three times the first prompt.
    assert_eq!(report["prompts"], 2);
    let options = [&only[..], &["--thorough"]].concat();
    std::fs::remove_dir(folder.path().join("mark")).unwrap();
    let (_, report) = suite(&options, &script);
    assert_eq!(report["prompts"], 4);
    // Any other error is the agent's.
    std::fs::remove_dir(folder.path().join("mark")).unwrap();
    let error = r#"{"code":-32603,"message":"Internal error"}"#;
    let (ran, report) = suite(&only, &agent(OPENS, &later(folder.path(), error)));
    assert_eq!(
        report["requirements"][0]["verdict"], "fail",
        "{}",
        ran.stdout
    );
}

#[test]
fn an_agent_that_dies_in_its_first_turn_fails_once() {
    let only = [
        "--only",
        "jsonrpc.answers-once",
        "--only",
        "prompt-turn",
        "--only",
        "cancellation",
    ];
    let (ran, report) = suite(&only, &agent(OPENS, "exit 7"));
    assert_eq!(ran.code, Some(1), "{}", ran.stdout);
    assert_eq!(
        ids(&report, "fail"),
        ["jsonrpc.answers-once"],
        "{}",
        ran.stdout
    );
    assert_eq!(report["root_cause"]["step"], "prompt");
}

/// Its first turn succeeds: the end in a later one is the cause of all that the tool is needed for.
#[test]
fn an_agent_that_dies_of_a_tool_fails_once() {
    let dies = format!(r#"case "$line" in *conformance.txt*) exit 9;; esac; {ENDS}"#);
    for areas in [
        &["session-setup.working-directory", "session-load.replays"][..],
        &["tool-calls"],
    ] {
        let only: Vec<&str> = areas.iter().flat_map(|area| ["--only", area]).collect();
        let (ran, report) = suite(&only, &agent(OPENS, &dies));
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        let failed = ids(&report, "fail");
        assert_eq!(failed, ["jsonrpc.answers-once"], "{}", ran.stdout);
        let reason = report["root_cause"]["reason"].as_str().unwrap();
        let says = "expected an answer to session/prompt, got the end of the agent";
        assert_eq!(reason, says);
        let sent = report["root_cause"]["sent"].as_str().unwrap();
        assert!(sent.contains("conformance.txt"), "{sent}");
    }
}

/// Nobody asked it to work: a prompt without content must be refused.
#[test]
fn an_agent_that_dies_of_a_refusable_prompt_fails_that_check() {
    let dies = format!(r#"case "$line" in *'"prompt":'*) {ENDS};; *) exit 9;; esac"#);
    let only = ["--only", "jsonrpc.missing-params"];
    let (ran, report) = suite(&only, &agent(OPENS, &dies));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    let row = &report["requirements"][0];
    assert_eq!(row["verdict"], "fail", "{}", ran.stdout);
    assert_eq!(report["root_cause"], Value::Null);
}

/// A model may think for long, and no page demands an update before the end of the turn. What the agent
/// asks after it was cancelled is answered as by a client that has cancelled.
#[test]
fn a_turn_without_output_is_cancelled_and_nothing_granted_after_it() {
    let asks = r#"case "$line" in *silent*) q=$i; read -r line;
        echo '{"jsonrpc":"2.0","id":"p","method":"session/request_permission","params":{"sessionId":"s'$n-$$'","toolCall":{"toolCallId":"t"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}'
        read -r line; i=$q
        case "$line" in *'"cancelled"'*) say '"result":{"stopReason":"cancelled"}';; *) say '"result":{"stopReason":"end_turn"}';; esac;;
        *) say '"result":{"stopReason":"end_turn"}';; esac"#;
    let script = agent(OPENS, asks);
    let options = [
        "agent",
        "--turn-timeout",
        "0.5",
        "--cancel-prompt",
        "silent",
    ];
    let only = [
        "--only",
        "cancellation.stop-reason",
        "--",
        "sh",
        "-c",
        &script,
    ];
    let ran = acp_conformance(options.iter().chain(&only));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
}

/// The connection ends with this check, so nobody else reads the update.
#[test]
fn an_update_right_after_the_answer_to_a_cancelled_prompt_is_seen() {
    let late = r#"case "$line" in *silent*) q=$i; read -r line; i=$q;
        say '"result":{"stopReason":"cancelled"}'
        echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s'$n-$$'","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"late"}}}}';;
        *) say '"result":{"stopReason":"end_turn"}';; esac"#;
    let script = agent(OPENS, late);
    let options = [
        "agent",
        "--turn-timeout",
        "0.5",
        "--cancel-prompt",
        "silent",
    ];
    let only = ["cancellation.stop-reason", "cancellation.updates-first"];
    let only = only.iter().flat_map(|id| ["--only", id]);
    let agent = ["--json", "-", "--", "sh", "-c", &script];
    let ran = acp_conformance(options.into_iter().chain(only).chain(agent));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ids(&report, "fail"), ["cancellation.updates-first"]);
}

/// It serves one prompt, as a command that is started for each of them.
#[test]
fn an_agent_that_ends_after_its_first_turn_fails_once() {
    // At once, and so late that it meets the next request.
    for ends in ["exit 7", "read -r line; exit 7"] {
        let script = agent(OPENS, &format!("{ENDS}; {ends}"));
        // Whatever was chosen.
        let areas = [
            &["prompt-turn"][..],
            &[
                "jsonrpc.answers-once",
                "prompt-turn",
                "cancellation",
                "content",
            ],
        ];
        for areas in areas {
            let only: Vec<&str> = areas.iter().flat_map(|area| ["--only", area]).collect();
            let (ran, report) = suite(&only, &script);
            assert_eq!(ran.code, Some(1), "{}", ran.stdout);
            assert_eq!(
                ids(&report, "fail"),
                ["jsonrpc.answers-once"],
                "{}",
                ran.stdout
            );
            let blocked = ids(&report, "blocked");
            assert!(blocked.contains(&"prompt-turn.stop-reason".to_owned()));
            let reason = report["root_cause"]["reason"].as_str().unwrap();
            let says =
                "the agent ended by itself (exit status: 7) after a turn while its input was open";
            assert!(reason.starts_with(says), "{reason}");
        }
    }
}

/// Nobody sets a limit: that of the first turn is shorter in a quick run.
#[test]
fn a_first_turn_without_any_message_is_no_slow_model() {
    let folder = TempDir::new().unwrap();
    let env = Env {
        target: Target::command(vec!["sh".into(), "-c".into(), agent(OPENS, ":").into()]),
        profile: Profile::unknown_agent(),
        schema: Schema::of(Version::V1).unwrap(),
        folder: folder.path().to_owned(),
        timeout: Duration::from_secs(5),
        turn_timeout: Duration::from_secs(60),
        quiet: Duration::from_millis(50),
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    let options = Options {
        choice: Choice {
            only: vec!["prompt-turn".to_owned()],
            ..Choice::default()
        },
        jobs: 1,
        effort: Effort::Quick,
        quick: QuickLimits {
            turn: Duration::from_millis(100),
            ..QuickLimits::default()
        },
        tries_setup: true,
        adapts_turn_timeout: true,
        ..Options::default()
    };
    let report = run(&Arc::new(env), &options, |_, _| {}).unwrap();
    let cause = report.root_cause.unwrap();
    assert_eq!(
        cause.reason,
        "the agent sent nothing for session/prompt within 200ms"
    );
    assert_eq!(cause.remedy, "Look at its log, or set --turn-timeout.");
}

#[test]
fn a_refused_handshake_is_one_failure() {
    let script = r#"while read -r line; do
        i=${line#*'"id":'}; i=${i%%,\"*}; i=${i%\}}
        echo '{"jsonrpc":"2.0","id":'$i',"error":{"code":-32603,"message":"no"}}'
    done"#;
    for version in ["1", "2"] {
        let (ran, report) = suite(&["--protocol", version], script);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert_eq!(ids(&report, "fail"), ["initialization.answer"]);
        assert_eq!(ids(&report, "pass"), [""; 0]);
        assert_eq!(report["root_cause"]["step"], "initialize");
    }
}

/// The specification lets an agent answer with the version that it speaks.
#[test]
fn an_agent_of_the_other_version_is_one_cause_and_no_failure() {
    for (version, other) in [("1", "2"), ("2", "1")] {
        let script = format!(
            r#"while read -r line; do
                i=${{line#*'"id":'}}; i=${{i%%,\"*}}; i=${{i%\}}}}
                echo '{{"jsonrpc":"2.0","id":'$i',"result":{{"protocolVersion":{other},
                    "info":{{"name":"a","version":"1"}},"capabilities":{{}}}}}}' | tr -d '\n'; echo
            done"#
        );
        let (ran, report) = suite(&["--protocol", version], &script);
        assert_eq!(ran.code, Some(3), "{}", ran.stdout);
        assert_eq!(ids(&report, "fail"), [""; 0], "{}", ran.stdout);
        assert_eq!(ids(&report, "pass"), [""; 0], "{}", ran.stdout);
        let cause = &report["root_cause"];
        let reason = format!("the agent speaks version {other}, not {version}");
        assert_eq!(cause["reason"], reason);
        assert_eq!(cause["remedy"], format!("Run with `--protocol {other}`."));
        assert_eq!(report["messages"]["client"], 1);
    }
}

#[test]
fn an_agent_that_chooses_another_version_than_one_that_it_supports_breaks_one_requirement() {
    for (version, other) in [("1", "2"), ("2", "1")] {
        // Only to version 65535 it says which one it supports.
        let script = format!(
            r#"while read -r line; do
                case "$line" in *65535*) v={version};; *) v={other};; esac
                echo '{{"jsonrpc":"2.0","id":0,"result":{{"protocolVersion":'$v',
                    "info":{{"name":"a","version":"1"}},"capabilities":{{}}}}}}' | tr -d '\n'; echo
            done"#
        );
        let (ran, report) = suite(&["--protocol", version], &script);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert_eq!(ids(&report, "fail"), ["initialization.same-version"]);
        let reason = format!("expected version {version}, which the agent supports, got {other}");
        assert_eq!(report["root_cause"]["reason"], reason);
    }
}

#[test]
fn an_agent_of_an_unknown_version_breaks_one_requirement() {
    let script = agent(OPENS, ENDS).replace(r#""protocolVersion":1,"#, r#""protocolVersion":99,"#);
    for only in [&[][..], &["--only", "session-setup"]] {
        let (ran, report) = suite(only, &script);
        assert_eq!(ran.code, Some(1), "{}", ran.stdout);
        assert_eq!(ids(&report, "fail"), ["initialization.known-version"]);
        assert_eq!(ids(&report, "pass"), [""; 0], "{}", ran.stdout);
        assert_eq!(
            report["root_cause"]["reason"],
            "expected a version with a specification, 1 or 2, got 99"
        );
    }
}

#[test]
fn the_number_of_prompts_is_known_before_the_run() {
    let ran = acp_conformance(["agent", "--only", "cancellation.stop-reason", "--json"]);
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let said = ran.stderr.lines().find(|line| line.contains("prompts"));
    let sent = &report["prompts"];
    assert_eq!(
        said,
        Some(format!("acp-conformance: up to {sent} prompts").as_str())
    );
    assert_eq!(sent, 2, "the preflight's and the check's");
    assert_eq!(report["requirements"][0]["prompts"], 1);
}

#[test]
fn a_known_finding_is_accepted_and_a_stale_one_reported() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("known.toml");
    let known = "[[known]]\nid = \"session-setup.session-id\"\nreason = \"no key here\"\n\
                 [[known]]\nid = \"initialization.answer\"\nreason = \"was broken\"\n";
    std::fs::write(&path, known).unwrap();
    let refused = r#"say '"error":{"code":-32602,"message":"no"}'"#;
    let options = [
        "--only",
        "session-setup.session-id",
        "--only",
        "initialization.answer",
        "--known",
        path.to_str().unwrap(),
    ];
    let (ran, report) = suite(&options, &agent(refused, ENDS));
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert_eq!(report["requirements"][1]["accepted"], "no key here");
    assert_eq!(report["stale"][0]["id"], "initialization.answer");
    let client = ["client", "--known", "/no/such/file"];
    assert_eq!(acp_conformance(client).code, Some(2));
}

/// Only one may run at a time, as agents with a lock do.
#[test]
fn a_start_that_fails_after_another_is_no_finding() {
    let folder = TempDir::new().unwrap();
    let lock = folder.path().join("started");
    let script = format!(
        "mkdir {} || {{ echo 'another one is running' >&2; exit 3; }}\n{}",
        lock.display(),
        agent(OPENS, ENDS)
    );
    let id = "session-setup.unique-id";
    for version in ["1", "2"] {
        let (ran, report) = suite(&["--protocol", version, "--only", id], &script);
        let row = &report["requirements"][0];
        assert_eq!(row["verdict"], "inconclusive", "{}", ran.stdout);
        let reason = row["reason"].as_str().unwrap();
        assert!(reason.contains("another one is running"), "{reason}");
        // Nothing inconclusive makes a run of chosen requirements incomplete.
        assert_eq!(ran.code, Some(0), "{}", ran.stdout);
        std::fs::remove_dir(&lock).unwrap();
    }
}

#[test]
fn sessions_are_closed_at_the_end_of_a_connection() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let env = format!("LOG={}", log.display());
    let script = agent(OPENS, ENDS);
    let id = "session-setup.unique-id";
    for version in ["1", "2"] {
        let options = ["--protocol", version, "--only", id, "--env", &env];
        let (ran, report) = suite(&options, &script);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        let log_text = std::fs::read_to_string(&log).unwrap();
        // The preflight's, and those of the check.
        assert!(log_text.lines().count() >= 3, "{log_text}");
        // The report is about the checks.
        let messages = report["messages"]["client"].as_u64().unwrap();
        assert!(messages < 12, "{}", ran.stdout);
        std::fs::remove_file(&log).unwrap();
    }
}

#[test]
fn modes_that_bypass_permissions_are_selected_only_if_allowed() {
    let folder = TempDir::new().unwrap();
    let log = folder.path().join("log");
    let env = format!("LOG={}", log.display());
    let modes = r#"say '"result":{"sessionId":"s'$n-$$'","modes":{"currentModeId":"ask",
        "availableModes":[{"id":"ask","name":"Ask"},{"id":"go","name":"Full access"}]}}'"#;
    let script = agent(&modes.replace('\n', ""), ENDS);
    let options = ["--only", "modes.set", "--env", &env];
    for (allow, selects) in [(&[][..], false), (&["--allow-privileged"][..], true)] {
        let (ran, _) = suite(&[&options[..], allow].concat(), &script);
        assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
        let log_text = std::fs::read_to_string(&log).unwrap();
        assert!(log_text.contains(r#""modeId":"ask""#), "{log_text}");
        assert_eq!(log_text.contains(r#""modeId":"go""#), selects, "{log_text}");
        std::fs::remove_file(&log).unwrap();
    }
}

/// `acp-server` is not here; the reference agent as a command names its words as well.
#[test]
fn an_agent_names_its_words_itself() {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let only = ["agent", "--only", "terminals", "--only", "plan", "--json"];
    let command = ["--", program, "reference-agent"];
    let ran = acp_conformance(only.iter().chain(&command));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(ids(&report, "skip"), [""; 0], "{}", ran.stdout);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    // A profile says it all.
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("profile.toml");
    std::fs::write(&path, "[prompts]\nhello = \"Hello\"\n").unwrap();
    let profile = ["--profile", path.to_str().unwrap()];
    let ran = acp_conformance(only.iter().chain(&profile).chain(&command));
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(!ids(&report, "skip").is_empty(), "{}", ran.stdout);
    let built_in = ["--profile", "reference"];
    let ran = acp_conformance(only.iter().chain(&built_in).chain(&command));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
