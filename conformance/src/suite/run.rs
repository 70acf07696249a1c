//! Runs checks, several at once, and judges what was said.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::preflight::{self, Broken, Preflight, UNNAMED};
use super::report::{Report, Row, Verdict};
use super::{Coverage, Cx, tour};
use crate::Result;
use crate::harness::{Entry, Env, Outcome, Recording, Stop};
use crate::requirements::{self, Area, Check, Choice, Requirement, second};
use crate::watch::{Fault, Look, Said, Seen, State, View, fault};
use crate::wire::{Finding, Kind, Level, Party, Rule, Version};

/// Which checks are run, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which requirements; all, unless it says otherwise.
    pub choice: Choice,
    /// How many agents run at once.
    pub jobs: usize,
}

/// How many results wait to be told; a thread with one more waits.
const RESULTS: usize = 64;

/// Why a requirement about stdio is not checked.
const NOT_STDIO: &str =
    "not applicable: the agent is behind a URL, not on standard input and output";

type Chosen = (&'static Area, &'static Requirement);

/// A piece of work for one thread.
#[derive(Clone, Copy)]
enum Task {
    Tour(fn(&mut Cx) -> Outcome),
    Check(usize, fn(&mut Cx) -> Outcome),
}

/// Runs the suite. `progress` is told how much is done, and how much there is.
///
/// # Errors
/// When the agent cannot be started, does not answer the handshake at all, or no
/// requirement is called what the choice says.
pub fn run(
    env: &Arc<Env>,
    options: &Options,
    mut progress: impl FnMut(usize, usize),
) -> Result<Report> {
    let started = Instant::now();
    let version = env.schema.version();
    let is_remote = env.subject.is_remote();
    let of_transport = requirements::of_remote(version).filter(|_| is_remote);
    let rows = requirements::of(version).chain(of_transport);
    let chosen = options
        .choice
        .of(rows, |(area, row)| (row.id, area.name, row.tier))?;
    let agent = match preflight::run(env)? {
        Preflight::Ready(agent) => agent,
        Preflight::Broken(broken) => {
            let found = blocked(&chosen, &broken);
            let rows = found.ok_or_else(|| broken.error(&env.subject))?;
            return Ok(Report {
                command: env.subject.command_line(),
                agent: UNNAMED.to_owned(),
                rows,
                coverage: None,
                from_agent: broken.recording.of(Party::Agent).count(),
                invalid: broken.recording.invalid(),
                from_client: broken.recording.of(Party::Client).count(),
                protocol: version.number(),
                took: started.elapsed(),
            });
        }
    };
    let mut verdicts: Vec<Option<(Verdict, Duration)>> = vec![None; chosen.len()];
    let mut recordings = Vec::new();
    let mut tasks = tasks(&chosen, version, !options.choice.is_partial());
    let applies = |row: &Requirement| !is_remote || !requirements::is_about_stdio(row.id);
    tasks.retain(|task| match task {
        Task::Check(index, _) => chosen.get(*index).is_none_or(|(_, row)| applies(row)),
        Task::Tour(_) => true,
    });
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::sync_channel(RESULTS);
    thread::scope(|scope| {
        for _ in 0..options.jobs.clamp(1, tasks.len().max(1)) {
            let (done, next, tasks) = (done.clone(), &next, &tasks);
            scope.spawn(move || {
                let mut cx = Cx::new(env.clone());
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let result = perform(&mut cx, *task);
                    // The receiver outlives the threads.
                    let _ = done.send(Done::Task(result));
                }
                let _ = done.send(Done::Recordings(cx.finish()));
            });
        }
        drop(done);
        let mut finished = 0;
        for result in results {
            match result {
                Done::Recordings(more) => recordings.extend(more),
                Done::Task(result) => {
                    finished += 1;
                    progress(finished, tasks.len());
                    if let Some((index, verdict, took)) = result
                        && let Some(slot) = verdicts.get_mut(index)
                    {
                        *slot = Some((verdict, took));
                    }
                }
            }
        }
    });
    for (slot, verdict) in verdicts
        .iter_mut()
        .zip(watched(&chosen, version, &recordings))
    {
        if let Some(verdict) = verdict {
            *slot = Some((verdict, Duration::ZERO));
        }
    }
    let rows = chosen.iter().zip(verdicts).map(|((area, row), verdict)| {
        let (verdict, took) = match (verdict, row.check) {
            (Some(done), _) => done,
            (None, Check::Excluded(reason)) => (Verdict::Excluded(reason), Duration::ZERO),
            (None, _) if !applies(row) => (Verdict::Excluded(NOT_STDIO), Duration::ZERO),
            (None, Check::Run(_) | Check::Watch { .. }) => {
                let reason = "the check did not come to an end".to_owned();
                (Verdict::Inconclusive(reason), Duration::ZERO)
            }
        };
        Row {
            area,
            requirement: row,
            verdict,
            took,
        }
    });
    let of = |party| {
        recordings
            .iter()
            .flat_map(move |recording| recording.of(party))
    };
    Ok(Report {
        command: env.subject.command_line(),
        agent,
        rows: rows.collect(),
        coverage: if options.choice.is_partial() {
            None
        } else {
            Some(Coverage::of(&env.schema, &recordings)?)
        },
        from_agent: of(Party::Agent).count(),
        invalid: recordings.iter().map(Recording::invalid).sum(),
        from_client: of(Party::Client).count(),
        protocol: version.number(),
        took: started.elapsed(),
    })
}

