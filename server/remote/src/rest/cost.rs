//! What the runs cost, in all, by model, by day and by run.

use std::collections::BTreeMap;

use acp_server::usage::UsageTotals;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::failure::Failure;
use super::query::{Parameters, RowsQuery};
use super::runs::{FoundRun, Newest, RUNS, Run, Runs};
use super::state::Rest;
use super::usage::{DOLLARS, Usage};
use crate::caller::Caller;

/// What runs cost.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunCosts {
    total_runs: u64,
    /// In dollars; `totals` has other currencies, too.
    total_cost: f64,
    total_tokens: u64,
    /// By model; `unknown` has the runs without one.
    by_model: BTreeMap<String, Sums>,
    /// By the day on which the runs started, in UTC; `unknown` has those without a time.
    by_day: BTreeMap<String, Sums>,
    /// The runs, the latest start first: at most 1,000 unless `limit` says otherwise.
    by_run: Vec<Run>,
    totals: Totals,
    filters: AppliedFilters,
}

/// Sums over runs.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
pub(super) struct Sums {
    runs: u64,
    /// In dollars.
    cost_usd: f64,
    /// Tokens of all kinds.
    tokens: u64,
    #[serde(flatten)]
    usage: Usage,
}

/// Sums over all runs.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Totals {
    #[serde(flatten)]
    sums: Sums,
    /// Runs that ended with the stop reason `end_turn`.
    successful_runs: u64,
    /// Other runs that have ended.
    failed_runs: u64,
    /// Of all runs; those that report no cost count as 0.
    avg_cost_usd: f64,
    /// The median of `by_run`: between the two in the middle if their number is even.
    p50_cost_usd: f64,
    /// 95 % of the runs in `by_run` cost at most this.
    p95_cost_usd: f64,
}

/// The parameters of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppliedFilters {
    since: Option<String>,
    until: Option<String>,
    model: Option<String>,
    agent: Option<String>,
}

pub(super) async fn cost_of_runs(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<RunCosts>, Failure> {
    let filters = rest.filters(&caller, &query, RUNS)?;
    let mut newest = Newest::new(filters.limit);
    let mut adder = Adder::default();
    if query.has_limit() {
        rest.each_run(&filters, "runs_cost_failed", &mut newest)
            .await?;
    } else {
        let mut all = All {
            adder: &mut adder,
            newest: &mut newest,
        };
        rest.each_run(&filters, "runs_cost_failed", &mut all)
            .await?;
    }
    let by_run: Vec<_> = newest.into_runs().collect();
    if query.has_limit() {
        by_run.iter().for_each(|found| adder.add(found));
    }
    let by_run: Vec<_> = by_run.into_iter().map(|found| found.run).collect();
    let totals = adder.totals(&by_run);
    Ok(Json(RunCosts {
        total_runs: totals.sums.runs,
        total_cost: totals.sums.cost_usd,
        total_tokens: totals.sums.tokens,
        by_model: sums(&adder.by_model),
        by_day: sums(&adder.by_day),
        by_run,
        totals,
        filters: AppliedFilters {
            since: query.since().map(str::to_owned),
            until: query.until().map(str::to_owned),
            model: query.model().map(str::to_owned),
            agent: query.agent().map(str::to_owned),
        },
    }))
}

/// Adds up all runs, and keeps the newest.
struct All<'a> {
    adder: &'a mut Adder,
    newest: &'a mut Newest,
}

impl Runs for All<'_> {
    fn add(&mut self, found: FoundRun) {
        self.adder.add(&found);
        self.newest.add(found);
    }

    fn needs(&self, _: u64) -> bool {
        true
    }
}

#[derive(Debug, Default)]
struct Adder {
    all: UsageTotals,
    successful: u64,
    failed: u64,
    by_model: BTreeMap<String, UsageTotals>,
    by_day: BTreeMap<String, UsageTotals>,
}

impl Adder {
    fn add(&mut self, FoundRun { run, turn, .. }: &FoundRun) {
        self.all.add(turn);
        match run.success {
            Some(true) => self.successful += 1,
            Some(false) => self.failed += 1,
            None => {}
        }
        let model = run.model.as_deref();
        // A time begins with its day: `2026-11-25T…`.
        let day = run
            .started_at
            .as_deref()
            .and_then(|time| time.split('T').next());
        for (group, name) in [(&mut self.by_model, model), (&mut self.by_day, day)] {
            let name = name.unwrap_or("unknown").to_owned();
            group.entry(name).or_default().add(turn);
        }
    }

    fn totals(&self, by_run: &[Run]) -> Totals {
        let mut costs: Vec<f64> = by_run
            .iter()
            .map(|run| run.cost_usd.unwrap_or(0.0))
            .collect();
        costs.sort_by(f64::total_cmp);
        let sums = Sums::of(&self.all);
        Totals {
            successful_runs: self.successful,
            failed_runs: self.failed,
            avg_cost_usd: match sums.runs {
                0 => 0.0,
                runs => sums.cost_usd / runs as f64,
            },
            p50_cost_usd: median(&costs),
            p95_cost_usd: percentile_95(&costs),
            sums,
        }
    }
}

impl Sums {
    fn of(totals: &UsageTotals) -> Self {
        Self {
            runs: totals.turns,
            cost_usd: totals.costs.get(DOLLARS).unwrap_or(0.0),
            tokens: totals.tokens.total_tokens.unwrap_or(0),
            usage: Usage::of_turns(totals),
        }
    }
}

fn sums(groups: &BTreeMap<String, UsageTotals>) -> BTreeMap<String, Sums> {
    let groups = groups.iter();
    groups
        .map(|(name, totals)| (name.clone(), Sums::of(totals)))
        .collect()
}

/// Returns the median of sorted values; 0 without any.
fn median(sorted: &[f64]) -> f64 {
    let middle = sorted.len() / 2;
    match (sorted.get(middle), sorted.len() % 2) {
        (None, _) => 0.0,
        (Some(upper), 1) => *upper,
        (Some(upper), _) => f64::midpoint(sorted[middle - 1], *upper),
    }
}

/// Returns the least of sorted values that 95 % do not exceed; 0 without any.
fn percentile_95(sorted: &[f64]) -> f64 {
    let rank = (sorted.len() * 95).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_of_few_and_many_runs() {
        assert_eq!((median(&[]), percentile_95(&[])), (0.0, 0.0));
        assert_eq!((median(&[3.0]), percentile_95(&[3.0])), (3.0, 3.0));
        assert_eq!(median(&[1.0, 2.0, 9.0]), 2.0);
        let many: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!((median(&many), percentile_95(&many)), (50.5, 95.0));
        let twenty: Vec<f64> = (1..=20).map(f64::from).collect();
        assert_eq!(percentile_95(&twenty), 19.0);
    }
}
