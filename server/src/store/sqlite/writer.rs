//! The thread that writes. Whatever waits is written in one transaction (group commit), synced if
//! it must be, and acknowledged after that.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Handle;
use tokio::sync::oneshot;

use super::Durability;
use super::failure::Failure;
use super::log::Log;
use super::queue::{Queue, Taken};
use super::vacuum;
use super::write::Tables;
use crate::log_repeated;
use crate::store::{StoreError, StoreErrorKind};

/// The most pieces of work in a transaction.
const MAX_GROUP: usize = 256;

/// How long a sync waits for further commits, at most.
const GATHER: Duration = Duration::from_millis(1);

/// How long nothing is written before the file is made smaller, and between the steps of it.
const IDLE: Duration = Duration::from_millis(20);

/// How long a commit may stay unsynced.
const SYNC_INTERVAL: Duration = Duration::from_secs(1);

/// A piece of work and the caller who waits for it.
pub(super) trait Job<C>: Send {
    /// Does the work and keeps the result.
    ///
    /// An error means that the transaction must be rolled back; the work may be repeated. A refusal
    /// is a result.
    fn run(&mut self, context: &C) -> Result<(), Failure>;

    /// Returns the result to the caller, or the error of the transaction.
    fn finish(self: Box<Self>, error: Option<StoreError>);

    /// Returns whether the work must be on the disk when it is acknowledged.
    fn sync(&self) -> bool;

    /// Returns the runtime of the caller, if it has one.
    fn runtime(&self) -> Option<&Handle>;
}

pub(super) type BoxedJob<C> = Box<dyn Job<C>>;

struct Work<F, T> {
    work: F,
    sync: bool,
    runtime: Option<Handle>,
    result: Option<Result<T, StoreError>>,
    reply: oneshot::Sender<Result<T, StoreError>>,
}

impl<C, F, T> Job<C> for Work<F, T>
where
    F: FnMut(&C) -> Result<T, Failure> + Send,
    T: Send,
{
    fn run(&mut self, context: &C) -> Result<(), Failure> {
        self.result = Some(match (self.work)(context) {
            Ok(value) => Ok(value),
            Err(Failure::Refused(error)) => Err(error),
            Err(failure) => return Err(failure),
        });
        Ok(())
    }

    fn finish(self: Box<Self>, error: Option<StoreError>) {
        let result = match error {
            Some(error) => Some(Err(error)),
            None => self.result,
        };
        if let Some(result) = result {
            // The caller may have dropped its future.
            let _ = self.reply.send(result);
        }
    }

    fn sync(&self) -> bool {
        self.sync
    }

    fn runtime(&self) -> Option<&Handle> {
        self.runtime.as_ref()
    }
}

/// Queues a piece of work and waits for its result.
///
/// Dropped before it is queued, it has no effect; after that it is done completely.
pub(super) async fn call<C: 'static, T: Send + 'static>(
    queue: &Queue<BoxedJob<C>>,
    sync: bool,
    work: impl FnMut(&C) -> Result<T, Failure> + Send + 'static,
) -> Result<T, StoreError> {
    let (reply, result) = oneshot::channel();
    let job = Work {
        work,
        sync,
        runtime: Handle::try_current().ok(),
        result: None,
        reply,
    };
    let ended = || StoreError::new(StoreErrorKind::Unavailable, "the session store was closed");
    if !queue.push(Box::new(job)).await {
        return Err(ended());
    }
    result.await.unwrap_or_else(|_| Err(ended()))
}

pub(super) struct Writer {
    pub(super) path: PathBuf,
    /// Closed before the connection, which removes the file.
    pub(super) log: Log,
    pub(super) tables: Tables,
    pub(super) queue: Arc<Queue<BoxedJob<Tables>>>,
    pub(super) durability: Durability,
    /// When the oldest commit that may not be on the disk was made.
    pub(super) unsynced: Option<Instant>,
}

/// Why a transaction was not committed.
enum Stopped {
    /// It could not begin.
    Begin(Failure),
    /// A piece of work or the commit failed.
    Inside(Failure),
}

impl Writer {
    /// Works until the queue is closed and empty.
    pub(super) fn run(mut self) {
        // Also when the thread panics: no caller waits for ever.
        let _abandon = Abandon(self.queue.clone());
        let mut latest = 0;
        loop {
            let sync = self
                .unsynced
                .map(|since| SYNC_INTERVAL.saturating_sub(since.elapsed()));
            let vacuum = self.tables.has_freed.get().then_some(IDLE);
            let due = sync.into_iter().chain(vacuum).min();
            match self.queue.take(MAX_GROUP, due) {
                Taken::Items(mut jobs) => {
                    self.gather(&mut jobs, latest);
                    latest = jobs.len();
                    self.group(jobs);
                }
                Taken::Idle if due == sync => drop(self.sync()),
                Taken::Idle => self.vacuum(),
                Taken::Closed => break,
            }
        }
        if self.unsynced.is_some() {
            drop(self.sync());
        }
    }

