//! Runs: what the sessions did and what it cost. A run is a session.

use axum::Json;
use axum::extract::State;
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::failure::{ErrorBody, Failure};
use super::query::{Filters, Parameters, RowsQuery};
use super::state::Rest;
use super::summary::Summary;
use crate::remote::caller::Caller;
use crate::store::SessionRecord;

/// Runs in a list without a limit.
pub(super) const RUNS: usize = 1_000;

/// Sessions that are read from the store at a time.
const PAGE: usize = 200;

/// A session and what it has done.
pub(super) struct Row {
    pub(super) record: SessionRecord,
    pub(super) summary: Summary,
    pub(super) model: Option<String>,
}

/// A run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Run {
    /// The session.
    session_id: String,
    /// The session.
    run_id: String,
    /// ISO 8601 in UTC.
    started_at: String,
    /// The end of the last turn: ISO 8601 in UTC; `null` while one runs and before the first.
    ended_at: Option<String>,
    /// `null` if the agent offers no choice, or it is not known without opening the session.
    model: Option<String>,
    /// The beginning of the conversation.
    prompt: Option<String>,
    /// Whether the last turn ended by itself, with the stop reason `end_turn`; `null` before.
    success: Option<bool>,
    /// What the agent reported; `null` unless in dollars.
    cost_usd: Option<f64>,
    /// Messages of the agent.
    steps: u64,
    tool_calls: u64,
    turns: u64,
    /// The name of the agent.
    source: String,
}

/// Runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunList {
    total_runs: usize,
    runs: Vec<Run>,
}

/// Lists runs, the latest activity first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(RowsQuery), responses(
    (status = 200, description = "The runs; 1,000 unless `limit` says otherwise", body = RunList),
    (status = 400, description = "`invalid_query`", body = ErrorBody),
))]
pub(super) async fn list_runs(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<RunList>, Failure> {
    caller.reads_all()?;
    let rows = rest.rows(&query.filters(RUNS)?, "runs_list_failed").await?;
    let runs: Vec<_> = rows.iter().map(|row| rest.run(row)).collect();
    let total_runs = runs.len();
    Ok(Json(RunList { total_runs, runs }))
}

impl Rest {
    /// Returns the sessions that a query asks for, the latest activity first.
    ///
    /// # Errors
    ///
    /// 500 with this error name, when the store fails.
    pub(super) async fn rows(
        &self,
        filters: &Filters,
        operation: &'static str,
    ) -> Result<Vec<Row>, Failure> {
        let mut rows: Vec<Row> = Vec::new();
        let mut last: Option<SessionRecord> = None;
        loop {
            let page = self.records(last.as_ref(), PAGE).await;
            let page = page.map_err(|error| Failure::internal(operation, error.to_string()))?;
            last = page.last().cloned();
            if last.is_none() {
                return Ok(rows);
            }
            for record in page {
                if rows.len() >= filters.limit || is_older(&record, filters) {
                    return Ok(rows);
                }
                // A session that was deleted meanwhile is left out.
                let Ok(summary) = self.summary(&record).await else {
                    continue;
                };
                let row = self.row(record, summary);
                if filters.accepts_model(row.model.as_deref()) {
                    rows.push(row);
                }
            }
        }
    }

    pub(super) fn row(&self, record: SessionRecord, summary: Summary) -> Row {
        Row {
            model: self.model(&record, &summary),
            record,
            summary,
        }
    }

    pub(super) fn run(&self, row: &Row) -> Run {
        let Row {
            record,
            summary,
            model,
        } = row;
        let has_ended = record.running_turn.is_none() && summary.turns > 0;
        Run {
            session_id: record.id.to_string(),
            run_id: record.id.to_string(),
            started_at: record.created_at.clone(),
            ended_at: has_ended.then(|| record.updated_at.clone()),
            model: model.clone(),
            prompt: summary.prompt.clone(),
            success: summary.success,
            cost_usd: summary.cost_usd(),
            steps: summary.steps,
            tool_calls: summary.tool_calls,
            turns: summary.turns,
            source: self.source().to_owned(),
        }
    }

    /// Returns the name of the agent.
    pub(super) fn source(&self) -> &str {
        &self.server().info().implementation.name
    }
}

fn is_older(record: &SessionRecord, filters: &Filters) -> bool {
    let Some(since) = filters.since else {
        return false;
    };
    let active = record.updated_at.parse::<Timestamp>();
    active.is_ok_and(|active| active < since)
}
