//! `acp-conformance client`: the bundled client, and clients that break the rules.
//!
//! A broken client runs: the bundled one behind a filter between it and its agent, or
//! with a shell around it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use acp_conformance::clients::{self, ClientEnv, Played, SCENES};
use acp_conformance::harness::Interruption;
use acp_conformance::mutants::{self, How, Mutant};
use acp_conformance::suite::Verdict;
use acp_conformance::wire::{Judged, Party, Schema, Version};
use serde_json::Value;

use crate::command::{Ran, acp_conformance};
use crate::lanes::in_lanes;

#[test]
fn the_bundled_client_is_conformant_in_both_versions_and_skips_nothing() {
    for version in [Version::V1, Version::V2] {
        is_conformant(version);
    }
}

fn is_conformant(version: Version) {
    let protocol = version.as_str();
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
    let rows_reported = report["requirements"].as_array().unwrap().iter();
    let ids = rows_reported.map(|row| row["id"].as_str().unwrap());
    let rows = clients::of(version).map(|row| row.id);
    assert_eq!(ids.collect::<BTreeSet<_>>(), rows.collect());
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

#[cfg(unix)]
#[test]
fn a_file_in_the_current_directory_can_be_the_client() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("client.sh"), "exec \"$@\"\n").unwrap();
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let mut command = std::process::Command::new(program);
    command.args([
        "client",
        "--only",
        "client.version",
        "--",
        "sh",
        "client.sh",
    ]);
    command.args([program, "reference-client", "run"]).args(RUN);
    let ran = command.current_dir(folder.path()).output().unwrap();
    let stderr = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(0), "{stderr}");
}

#[test]
fn a_client_that_does_not_exist_and_an_unknown_row_are_mistakes() {
    let ran = acp_conformance(["client", "--", "/no/such/client"]);
    assert_eq!(ran.code, Some(2));
    assert!(ran.stderr.contains("cannot start /no/such/client"));
    let ran = acp_conformance(["client", "--only", "client.none"]);
    assert_eq!(ran.code, Some(2));
}

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Schema::v1().unwrap());

/// The words after `run` of the bundled client.
const RUN: [&str; 7] = [
    "--approve-all",
    "--terminals=yes",
    "--cwd",
    "{cwd}",
    "{prompt}",
    "--",
    "{agent}",
];

