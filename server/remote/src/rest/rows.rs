//! Sessions in lists.

use acp_server::usage::UsageTotals;

use super::failure::{Failure, unless_deleted};
use super::query::Filters;
use super::records::AllRecords;
use super::state::{Rest, StoredSession};
use super::summary::TurnSummary;
use super::times::milliseconds;

/// A session and what its turns did.
pub(super) struct Row {
    pub(super) record: StoredSession,
    pub(super) model: Option<String>,
    pub(super) summary: Summary,
}

/// What the turns of a session did. Turns that a fork has copied count in its source.
#[derive(Debug, Default)]
pub(super) struct Summary {
    /// The beginning of the first prompt.
    pub(super) prompt: Option<String>,
    /// The end of the last turn, in milliseconds since 1970; `None` while it runs.
    pub(super) ended_at: Option<u64>,
    /// Whether the last turn that ended did what it was to do.
    pub(super) success: Option<bool>,
    pub(super) steps: u64,
    pub(super) tool_calls: u64,
    pub(super) totals: UsageTotals,
}

impl Summary {
    fn add(&mut self, record: &StoredSession, turn: &TurnSummary) {
        let TurnSummary { usage, details } = turn;
        if self.prompt.is_none() {
            self.prompt.clone_from(&details.prompt);
        }
        self.ended_at = usage.end.as_ref().and_then(|end| end.at);
        self.success = usage.success().or(self.success);
        if !usage.is_copied(record) {
            self.steps += details.steps;
            self.tool_calls += details.tool_calls;
            self.totals.add(usage);
        }
    }
}

impl AllRecords<'_> {
    /// Returns the next session that was active in the time that a query asks for; `None` if no further
    /// one was.
    ///
    /// # Errors
    ///
    /// As [`next`](Self::next).
    async fn next_active(&mut self, filters: &Filters) -> Result<Option<StoredSession>, Failure> {
        while let Some(record) = self.next().await? {
            let active = milliseconds(&record.updated_at);
            if filters.is_before(active) {
                break;
            }
            if filters.accepts_time(active) {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }
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
        let mut records = self.all_records(&filters.agents, operation, true);
        while rows.len() < filters.limit
            && let Some(record) = records.next_active(filters).await?
        {
            let row = unless_deleted(self.row(record, operation).await)?;
            rows.extend(row.filter(|row| filters.accepts_model(row.model.as_deref())));
        }
        self.save_histories().await;
        Ok(rows)
    }

    /// Returns the ids of the sessions that a query asks for, the latest activity first.
    ///
    /// # Errors
    ///
    /// 500 with this error name, when the store fails.
    pub(super) async fn session_ids(
        &self,
        filters: &Filters,
        operation: &'static str,
    ) -> Result<Vec<String>, Failure> {
        if filters.model.is_some() {
            let rows = self.rows(filters, operation).await?.into_iter();
            return Ok(rows.map(|row| row.record.id.to_string()).collect());
        }
        let mut ids = Vec::new();
        let mut records = self.all_records(&filters.agents, operation, false);
        while ids.len() < filters.limit
            && let Some(record) = records.next_active(filters).await?
        {
            ids.push(record.id.to_string());
        }
        Ok(ids)
    }

    /// Returns what a session has done up to the last event of its record.
    ///
    /// # Errors
    ///
    /// 404, or 500 with this error name, when its events cannot be read.
    pub(super) async fn row(
        &self,
        record: StoredSession,
        operation: &'static str,
    ) -> Result<Row, Failure> {
        let mut summary = Summary::default();
        let add = |turn: &TurnSummary, _: Option<&str>| summary.add(&record, turn);
        let model = self.each_turn(&record, operation, add).await?;
        Ok(Row {
            record,
            model,
            summary,
        })
    }
}
