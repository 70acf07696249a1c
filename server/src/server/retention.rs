//! Removing what is older than it should be, and what is too much, while the server runs.
//!
//! A session is leased while something is removed, so nobody opens it meanwhile, and events are
//! removed a page at a time, so no other work of the store waits longer than for a page.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;

use super::ServerCore;
use super::records::store_unavailable;
use crate::clock;
use crate::limits::Retention;
use crate::log_repeated;
use crate::store::{
    Commit, EventPage, Lease, ListQuery, Records, SessionRecord, StoreError, StoreErrorKind,
};

/// Sessions that are listed at a time.
const PAGE: usize = 100;

/// Bytes of the events that are removed at a time.
const STEP: usize = 1 << 20;

/// Sessions that are deleted before the size of the store is asked for again.
const RECOUNT: u64 = 16;

/// How much the store has beyond its limits.
#[derive(Debug, Default)]
struct Excess {
    sessions: u64,
    bytes: u64,
    /// Sessions that were deleted since the store was asked.
    deleted: u64,
}

impl ServerCore {
    /// Starts the task that applies the limits of retention, if there are any and it does not run.
    pub(super) fn start_retention(self: &Arc<Self>) {
        if self.limits.retention.keeps_all() {
            return;
        }
        let retention = self.limits.retention.clone();
        let core = Arc::downgrade(self);
        self.start_once(&self.retention_started, || async move {
            while let Some(core) = core.upgrade() {
                if let Err(error) = core.apply_retention(&retention).await {
                    log_repeated!(warn, %error, "retention failed, and is tried again later");
                    core.counters.retention_failed.increment();
                }
                drop(core);
                tokio::time::sleep(retention.interval.max(Duration::from_secs(1))).await;
            }
        });
    }

    /// Inspects all sessions that may be concerned, the oldest activity first.
    async fn apply_retention(self: &Arc<Self>, retention: &Retention) -> HandlerResult<()> {
        let now = clock::milliseconds();
        let before =
            |age: Duration| now.saturating_sub(u64::try_from(age.as_millis()).unwrap_or(u64::MAX));
        let sessions_before = retention.keep.map(|age| clock::text(before(age)));
        let events_before = retention.keep_events.map(before);
        let mut excess = self.excess(retention).await?;
        let query = ListQuery {
            oldest_first: true,
            limit: PAGE,
            ..ListQuery::default()
        };
        let mut records = Records::new(&*self.store, query);
        loop {
            let record = records.next().await;
            let Some(record) = record.map_err(|error| store_unavailable(&error))? else {
                return Ok(());
            };
            // A store in memory never waits, and others have their turn here.
            tokio::task::yield_now().await;
            let expired = sessions_before.as_ref();
            let is_expired = expired.is_some_and(|before| record.updated_at < *before);
            if is_expired || excess.sessions > 0 || excess.bytes > 0 {
                if let Some(bytes) = self.delete_unused(record).await? {
                    excess.deleted(bytes);
                }
                if retention.keep_bytes.is_some() && excess.is_unsure() {
                    excess = self.excess(retention).await?;
                }
            } else if let Some(before) = events_before {
                if may_have_events_before(&record, before) {
                    self.trim_unused(record, before).await?;
                }
            } else {
                return Ok(());
            }
        }
    }

    async fn excess(&self, retention: &Retention) -> HandlerResult<Excess> {
        if retention.keep_sessions.is_none() && retention.keep_bytes.is_none() {
            return Ok(Excess::default());
        }
        let usage = self.store.usage().await;
        let usage = usage.map_err(|error| store_unavailable(&error))?;
        let beyond = |used: u64, most: Option<u64>| used.saturating_sub(most.unwrap_or(u64::MAX));
        Ok(Excess {
            sessions: beyond(usage.sessions, retention.keep_sessions),
            bytes: beyond(usage.used_bytes, retention.keep_bytes),
            deleted: 0,
        })
    }

    /// Deletes a session that nobody uses, and returns the bytes of its events.
    async fn delete_unused(self: &Arc<Self>, listed: SessionRecord) -> HandlerResult<Option<u64>> {
        let deleted = self.finish(|core| async move {
            let _locked = core.sessions.lock(&listed.id).await;
            let leased = core.lease_unused(&listed).await;
            let Some(lease) = leased.map_err(|error| store_unavailable(&error))? else {
                return Ok(None);
            };
            let deleted = core.delete_in_steps(&lease).await;
            // Nothing to release is left of a session that was deleted.
            if !matches!(deleted, Ok(Some(_))) {
                core.release_lease(&lease).await;
            }
            let deleted = deleted.map_err(|error| store_unavailable(&error))?;
            if deleted.is_some() {
                core.counters.retention_deleted.increment();
                tracing::debug!(session = %listed.id, "retention deleted a session");
                core.deleted(&listed).await;
            }
            Ok(deleted)
        });
        deleted.await
    }