/// The bundled client.
fn bundled() -> ClientEnv {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let words = [program, "reference-client", "run"].into_iter().chain(RUN);
    let without = words.clone().map(|word| match word {
        "--terminals=yes" => "--terminals=no",
        word => word,
    });
    let asking = words.clone().filter(|word| *word != "--approve-all");
    let listing = [
        program,
        "reference-client",
        "sessions",
        "list",
        "--",
        "{agent}",
    ];
    ClientEnv {
        without_terminals: Some(without.map(Into::into).collect()),
        asking: Some(asking.map(Into::into).collect()),
        command: words.map(Into::into).collect(),
        listing: Some(listing.map(Into::into).to_vec()),
        program: program.into(),
        prompt: "Hello".into(),
        schema: SCHEMA.clone(),
        timeout: Duration::from_secs(30),
        interruption: Interruption::default(),
        transcripts: None,
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

/// The requirements of a version that fail after a scenario.
pub(crate) fn failures(
    version: Version,
    scenario: &str,
    played: &Played,
) -> BTreeSet<&'static str> {
    let rows = clients::of(version).filter(|row| row.scenario == scenario);
    let fails = rows.filter(|row| Verdict::from(row.check(played)).as_str() == "fail");
    fails.map(|row| row.id).collect()
}

/// The commands that start the client, each of which ends with the agent's.
fn commands(env: &mut ClientEnv) -> impl Iterator<Item = &mut Vec<OsString>> {
    let others = [&mut env.asking, &mut env.listing];
    std::iter::once(&mut env.command).chain(others.into_iter().flatten())
}

/// The client of `env`, broken.
pub(crate) fn broken(mut env: ClientEnv, broken: &Mutant) -> ClientEnv {
    match broken.how {
        How::Edits(_) | How::Code(_) => {
            let program = env!("CARGO_BIN_EXE_acp-conformance");
            let filter = [program, "broken-client", broken.name, "--"];
            for command in commands(&mut env) {
                let place = command.len() - 1;
                command.splice(place..place, filter.map(Into::into));
            }
        }
        How::Shell(script) => {
            let shell = ["sh", "-c", script, "sh"];
            for command in commands(&mut env) {
                command.splice(0..0, shell.map(Into::into));
            }
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

/// Runs every mutant of a version, made from this client. Returns what they got wrong about the
/// table.
pub(crate) fn mistakes(version: Version, sound: impl Fn() -> ClientEnv + Sync) -> String {
    let mutants: Vec<_> = mutants::clients(version).collect();
    let words = in_lanes(&mutants, |mutant| {
        let scenario = mutant.scenario.unwrap();
        let played = clients::play(&broken(sound(), mutant), scenario).unwrap();
        let failed = failures(version, scenario, &played);
        if failed == mutant.breaks.iter().copied().collect() {
            return String::new();
        }
        let (name, last) = (mutant.name, played.stderr_tail());
        format!("{name} breaks {failed:?}{last}\n")
    });
    words.concat()
}

/// The requirements of clients that mutants of a version break are those of the table.
pub(crate) fn every_check_has_a_mutant(version: Version) {
    let broken = mutants::clients(version).flat_map(|mutant| mutant.breaks.iter().copied());
    let rows = clients::of(version).map(|row| row.id);
    assert_eq!(rows.collect::<BTreeSet<_>>(), broken.collect());
}

#[test]
fn mutants_of_clients_fail_what_they_break_and_nothing_else() {
    let words = mistakes(Version::V1, bundled_with_terminals);
    assert!(words.is_empty(), "{words}");
}

#[test]
fn the_bundled_client_passes_every_scenario_alone() {
    passes_alone(Version::V1, bundled);
}

/// A client fails no requirement in any scenario, in which the agent sends valid messages only.
pub(crate) fn passes_alone(version: Version, sound: impl Fn() -> ClientEnv + Sync) {
    // What no client knows is the point of these.
    let strange = [
        "strangeness",
        "noise",
        "v2-noise",
        "option-types",
        "v2-arrays",
    ];
    let words = in_lanes(clients::scenarios(version), |scenario| {
        let played = clients::play(&sound(), scenario.name).unwrap();
        let failed = failures(version, scenario.name, &played);
        let invalid = played
            .recording
            .of(Party::Agent)
            .find(|entry| entry.judged == Judged::Invalid && !strange.contains(&scenario.name));
        match (failed.is_empty(), invalid) {
            (true, None) => String::new(),
            _ => format!("{}: {failed:?} {invalid:?}\n", scenario.name),
        }
    });
    assert!(words.concat().is_empty(), "{}", words.concat());
}

/// A client that shows an error to its user and stays, after this command for its agent.
fn stays_after(command: &str) -> BTreeSet<&'static str> {
    let begin = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
    let script = format!(
        "mkfifo in out; \"$@\" <in >out & exec 3>in 4<out; echo '{begin}' >&3; read answer <&4; {command}; \
         exec sleep 60"
    );
    let words = ["sh", "-c", &script, "sh", "{agent}"];
    let env = ClientEnv {
        command: words.map(Into::into).to_vec(),
        timeout: Duration::from_secs(2),
        ..bundled()
    };
    let played = clients::play(&env, "version").unwrap();
    failures(Version::V1, "version", &played)
}

#[test]
fn a_client_that_kills_its_agent_has_closed_the_connection() {
    assert_eq!(stays_after("kill -9 $!"), BTreeSet::new());
    let open = BTreeSet::from(["client.closes-on-other-version"]);
    assert_eq!(stays_after("true"), open);
}

#[test]
fn every_check_of_clients_has_a_mutant() {
    every_check_has_a_mutant(Version::V1);
}

/// The bundled client, started by a shell that is given the agent in one form or another.
fn launched(form: &str, launch: &str) -> Ran {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let run =
        format!("exec \"$0\" reference-client run --approve-all --cwd \"$1\" \"$2\" -- {launch}");
    let command = ["sh", "-c", &run, program, "{cwd}", "{prompt}", form];
    let options = ["client", "--only", "hello", "--"];
    acp_conformance(options.iter().chain(&command))
}

#[test]
fn a_client_is_given_its_agent_in_any_form() {
    for (form, launch) in [
        ("{agent-line}", "sh -c \"exec $3\""),
        ("--agent={agent}", "sh -c \"exec ${3#--agent=}\""),
        ("{agent-script}", "\"$3\""),
    ] {
        let ran = launched(form, launch);
        assert_eq!(ran.code, Some(0), "{form}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn a_word_that_is_replaced_may_begin_with_a_hyphen() {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    let options = [
        "client",
        "--only",
        "without-terminals",
        "--without-terminals",
    ];
    let words = [
        "--terminals=yes",
        "--terminals=no",
        "--",
        program,
        "reference-client",
        "run",
    ];
    let ran = acp_conformance(options.iter().chain(&words).chain(&RUN));
    assert_eq!(ran.code, Some(0), "{}{}", ran.stdout, ran.stderr);
    assert!(!ran.stdout.contains(" 0 passed"), "{}", ran.stdout);
}
