//! Runs checks, several at once, and judges what was said.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use super::plan::{self, Budget, Chosen, Effort, Options, PREFLIGHT, chosen};
use super::preflight::{self, Broken, Preflight};
use super::report::{Messages, Report, RootCause, Row, Verdict};
use super::setup::{self, Depth, Setup};
use super::unusable::Unusable;
use super::{CancelTimes, Coverage, exploration, passive, trouble};
use crate::Result;
use crate::harness::{
    self, Conditions, Cx, Env, Failure, INTERRUPTED, Interruption, Outcome, Profile, Recording,
    Stop, Unresponsive,
};
use crate::passive::Rule;
use crate::requirements::{self, Check, Requirement};
use crate::wire::Party;

/// How many results may be queued; a thread with one more waits.
const RESULTS: usize = 64;

/// Why a requirement about stdio is not checked.
const NOT_STDIO: &str =
    "not applicable: the agent is behind a URL, not on standard input and output";

/// How the transcript of the explorations is named.
const EXPLORATION: &str = "exploration";

/// Limits grow to so many times what the preflight has measured, and no further than this.
const FACTOR: u32 = 5;
const LONGEST_ANSWER: Duration = Duration::from_secs(30);
const LONGEST_TURN: Duration = Duration::from_secs(600);

/// How much longer the first turn may take than the limit, and than that of a quick run: its model may
/// have to be loaded.
const FIRST_TURN: u32 = 3;
const FIRST_QUICK_TURN: u32 = 2;

/// A piece of work for one thread.
#[derive(Clone, Copy)]
enum Task {
    Explore(fn(&mut Cx) -> Outcome),
    /// The check of a row, and its place.
    Check(usize, Chosen),
}

enum Message {
    /// The result of a check, and the failure of an agent that has ended in its turn.
    Task(Option<(usize, Row)>, Option<Failure>),
    Recordings(Vec<Recording>),
}

/// Returns how many prompts a run sends at most, as far as that is known before it.
///
/// # Errors
/// When no requirement is called what the choice says.
pub fn estimate(env: &Env, options: &Options) -> Result<usize> {
    let version = env.schema.version();
    let chosen = chosen(env, options)?;
    let depth = plan::depth(&chosen, version);
    let first = usize::from(options.tries_setup && depth == Depth::Turn);
    let explorations = match explores(&chosen, options) {
        true => plan::of_explorations(&env.profile, options.effort),
        false => 0,
    };
    let prompts = |(_, row): &Chosen| plan::prompts(row.id, version).unwrap_or_default();
    let rows: usize = match options.effort {
        Effort::Quick => {
            let (kept, _) = plan::quick(&chosen, version, Budget::of_prompts(first + explorations));
            let rows = kept.iter().filter_map(|index| chosen.get(*index));
            rows.map(prompts).sum()
        }
        Effort::Normal | Effort::Thorough => chosen.iter().map(prompts).sum(),
    };
    Ok(first + explorations + rows)
}

