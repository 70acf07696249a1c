//! Every check proven: the reference agent passes it, and a broken one fails it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use acp_conformance::broken::{self, Broken};
use acp_conformance::harness::{Env, Profile, Silence};
use acp_conformance::requirements::{self, Check, Choice};
use acp_conformance::subject::Subject;
use acp_conformance::suite::{Options, Report, run};
use acp_conformance::wire::Schema;

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::v1().unwrap()));

/// Requirements that no filter can break, with the test that proves the check.
const PROVEN_ELSEWHERE: [(&str, &str); 1] = [(
    "transports.ends-with-its-input",
    "agent::an_agent_that_outlives_its_input_is_seen",
)];

/// Runs these areas of the suite, or all, against the reference agent in this
/// process.
fn report(filter: Option<&Broken>, only: Vec<String>) -> Report {
    let limits = [Duration::from_millis(800), Duration::from_millis(1500)];
    within(filter, only, limits)
}

/// The same with these limits for an answer and for a turn.
fn within(filter: Option<&Broken>, only: Vec<String>, limits: [Duration; 2]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    let subject = Subject::local();
    let env = Env {
        subject: match filter {
            Some(broken) => subject.behind(broken.filter),
            None => subject,
        },
        profile: Profile::reference().unwrap(),
        schema: SCHEMA.clone(),
        folder: path,
        timeout: limits[0],
        turn_timeout: limits[1],
        // Long enough for an answer that is on its way on a busy machine.
        quiet: Duration::from_millis(150),
        silence: Silence::default(),
    };
    let choice = Choice {
        only,
        ..Choice::default()
    };
    let options = Options { choice, jobs: 4 };
    run(&Arc::new(env), &options, |_, _| {}).unwrap()
}

fn failures(report: &Report) -> BTreeSet<&'static str> {
    report.with("fail").map(|row| row.requirement.id).collect()
}

/// The failures of the reference agent as it is.
static SOUND: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| failures(&report(None, Vec::new())));

/// Where the requirements stand that an agent breaks.
fn areas(broken: &Broken) -> Vec<String> {
    let area = |id: &&str| id.split('.').next().unwrap_or_default().to_owned();
    let areas: BTreeSet<_> = broken.breaks.iter().map(area).collect();
    areas.into_iter().collect()
}

/// What a broken agent got wrong about the table, in words; empty if nothing.
fn mistakes(broken: &Broken, only: Vec<String>) -> String {
    let report = report(Some(broken), only);
    let failed = failures(&report);
    let listed: BTreeSet<_> = broken.breaks.iter().copied().collect();
    let passed: Vec<_> = listed.difference(&failed).collect();
    let unlisted: Vec<_> = failed
        .difference(&listed)
        .filter(|id| !SOUND.contains(*id))
        .collect();
    let mut words = String::new();
    if !passed.is_empty() {
        words += &format!("{} does not break {passed:?}\n", broken.name);
    }
    if broken.exact && !unlisted.is_empty() {
        words += &format!("{} also breaks {unlisted:?}\n", broken.name);
    }
    words
}

/// One part of the matrix; the parts run at the same time.
fn prove(part: usize, parts: usize) {
    let rows = broken::all().skip(part).step_by(parts);
    let words: String = rows.map(|broken| mistakes(broken, areas(broken))).collect();
    assert!(words.is_empty(), "{words}");
}

#[test]
fn broken_agents_fail_what_they_break_first_part() {
    prove(0, 4);
}

#[test]
fn broken_agents_fail_what_they_break_second_part() {
    prove(1, 4);
}

#[test]
fn broken_agents_fail_what_they_break_third_part() {
    prove(2, 4);
}

#[test]
fn broken_agents_fail_what_they_break_fourth_part() {
    prove(3, 4);
}

#[test]
#[ignore = "takes minutes; the parts above compare within the areas that an agent breaks"]
fn broken_agents_fail_nothing_else_in_the_whole_suite() {
    let part = |part: usize| -> String {
        let rows = broken::all().skip(part).step_by(4);
        rows.map(|broken| mistakes(broken, Vec::new())).collect()
    };
    let words = std::thread::scope(|scope| {
        let parts = [0, 1, 2, 3].map(|number| scope.spawn(move || part(number)));
        parts.map(|part| part.join().unwrap()).concat()
    });
    assert!(words.is_empty(), "{words}");
}

/// A request that is never answered costs no more than its sound twin took.
#[test]
fn an_id_that_an_agent_ignores_is_not_waited_for() {
    let broken = broken::find("null-is-no-id").unwrap();
    let started = Instant::now();
    let report = within(
        Some(broken),
        vec!["jsonrpc.null-id".into()],
        [30, 600].map(Duration::from_secs),
    );
    assert_eq!(failures(&report), BTreeSet::from(["jsonrpc.null-id"]));
    assert!(started.elapsed() < Duration::from_secs(20));
}

#[test]
fn the_reference_agent_breaks_nothing_and_skips_nothing() {
    let report = report(None, Vec::new());
    assert!(report.is_conformant(false), "{:?}", failures(&report));
    let skipped: Vec<_> = report.with("skip").map(|row| row.requirement.id).collect();
    assert!(skipped.is_empty(), "{skipped:?}");
}

#[test]
fn every_check_has_an_agent_that_fails_it() {
    let broken: BTreeSet<_> = broken::all().flat_map(|broken| broken.breaks).collect();
    let elsewhere = PROVEN_ELSEWHERE.map(|(id, _)| id);
    for (_, row) in requirements::all() {
        let proven = broken.contains(&row.id) || elsewhere.contains(&row.id);
        let checked = !matches!(row.check, Check::Excluded(_));
        assert_eq!(checked, proven, "{}", row.id);
    }
}

#[test]
fn broken_agents_name_requirements_that_exist() {
    let known: BTreeSet<_> = requirements::all().map(|(_, row)| row.id).collect();
    let mut names = BTreeSet::new();
    for broken in broken::all() {
        assert!(names.insert(broken.name), "{} stands twice", broken.name);
        for id in broken.breaks {
            assert!(known.contains(id), "{} names {id}", broken.name);
        }
    }
}