    /// Waits for as many commits as the latest group had, if a sync is for several sessions. One that
    /// commits alone waits for nobody.
    fn gather(&self, jobs: &mut Vec<BoxedJob<Tables>>, latest: usize) {
        let missing = latest.saturating_sub(jobs.len());
        if missing == 0 || latest < 2 || !jobs.iter().any(|job| self.must_sync(job)) {
            return;
        }
        self.queue.gather(missing, GATHER);
        let room = MAX_GROUP - jobs.len();
        if let Taken::Items(more) = self.queue.take(room, Some(Duration::ZERO)) {
            jobs.extend(more);
        }
    }

    fn must_sync(&self, job: &BoxedJob<Tables>) -> bool {
        self.durability == Durability::EveryCommit || job.sync()
    }

    /// Does all work in one transaction. If that fails, does each piece in one of its own, so that
    /// one that cannot be done fails alone.
    fn group(&mut self, mut jobs: Vec<BoxedJob<Tables>>) {
        let stopped = match self.transaction(&mut jobs) {
            Ok(()) => return self.acknowledge(jobs),
            Err(stopped) => stopped,
        };
        match stopped {
            Stopped::Inside(_) if jobs.len() > 1 => {
                let mut jobs = jobs.into_iter();
                while let Some(job) = jobs.next() {
                    let mut single = vec![job];
                    match self.transaction(&mut single) {
                        Ok(()) => self.acknowledge(single),
                        Err(Stopped::Inside(failure)) => {
                            finish(single, &failure.into_error(&self.path));
                        }
                        // The others would wait as long for the same reason.
                        Err(Stopped::Begin(failure)) => {
                            single.extend(jobs.by_ref());
                            finish(single, &failure.into_error(&self.path));
                        }
                    }
                }
            }
            Stopped::Begin(failure) | Stopped::Inside(failure) => {
                finish(jobs, &failure.into_error(&self.path));
            }
        }
    }

    fn transaction(&self, jobs: &mut [BoxedJob<Tables>]) -> Result<(), Stopped> {
        self.tables.begin().map_err(Stopped::Begin)?;
        let done = jobs.iter_mut().try_for_each(|job| job.run(&self.tables));
        let committed = done.and_then(|()| self.tables.commit_transaction());
        committed.map_err(|failure| {
            self.tables.roll_back();
            Stopped::Inside(failure)
        })
    }

    /// Returns the results of work that is committed, after a sync if one is due.
    fn acknowledge(&mut self, jobs: Vec<BoxedJob<Tables>>) {
        let since = *self.unsynced.get_or_insert_with(Instant::now);
        let is_due = since.elapsed() >= SYNC_INTERVAL || jobs.iter().any(|job| self.must_sync(job));
        let synced = if is_due { self.sync() } else { Ok(()) };
        let answers = jobs.into_iter().map(|job| {
            // The others were promised no more than the page cache.
            let error = synced.clone().err().filter(|_| self.must_sync(&job));
            (job, error)
        });
        answer(answers.collect());
    }

    /// Syncs what was committed. If that fails, the next attempt is a second later.
    fn sync(&mut self) -> Result<(), StoreError> {
        let synced = self.log.sync(&self.tables.connection, &self.path);
        self.unsynced = synced.is_err().then(Instant::now);
        if let Err(error) = &synced {
            log_repeated!(warn, %error, "a loss of power now would lose the latest events");
        }
        synced
    }

    fn vacuum(&self) {
        // After a failure the next deletion tries it again.
        let more = vacuum::step(&self.tables.connection).unwrap_or_else(|failure| {
            let error = failure.into_error(&self.path);
            log_repeated!(warn, %error, "the store keeps the space of what was deleted");
            false
        });
        self.tables.has_freed.set(more);
    }
}

/// Closes a queue when its thread ends.
pub(super) struct Abandon<T>(pub(super) Arc<Queue<T>>);

impl<T> Drop for Abandon<T> {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

/// Results for callers, who get them when this is dropped, or dropped with a runtime.
struct Answers(Vec<(BoxedJob<Tables>, Option<StoreError>)>);

impl Drop for Answers {
    fn drop(&mut self) {
        for (job, error) in self.0.drain(..) {
            job.finish(error);
        }
    }
}

/// Returns results to callers. Those of one runtime get them from a task there: to wake one of them
/// from here is a system call, and interrupts this thread or the work on the answer before.
fn answer(mut answers: Vec<(BoxedJob<Tables>, Option<StoreError>)>) {
    while let Some((first, _)) = answers.first() {
        let runtime = first.runtime().cloned();
        let id = runtime.as_ref().map(Handle::id);
        let (same, others) = answers
            .into_iter()
            .partition(|(job, _)| job.runtime().map(Handle::id) == id);
        answers = others;
        let same = Answers(same);
        if let Some(runtime) = runtime
            && same.0.len() > 1
        {
            runtime.spawn(async move { drop(same) });
        }
    }
}

fn finish<C>(jobs: Vec<BoxedJob<C>>, error: &StoreError) {
    for job in jobs {
        job.finish(Some(error.clone()));
    }
}

#[cfg(test)]
mod tests;