/// Runs the suite. `progress` receives how much is done, and how much there is.
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
    let is_remote = env.target.is_remote();
    let chosen = chosen(env, options)?;
    let mut report = Report {
        command: env.target.command_line(),
        agent: preflight::UNNAMED.to_owned(),
        rows: Vec::new(),
        root_cause: None,
        prompts: 0,
        cancel_times: None,
        coverage: None,
        messages: Messages::default(),
        protocol: version.number(),
        took: Duration::ZERO,
        interrupted: false,
        quick: None,
        words: Vec::new(),
    };
    let interruption = &env.conditions.interruption;
    let preflight = preflight::run(env);
    if interruption.is_interrupted() {
        return Ok(report.interrupted(&chosen, started));
    }
    let (mut conn, refused) = match preflight? {
        Preflight::Ready(agent, conn, refused) => {
            report.agent = agent;
            (conn, refused)
        }
        Preflight::Broken(broken) => {
            let Broken {
                breaks,
                cause,
                recording,
            } = *broken;
            let why = Unusable::unanswered(breaks, cause);
            return Ok(report.unusable(env, options, &chosen, why, recording, started));
        }
    };
    if options.tries_setup
        && let Some(why) = Unusable::of(&conn, refused, &chosen)
    {
        let recording = conn.into_recording();
        return Ok(report.unusable(env, options, &chosen, why, recording, started));
    }
    let mut setup = Setup::default();
    if options.tries_setup {
        let depth = plan::depth(&chosen, version);
        let first = match (options.adapts_turn_timeout, options.effort) {
            (false, _) => env.turn_timeout,
            (true, Effort::Quick) => env.turn_timeout.min(options.quick.turn) * FIRST_QUICK_TURN,
            (true, Effort::Normal | Effort::Thorough) => env.turn_timeout * FIRST_TURN,
        };
        setup = setup::run(&mut conn, depth, first);
        if interruption.is_interrupted() {
            setup = Setup::default();
        }
    }
    let words = conn.agent.as_ref().filter(|_| options.takes_words);
    let profile = env.profile.clone().with_words_of(words);
    report.words = profile.own_words();
    let pace = Pace::of(options, started, conn.start_took(), &setup);
    let env = &Arc::new(adapted(env, options, &setup, profile, &pace));
    let interruption = &env.conditions.interruption;
    let mut recordings = vec![harness::cleanup::end(*conn)];
    options.keep(PREFLIGHT, recordings.first());
    report.root_cause.clone_from(&setup.cause);
    let broken = setup.breaks;

    let mut judged: Vec<Option<Row>> = vec![None; chosen.len()];
    let (mut tasks, left_out) = tasks(&chosen, env, options, &pace);
    let applies = |row: &Requirement| !is_remote || !requirements::is_about_stdio(row.id);
    tasks.retain(|task| match task {
        Task::Check(_, (_, row)) => applies(row),
        Task::Explore(_) => true,
    });
    let mut first_end: Option<Failure> = None;
    let next = AtomicUsize::new(0);
    let (done, results) = mpsc::sync_channel(RESULTS);
    let id_of = |task: Task| match task {
        Task::Check(_, (_, row)) => row.id,
        Task::Explore(_) => EXPLORATION,
    };
    thread::scope(|scope| {
        for _ in 0..pace.jobs.clamp(1, tasks.len().max(1)) {
            let (done, next, tasks, id_of) = (done.clone(), &next, &tasks, &id_of);
            let pace = &pace;
            scope.spawn(move || {
                let mut cx = Cx::new(env.clone()).kept_in(options.transcripts.clone());
                while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let starts = plan::starts(id_of(*task), version);
                    let is_over = pace.is_over(Instant::now(), starts);
                    let reason = cut(interruption).or(is_over.then_some(plan::NO_TIME));
                    let (result, ended) = match reason {
                        Some(reason) => (not_run(*task, reason), None),
                        None => perform(&mut cx, *task, id_of(*task), options.effort),
                    };
                    // The receiver outlives the threads.
                    let _ = done.send(Message::Task(result, ended));
                }
                let _ = done.send(Message::Recordings(cx.finish()));
            });
        }
        drop(done);
        let mut finished = 0;
        for result in results {
            match result {
                Message::Recordings(more) => recordings.extend(more),
                Message::Task(result, ended) => {
                    finished += 1;
                    first_end = first_end.take().or(ended);
                    progress(finished, tasks.len());
                    if let Some((index, row)) = result
                        && let Some(slot) = judged.get_mut(index)
                    {
                        *slot = Some(row);
                    }
                }
            }
        }
    });
    let conditions = &env.conditions;
    let impossible = conditions.no_session.as_ref();
    let impossible = impossible.or(conditions.no_turn.as_ref());
    let verdicts = passive::verdicts(&chosen, version, &recordings, impossible);
    report.interrupted = interruption.is_interrupted();
    for ((slot, verdict), of) in judged.iter_mut().zip(verdicts).zip(&chosen) {
        let (_, row) = of;
        let is_quick = options.effort == Effort::Quick;
        let Some((verdict, place)) = verdict else {
            continue;
        };
        let verdict = match (verdict, cut(interruption)) {
            (_, Some(reason)) if is_about_the_end(row) => Verdict::Inconclusive(reason.to_owned()),
            (Verdict::Inconclusive(_) | Verdict::Skip(_), _) if report.interrupted => {
                Verdict::Inconclusive(INTERRUPTED.to_owned())
            }
            // Its exploration says little on purpose.
            (Verdict::Inconclusive(_) | Verdict::Skip(_), _) if is_quick => {
                Verdict::Excluded(plan::NO_PROMPTS)
            }
            (verdict, _) => verdict,
        };
        let judged = slot.insert(Row::new(*of, verdict));
        if let Some(place) = place {
            let transcript = options.keep(row.id, recordings.get(place));
            judged.transcripts.extend(transcript);
        }
    }
    let rows = chosen.iter().zip(judged).enumerate();
    let rows = rows.map(|(index, (of, judged))| {
        let (_, row) = of;
        let verdict = match (judged, row.check) {
            _ if broken == Some(row.id) => {
                let failure = setup.cause.as_ref().map(RootCause::failure);
                Verdict::Fail(Box::new(failure.unwrap_or_default()))
            }
            (Some(judged), _) => return judged,
            (None, Check::Excluded(reason)) => Verdict::Excluded(reason),
            (None, _) if !applies(row) => Verdict::Excluded(NOT_STDIO),
            (None, Check::Run(_) | Check::Steps(_) | Check::Watch { .. }) => {
                match left_out.iter().find(|(other, _)| *other == index) {
                    Some((_, reason)) => Verdict::Excluded(reason),
                    None => Verdict::Inconclusive("the check did not come to an end".to_owned()),
                }
            }
        };
        Row::new(*of, verdict)
    });
    report.rows = rows.collect();
    if options.effort == Effort::Quick {
        report.quick = plan::left_out_of(&report.rows, pace.start);
    }
    if let (Some(breaks), Some(cause)) = (broken, &setup.cause) {
        report.breaks(env, options, breaks, cause);
    }
    if let Some(ended) = first_end.filter(|_| report.root_cause.is_none()) {
        report.ended_in_a_turn(env, options, ended);
    }
    if !options.choice.is_partial() && options.effort != Effort::Quick {
        report.coverage = Some(Coverage::of(&env.schema, &recordings)?);
    }
    report.cancel_times = CancelTimes::of(version, &recordings);
    report.count_messages(&recordings);
    report.took = started.elapsed();
    Ok(report)
}

