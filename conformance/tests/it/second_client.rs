//! The checks of clients of version 2 proven: the reference client passes each, and a broken one
//! fails it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use acp_conformance::broken::second_clients::CLIENTS;
use acp_conformance::clients::{self, ClientEnv};
use acp_conformance::wire::{Schema, Version};
use acp_conformance::{ClientTest, assert_conformant};

use crate::client::{broken, failures};
use crate::command::acp_conformance;

const PROGRAM: &str = env!("CARGO_BIN_EXE_acp-conformance");

fn reference() -> ClientEnv {
    let words = [PROGRAM, "second-client", "{prompt}", "--", "{agent}"];
    ClientEnv {
        command: words.map(Into::into).to_vec(),
        without_terminals: None,
        listing: None,
        program: PROGRAM.into(),
        prompt: "Hello".into(),
        schema: Arc::new(Schema::of(Version::V2).unwrap()),
        timeout: Duration::from_secs(30),
    }
}

#[test]
fn broken_clients_fail_what_they_break_and_nothing_else() {
    let mut words = String::new();
    for client in CLIENTS {
        let played = clients::play(&broken(reference(), client), client.scene).unwrap();
        let failed = failures(Version::V2, client.scene, &played);
        if failed != client.breaks.iter().copied().collect() {
            let (name, last) = (client.name, played.stderr_tail());
            words += &format!("{name} breaks {failed:?}{last}\n");
        }
    }
    assert!(words.is_empty(), "{words}");
}

#[test]
fn every_check_has_a_client_that_fails_it() {
    let broken: BTreeSet<_> = CLIENTS.iter().flat_map(|client| client.breaks).collect();
    for row in clients::of(Version::V2) {
        assert!(broken.contains(&row.id), "{}", row.id);
    }
}

#[test]
fn the_reference_client_is_conformant_and_skips_nothing() {
    let options = ["client", "--protocol", "2", "--strict", "--"];
    let words = [PROGRAM, "second-client", "{prompt}", "--", "{agent}"];
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
    let words = [PROGRAM, "second-client", "{prompt}", "--", "{agent}"];
    let test = ClientTest::command(words).suite(PROGRAM);
    assert_conformant(test.protocol(Version::V2).only(["v2-hello"]));
}
