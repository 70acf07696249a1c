//! Reads of whole sessions: beside the runtime, a few at a time, and with a share for each token.
//!
//! Rendering events takes the time of a processor. On the threads of the runtime it would delay every
//! other request, so it is done by threads for work that blocks, in pieces. Streams of events that are far behind
//! take the same turns.

use std::ops::Deref;
use std::sync::Arc;
use std::thread;

use acp_server::store::{Page, Pages, Store, StoreError, StoreErrorKind};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::failure::Failure;
use crate::access::{Share, Shares};
use crate::caller::Caller;

/// The limits of long reads.
pub(super) struct LongReads {
    limit: usize,
    places: Arc<Shares>,
    turns: Turns,
}

/// Who reads takes turns: about half of the processors stay free for everything else.
#[derive(Clone)]
pub(super) struct Turns(Arc<Semaphore>);

/// The place of a read, until it is dropped.
pub(super) struct LongRead {
    pub(super) turns: Turns,
    _place: Share,
}

impl LongReads {
    pub(super) fn new(limit: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            limit,
            places: Shares::new(limit),
            turns: Turns(Arc::new(Semaphore::new((processors / 2).max(1)))),
        }
    }

    /// Begins a read whose response is written while it goes on.
    ///
    /// # Errors
    ///
    /// 503, when there is no place for the caller.
    pub(super) fn begin(&self, caller: &Caller) -> Result<LongRead, Failure> {
        let place = self.places.take(caller.holder, 1).ok_or_else(|| {
            let limit = self.limit;
            Failure::overloaded("too_many_reads").message(format!(
                "as many sessions are read as the limit of {limit}, or this token's share, permits; try again later"
            ))
        })?;
        Ok(LongRead {
            turns: self.turns.clone(),
            _place: place,
        })
    }

    pub(super) fn turns(&self) -> &Turns {
        &self.turns
    }
}

impl Turns {
    /// Waits for a turn, in the order of the calls.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        // Never closed, so this never fails.
        self.0.clone().acquire_owned().await.ok()
    }

    /// Reads the next events; `None` at the end.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn next<S: Deref<Target: Store>>(
        &self,
        pages: &mut Pages<S>,
    ) -> Result<Option<Chunk>, StoreError> {
        let turn = self.take().await;
        let pages = pages.next_read().await?;
        Ok((!pages.is_empty()).then_some(Chunk { pages, _turn: turn }))
    }
}

/// Events that were read at a time. It is the reader's turn until they are dropped.
pub(super) struct Chunk {
    pages: Vec<Page>,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Chunk {
    /// Works on the events on a thread for work that blocks.
    ///
    /// # Errors
    ///
    /// When the work panics, or the runtime has ended.
    pub(super) async fn run<T: Send + 'static>(
        self,
        work: impl FnOnce(&[Page]) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let done = tokio::task::spawn_blocking(move || work(&self.pages)).await;
        done.map_err(|error| {
            let message = format!("the events could not be rendered: {error}");
            StoreError::new(StoreErrorKind::Unavailable, message)
        })
    }
}

#[cfg(test)]
mod tests {
    use acp_server::event::Batch;
    use acp_server::store::{Commit, MemoryStore, SessionRecord};

    use super::*;

    #[tokio::test]
    async fn events_are_worked_on_beside_the_runtime_and_one_reader_after_the_other() {
        let store = MemoryStore::new();
        let record = SessionRecord::new("s", "/");
        let lease = store.create(&record).await.unwrap();
        let mut batch = Batch::new(1);
        batch.push(r#"{"event":"turn_started","turn":1}"#);
        let mut commit = Commit::default();
        commit.events = Some(Arc::new(batch));
        store.commit(&lease, commit).await.unwrap();

        let turns = Turns(Arc::new(Semaphore::new(1)));
        let pages = || Pages::new(&store, &record.id, 0, 1);
        let (mut first, mut second) = (pages(), pages());
        let chunk = turns.next(&mut first).await.unwrap().unwrap();
        let mut other = std::pin::pin!(turns.next(&mut second));
        assert!(futures_util::poll!(other.as_mut()).is_pending());
        let runtime = thread::current().id();
        let work = |pages: &[Page]| {
            let events = pages.iter().flat_map(Page::events).count();
            (events, thread::current().id())
        };
        let (events, worked) = chunk.run(work).await.unwrap();
        assert_eq!(events, 1);
        assert_ne!(worked, runtime);
        let chunk = other.await.unwrap().unwrap();
        let failed = chunk.run(|_| -> () { panic!("injected") }).await;
        assert!(failed.is_err());
        // A panic gives its turn back, too.
        assert!(turns.next(&mut first).await.unwrap().is_none());
    }
}
