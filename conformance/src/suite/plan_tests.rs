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
        let kept = quick(&chosen, version, 4);
        let of = |index: &usize| prompts(chosen[*index].1.id, version).unwrap_or_default();
        let sum: usize = kept.iter().map(of).sum();
        assert!((1..=QUICK_PROMPTS - 4).contains(&sum), "{sum}");
        for (index, (_, row)) in chosen.iter().enumerate() {
            let is_free = prompts(row.id, version).unwrap_or_default() == 0;
            assert!(!is_free || kept.contains(&index), "{}", row.id);
        }
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

#[test]
fn the_starts_of_the_agent_are_not_counted_in_a_quick_run() {
    let (began, second) = (Instant::now(), Duration::from_secs(1));
    let limits = QuickLimits::default();
    let quick = Budget::new(began, Effort::Quick, limits);
    let over = |after: u32, starting: u32| quick.is_over(began + after * second, starting * second);
    assert!(!over(40, 0) && over(41, 0));
    assert!(!over(100, 60) && over(101, 60));
    let normal = Budget::new(began, Effort::Normal, limits);
    assert!(!normal.is_over(began + 1000 * second, Duration::ZERO));
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
        schema: Arc::new(Schema::of(version).unwrap()),
        folder: path,
        timeout: Duration::from_secs(20),
        turn_timeout: Duration::from_secs(40),
        quiet: Duration::from_millis(50),
        unresponsive: Unresponsive::default(),
    };
    run(&Arc::new(env), options, |_, _| {}).unwrap()
}

/// After a change of the checks: `UPDATE_PROMPTS=1 cargo test -p acp-conformance plan`.
#[test]
fn the_table_of_prompts_is_true() {
    let mut text = String::from(
        "# How many prompts each check sends to the reference agent; a check that is not here opens no session.\n\
         # Written by: UPDATE_PROMPTS=1 cargo test -p acp-conformance plan\n",
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
        for row in &report.rows {
            let id = row.requirement.id;
            let (found, known) = (found.get(id).copied(), prompts(id, version));
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