/// Returns why the waits of checks have ended before their time, if they have.
fn cut(interruption: &Interruption) -> Option<&'static str> {
    match interruption.is_interrupted() {
        true => Some(INTERRUPTED),
        false => interruption.is_over().then_some(plan::NO_TIME),
    }
}

/// Whether the requirement is about the end of a connection, which says nothing of one that is cut.
fn is_about_the_end(row: &Requirement) -> bool {
    matches!(
        row.check,
        Check::Watch {
            look: Rule::End(_),
            ..
        }
    )
}

/// How fast a run goes, after the first start of the agent.
struct Pace {
    /// How long the agent took to start, up to its first session.
    start: Duration,
    jobs: usize,
    /// When a quick run begins no further check, and when its waits end.
    quick: Option<[Instant; 2]>,
}

impl Pace {
    fn of(options: &Options, started: Instant, start: Duration, setup: &Setup) -> Self {
        let start = start + setup.session.unwrap_or_default();
        let cores = thread::available_parallelism().map_or(1, NonZero::get);
        let limits = options.quick;
        Self {
            start,
            jobs: match options.adapts_jobs {
                true => plan::jobs(options.jobs, start, cores),
                false => options.jobs,
            },
            quick: (options.effort == Effort::Quick)
                .then(|| [limits.time, limits.end].map(|limit| started + start + limit)),
        }
    }

