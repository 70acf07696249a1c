//! The checks of version 2 proven: the reference agent passes each, and a broken one fails it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use acp_conformance::broken::{self, Broken};
use acp_conformance::harness::{Env, Profile, Silence};
use acp_conformance::requirements::{self, Check};
use acp_conformance::subject::Subject;
use acp_conformance::suite::{Options, Report, run};
use acp_conformance::wire::{Schema, Version};
use acp_conformance::{AgentTest, assert_conformant};

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::of(Version::V2).unwrap()));

/// Runs the suite against the reference agent in this process.
fn report(filter: Option<&Broken>) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let subject = Subject::local_second();
    let env = Env {
        subject: match filter {
            Some(broken) => subject.behind(broken.filter),
            None => subject,
        },
        profile: Profile::second_reference(),
        schema: SCHEMA.clone(),
        folder: folder.path().canonicalize().unwrap(),
        timeout: Duration::from_millis(500),
        turn_timeout: Duration::from_millis(800),
        quiet: Duration::from_millis(20),
        silence: Silence::default(),
    };
    let options = Options {
        jobs: 8,
        ..Options::default()
    };
    run(&Arc::new(env), &options, |_, _| {}).unwrap()
}

fn failures(report: &Report) -> BTreeSet<&'static str> {
    report.with("fail").map(|row| row.requirement.id).collect()
}

#[test]
fn broken_agents_fail_what_they_break_and_nothing_else() {
    let mut words = String::new();
    for broken in broken::of_second() {
        let failed = failures(&report(Some(broken)));
        let listed: BTreeSet<_> = broken.breaks.iter().copied().collect();
        if failed != listed {
            words += &format!("{}: {failed:?}, not {listed:?}\n", broken.name);
        }
    }
    assert!(words.is_empty(), "{words}");
}

#[test]
fn the_reference_agent_breaks_nothing_and_skips_nothing() {
    let report = report(None);
    assert!(report.is_conformant(true), "{:?}", failures(&report));
    for state in ["skip", "inconclusive"] {
        let found: Vec<_> = report.with(state).map(|row| row.requirement.id).collect();
        assert!(found.is_empty(), "{state}: {found:?}");
    }
}

#[test]
fn every_check_has_an_agent_that_fails_it() {
    let broken: BTreeSet<_> = broken::of_second()
        .flat_map(|broken| broken.breaks)
        .collect();
    for (_, row) in requirements::of(Version::V2) {
        let checked = !matches!(row.check, Check::Excluded(_));
        assert_eq!(checked, broken.contains(&row.id), "{}", row.id);
    }
    let names: BTreeSet<_> = broken::all().map(|broken| broken.name).collect();
    for broken in broken::of_second() {
        assert!(!names.contains(broken.name), "{} stands twice", broken.name);
    }
}

/// The reference agent of a version, tested as a library would from a test of its own.
fn tested(version: &'static str) -> AgentTest {
    let program = env!("CARGO_BIN_EXE_acp-conformance");
    AgentTest::command([program, "reference-agent", "--protocol", version])
        .protocol(Version::V2)
        .turn_timeout(Duration::from_secs(10))
        .only(["initialization.same-version"])
}

#[test]
fn a_test_in_rust_asks_for_the_version_it_is_told() {
    assert_conformant(tested("2"));
    let failed = std::panic::catch_unwind(|| assert_conformant(tested("1")));
    let said = failed.expect_err("an agent of version 1 is none of version 2");
    let said = said.downcast_ref::<String>().unwrap();
    assert!(said.contains("initialization"), "{said}");
}
