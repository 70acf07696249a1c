//! Reading what a store has page by page: its sessions, and the events of one.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

use super::{ListQuery, SessionRecord, Store, StoreError};
use crate::event::{Batch, StoredEvent};

/// Bytes of events that are read at a time.
const PAGE_BYTES: usize = 256 << 10;

/// The sessions that a query asks for, all of them: its limit is what is read at a time.
#[derive(Debug)]
pub struct Records<S> {
    store: S,
    /// What is still to be read.
    pub query: ListQuery,
    page: VecDeque<SessionRecord>,
    /// Whether the store has no further page.
    is_last: bool,
}

impl<S: Deref<Target: Store>> Records<S> {
    /// Returns the sessions of a query, of which none is read yet.
    pub fn new(store: S, query: ListQuery) -> Self {
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
    pub async fn next(&mut self) -> Result<Option<SessionRecord>, StoreError> {
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
#[derive(Debug)]
pub struct Pages<S> {
    store: S,
    session: SessionId,
    after: u64,
    /// The last event to be read.
    until: u64,
    batches: VecDeque<Arc<Batch>>,
}

impl<S: Deref<Target: Store>> Pages<S> {
    /// Returns the events of a session after a number, up to and with another one.
    pub fn new(store: S, session: &SessionId, after: u64, until: u64) -> Self {
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
    pub async fn next(&mut self) -> Result<Option<Page>, StoreError> {
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

impl<S: Deref<Target: Store>> Pages<S> {
    /// Returns the next events as far as one read of the store goes; empty at the end.
    ///
    /// # Errors
    ///
    /// The store's.
    pub async fn next_read(&mut self) -> Result<Vec<Page>, StoreError> {
        let mut pages = Vec::new();
        while let Some(page) = self.next().await? {
            pages.push(page);
            if self.batches.is_empty() {
                break;
            }
        }
        Ok(pages)
    }
}

/// Consecutive events.
#[derive(Debug)]
pub struct Page {
    batch: Arc<Batch>,
    first: u64,
    last: u64,
}

impl Page {
    /// Returns the events.
    pub fn events(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        (self.first..=self.last).filter_map(|number| self.batch.stored(number))
    }
}
