//! Every check proven: the reference agent passes it, and a broken one fails it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use acp_conformance::broken::{self, Broken};
use acp_conformance::harness::{Env, Profile, Silence};
use acp_conformance::requirements::{self, Check, Choice, Tier};
use acp_conformance::subject::Subject;
use acp_conformance::suite::{Options, Report, run};
use acp_conformance::wire::Schema;

static SCHEMA: LazyLock<Arc<Schema>> = LazyLock::new(|| Arc::new(Schema::v1().unwrap()));

/// Requirements that no filter can break, with the test that proves the check.
const PROVEN_ELSEWHERE: [(&str, &str); 1] = [(
    "transports.ends-with-its-input",
    "agent::an_agent_that_outlives_its_input_is_seen",
)];

/// The check that takes longest.
const LARGE: &str = "transports.large-message";

/// Limits for an answer and for a turn that no sound agent comes near, however busy the
/// machine is: broken agents say what they leave unanswered.
const GENEROUS: [Duration; 2] = [Duration::from_secs(20), Duration::from_secs(40)];

/// Runs what is chosen of the suite against an agent in this process, with these limits for
/// an answer and for a turn.
fn within(subject: Subject, choice: Choice, limits: [Duration; 2]) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    let env = Env {
        subject,
        profile: Profile::reference().unwrap(),
        schema: SCHEMA.clone(),
        folder: path,
        timeout: limits[0],
        turn_timeout: limits[1],
        // Long enough for an answer that is on its way on a busy machine.
        quiet: Duration::from_millis(150),
        silence: Silence::default(),
    };
    // Most of the time goes into waiting for what must not come.
    let options = Options { choice, jobs: 12 };
    run(&Arc::new(env), &options, |_, _| {}).unwrap()
}

/// All of the suite by its tiers: a run of all that is chosen counts no coverage.
fn everything() -> Vec<String> {
    Tier::ALL.map(|tier| tier.as_str().to_owned()).to_vec()
}

fn failures(report: &Report) -> BTreeSet<&'static str> {
    report.with("fail").map(|row| row.requirement.id).collect()
}

/// The failures of the reference agent as it is.
static SOUND: LazyLock<BTreeSet<&'static str>> =
    LazyLock::new(|| failures(&within(Subject::local(), Choice::default(), GENEROUS)));

/// What a broken agent got wrong about the table, in words; empty if nothing.
fn mistakes(broken: &Broken) -> String {
    let mut choice = Choice {
        only: everything(),
        ..Choice::default()
    };
    // A third of the time is a message of a megabyte; who does not break its check is
    // spared it.
    if !broken.breaks.contains(&LARGE) {
        choice.skip.push(LARGE.to_owned());
    }
    let subject = Subject::local().behind(broken.filter).telling_losses();
    let report = within(subject, choice, GENEROUS);
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

/// One part of the matrix, each agent in the whole suite; the parts run at the same time.
fn prove(part: usize, parts: usize) {
    let rows = broken::all().skip(part).step_by(parts);
    let words: String = rows.map(mistakes).collect();
    assert!(words.is_empty(), "{words}");
}

#[test]
fn broken_agents_fail_what_they_break_and_nothing_else_first_part() {
    prove(0, 4);
}

#[test]
fn broken_agents_fail_what_they_break_and_nothing_else_second_part() {
    prove(1, 4);
}

#[test]
fn broken_agents_fail_what_they_break_and_nothing_else_third_part() {
    prove(2, 4);
}

#[test]
fn broken_agents_fail_what_they_break_and_nothing_else_fourth_part() {
    prove(3, 4);
}

/// A request that is never answered costs no more than its sound twin took.
#[test]
fn an_id_that_an_agent_ignores_is_not_waited_for() {
    let broken = broken::find("null-is-no-id").unwrap();
    let started = Instant::now();
    let report = within(
        Subject::local().behind(broken.filter),
        Choice {
            only: vec!["jsonrpc.null-id".into()],
            ..Choice::default()
        },
        [5, 600].map(Duration::from_secs),
    );
    assert_eq!(failures(&report), BTreeSet::from(["jsonrpc.null-id"]));
    assert!(started.elapsed() < Duration::from_secs(60));
}

#[test]
fn the_reference_agent_breaks_nothing_and_skips_nothing() {
    let report = within(Subject::local(), Choice::default(), GENEROUS);
    assert!(report.is_conformant(false), "{:?}", failures(&report));
    for state in ["skip", "inconclusive"] {
        let found: Vec<_> = report.with(state).map(|row| row.requirement.id).collect();
        assert!(found.is_empty(), "{state}: {found:?}");
    }
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
