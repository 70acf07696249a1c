//! How much is run: what each check needs, how many prompts that makes, and what a short run leaves out.
//!
//! Prompts cost time and money, so their number is known before the run. The table `prompts.toml`
//! has what each check sends to the reference agent; a test keeps it true.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::report::{Row, Verdict};
use super::setup::Depth;
use crate::Result;
use crate::harness::{Env, Profile, Recording, Transcripts};
use crate::requirements::{self, Area, Check, Choice, Requirement};
use crate::wire::Version;

/// A requirement that is run, with its area.
pub(super) type Chosen = (&'static Area, &'static Requirement);

/// Which checks are run, and how.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Which requirements; all, unless it says otherwise.
    pub choice: Choice,
    /// How many agents run at once.
    pub jobs: usize,
    /// Whether that is at most the number of cores if the agent takes long to start.
    pub adapts_jobs: bool,
    /// How thorough the run is.
    pub effort: Effort,
    /// The limits of a quick run.
    pub quick: QuickLimits,
    /// Whether login, session and prompt are tried first, and block the rows that depend on them.
    pub tries_setup: bool,
    /// Whether the limit of an answer adapts to what the preflight has measured.
    pub adapts_timeout: bool,
    /// Whether the limit of a turn does.
    pub adapts_turn_timeout: bool,
    /// Whether the explorations are left out, so that rules over all messages judge only those of the
    /// checks.
    pub without_explorations: bool,
    /// Where the traffic of each check goes, if it is kept.
    pub transcripts: Option<Arc<Transcripts>>,
    /// Whether the agent may name its words in `_meta["acp-conformance"]` of its answer to `initialize`.
    pub takes_words: bool,
}

/// How the transcript of the preflight is named.
pub(super) const PREFLIGHT: &str = "preflight";

impl Options {
    /// Writes a transcript of this connection, where transcripts are kept. Returns the file's name.
    pub(super) fn keep(&self, name: &str, recording: Option<&Recording>) -> Option<String> {
        self.transcripts.as_ref()?.write(name, recording?, 0)
    }
}

/// Returns the rows that a run has chosen.
pub(super) fn chosen(env: &Env, options: &Options) -> Result<Vec<Chosen>> {
    options
        .choice
        .of(all_rows(env), |(area, row)| (row.id, area.name, row.tier))
}

/// Returns the rows of the table that are about such an agent, in its order.
pub(super) fn all_rows(env: &Env) -> impl Iterator<Item = Chosen> {
    let version = env.schema.version();
    let of_transport = requirements::of_remote(version).filter(|_| env.target.is_remote());
    requirements::of(version).chain(of_transport)
}

/// How thorough a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Few prompts and starts of the agent, in less than a minute; see [`QuickLimits`].
    Quick,
    /// Every check once.
    #[default]
    Normal,
    /// A check that was inconclusive is repeated, at most twice, because a model may act otherwise.
    Thorough,
}

/// How many prompts a quick run sends at most, those of the preflight and the exploration included.
pub(super) const QUICK_PROMPTS: usize = 12;

/// The limits of a quick run. Both times begin with its first session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickLimits {
    /// When no further check begins (default 40 s).
    pub time: Duration,
    /// When the waits of checks end (default 50 s); the agents are ended afterwards.
    pub end: Duration,
    /// How long a turn may take, unless it was set (default 15 s); the first one twice as long.
    pub turn: Duration,
}

impl Default for QuickLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(40),
            end: Duration::from_secs(50),
            turn: Duration::from_secs(15),
        }
    }
}

/// What a quick run can afford: chosen by the time that the agent takes to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Budget {
    /// How many prompts are left.
    pub(super) prompts: usize,
    /// How many starts of the agent are left.
    pub(super) starts: usize,
}

impl Budget {
    /// Without a limit of starts.
    pub(super) fn of_prompts(spent: usize) -> Self {
        Self {
            prompts: QUICK_PROMPTS.saturating_sub(spent),
            starts: usize::MAX,
        }
    }

    /// Limits the starts: three quarters of the `time` in which checks begin, by so many jobs, each of
    /// which needs a start for what its checks share; `start` is the time of one.
    pub(super) fn with_starts(self, time: Duration, start: Duration, jobs: usize) -> Self {
        let millis = start.as_millis().max(1);
        let of_job = time.as_millis() * 3 / 4 / millis;
        let of_job = usize::try_from(of_job).unwrap_or(usize::MAX);
        let starts = of_job.saturating_sub(1).saturating_mul(jobs);
        Self { starts, ..self }
    }

    /// Takes what a check costs, if it can be afforded.
    fn spend(&mut self, prompts: usize, starts: usize) -> Result<(), &'static str> {
        let rest = self.prompts.checked_sub(prompts).ok_or(NO_PROMPTS)?;
        self.starts = self.starts.checked_sub(starts).ok_or(NO_STARTS)?;
        self.prompts = rest;
        Ok(())
    }
}

