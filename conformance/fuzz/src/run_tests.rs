//! The reference agent passes; behind a filter that breaks it, it fails.

use std::time::Duration;

use acp_conformance::harness::{Conditions, Profile, Unresponsive};
use acp_conformance::target::{Filter, Passing, Tap, Target};
use acp_conformance::wire::{Schema, Version};
use acp_reference_agent::Reference;
use acp_server::Link;

use super::*;

/// The reference agent in this process.
fn reference() -> Target {
    Target::within(|| Reference::server().build().connection(Link::Stdio))
}

fn reasons(report: &Report) -> Vec<&str> {
    let failures = report.failures.iter();
    failures.map(|broken| broken.reason.as_str()).collect()
}

fn fuzzed(filter: Option<Filter>, count: u64) -> Report {
    fuzzed_as(Version::V1, filter, count)
}

fn fuzzed_as(version: Version, filter: Option<Filter>, count: u64) -> Report {
    let target = match version {
        Version::V1 => reference(),
        Version::V2 => Target::local_v2(),
    };
    let target = match filter {
        Some(filter) => target.behind(filter),
        None => target,
    };
    let (env, _folder) = env(version, target);
    run(&Arc::new(env), count, 1, |_| {}).unwrap()
}

/// What a run needs; the folder goes with the second.
fn env(version: Version, target: Target) -> (Env, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let env = Env {
        profile: match version {
            Version::V1 if target.command_line().is_empty() => Profile::reference().unwrap(),
            Version::V1 => Profile::unknown_agent(),
            Version::V2 => Profile::reference().unwrap(),
        },
        target,
        schema: Schema::of(version).unwrap(),
        folder: folder.path().to_owned(),
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(20),
        quiet: Duration::from_millis(50),
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    (env, folder)
}

/// The last prompt of a transcript.
fn prompt(broken: &Broken) -> Value {
    let records = broken.transcript.iter().rev();
    let values = records.map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut prompts = values.filter(|record| record["msg"]["method"] == "session/prompt");
    prompts.next().unwrap()["msg"]["params"]["prompt"].take()
}

#[test]
fn the_reference_agent_passes() {
    let report = fuzzed(None, 150);
    assert!(report.failures.is_empty(), "{}", report.text(1));
    assert_eq!(report.sent, 150);
    // Both kinds are a good part of the messages; the others are notifications.
    let part = report.sent / 5;
    assert!(
        report.accepted > part && report.refused > part,
        "{report:?}"
    );
}

#[test]
fn an_agent_that_refuses_what_is_valid_fails_with_the_smallest_such_message() {
    let no_links: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let links = it.value["params"]["prompt"]
            .to_string()
            .contains("resource_link");
        if it.from == Party::Client && links {
            let error = json!({"code": -32602, "message": "no links"});
            tap.to_client(&json!({"jsonrpc": "2.0", "id": it.value["id"], "error": error}));
        } else {
            tap.forward();
        }
    };
    let report = fuzzed(Some(no_links), 150);
    let [broken] = report.failures.as_slice() else {
        panic!("{}", report.text(1));
    };
    assert_eq!(broken.reason, "a valid message is refused with -32602");
    assert!(broken.alone);
    let prompt = prompt(broken);
    assert_eq!(prompt.as_array().unwrap().len(), 1, "{prompt}");
    assert_eq!(prompt[0].as_object().unwrap().len(), 3, "{prompt}");
    assert!(report.text(1).contains("1 failures") && report.repeated > 0);
}

#[test]
fn a_refusal_has_the_right_code() {
    let internal: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let hit = it.from == Party::Agent && it.value["error"]["code"] == -32602;
        tap.edit(it, hit, |value| value["error"]["code"] = json!(-32603));
    };
    let report = fuzzed(Some(internal), 60);
    assert_eq!(
        reasons(&report),
        ["invalid params are refused with -32603, not with -32602"]
    );
}

