//! The events that the store has, without opening their session.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

use crate::Server;
use crate::event::{Batch, StoredEvent};
use crate::store::StoreError;

/// Bytes that are read at a time.
const PAGE_BYTES: usize = 256 << 10;

/// Reads the events of a session from the store, a batch at a time.
pub(super) struct Pages {
    server: Server,
    session: SessionId,
    after: u64,
    /// The last event to be read.
    until: u64,
    batches: VecDeque<Arc<Batch>>,
}

impl Pages {
    pub(super) fn new(server: &Server, session: &SessionId, after: u64, until: u64) -> Self {
        Self {
            server: server.clone(),
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
    pub(super) async fn next(&mut self) -> Result<Option<Page>, StoreError> {
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
            let store = self.server.store();
            let page = store.read(&self.session, self.after, PAGE_BYTES).await?;
            if page.batches.is_empty() {
                return Ok(None);
            }
            self.after = self.after.max(page.oldest.saturating_sub(1));
            self.batches.extend(page.batches);
        }
    }
}

/// Consecutive events.
pub(super) struct Page {
    batch: Arc<Batch>,
    first: u64,
    last: u64,
}

impl Page {
    /// Returns the events.
    pub(super) fn events(&self) -> impl Iterator<Item = StoredEvent<'_>> {
        (self.first..=self.last).filter_map(|number| self.batch.stored(number))
    }
}
