//! Every check of agents proven: the reference agent passes it, and a broken one fails it.
//!
//! A mutant is run against the requirements on whose traffic it has an effect: what passes between
//! the suite and the sound agent is recorded for each of them, and a filter that changes none of
//! these bytes cannot change the verdict. The same holds for the explorations, which are half of the
//! messages of a run.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use acp_conformance::harness::{Conditions, Env, Profile, Unresponsive};
use acp_conformance::mutants::{self, How, Mutant};
use acp_conformance::requirements::{self, Check, Choice, Requirement};
use acp_conformance::suite::{Options, Report, Verdict, run};
use acp_conformance::target::{Target, Traffic};
use acp_conformance::wire::{Party, Schema, Version};
use acp_reference_agent::Reference;
use acp_server::Link;
use acp_server::store::MemoryStore;

use crate::lanes::in_lanes;

/// Requirements that no filter can break, with the test that proves the check in both versions: an
/// agent behind a filter is none that could outlive its input.
const PROVEN_ELSEWHERE: [(&str, &str); 1] = [(
    "transports.ends-with-its-input",
    "agent::an_agent_that_outlives_its_input_is_seen",
)];

/// The check that takes longest, with a message of a megabyte; who does not break it is spared it.
const LARGE: &str = "transports.large-message";

/// A rule over all messages; with nothing else, a run has only the explorations.
const EXPLORATIONS: &str = "jsonrpc.schema";

/// How long is waited for an answer, for a turn, and for what must not come.
#[derive(Clone, Copy)]
struct Limits {
    answer: Duration,
    turn: Duration,
    quiet: Duration,
}

/// No sound agent comes near the first two, however busy the machine is: mutants say which requests
/// they leave unanswered.
const GENEROUS: Limits = Limits {
    answer: Duration::from_secs(20),
    turn: Duration::from_secs(40),
    quiet: Duration::from_millis(150),
};

/// For mutants that leave out updates, which nobody can say in their stead.
const SHORT: Limits = Limits {
    answer: Duration::from_millis(1500),
    turn: Duration::from_secs(3),
    ..GENEROUS
};

/// For a second run after a mistake, which a busy machine may be the cause of.
const PATIENT: Limits = Limits {
    quiet: Duration::from_millis(1500),
    ..GENEROUS
};

/// How many connections a run has before those of its requirements. They are the same whatever is
/// run, so they cannot set requirements apart.
const PREFLIGHT: usize = 1;

/// Runs requirements against an agent in this process, all if none is named.
fn within(version: Version, target: Target, only: &[&str], limits: Limits) -> Report {
    run_with(version, target, only, limits, Options::default())
}

/// The same with options of its own.
fn run_with(
    version: Version,
    target: Target,
    only: &[&str],
    limits: Limits,
    options: Options,
) -> Report {
    static V1: LazyLock<Arc<Schema>> = LazyLock::new(|| schema(Version::V1));
    static V2: LazyLock<Arc<Schema>> = LazyLock::new(|| schema(Version::V2));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    let schema = match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    };
    let env = Env {
        target,
        profile: Profile::reference().unwrap(),
        schema: Arc::clone(schema),
        folder: path,
        timeout: limits.answer,
        turn_timeout: limits.turn,
        quiet: limits.quiet,
        unresponsive: Unresponsive::default(),
        conditions: Conditions::default(),
    };
    let choice = Choice {
        only: only.iter().map(|&id| id.to_owned()).collect(),
        ..Choice::default()
    };
    let options = Options {
        choice,
        jobs: 12,
        ..options
    };
    run(&Arc::new(env), &options, |_, _| {}).unwrap()
}

fn schema(version: Version) -> Arc<Schema> {
    Schema::of(version).unwrap()
}

/// The reference agent in this process; its connections share the stored sessions, as processes
/// share a disk.
fn reference() -> Target {
    let store = Arc::new(MemoryStore::new());
    Target::within(move || {
        let server = Reference::server().store(store.clone());
        server.build().connection(Link::Stdio)
    })
}

fn sound(version: Version) -> Target {
    match version {
        Version::V1 => reference(),
        Version::V2 => Target::local_v2(),
    }
}

fn failures(report: &Report) -> BTreeSet<&'static str> {
    report.with("fail").map(|row| row.requirement.id).collect()
}