enum Done {
    Task(Option<(usize, Verdict, Duration)>),
    Recordings(Vec<Recording>),
}

/// Returns the rows of an agent that cannot be used: the one that it breaks, and all others that
/// depend on it. `None` if that one was not chosen.
fn blocked(chosen: &[Chosen], broken: &Broken) -> Option<Vec<Row>> {
    let is_broken = |row: &Requirement| broken.breaks.contains(&row.id);
    chosen.iter().find(|(_, row)| is_broken(row))?;
    let rows = chosen.iter().map(|(area, row)| {
        let verdict = match row.check {
            _ if is_broken(row) => Verdict::Fail(Box::new(broken.failure.clone())),
            Check::Excluded(reason) => Verdict::Excluded(reason),
            _ => Verdict::Skip(format!("blocked: {}", broken.failure.reason)),
        };
        Row {
            area,
            requirement: row,
            verdict,
            took: Duration::ZERO,
        }
    });
    Some(rows.collect())
}

/// The tours first, for they take longest.
fn tasks(chosen: &[Chosen], version: Version, everything: bool) -> Vec<Task> {
    let watches = |(_, row): &Chosen| matches!(row.check, Check::Watch { .. });
    let mut tasks = Vec::new();
    if everything || chosen.iter().any(watches) {
        match version {
            Version::V1 => tasks.extend([
                Task::Tour(tour::with_everything),
                Task::Tour(tour::with_nothing),
            ]),
            Version::V2 => tasks.extend([
                Task::Tour(second::tour),
                Task::Tour(second::tour_of_nothing),
            ]),
        }
    }
    for (index, (_, row)) in chosen.iter().enumerate() {
        if let Check::Run(check) = row.check {
            tasks.push(Task::Check(index, check));
        }
    }
    tasks
}

fn perform(cx: &mut Cx, task: Task) -> Option<(usize, Verdict, Duration)> {
    let started = Instant::now();
    match task {
        Task::Tour(tour) => {
            // What it came to is judged by those who look at the messages.
            let outcome = tour(cx);
            cx.end(outcome.is_ok());
            None
        }
        Task::Check(index, check) => {
            let outcome = check(cx);
            cx.end(outcome.is_ok());
            Some((index, outcome.into(), started.elapsed()))
        }
    }
}

/// What the requirements that look at messages come to, by their place in `chosen`.
fn watched(chosen: &[Chosen], version: Version, recordings: &[Recording]) -> Vec<Option<Verdict>> {
    let rows = chosen.iter().enumerate();
    let rows = rows.filter_map(|(index, (_, row))| match row.check {
        Check::Watch { look, missing } => Some((index, look, missing)),
        Check::Run(_) | Check::Excluded(_) => None,
    });
    let mut rows: Vec<_> = rows.map(|row| (row, Ok(0_usize))).collect();
    for recording in recordings {
        let mut state = State::whole();
        state.speak(version);
        for (index, entry) in recording.entries.iter().enumerate() {
            let said = said(index, entry);
            let view = View::new(&state, said);
            for ((_, look, _), so_far) in &mut rows {
                let Ok(seen) = so_far else { continue };
                let found = match look {
                    Look::Findings(rules, floor) => free_of(entry, rules, *floor),
                    look => match look.at_message(&view) {
                        Some(look) if entry.kind != Kind::Malformed => look(&view),
                        _ => continue,
                    },
                };
                match found {
                    Ok(more) => *seen += more,
                    Err(fault) => *so_far = Err(stop(recording, index, fault)),
                }
            }
            state.take(said);
        }
        for ((_, look, _), so_far) in &mut rows {
            if let (Look::End(look), Ok(seen)) = (look, &mut *so_far) {
                match look(&state) {
                    Ok(more) => *seen += more,
                    Err(fault) => *so_far = Err(stop(recording, 0, fault)),
                }
            }
        }
    }
    let mut verdicts = vec![None; chosen.len()];
    for ((index, _, missing), so_far) in rows {
        if let Some(verdict) = verdicts.get_mut(index) {
            *verdict = Some(match so_far {
                Ok(0) => Verdict::Inconclusive(missing.to_owned()),
                so_far => so_far.map(drop).into(),
            });
        }
    }
    verdicts
}

fn said(index: usize, entry: &Entry) -> Said<'_> {
    Said {
        place: index as u64,
        from: entry.from,
        kind: entry.kind,
        value: &entry.value,
    }
}

/// A message of the agent must have none of these findings of its own.
fn free_of(entry: &Entry, rules: &[Rule], floor: Level) -> Seen {
    let broken = |finding: &&Finding| {
        finding.by == Some(Party::Agent) && finding.level >= floor && rules.contains(&finding.rule)
    };
    match entry.findings.iter().find(broken) {
        Some(finding) => fault(finding.to_string()),
        None => Ok(usize::from(entry.from == Party::Agent)),
    }
}

fn stop(recording: &Recording, index: usize, fault: Fault) -> Stop {
    let place = fault.place.and_then(|place| usize::try_from(place).ok());
    Stop::at(recording, place.unwrap_or(index), fault.reason)
}

#[cfg(unix)]
#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
