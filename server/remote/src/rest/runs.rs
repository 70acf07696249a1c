//! Runs: what the turns did and what they cost. A run is a turn.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::time::Duration;

use acp_server::Phase;
use acp_server::internal::clock;
use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::failure::{Failure, unless_deleted};
use super::query::{Filters, Parameters, RowsQuery};
use super::state::{Rest, StoredSession};
use super::summary::TurnSummary;
use super::times::milliseconds;
use super::usage::{DOLLARS, Usage};
use crate::caller::Caller;

/// Runs in a list without a limit.
pub(super) const RUNS: usize = 1_000;

/// A turn may begin this much later than the last activity that its session has in the store, because
/// an event has the time at which the store took it.
const COMMIT: Duration = Duration::from_secs(60);

/// A run.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(super) struct Run {
    pub(super) session_id: String,
    /// The session and the number of the event with which the turn began: `SESSION/NUMBER`.
    pub(super) run_id: String,
    /// ISO 8601 in UTC; `null` if an earlier version stored the turn.
    pub(super) started_at: Option<String>,
    /// ISO 8601 in UTC; `null` while the turn runs, and as `started_at`.
    ended_at: Option<String>,
    /// Why the turn ended; `null` while it runs, and if it failed.
    stop_reason: Option<String>,
    /// Why the turn failed.
    error: Option<String>,
    /// `null` if the agent offers no choice, or it is not known without opening the session.
    pub(super) model: Option<String>,
    /// The name and the version of the client that sent the prompt at `/acp`, if it gave them.
    client: Option<String>,
    /// The beginning of the prompt.
    prompt: Option<String>,
    /// Whether the turn ended with the stop reason `end_turn`; `null` while it runs.
    pub(super) success: Option<bool>,
    /// The cost in dollars; `null` if the agent reported none.
    pub(super) cost_usd: Option<f64>,
    /// Tokens of all kinds; `null` if the agent does not count them.
    pub(super) total_tokens: Option<u64>,
    #[serde(flatten)]
    usage: Usage,
    /// Messages of the agent.
    steps: u64,
    tool_calls: u64,
    /// The name that the agent announces.
    source: String,
    /// The name of the agent at this server.
    agent: String,
}

impl Run {
    /// Returns how a run has ended, in a word.
    pub(super) fn ending(&self) -> &'static str {
        match (&self.error, self.stop_reason.as_deref()) {
            (Some(_), _) => "failed",
            (None, Some("cancelled")) => "cancelled",
            _ => "completed",
        }
    }
}

/// Runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunList {
    total_runs: usize,
    runs: Vec<Run>,
}

pub(super) async fn list_runs(
    State(rest): State<Rest>,
    caller: Caller,
    Parameters(query): Parameters<RowsQuery>,
) -> Result<Json<RunList>, Failure> {
    let filters = rest.filters(&caller, &query, RUNS)?;
    let mut newest = Newest::new(filters.limit);
    rest.each_run(&filters, "runs_list_failed", &mut newest)
        .await?;
    let runs: Vec<_> = newest.into_runs().map(|found| found.run).collect();
    let total_runs = runs.len();
    Ok(Json(RunList { total_runs, runs }))
}

/// A run, with the numbers that sums are made of.
#[derive(Clone, Debug)]
pub(super) struct FoundRun {
    pub(super) run: Run,
    pub(super) turn: acp_server::usage::TurnUsage,
    /// When it started, in milliseconds since 1970; the creation of the session if that is unknown.
    started: u64,
}

/// Receives runs in any order.
pub(super) trait Runs {
    fn add(&mut self, found: FoundRun);

    /// Returns whether runs are needed that started before this time, in milliseconds since 1970.
    fn needs(&self, before: u64) -> bool;
}

/// The runs that started last.
#[derive(Debug)]
pub(super) struct Newest {
    limit: usize,
    found: Vec<FoundRun>,
    /// When the last of them started, if there are `limit`.
    oldest: Option<u64>,
}

