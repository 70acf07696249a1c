//! Reading what a store has page by page: its sessions, and the events of one.

use std::collections::VecDeque;
use std::ops::Deref;
#[cfg(any(feature = "cli", feature = "remote"))]
use std::sync::Arc;

#[cfg(any(feature = "cli", feature = "remote"))]
use acp_sdk::v1::SessionId;

use super::{ListQuery, SessionRecord, Store, StoreError};
#[cfg(any(feature = "cli", feature = "remote"))]
use crate::event::{Batch, StoredEvent};

/// Bytes of events that are read at a time.
#[cfg(any(feature = "cli", feature = "remote"))]
const PAGE_BYTES: usize = 256 << 10;

/// The sessions that a query asks for, all of them: its limit is what is read at a time.
#[derive(Debug)]
pub(crate) struct Records<S> {
    store: S,
    pub(crate) query: ListQuery,
    page: VecDeque<SessionRecord>,
    /// Whether the store has no further page.
    is_last: bool,
}

impl<S: Deref<Target: Store>> Records<S> {
    pub(crate) fn new(store: S, query: ListQuery) -> Self {
        Self {
            store,
            query,
            page: VecDeque::new(),
            is_last: false,
        }
    }

    /// Returns the next session; `None` after the last. After an error another call tries again.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn next(&mut self) -> Result<Option<SessionRecord>, StoreError> {
        if self.page.is_empty() && !self.is_last {
            let page = self.store.list(&self.query).await?;
            self.is_last = page.len() < self.query.limit;
            if let Some(last) = page.last() {
                self.query.after = Some((last.updated_at.clone(), last.id.clone()));
            }
            self.page = page.into();
        }
        Ok(self.page.pop_front())
    }
}

/// Reads the events of a session without opening it, a batch at a time.
#[cfg(any(feature = "cli", feature = "remote"))]
pub(crate) struct Pages<S> {
    store: S,
    session: SessionId,
    after: u64,
    /// The last event to be read.
    until: u64,
    batches: VecDeque<Arc<Batch>>,
}

#[cfg(any(feature = "cli", feature = "remote"))]
impl<S: Deref<Target: Store>> Pages<S> {
    pub(crate) fn new(store: S, session: &SessionId, after: u64, until: u64) -> Self {
        Self {
            store,
            session: session.clone(),
            after,
            until,
            batches: VecDeque::new(),
        }
    }

    /// Returns the next events with their numbers; `None` at the end. Those that are no longer kept
    /// are left out.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(crate) async fn next(&mut self) -> Result<Option<Page>, StoreError> {
        loop {
            if self.after >= self.until {
                return Ok(None);
            }
            if let Some(batch) = self.batches.pop_front() {
                let first = batch.first().max(self.after + 1);
                let last = batch.last().min(self.until);
                if first > last {
                    continue;
                }
                self.after = last;
                return Ok(Some(Page { batch, first, last }));
            }
            let page = self.store.read(&self.session, self.after, PAGE_BYTES);
            let page = page.await?;
            if page.batches.is_empty() {
                return Ok(None);
            }
            self.after = self.after.max(page.oldest.saturating_sub(1));
            self.batches.extend(page.batches);
        }
    }
}

/// Consecutive events.
#[cfg(any(feature = "cli", feature = "remote"))]
pub(crate) struct Page {
    batch: Arc<Batch>,
    first: u64,
    last: u64,
}

#[cfg(any(feature = "cli", feature = "remote"))]
impl Page {
    /// Returns the events.
    pub(crate) fn events(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        (self.first..=self.last).filter_map(|number| self.batch.stored(number))
    }
}
