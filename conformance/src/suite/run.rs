//! Runs checks, several at once, and judges what was said.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::report::{Report, Row, Verdict};
use super::{Coverage, Cx, tour};
use crate::harness::{Caps, Conn, Env, Outcome, Recording, Stop};
use crate::requirements::{self, Area, Check, Choice, Requirement};
use crate::wire::{Judged, Party};
use crate::{Error, Result};

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
    let chosen = options.choice.of(requirements::all(), |(area, row)| {
        (row.id, area.name, row.tier)
    })?;
    let agent = shake_hands(env)?;
    let mut verdicts: Vec<Option<(Verdict, Duration)>> = vec![None; chosen.len()];
    let mut recordings = Vec::new();
    let tasks = tasks(&chosen, !options.choice.is_partial());
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
    let rows = chosen.iter().zip(verdicts).map(|((area, row), verdict)| {
        let (verdict, took) = match (verdict, row.check) {
            (Some(done), _) => done,
            (None, Check::Watch { check, missing }) => {
                (watched(&recordings, check, missing), Duration::ZERO)
            }
            (None, Check::Excluded(reason)) => (Verdict::Excluded(reason), Duration::ZERO),
            (None, Check::Run(_)) => {
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
    let of = |party| messages(&recordings).filter(move |entry| entry.from == party);
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
        invalid: of(Party::Agent)
            .filter(|entry| entry.judged == Judged::Invalid)
            .count(),
        from_client: of(Party::Client).count(),
        took: started.elapsed(),
    })
}

enum Done {
    Task(Option<(usize, Verdict, Duration)>),
    Recordings(Vec<Recording>),
}

fn messages(recordings: &[Recording]) -> impl Iterator<Item = &crate::harness::Entry> {
    recordings.iter().flat_map(|recording| &recording.entries)
}

/// The tours first, for they take longest.
fn tasks(chosen: &[Chosen], everything: bool) -> Vec<Task> {
    let watches = |(_, row): &Chosen| matches!(row.check, Check::Watch { .. });
    let mut tasks = Vec::new();
    if everything || chosen.iter().any(watches) {
        tasks.extend([
            Task::Tour(tour::with_everything),
            Task::Tour(tour::with_nothing),
        ]);
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

fn watched(
    recordings: &[Recording],
    check: fn(&Recording) -> Outcome<usize>,
    missing: &str,
) -> Verdict {
    let mut seen = 0;
    for recording in recordings {
        match check(recording) {
            Ok(instances) => seen += instances,
            Err(stop) => return Err(stop).into(),
        }
    }
    if seen == 0 {
        return Verdict::Inconclusive(missing.to_owned());
    }
    Verdict::Pass
}

/// Whether there is anything to test: the agent answers `initialize`. Yields what
/// it calls itself.
fn shake_hands(env: &Arc<Env>) -> Result<String> {
    // Started by hand first, so that a command that cannot be started says why.
    drop(env.subject.start(&env.folder)?);
    let mut conn = match Conn::start(env.clone()) {
        Ok(conn) => conn,
        Err(stop) => return Err(silent(env, &stop, "")),
    };
    let limit = env.turn_timeout;
    let request = conn.request("initialize", Caps::Full.initialize());
    let reply = match conn.reply_within(request, limit) {
        Ok(reply) => reply,
        Err(stop) => return Err(silent(env, &stop, &conn.stderr())),
    };
    let info = reply.answer.ok();
    let told = |name: &str| {
        let info = info.as_ref()?.get("agentInfo")?;
        info.get(name)?.as_str().map(str::to_owned)
    };
    let name = told("name").unwrap_or_else(|| "an agent without a name".into());
    Ok(match told("version") {
        Some(version) => format!("{name} {version}"),
        None => name,
    })
}

fn silent(env: &Env, stop: &Stop, stderr: &str) -> Error {
    let reason = match stop {
        Stop::Fail(failure) => failure
            .came
            .clone()
            .unwrap_or_else(|| failure.reason.clone()),
        Stop::Skip(reason) | Stop::Inconclusive(reason) => reason.clone(),
    };
    let told = stderr.is_empty() || reason.contains(stderr);
    Error::NoHandshake {
        command: env.subject.command_line(),
        reason,
        stderr: if told {
            String::new()
        } else {
            format!("; the end of its standard error:\n{stderr}")
        },
    }
}
