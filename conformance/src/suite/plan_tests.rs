//! The table of prompts is true, and short runs are short.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use super::*;
use crate::harness::{Conditions, Env, Unresponsive};
use crate::requirements;
use crate::suite::{Options, Report, run};
use crate::target::Target;
use crate::wire::Schema;

fn all(version: Version) -> Vec<Chosen> {
    requirements::of(version).collect()
}

#[test]
fn a_quick_run_stays_within_its_budget_and_keeps_what_needs_no_prompt() {
    for version in [Version::V1, Version::V2] {
        let chosen = all(version);
        let (kept, left_out) = quick(&chosen, version, Budget::of_prompts(4));
        let of = |index: &usize| prompts(chosen[*index].1.id, version).unwrap_or_default();
        let sum: usize = kept.iter().map(of).sum();
        assert!((1..=QUICK_PROMPTS - 4).contains(&sum), "{sum}");
        for (index, (_, row)) in chosen.iter().enumerate() {
            let is_free = prompts(row.id, version).unwrap_or_default() == 0;
            let is_run = row.check.acts();
            assert!(!is_free || !is_run || kept.contains(&index), "{}", row.id);
        }
        assert!(!left_out.is_empty());
        assert!(left_out.iter().all(|(_, reason)| *reason == NO_PROMPTS));
    }
}

#[test]
fn the_preflight_goes_as_far_as_the_rows_need() {
    let of = |name: &str| -> Vec<Chosen> {
        let rows = all(Version::V1).into_iter();
        rows.filter(|(_, row)| row.id == name).collect()
    };
    let depth = |name: &str| depth(&of(name), Version::V1);
    assert_eq!(depth("initialization.answer"), Depth::Handshake);
    assert_eq!(depth("session-setup.session-id"), Depth::Session);
    assert_eq!(depth("cancellation.stop-reason"), Depth::Turn);
    assert_eq!(depth("jsonrpc.envelope"), Depth::Turn);
}

/// The starts of an agent that needs eight seconds, and two jobs: what its checks share included, they
/// take no longer than checks may begin.
#[test]
fn a_quick_run_starts_a_slow_agent_as_often_as_its_time_allows() {
    let (time, start) = (QuickLimits::default().time, Duration::from_secs(8));
    for version in [Version::V1, Version::V2] {
        let chosen = all(version);
        let budget = Budget::of_prompts(4).with_starts(time, start, 2);
        assert_eq!(budget.starts, 4);
        let (kept, left_out) = quick(&chosen, version, budget);
        let of = |index: &usize| starts(chosen[*index].1.id, version);
        let sum: usize = kept.iter().map(of).sum();
        assert!((1..=4).contains(&sum), "{sum}");
        assert!(left_out.iter().any(|(_, reason)| *reason == NO_STARTS));
        let costs_nothing = kept.iter().filter(|index| of(index) == 0).count();
        assert!(costs_nothing > kept.len() / 2);
    }
    let never = Budget::of_prompts(0).with_starts(time, Duration::from_secs(90), 4);
    assert_eq!(never.starts, 0);
    let at_once = Budget::of_prompts(0).with_starts(time, Duration::ZERO, 1);
    assert!(at_once.starts > 1000);
}

#[test]
fn no_more_slow_agents_run_at_once_than_there_are_cores() {
    let (fast, slow) = (Duration::from_millis(300), Duration::from_secs(3));
    assert_eq!(
        [jobs(4, fast, 2), jobs(4, slow, 2), jobs(4, slow, 16)],
        [4, 2, 4]
    );
}

/// A run against the reference agent of a version.
fn reference(version: Version, options: &Options) -> Report {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap();
    std::fs::write(path.join("input.txt"), "one\n").unwrap();
    let target = match version {
        Version::V1 => Target::local(),
        Version::V2 => Target::local_v2(),
    };
    let env = Env {
        target,
        conditions: Conditions {
            allow_privileged: true,
            ..Conditions::default()
        },
        profile: Profile::reference().unwrap(),
        schema: Schema::of(version).unwrap(),
        folder: path,
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(40),
        quiet: Duration::from_millis(50),
        unresponsive: Unresponsive::default(),
    };
    run(&Arc::new(env), options, |_, _| {}).unwrap()
}

/// After a change of the checks: `UPDATE_PROMPTS=1 cargo test -p acp-conformance table_of_prompts`. Other
/// tests need the new table.
#[test]
fn the_table_of_prompts_is_true() {
    let mut text = String::from(
        "# How many prompts each check sends to the reference agent; a check that is not here opens no session.\n\
         # Then how many connections of its own it opens; one that is not there opens none.\n\
         # Written by: UPDATE_PROMPTS=1 cargo test -p acp-conformance --lib table_of_prompts\n",
    );
    let mut wrong = String::new();
    for version in [Version::V1, Version::V2] {
        let options = Options {
            jobs: 8,
            ..Options::default()
        };
        let report = reference(version, &options);
        let rows = report.rows.iter().filter(|row| row.opens_session);
        let found: BTreeMap<_, _> = rows.map(|row| (row.requirement.id, row.prompts)).collect();
        let _ = writeln!(text, "\n[v{}]", version.as_str());
        for (id, prompts) in &found {
            let _ = writeln!(text, "\"{id}\" = {prompts}");
        }
        let _ = writeln!(text, "\n[starts-v{}]", version.as_str());
        for row in report.rows.iter().filter(|row| row.starts > 0) {
            let _ = writeln!(text, "\"{}\" = {}", row.requirement.id, row.starts);
        }
        for row in &report.rows {
            let id = row.requirement.id;
            let found = (found.get(id).copied(), row.starts);
            let known = (prompts(id, version), starts(id, version));
            if found != known {
                wrong += &format!("v{} {id}: {found:?}, not {known:?}\n", version.as_str());
            }
        }
    }
    if std::env::var_os("UPDATE_PROMPTS").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/prompts.toml"), text).unwrap();
        return;
    }
    assert!(
        wrong.is_empty(),
        "UPDATE_PROMPTS=1 writes the table anew:\n{wrong}"
    );
}

#[test]
fn a_quick_run_sends_few_prompts_and_says_what_it_left_out() {
    let options = Options {
        jobs: 4,
        effort: Effort::Quick,
        tries_setup: true,
        ..Options::default()
    };
    for version in [Version::V1, Version::V2] {
        let report = reference(version, &options);
        assert!(report.is_conformant(true));
        assert!(
            (4..=QUICK_PROMPTS).contains(&report.prompts),
            "{}",
            report.prompts
        );
        let left_out =
            |row: &&crate::suite::Row| row.verdict == crate::suite::Verdict::Excluded(NO_PROMPTS);
        let left = report.rows.iter().filter(left_out).count();
        assert!(left > 0 && report.with("pass").count() > left, "{left}");
        assert!(report.coverage.is_none());
    }
}