    /// Whether it is too late to begin a check that starts the agent so many times.
    fn is_over(&self, now: Instant, starts: usize) -> bool {
        let starts = u32::try_from(starts).unwrap_or(u32::MAX);
        let started = now + self.start.saturating_mul(starts);
        self.quick
            .is_some_and(|[time, end]| now > time || started > end)
    }
}

impl Report {
    /// Adds that the agent has ended in a turn, which is the cause of what is blocked.
    fn ended_in_a_turn(&mut self, env: &Env, options: &Options, ended: Failure) {
        let evidence = Stop::Fail(Box::new(ended));
        let cause = RootCause::new("prompt", "", "Look at its standard error.", &evidence);
        let mut rows = self.rows.iter_mut();
        match rows.find(|row| row.requirement.id == setup::ANSWERED) {
            Some(row) => row.verdict = Verdict::from(Err(evidence)),
            None => self.breaks(env, options, setup::ANSWERED, &cause),
        }
        self.root_cause = Some(cause);
    }

    /// Completes the report of a run that was interrupted before its first check.
    fn interrupted(mut self, chosen: &[Chosen], started: Instant) -> Self {
        let rows = chosen.iter().map(|of| {
            let verdict = match of.1.check {
                Check::Excluded(reason) => Verdict::Excluded(reason),
                _ => Verdict::Inconclusive(INTERRUPTED.to_owned()),
            };
            Row::new(*of, verdict)
        });
        self.rows = rows.collect();
        self.interrupted = true;
        self.took = started.elapsed();
        self
    }

    pub(super) fn count_messages(&mut self, recordings: &[Recording]) {
        for recording in recordings {
            self.messages.agent += recording.of(Party::Agent).count();
            self.messages.client += recording.of(Party::Client).count();
            self.messages.invalid += recording.invalid();
            self.prompts += harness::prompts(recording, 0);
        }
    }
}

/// Returns what the checks share, after what the preflight has shown.
fn adapted(env: &Env, options: &Options, setup: &Setup, profile: Profile, pace: &Pace) -> Env {
    let grown = |usual: Duration, measured: Option<Duration>, longest: Duration| {
        let measured = measured.unwrap_or_default().saturating_mul(FACTOR);
        measured.min(longest).max(usual)
    };
    let is_quick = options.effort == Effort::Quick;
    let turn_timeout = match options.adapts_turn_timeout {
        true => grown(env.turn_timeout, setup.turn, LONGEST_TURN),
        false => env.turn_timeout,
    };
    Env {
        target: env.target.clone(),
        profile,
        schema: env.schema.clone(),
        folder: env.folder.clone(),
        timeout: match options.adapts_timeout {
            true => grown(env.timeout, setup.session, LONGEST_ANSWER),
            false => env.timeout,
        },
        turn_timeout: match options.adapts_turn_timeout {
            true if is_quick => env.turn_timeout.min(options.quick.turn),
            _ => turn_timeout,
        },
        quiet: env.quiet,
        unresponsive: Unresponsive::default(),
        conditions: Conditions {
            no_session: setup.conditions.no_session.clone(),
            no_turn: setup.conditions.no_turn.clone(),
            needs_login: setup.conditions.needs_login,
            has_started: options.tries_setup,
            start_timeout: Some(turn_timeout),
            few_words: is_quick,
            interruption: env
                .conditions
                .interruption
                .until(pace.quick.map(|[_, end]| end)),
            ..env.conditions.clone()
        },
    }
}

fn explores(chosen: &[Chosen], options: &Options) -> bool {
    let watches = |(_, row): &Chosen| matches!(row.check, Check::Watch { .. });
    let is_due = !options.choice.is_partial() || chosen.iter().any(watches);
    is_due && !options.without_explorations
}

