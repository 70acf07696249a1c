//! `acp-conformance client`: the bundled client, and clients that break the rules.
//!
//! A broken client runs: the bundled one behind a filter between it and its agent, or
//! with a shell around it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use acp_conformance::broken::clients::{BrokenClient, CLIENTS, How};
use acp_conformance::clients::{self, ClientEnv, Played, SCENES};
use acp_conformance::suite::Verdict;
use acp_conformance::wire::{Schema, Version};
use serde_json::Value;

use crate::command::acp_conformance;

#[test]
fn the_bundled_client_is_conformant_in_both_versions_and_skips_nothing() {
    for (protocol, rows) in [("1", 30), ("2", 25)] {
        is_conformant(protocol, rows);
    }
}

fn is_conformant(protocol: &str, rows: usize) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let path = path.to_str().unwrap();
    let ran = acp_conformance(["client", "--protocol", protocol, "--json", path]);
    assert_eq!(ran.code, Some(0), "{}", ran.stdout);
    assert!(ran.stdout.starts_with("acp "), "{}", ran.stdout);
    assert!(ran.stdout.contains("\nconformant: "), "{}", ran.stdout);
    assert!(ran.stdout.contains(" of the client, 0 of them invalid"));
    assert!(
        ran.stdout
            .contains(" failed: 0 MUST, 0 derived, 0 SHOULD, 0 info; 0 inconclusive, 0 skipped")
    );
    let report: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let schema = serde_json::from_str(acp_conformance::report::SCHEMA).unwrap();
    assert!(jsonschema::is_valid(&schema, &report), "{report}");
    assert_eq!(report["kind"], "client");
    assert!(report["requirements"].as_array().unwrap().len() > rows);
}

#[cfg(unix)]
#[test]
fn a_client_that_does_not_start_the_agent_is_one_message() {
    let only = ["client", "--only", "client.version"];
    let ran = acp_conformance(only.iter().chain(&["--", "sh", "-c", "echo no agent >&2"]));
    assert_eq!(ran.code, Some(2), "{}", ran.stdout);
    let says = "the client `sh -c 'echo no agent >&2'` did not start the agent";
    assert!(ran.stderr.contains(says), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("standard error: no agent"),
        "{}",
        ran.stderr
    );
}

#[test]
fn a_client_that_does_not_exist_and_an_unknown_row_are_mistakes() {
    let ran = acp_conformance(["client", "--", "/no/such/client"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot start /no/such/client"));
    let ran = acp_conformance(["client", "--only", "client.none"]);
    assert_eq!(ran.code, Some(2));
}

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::v1().unwrap()));

/// The bundled client.
fn bundled() -> ClientEnv {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let words = [
        program,
        "reference-client",
        "run",
        "--approve-all",
        "--terminals=yes",
        "--cwd",
        "{cwd}",
        "{prompt}",
        "--",
        "{agent}",
    ];
    let mut without = words;
    without[4] = "--terminals=no";
    ClientEnv {
        command: words.map(Into::into).to_vec(),
        without_terminals: Some(without.map(Into::into).to_vec()),
        listing: None,
        program: program.into(),
        prompt: "Hello".into(),
        schema: SCHEMA.clone(),
        timeout: Duration::from_secs(30),
    }
}

#[test]
fn the_folder_of_a_scene_goes_with_it() {
    let played = clients::play(&bundled(), SCENES[0].name).unwrap();
    let folder = played.folder.clone();
    assert!(folder.join("input.txt").exists());
    drop(played);
    assert!(!folder.exists());
}

/// The requirements of a version that fail after a scene.
pub(crate) fn failures(version: Version, scene: &str, played: &Played) -> BTreeSet<&'static str> {
    let rows = clients::of(version).filter(|row| row.scene == scene);
    let fails = rows.filter(|row| Verdict::from((row.check)(played)).as_str() == "fail");
    fails.map(|row| row.id).collect()
}

/// The client of `env`, broken.
pub(crate) fn broken(mut env: ClientEnv, broken: &BrokenClient) -> ClientEnv {
    match broken.how {
        How::Filter(_) => {
            let program = env!("CARGO_BIN_EXE_acp-conformance");
            let filter = [program, "broken-client", broken.name, "--"];
            let place = env.command.len() - 1;
            env.command.splice(place..place, filter.map(Into::into));
        }
        How::Shell(script) => {
            let shell = ["sh", "-c", script, "sh"];
            env.command.splice(0..0, shell.map(Into::into));
        }
    }
    if broken.breaks.contains(&"client.comes-to-an-end") {
        env.timeout = Duration::from_secs(5);
    }
    env
}

/// The bundled client, which as it is does not do what it does not declare.
fn bundled_with_terminals() -> ClientEnv {
    ClientEnv {
        without_terminals: None,
        ..bundled()
    }
}

/// Clients that run and break one rule each.
#[test]
fn broken_clients_fail_what_they_break_and_nothing_else() {
    for scene in SCENES {
        let sound = clients::play(&bundled(), scene.name).unwrap();
        assert!(
            failures(Version::V1, scene.name, &sound).is_empty(),
            "{}",
            scene.name
        );
    }
    let part = |part: usize| -> String {
        let mut words = String::new();
        for client in CLIENTS.iter().skip(part).step_by(4) {
            let played =
                clients::play(&broken(bundled_with_terminals(), client), client.scene).unwrap();
            let failed = failures(Version::V1, client.scene, &played);
            if failed != client.breaks.iter().copied().collect() {
                let (name, last) = (client.name, played.stderr_tail());
                words += &format!("{name} breaks {failed:?}{last}\n");
            }
        }
        words
    };
    let words = std::thread::scope(|scope| {
        let parts = [0, 1, 2, 3].map(|number| scope.spawn(move || part(number)));
        parts.map(|part| part.join().unwrap()).concat()
    });
    assert!(words.is_empty(), "{words}");
}

#[test]
fn every_check_of_clients_has_a_client_that_fails_it() {
    let broken: BTreeSet<_> = CLIENTS.iter().flat_map(|client| client.breaks).collect();
    for row in clients::all() {
        assert!(broken.contains(&row.id), "{}", row.id);
    }
}
