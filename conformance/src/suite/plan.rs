//! How much is run: what each check needs, how many prompts that makes, and what a short run leaves out.
//!
//! Prompts cost time and money, so their number is known before the run. The table `prompts.toml`
//! has what each check sends to the reference agent; a test keeps it true.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::run::Chosen;
use super::setup::Depth;
use crate::harness::Profile;
use crate::requirements::Check;
use crate::wire::Version;

/// How thorough a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Effort {
    /// Few prompts, and no check begins after 40 s; see [`QuickLimits`].
    Quick,
    /// Every check once.
    #[default]
    Normal,
    /// A check that was inconclusive is repeated, at most twice, because a model may act otherwise.
    Thorough,
}

/// How many prompts a quick run sends at most, those of the preflight and the exploration included.
pub(super) const QUICK_PROMPTS: usize = 12;

/// The limits of a quick run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuickLimits {
    /// When no further check begins (default 40 s). The starts of the agent are not counted.
    pub time: Duration,
    /// How long a turn may take, unless it was set (default 15 s); the first one twice as long.
    pub turn: Duration,
}

impl Default for QuickLimits {
    fn default() -> Self {
        Self {
            time: Duration::from_secs(40),
            turn: Duration::from_secs(15),
        }
    }
}

/// When a run begins no further check; the time that the agent took to start is not counted.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    began: Instant,
    limit: Option<Duration>,
}

impl Budget {
    /// Creates the budget of a run that began at this time; without a limit unless it is quick.
    pub(super) fn new(began: Instant, effort: Effort, limits: QuickLimits) -> Self {
        let limit = (effort == Effort::Quick).then_some(limits.time);
        Self { began, limit }
    }

    /// Whether it is over, for a thread that has waited so long for the agent to start.
    pub(super) fn is_over(&self, now: Instant, starting: Duration) -> bool {
        let spent = now.saturating_duration_since(self.began);
        let spent = spent.saturating_sub(starting);
        self.limit.is_some_and(|limit| spent > limit)
    }
}

/// How often a thorough run repeats a check that was inconclusive.
pub(super) const REPEATS: usize = 2;

/// Why a quick run does not have a row.
pub(super) const NO_PROMPTS: &str = "not run: --quick sends few prompts";
pub(super) const NO_TIME: &str =
    "not run: --quick begins no check after 40 s, without the starts of the agent";

/// The words that a quick run says on its exploration.
pub(crate) const QUICK_WORDS: [&str; 3] = ["hello", "slow", "tool"];

/// Prompts by id, for each version.
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

/// Returns how far the preflight goes.
pub(super) fn depth(chosen: &[Chosen], version: Version) -> Depth {
    let of_row = |(_, row): &Chosen| match row.check {
        Check::Excluded(_) => Depth::Handshake,
        Check::Watch { .. } => Depth::Turn,
        Check::Run(_) => match prompts(row.id, version) {
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

/// Returns the rows of a quick run, by their place in `chosen`: those without a prompt, and as many
/// others as the budget allows; what decides the verdict comes first.
pub(super) fn quick(chosen: &[Chosen], version: Version, spent: usize) -> Vec<usize> {
    let prompts = |(_, row): &Chosen| prompts(row.id, version).unwrap_or_default();
    let mut order: Vec<(usize, &Chosen)> = chosen.iter().enumerate().collect();
    order.sort_by_key(|(_, row)| (row.1.tier, prompts(row)));
    let mut left = QUICK_PROMPTS.saturating_sub(spent);
    order.retain(|(_, row)| match left.checked_sub(prompts(row)) {
        Some(rest) => {
            left = rest;
            true
        }
        None => false,
    });
    order.into_iter().map(|(index, _)| index).collect()
}

#[cfg(unix)]
#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