#[test]
fn what_the_agent_writes_meanwhile_is_valid_too() {
    let numbers: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let text = &it.value["params"]["update"]["content"]["text"];
        let hit = it.from == Party::Agent && text.is_string();
        tap.edit(it, hit, |value| {
            value["params"]["update"]["content"]["text"] = json!(7);
        });
    };
    let report = fuzzed(Some(numbers), 60);
    assert_eq!(
        reasons(&report),
        ["the agent breaks jsonrpc.schema: session/update at /params/update/content/text"]
    );
}

/// Opens a session, and goes when its turn is cancelled.
const MORTAL: &str = r#"
while read -r line; do
    case $line in
        *'"method":"initialize"'*) echo '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1}}' ;;
        *'"method":"session/new"'*) echo '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"s"}}' ;;
        *'"method":"session/cancel"'*) exit 3 ;;
    esac
done"#;

#[test]
fn an_agent_must_live_on() {
    let shell = ["sh", "-c", MORTAL].map(Into::into);
    let (env, _folder) = env(Version::V1, Target::command(shell.to_vec()));
    let mut fuzzed = Fuzzed::start(&Arc::new(env)).unwrap();
    let params = json!({"sessionId": "s"});
    let case = Case {
        message: json!({"jsonrpc": "2.0", "method": "session/cancel", "params": params}),
        demand: Demand::Survive,
        done: String::new(),
    };
    let reason = fuzzed.send(&case).err().unwrap_or_default();
    assert!(
        reason.starts_with("the agent does not live on: "),
        "{reason}"
    );
}

#[test]
fn version_2_is_made_of_its_own_schema() {
    let report = fuzzed_as(Version::V2, None, 150);
    assert!(report.failures.is_empty(), "{}", report.text(1));
    assert!(
        report.accepted > report.sent / 5 && report.refused > 0,
        "{report:?}"
    );

    let late: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let hit = it.updates("agent_message_chunk");
        tap.edit(it, hit, |value| {
            value["params"]["update"]["messageId"] = Value::Null
        });
    };
    let report = fuzzed_as(Version::V2, Some(late), 40);
    let wrong = "the agent breaks jsonrpc.schema: session/update at ";
    assert!(
        reasons(&report)
            .iter()
            .any(|reason| reason.starts_with(wrong)),
        "{}",
        report.text(1)
    );
}

/// An agent that refuses everything whose id is no string and no whole number, and repeats the id.
#[test]
fn an_answer_that_repeats_an_odd_id_is_no_finding() {
    let repeats: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let id = it.value.get("id").cloned().unwrap_or_default();
        let is_odd = it.from == Party::Client && (id.is_f64() || id.is_object() || id.is_array());
        if is_odd {
            let error = json!({"code": -32600, "message": "what an id"});
            tap.to_client(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
        } else {
            tap.forward();
        }
    };
    let report = fuzzed(Some(repeats), 150);
    assert!(report.failures.is_empty(), "{}", report.text(1));
    // The same from the agent's own accord is one.
    let odd: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        if it.succeeds("session/new") && it.value["id"].as_u64() > Some(1_000) {
            tap.to_client(&json!({"jsonrpc": "2.0", "id": 2.5, "result": {}}));
        }
        tap.forward();
    };
    assert!(!fuzzed(Some(odd), 60).failures.is_empty());
}

/// An agent that answers no invalid prompt, and would be waited for as long as a turn may take each time.
#[test]
fn requests_that_are_never_answered_are_not_waited_for_again_and_again() {
    let silent: Filter = |tap: &mut Tap<'_>, it: &Passing| {
        let hit = it.answers("session/prompt") && it.value.get("error").is_some();
        if !hit {
            tap.forward();
        }
    };
    let target = reference().behind(silent);
    let (mut env, _folder) = env(Version::V1, target);
    env.timeout = Duration::from_millis(100);
    env.turn_timeout = Duration::from_secs(3);
    let started = Instant::now();
    let report = run(&Arc::new(env), 60, 1, |_| {}).unwrap();
    assert!(
        !report.failures.is_empty() && report.repeated > 0,
        "{}",
        report.text(1)
    );
    assert!(
        started.elapsed() < Duration::from_secs(15),
        "{:?}",
        started.elapsed()
    );
}