    /// Removes the events of a session that nobody uses, from the oldest to the last of those that
    /// were committed before a time.
    async fn trim_unused(self: &Arc<Self>, listed: SessionRecord, time: u64) -> HandlerResult<()> {
        let trimmed = self.finish(|core| async move {
            let _locked = core.sessions.lock(&listed.id).await;
            let is_inactive = listed.updated_at < clock::text(time);
            // Most have nothing that is so old; they need no lease.
            match core.store.read(&listed.id, 0, 1).await {
                Ok(page) if begins_before(&page, time) => {}
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == StoreErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(store_unavailable(&error)),
            }
            let leased = core.lease_unused(&listed).await;
            let Some(lease) = leased.map_err(|error| store_unavailable(&error))? else {
                return Ok(());
            };
            let trimmed = core.trim_in_steps(&lease, time, is_inactive).await;
            core.release_lease(&lease).await;
            trimmed.map_err(|error| store_unavailable(&error))
        });
        trimmed.await
    }

    /// Leases a session that is not open anywhere and had no activity since it was listed. Its id
    /// must be locked.
    async fn lease_unused(&self, listed: &SessionRecord) -> Result<Option<Lease>, StoreError> {
        if self.sessions.find(&listed.id).is_some() {
            return Ok(None);
        }
        match self.store.acquire_unused(&listed.id).await {
            Ok((record, lease)) if record.updated_at == listed.updated_at => Ok(Some(lease)),
            Ok((_, lease)) => {
                self.store.release(&lease).await?;
                Ok(None)
            }
            Err(error) => match error.kind() {
                StoreErrorKind::InUse | StoreErrorKind::NotFound => Ok(None),
                _ => Err(error),
            },
        }
    }

    /// Deletes a session and returns the bytes of its events; `None` if the server shuts down
    /// before.
    async fn delete_in_steps(&self, lease: &Lease) -> Result<Option<u64>, StoreError> {
        let mut bytes = 0;
        while !self.closed.is_cancelled() {
            let page = self.store.read(&lease.session, 0, STEP).await?;
            bytes += page
                .batches
                .iter()
                .map(|batch| batch.bytes() as u64)
                .sum::<u64>();
            match page.batches.last() {
                Some(batch) if batch.last() < page.last => {
                    self.trim(lease, batch.last() + 1).await?;
                }
                _ => {
                    self.store.delete(&lease.session).await?;
                    return Ok(Some(bytes));
                }
            }
        }
        Ok(None)
    }

    async fn trim_in_steps(
        &self,
        lease: &Lease,
        time: u64,
        is_inactive: bool,
    ) -> Result<(), StoreError> {
        while !self.closed.is_cancelled() {
            let page = self.store.read(&lease.session, 0, STEP).await?;
            match events_before(&page, time, is_inactive) {
                Some(last) => self.trim(lease, last + 1).await?,
                None => break,
            }
        }
        Ok(())
    }

    async fn trim(&self, lease: &Lease, before: u64) -> Result<(), StoreError> {
        let commit = Commit {
            trim_before: Some(before),
            ..Commit::default()
        };
        self.store.commit(lease, commit).await
    }
}

impl Excess {
    fn deleted(&mut self, bytes: u64) {
        self.sessions = self.sessions.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
        self.deleted += 1;
    }

    /// Returns whether the store must be asked: its size is not that of the events alone.
    fn is_unsure(&self) -> bool {
        self.deleted >= RECOUNT || (self.deleted > 0 && self.bytes == 0)
    }
}

/// Returns whether a session can have events from before a time, by what its record says.
fn may_have_events_before(record: &SessionRecord, time: u64) -> bool {
    // The events of a fork are older than the fork.
    let can_be = record.forked_from.is_some() || record.created_at < clock::text(time);
    record.oldest_event <= record.last_event && can_be
}

/// Returns whether the first event on a page can have been committed before a time.
fn begins_before(page: &EventPage, time: u64) -> bool {
    let first = page.batches.first();
    first.is_some_and(|batch| batch.time(batch.first()).is_none_or(|first| first < time))
}

/// Returns the number of the last event on a page that was committed before a time, with all
/// before it. Where the time is unknown, the session's last activity decides.
fn events_before(page: &EventPage, time: u64, is_inactive: bool) -> Option<u64> {
    let mut before = None;
    for batch in &page.batches {
        for number in batch.first()..=batch.last() {
            match batch.time(number) {
                Some(committed) if committed >= time => return before,
                None if !is_inactive => {}
                _ => before = Some(number),
            }
        }
    }
    before
}