impl Newest {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            found: Vec::new(),
            oldest: None,
        }
    }

    /// Returns the runs, the latest start first.
    pub(super) fn into_runs(mut self) -> impl Iterator<Item = FoundRun> {
        self.shorten();
        self.found.into_iter()
    }

    fn shorten(&mut self) {
        self.found
            .sort_by_key(|found| Reverse((found.started, found.turn.turn)));
        self.found.truncate(self.limit);
        let oldest = self.found.get(self.limit.saturating_sub(1));
        self.oldest = oldest.map(|found| found.started);
    }
}

impl Runs for Newest {
    fn add(&mut self, found: FoundRun) {
        if self.needs(found.started) {
            self.found.push(found);
        }
        if self.found.len() >= self.limit.saturating_mul(2) {
            self.shorten();
        }
    }

    fn needs(&self, before: u64) -> bool {
        self.oldest.is_none_or(|oldest| before >= oldest)
    }
}

impl Rest {
    /// Finds the runs that a query asks for.
    ///
    /// # Errors
    ///
    /// 500 with this error name, when the store fails.
    pub(super) async fn each_run(
        &self,
        filters: &Filters,
        operation: &'static str,
        runs: &mut impl Runs,
    ) -> Result<(), Failure> {
        // The activity of a session is its last end of a turn, so that of these is not known yet.
        let agents = filters.agents.iter();
        let running = agents.flat_map(|agent| agent.server().open_sessions());
        let running =
            running.filter(|session| matches!(session.phase(), Phase::Running | Phase::Cancelling));
        let mut visited = HashSet::new();
        for session in running {
            if let Some(record) = unless_deleted(self.record(session.id()).await)? {
                self.runs_of(&record, filters, operation, runs).await?;
                visited.insert(record.id.clone());
            }
        }
        let mut records = self.all_records(&filters.agents, operation, true);
        while let Some(record) = records.next().await? {
            let active = milliseconds(&record.updated_at) + COMMIT.as_millis() as u64;
            if filters.is_before(active) || !runs.needs(active) {
                break;
            }
            if !visited.contains(&record.id) {
                self.runs_of(&record, filters, operation, runs).await?;
            }
        }
        self.save_histories().await;
        Ok(())
    }

    async fn runs_of(
        &self,
        record: &StoredSession,
        filters: &Filters,
        operation: &'static str,
        runs: &mut impl Runs,
    ) -> Result<(), Failure> {
        let created = milliseconds(&record.created_at);
        let visit = |turn: &TurnSummary, model: Option<&str>| {
            let started = turn.usage.started_at.unwrap_or(created);
            if !turn.usage.is_copied(record)
                && filters.accepts_time(started)
                && filters.accepts_model(model)
            {
                runs.add(FoundRun {
                    run: self.run(record, turn, model),
                    turn: turn.usage.clone(),
                    started,
                });
            }
        };
        unless_deleted(self.each_turn(record, operation, visit).await)?;
        Ok(())
    }

    pub(super) fn run(
        &self,
        record: &StoredSession,
        summary: &TurnSummary,
        model: Option<&str>,
    ) -> Run {
        let TurnSummary { usage, details } = summary;
        let end = usage.end.as_ref();
        let stop_reason = end.and_then(|end| end.stop_reason.as_ref());
        Run {
            session_id: record.id.to_string(),
            run_id: format!("{}/{}", record.id, usage.turn.0),
            started_at: usage.started_at.map(clock::text),
            ended_at: end.and_then(|end| end.at).map(clock::text),
            stop_reason: stop_reason.map(|reason| reason.as_str().to_owned()),
            error: end.and_then(|end| end.error.clone()),
            model: model.map(str::to_owned),
            client: usage.client.clone(),
            prompt: details.prompt.clone(),
            success: usage.success(),
            cost_usd: usage.costs.get(DOLLARS),
            total_tokens: usage.tokens.total_tokens,
            usage: Usage::of_turn(usage),
            steps: details.steps,
            tool_calls: details.tool_calls,
            source: record.agent.announced_name().to_owned(),
            agent: record.agent.name().to_owned(),
        }
    }
}
