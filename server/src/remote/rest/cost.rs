//! What the runs cost, in all, by model and by run.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::failure::{ErrorBody, Failure};
use super::query::{Parameters, RowsQuery};
use super::runs::{RUNS, Row};
use super::state::Rest;
use crate::remote::caller::Caller;

/// What runs cost.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Costs {
    total_runs: u64,
    /// In dollars.
    total_cost: f64,
    total_tokens: u64,
    /// By model; `unknown` has the runs without one.
    by_model: BTreeMap<String, ModelCost>,
    by_run: Vec<RunCost>,
    totals: Totals,
    filters: AppliedFilters,
}

/// What the runs of a model cost.
#[derive(Debug, Default, PartialEq, Serialize, ToSchema)]
pub(super) struct ModelCost {
    runs: u64,
    cost_usd: f64,
    tokens: u64,
}

/// What a run cost.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct RunCost {
    run_id: String,
    /// ISO 8601 in UTC.
    started_at: String,
    model: Option<String>,
    /// What the agent reported; `null` unless in dollars.
    cost_usd: Option<f64>,
    /// Tokens in the context, as the agent reported them last: it reports no others.
    total_tokens: u64,
    /// `null`: agents of this protocol do not report it.
    input_tokens: Option<u64>,
    /// `null`: agents of this protocol do not report it.
    output_tokens: Option<u64>,
    /// `null`: agents of this protocol do not report it.
    cache_tokens: Option<u64>,
    success: Option<bool>,
    /// Messages of the agent.
    steps: u64,
    /// The name of the agent.
    source: String,
}

/// Sums over runs.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(super) struct Totals {
    runs: u64,
    successful_runs: u64,
    failed_runs: u64,
    cost_usd: f64,
    tokens: u64,
    /// `null`: agents of this protocol do not report it.
    input_tokens: Option<u64>,
    /// `null`: agents of this protocol do not report it.
    output_tokens: Option<u64>,
    /// `null`: agents of this protocol do not report it.
    cache_tokens: Option<u64>,
    /// Of all runs; those that report no cost count as 0.
    avg_cost_usd: f64,
    /// The median: between the two in the middle if their number is even.
    p50_cost_usd: f64,
    /// The least cost that 95 % of the runs do not exceed.
    p95_cost_usd: f64,
}

/// The parameters of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct AppliedFilters {
    since: Option<String>,
    model: Option<String>,
}

/// Adds up what runs cost.
#[utoipa::path(get, path = "/runs/cost", tag = "runs", params(RowsQuery), responses(
    (status = 200, description = "The costs of the runs that `/runs` lists", body = Costs),
    (status = 400, description = "`invalid_query`", body = ErrorBody),
))]
pub(super) async fn cost_of_runs(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<Costs>, Failure> {
    caller.reads_all()?;
    let rows = rest.rows(&query.filters(RUNS)?, "runs_cost_failed").await?;
    let by_run: Vec<_> = rows.iter().map(|row| cost(row, rest.source())).collect();
    let totals = totals(&by_run);
    Ok(Json(Costs {
        total_runs: totals.runs,
        total_cost: totals.cost_usd,
        total_tokens: totals.tokens,
        by_model: by_model(&by_run),
        by_run,
        totals,
        filters: AppliedFilters {
            since: query.since().map(str::to_owned),
            model: query.model().map(str::to_owned),
        },
    }))
}

fn cost(row: &Row, source: &str) -> RunCost {
    RunCost {
        run_id: row.record.id.to_string(),
        started_at: row.record.created_at.clone(),
        model: row.model.clone(),
        cost_usd: row.summary.cost_usd(),
        total_tokens: row.summary.tokens.unwrap_or(0),
        input_tokens: None,
        output_tokens: None,
        cache_tokens: None,
        success: row.summary.success,
        steps: row.summary.steps,
        source: source.to_owned(),
    }
}

fn by_model(runs: &[RunCost]) -> BTreeMap<String, ModelCost> {
    let mut models: BTreeMap<String, ModelCost> = BTreeMap::new();
    for run in runs {
        let name = run.model.as_deref().unwrap_or("unknown");
        let model = models.entry(name.to_owned()).or_default();
        model.runs += 1;
        model.cost_usd += run.cost_usd.unwrap_or(0.0);
        model.tokens = model.tokens.saturating_add(run.total_tokens);
    }
    models
}

fn totals(runs: &[RunCost]) -> Totals {
    let mut costs: Vec<f64> = runs.iter().map(|run| run.cost_usd.unwrap_or(0.0)).collect();
    costs.sort_by(f64::total_cmp);
    let cost_usd: f64 = costs.iter().sum();
    let count = |success| {
        runs.iter()
            .filter(|run| run.success == Some(success))
            .count() as u64
    };
    let tokens = runs.iter().map(|run| run.total_tokens);
    Totals {
        runs: runs.len() as u64,
        successful_runs: count(true),
        failed_runs: count(false),
        cost_usd,
        tokens: tokens.fold(0, u64::saturating_add),
        input_tokens: None,
        output_tokens: None,
        cache_tokens: None,
        avg_cost_usd: if costs.is_empty() {
            0.0
        } else {
            cost_usd / costs.len() as f64
        },
        p50_cost_usd: median(&costs),
        p95_cost_usd: percentile_95(&costs),
    }
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

    fn run(model: &str, cost: f64, tokens: u64, success: Option<bool>) -> RunCost {
        RunCost {
            run_id: "r".to_owned(),
            started_at: String::new(),
            model: (!model.is_empty()).then(|| model.to_owned()),
            cost_usd: Some(cost),
            total_tokens: tokens,
            input_tokens: None,
            output_tokens: None,
            cache_tokens: None,
            success,
            steps: 1,
            source: "s".to_owned(),
        }
    }

    fn is_near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_example_of_the_document_is_reproduced() {
        let runs = [
            run("glm", 0.07, 1200, Some(true)),
            run("glm", 0.03, 600, Some(true)),
            run("claude", 0.12, 2000, Some(true)),
            run("claude", 0.0, 0, Some(false)),
        ];
        let totals = totals(&runs);
        assert_eq!(
            (totals.runs, totals.successful_runs, totals.failed_runs),
            (4, 3, 1)
        );
        assert_eq!(totals.tokens, 3800);
        assert!(is_near(totals.cost_usd, 0.22) && is_near(totals.avg_cost_usd, 0.055));
        assert!(is_near(totals.p50_cost_usd, 0.05), "{totals:?}");
        assert!(is_near(totals.p95_cost_usd, 0.12), "{totals:?}");
        let models = by_model(&runs);
        assert_eq!((models["glm"].runs, models["glm"].tokens), (2, 1800));
        assert!(is_near(models["claude"].cost_usd, 0.12));
    }

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

    #[test]
    fn runs_without_an_end_a_cost_or_a_model_count() {
        let mut without = run("", 1.0, 5, None);
        without.cost_usd = None;
        let runs = [without, run("m", 2.0, 5, Some(true))];
        let totals = totals(&runs);
        assert_eq!(
            (totals.runs, totals.successful_runs, totals.failed_runs),
            (2, 1, 0)
        );
        assert!(is_near(totals.avg_cost_usd, 1.0));
        assert_eq!(by_model(&runs)["unknown"].runs, 1);
    }
}