fn rows(version: Version) -> impl Iterator<Item = &'static Requirement> {
    requirements::of(version).map(|(_, row)| row)
}

/// What passes between the suite and the sound agent, for each requirement that acts.
fn traffic(version: Version) -> &'static [(&'static str, Traffic)] {
    static V1: LazyLock<Vec<(&str, Traffic)>> = LazyLock::new(|| recorded(Version::V1));
    static V2: LazyLock<Vec<(&str, Traffic)>> = LazyLock::new(|| recorded(Version::V2));
    match version {
        Version::V1 => &V1,
        Version::V2 => &V2,
    }
}

fn recorded(version: Version) -> Vec<(&'static str, Traffic)> {
    let acts = |row: &&Requirement| row.check.acts() && row.id != LARGE;
    let ids = rows(version).filter(acts).map(|row| row.id);
    let ids: Vec<_> = ids.chain([EXPLORATIONS]).collect();
    in_lanes(&ids, |id| {
        let traffic = Traffic::default();
        let target = sound(version).recorded(&traffic);
        let report = within(version, target, &[id], GENEROUS);
        assert!(failures(&report).is_empty(), "{id}");
        (*id, traffic)
    })
}

/// The requirements that act on whose traffic a mutant has an effect.
fn touched(mutant: &'static Mutant, version: Version) -> BTreeSet<&'static str> {
    let rewrite = mutant.rewrite().unwrap();
    let traffic = traffic(version).iter();
    let touched = traffic.filter(|(_, traffic)| traffic.is_changed_by(rewrite, PREFLIGHT));
    touched.map(|(id, _)| *id).collect()
}

/// The requirements of a version that a mutant breaks; a mutant of both may break others in each.
fn breaks(mutant: &'static Mutant, version: Version) -> impl Iterator<Item = &'static str> {
    let ids: BTreeSet<_> = rows(version).map(|row| row.id).collect();
    let breaks = mutant.breaks.iter().copied();
    breaks.filter(move |id| ids.contains(id))
}

/// The requirements among these that a mutant breaks and should not, or the other way round.
fn wrong(
    mutant: &'static Mutant,
    target: Target,
    version: Version,
    chosen: &[&str],
    limits: Limits,
    without_explorations: bool,
) -> (BTreeSet<&'static str>, String) {
    let options = Options {
        without_explorations,
        ..Options::default()
    };
    let report = run_with(version, target, chosen, limits, options);
    let failed = failures(&report);
    let listed: BTreeSet<_> = breaks(mutant, version).collect();
    let wrong = failed.symmetric_difference(&listed).copied();
    let wrong = wrong.filter(|id| mutant.exact || listed.contains(id));
    (wrong.collect(), ill_worded(&report))
}

/// Failures of a report that do not say what was expected and what came. What the schema says of a
/// message is another text.
fn ill_worded(report: &Report) -> String {
    // A finding names its place first.
    let is_worded = |reason: &str| {
        let expected = reason.split(": ").any(|part| part.starts_with("expected "));
        expected && reason.contains(", got ")
    };
    let failed = report.with("fail").filter_map(|row| match &row.verdict {
        Verdict::Fail(failure) => Some((row.requirement, &failure.reason)),
        _ => None,
    });
    let is_schema = |row: &Requirement| row.id == "jsonrpc.schema";
    let bad = failed.filter(|(row, reason)| !is_schema(row) && !is_worded(reason));
    bad.map(|(row, reason)| format!("{}: {reason}\n", row.id))
        .collect()
}

/// What a mutant got wrong about the table, in words; empty if nothing.
fn mistakes(mutant: &'static Mutant, version: Version) -> String {
    let target = || {
        let behind = sound(version).behind(mutant.rewrite().unwrap());
        behind.telling_losses()
    };
    let limits = match version {
        Version::V1 => GENEROUS,
        Version::V2 => SHORT,
    };
    let touched = touched(mutant, version);
    // What the explorations show of a mutant that leaves them alone was seen of the sound agent.
    let without_explorations = !touched.contains(EXPLORATIONS);
    let watch = |row: &&Requirement| matches!(row.check, Check::Watch { .. });
    let watching = rows(version).filter(watch).map(|row| row.id);
    let chosen: BTreeSet<_> = watching.chain(touched.iter().copied()).collect();
    // Whose traffic was not recorded, or was another one for once.
    let chosen = chosen.into_iter().chain(breaks(mutant, version));
    let chosen: Vec<_> = chosen.collect();
    let first = target();
    let applied = first.applied().unwrap();
    let (mut mistaken, mut words) = wrong(
        mutant,
        first,
        version,
        &chosen,
        limits,
        without_explorations,
    );
    if !mistaken.is_empty() {
        let (again, _) = wrong(
            mutant,
            target(),
            version,
            &chosen,
            PATIENT,
            without_explorations,
        );
        mistaken.retain(|id| again.contains(id));
    }
    let recorded = traffic(version).iter().map(|(id, _)| *id);
    let recorded = recorded.filter(|id| *id != EXPLORATIONS);
    for id in recorded.filter(|id| mutant.breaks.contains(id) && !touched.contains(id)) {
        words += &format!("{} has no effect on the traffic of {id}\n", mutant.name);
    }
    for id in mistaken {
        let verb = match mutant.breaks.contains(&id) {
            true => "does not break",
            false => "also breaks",
        };
        words += &format!("{} {verb} {id}\n", mutant.name);
    }
    if !applied.has_changed() {
        words += &format!("{} changes no message\n", mutant.name);
    }
    if let How::Edits(edits) = &mutant.how {
        for index in (0..edits.count()).filter(|index| !applied.has_edited(*index)) {
            words += &format!("{}: edit {index} is never made\n", mutant.name);
        }
    }
    words
}

/// Runs every mutant of a version.
pub(crate) fn mutants_fail_what_they_break_and_nothing_else(version: Version) {
    let mutants: Vec<_> = mutants::agents(version).collect();
    let words = in_lanes(&mutants, |mutant| mistakes(mutant, version)).concat();
    assert!(words.is_empty(), "{words}");
}

/// Runs the reference agent of a version.
pub(crate) fn the_reference_agent_breaks_nothing_and_skips_nothing(version: Version) {
    let report = within(version, sound(version), &[], GENEROUS);
    assert!(report.is_conformant(true));
    for state in ["fail", "skip", "inconclusive"] {
        let found: Vec<_> = report.with(state).map(|row| row.requirement.id).collect();
        assert!(found.is_empty(), "{state}: {found:?}");
    }
}

/// Every requirement with a check is one that a mutant breaks.
pub(crate) fn every_check_has_a_mutant(version: Version) {
    let broken = mutants::agents(version).flat_map(|mutant| breaks(mutant, version));
    let elsewhere = PROVEN_ELSEWHERE.iter().map(|(id, _)| *id);
    let proven: BTreeSet<_> = broken.chain(elsewhere).collect();
    let is_checked = |row: &&Requirement| !matches!(row.check, Check::Excluded(_));
    let checked: BTreeSet<_> = rows(version).filter(is_checked).map(|row| row.id).collect();
    assert_eq!(checked, proven);
}

#[test]
fn mutants_of_v1_fail_what_they_break_and_nothing_else() {
    mutants_fail_what_they_break_and_nothing_else(Version::V1);
}

#[test]
fn the_reference_agent_of_v1_breaks_nothing_and_skips_nothing() {
    the_reference_agent_breaks_nothing_and_skips_nothing(Version::V1);
}

#[test]
fn every_check_of_v1_has_a_mutant() {
    every_check_has_a_mutant(Version::V1);
}

#[test]
fn mutants_name_requirements_that_exist() {
    let all = [Version::V1, Version::V2].into_iter().flat_map(rows);
    let known: BTreeSet<_> = all.map(|row| row.id).collect();
    for mutant in mutants::all().filter(|mutant| mutant.side == Party::Agent) {
        for id in &mutant.breaks {
            assert!(known.contains(id), "{} names {id}", mutant.name);
        }
    }
}

/// A request that is never answered costs no more than its sound twin took.
#[test]
fn an_id_that_an_agent_ignores_is_not_waited_for() {
    let mutant = mutants::find(Party::Agent, "null-is-no-id").unwrap();
    let started = Instant::now();
    let target = reference().behind(mutant.rewrite().unwrap());
    let limits = Limits {
        answer: Duration::from_secs(5),
        turn: Duration::from_secs(600),
        ..GENEROUS
    };
    let report = within(Version::V1, target, &["jsonrpc.null-id"], limits);
    assert_eq!(failures(&report), BTreeSet::from(["jsonrpc.null-id"]));
    assert!(started.elapsed() < Duration::from_secs(60));
}