/// An agent that takes longer to start is busy meanwhile, so that more of them than cores are slower.
const BUSY_START: Duration = Duration::from_secs(1);

/// Returns how many agents run at once, at most `most`.
pub(super) fn jobs(most: usize, start: Duration, cores: usize) -> usize {
    match start > BUSY_START {
        true => most.min(cores).max(1),
        false => most.max(1),
    }
}

/// How often a thorough run repeats a check that was inconclusive.
pub(super) const REPEATS: usize = 2;

/// Why a quick run does not have a row.
pub(super) const NO_PROMPTS: &str = "not run: --quick sends few prompts";
pub(super) const NO_STARTS: &str = "not run: --quick starts a slow agent few times";
pub(super) const NO_TIME: &str = "not run: the time of --quick was over";

/// The words that a quick run says on its exploration.
pub(crate) const QUICK_WORDS: [&str; 3] = ["hello", "slow", "tool"];

/// Prompts by id, for each version, and starts of the agent.
type Table = HashMap<String, HashMap<String, usize>>;

static PROMPTS: LazyLock<Table> = LazyLock::new(|| {
    // Part of the program; a test reads it.
    basic_toml::from_str(include_str!("../../prompts.toml")).unwrap_or_default()
});

/// Returns how many prompts a check sends; `None` if it opens no session either.
pub(super) fn prompts(id: &str, version: Version) -> Option<usize> {
    let of_version = PROMPTS.get(&format!("v{}", version.as_str()))?;
    of_version.get(id).copied()
}

/// Returns how many connections of its own a check opens.
pub(super) fn starts(id: &str, version: Version) -> usize {
    let of_version = PROMPTS.get(&format!("starts-v{}", version.as_str()));
    let starts = of_version.and_then(|of_version| of_version.get(id).copied());
    starts.unwrap_or_default()
}

/// Returns how far the preflight goes.
pub(super) fn depth(chosen: &[Chosen], version: Version) -> Depth {
    let of_row = |(_, row): &Chosen| match row.check {
        Check::Excluded(_) => Depth::Handshake,
        Check::Watch { .. } => Depth::Turn,
        Check::Run(_) | Check::Steps(_) => match prompts(row.id, version) {
            None => Depth::Handshake,
            Some(0) => Depth::Session,
            Some(_) => Depth::Turn,
        },
    };
    chosen.iter().map(of_row).max().unwrap_or_default()
}

/// Returns how many prompts the explorations send.
pub(super) fn of_explorations(profile: &Profile, effort: Effort) -> usize {
    let has = |word: &&&str| profile.prompts.contains_key(**word);
    let words = |words: &[&str]| words.iter().filter(has).count();
    match effort {
        Effort::Quick => words(&QUICK_WORDS),
        _ => 2 * profile.prompts.len() + words(&["form", "url", "permission", "terminal"]),
    }
}

/// Returns the rows of a quick run, by their place in `chosen`, and those that it leaves out with the
/// reason: it has what the budget allows, and what decides the verdict comes first.
pub(super) fn quick(
    chosen: &[Chosen],
    version: Version,
    mut budget: Budget,
) -> (Vec<usize>, Vec<(usize, &'static str)>) {
    let cost = |row: &Chosen| {
        let id = row.1.id;
        (
            prompts(id, version).unwrap_or_default(),
            starts(id, version),
        )
    };
    let runs = |row: &Chosen| row.1.check.acts();
    let mut order: Vec<(usize, &Chosen)> = chosen.iter().enumerate().collect();
    order.retain(|(_, row)| runs(row));
    order.sort_by_key(|(_, row)| (row.1.tier, cost(row)));
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for (index, row) in order {
        let (prompts, starts) = cost(row);
        match budget.spend(prompts, starts) {
            Ok(()) => kept.push(index),
            Err(reason) => left_out.push((index, reason)),
        }
    }
    (kept, left_out)
}

/// Returns what a quick run has left out, and why, in one line. `start` is how long the agent takes to start.
pub(super) fn left_out_of(rows: &[Row], start: Duration) -> Option<String> {
    let count = |reason: &str| {
        let rows = rows.iter().filter(|row| match &row.verdict {
            Verdict::Excluded(found) => *found == reason,
            Verdict::Inconclusive(found) => found == reason,
            _ => false,
        });
        rows.count()
    };
    let seconds = start.as_secs_f64();
    let parts = [
        (
            count(NO_PROMPTS),
            format!("need more than {QUICK_PROMPTS} prompts in all"),
        ),
        (
            count(NO_STARTS),
            format!("need starts of the agent, of {seconds:.1} s each"),
        ),
        (count(NO_TIME), "were too late".to_owned()),
    ];
    let parts = parts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<_> = parts
        .map(|(count, why)| format!("{count} that {why}"))
        .collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(unix)]
#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