/// Returns the tasks, the explorations first, for they take longest; and what a quick run leaves out, with
/// the reason.
fn tasks(
    chosen: &[Chosen],
    env: &Env,
    options: &Options,
    pace: &Pace,
) -> (Vec<Task>, Vec<(usize, &'static str)>) {
    let version = env.schema.version();
    let is_quick = options.effort == Effort::Quick;
    let mut tasks = Vec::new();
    if explores(chosen, options) {
        tasks.push(Task::Explore(exploration::with_everything));
        if !is_quick {
            tasks.push(Task::Explore(exploration::with_nothing));
        }
    }
    let (order, left_out) = match is_quick {
        true => {
            let explorations = plan::of_explorations(&env.profile, options.effort);
            let budget = Budget::of_prompts(explorations + 1);
            let budget = budget.with_starts(options.quick.time, pace.start, pace.jobs);
            plan::quick(chosen, version, budget)
        }
        false => ((0..chosen.len()).collect(), Vec::new()),
    };
    let checks = order.into_iter().filter_map(|index| {
        let chosen = *chosen.get(index)?;
        chosen.1.check.acts().then_some(Task::Check(index, chosen))
    });
    tasks.extend(checks);
    (tasks, left_out)
}

/// Performs a task. Returns the result of a check, and the failure of an agent that has ended in its turn:
/// one cause, whatever the check is about.
fn perform(
    cx: &mut Cx,
    task: Task,
    id: &str,
    effort: Effort,
) -> (Option<(usize, Row)>, Option<Failure>) {
    let started = Instant::now();
    let (index, chosen) = match task {
        Task::Explore(exploration) => {
            cx.begin();
            // The rules over messages judge it.
            let outcome = exploration(cx);
            let ended = cx.ended_in_a_turn();
            cx.write_down(EXPLORATION);
            cx.end(outcome.is_ok());
            return (None, ended);
        }
        Task::Check(index, chosen) => (index, chosen),
    };
    let mut repeats = match effort {
        Effort::Thorough => plan::REPEATS,
        _ => 0,
    };
    let (mut prompts, mut starts) = (0, 0);
    let mut transcripts = Vec::new();
    loop {
        cx.begin();
        let outcome = chosen.1.check.perform(cx);
        let passed = outcome.is_ok();
        let cut = cut(&cx.env().conditions.interruption);
        let verdict = match cut {
            // Its waits have ended too early.
            Some(reason) => Verdict::Inconclusive(reason.to_owned()),
            None => trouble::verdict(cx, outcome),
        };
        let ended = match cut {
            Some(_) => None,
            None => cx.ended_in_a_turn(),
        };
        let verdict = match (verdict, &ended) {
            (Verdict::Fail(_), Some(ended)) => {
                Verdict::Blocked(format!("needs a turn: {}", ended.reason))
            }
            (verdict, _) => verdict,
        };
        let sent = cx.prompts();
        prompts += sent;
        starts += cx.starts();
        let opens_session = cx.has_sent(|method| method.starts_with("session/"));
        transcripts.extend(cx.write_down(id));
        cx.end(passed);
        // Without a prompt, the model has no part in it.
        let is_unclear = matches!(verdict, Verdict::Inconclusive(_));
        if !is_unclear || repeats == 0 || sent == 0 || cut.is_some() {
            let row = Row {
                took: started.elapsed(),
                prompts,
                starts,
                opens_session,
                transcripts,
                ..Row::new(chosen, verdict)
            };
            return (Some((index, row)), ended);
        }
        repeats -= 1;
    }
}

/// What a run has no time for. It is inconclusive, so that a run which judged next to nothing is
/// incomplete.
fn not_run(task: Task, reason: &str) -> Option<(usize, Row)> {
    match task {
        Task::Explore(_) => None,
        Task::Check(index, chosen) => {
            let verdict = Verdict::Inconclusive(reason.to_owned());
            Some((index, Row::new(chosen, verdict)))
        }
    }
}
