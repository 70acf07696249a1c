//! The checks of clients of version 2 proven: the reference client passes each, and a broken one
//! fails it.

use std::time::Duration;

use acp_conformance::clients::ClientEnv;
use acp_conformance::harness::Interruption;
use acp_conformance::wire::{Schema, Version};
use acp_conformance::{ClientTest, assert_conformant};

use crate::client::{every_check_has_a_mutant, mistakes, passes_alone};
use crate::command::acp_conformance;

const PROGRAM: &str = env!("CARGO_BIN_EXE_acp-conformance");

fn reference() -> ClientEnv {
    let words = [PROGRAM, "v2-client", "{prompt}", "--", "{agent}"];
    ClientEnv {
        command: words.map(Into::into).to_vec(),
        without_terminals: None,
        asking: Some(asking().split(' ').map(Into::into).collect()),
        listing: None,
        program: PROGRAM.into(),
        prompt: "Hello".into(),
        schema: Schema::of(Version::V2).unwrap(),
        timeout: Duration::from_secs(30),
        interruption: Interruption::default(),
        transcripts: None,
    }
}

/// The command of the client that leaves permission to its user.
fn asking() -> String {
    format!("{PROGRAM} v2-client --asking {{prompt}} -- {{agent}}")
}

#[test]
fn mutants_of_clients_of_v2_fail_what_they_break_and_nothing_else() {
    let words = mistakes(Version::V2, reference);
    assert!(words.is_empty(), "{words}");
}

#[test]
fn the_reference_client_passes_every_scenario_alone() {
    passes_alone(Version::V2, reference);
}

#[test]
fn every_check_of_clients_of_v2_has_a_mutant() {
    every_check_has_a_mutant(Version::V2);
}

#[test]
fn the_reference_client_is_conformant_and_skips_nothing() {
    let asking = asking();
    let options = [
        "client",
        "--protocol",
        "2",
        "--strict",
        "--asking",
        &asking,
        "--",
    ];
    let words = [PROGRAM, "v2-client", "{prompt}", "--", "{agent}"];
    let ran = acp_conformance(options.iter().chain(&words));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let said = " failed: 0 MUST, 0 derived, 0 SHOULD, 0 info; 0 inconclusive, 0 skipped";
    assert!(ran.stdout.contains(said), "{}", ran.stdout);
    assert!(
        ran.stdout.contains("acp-conformance-client"),
        "{}",
        ran.stdout
    );
}

#[test]
fn a_client_in_a_test_is_told_the_version() {
    let words = [PROGRAM, "v2-client", "{prompt}", "--", "{agent}"];
    let test = ClientTest::command(words).suite(PROGRAM);
    assert_conformant(test.protocol(Version::V2).only(["v2-hello"]));
}
