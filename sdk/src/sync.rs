//! Locks, tasks and timers of a connection.
//!
//! These are std's and tokio's. With `--cfg shuttle` they are those of the shuttle scheduler, which
//! runs a connection under many interleavings: the models in `models/` compile this crate so.

#[cfg(not(shuttle))]
pub(crate) use std::sync::{Mutex, MutexGuard, PoisonError, atomic};
#[cfg(not(shuttle))]
pub(crate) use tokio::{
    sync::Notify,
    task::JoinSet,
    time::{Sleep, sleep, sleep_until},
};

#[cfg(shuttle)]
pub(crate) use self::model::{JoinSet, Notify, Sleep, sleep, sleep_until};
#[cfg(shuttle)]
pub(crate) use shuttle::sync::{Mutex, MutexGuard, PoisonError, atomic};

/// The part of tokio's API that a connection uses, on shuttle's scheduler.
#[cfg(shuttle)]
mod model {
    use std::pin::Pin;
    use std::task::{Context, Poll};
    use std::time::Duration;

    use shuttle::future::{JoinError, JoinHandle, spawn};
    use tokio::sync::futures::Notified;
    use tokio::time::Instant;

    use super::atomic::{AtomicBool, Ordering};

    /// tokio's, with a scheduling point before each operation.
    #[derive(Debug, Default)]
    pub(crate) struct Notify {
        notify: tokio::sync::Notify,
        scheduling_point: AtomicBool,
    }

    impl Notify {
        pub(crate) fn new() -> Self {
            Self::default()
        }

        pub(crate) fn notified(&self) -> Notified<'_> {
            self.scheduling_point.load(Ordering::SeqCst);
            self.notify.notified()
        }

        pub(crate) fn notify_waiters(&self) {
            self.scheduling_point.load(Ordering::SeqCst);
            self.notify.notify_waiters();
        }
    }

    /// Tasks that are aborted when the set is dropped.
    pub(crate) struct JoinSet<T>(Vec<JoinHandle<T>>);

    impl<T: Send + 'static> JoinSet<T> {
        pub(crate) fn new() -> Self {
            Self(Vec::new())
        }

        pub(crate) fn spawn(&mut self, task: impl Future<Output = T> + Send + 'static) {
            self.0.push(spawn(task));
        }

        pub(crate) fn len(&self) -> usize {
            self.0.len()
        }

        pub(crate) fn abort_all(&self) {
            self.0.iter().for_each(JoinHandle::abort);
        }

        /// Returns a task that has ended, or `None` when there is no task.
        pub(crate) fn poll_join_next(
            &mut self,
            cx: &mut Context<'_>,
        ) -> Poll<Option<Result<T, JoinError>>> {
            for at in 0..self.0.len() {
                if let Poll::Ready(ended) = Pin::new(&mut self.0[at]).poll(cx) {
                    self.0.swap_remove(at);
                    return Poll::Ready(Some(ended));
                }
            }
            if self.0.is_empty() {
                Poll::Ready(None)
            } else {
                Poll::Pending
            }
        }
    }

    impl<T> Drop for JoinSet<T> {
        fn drop(&mut self) {
            self.0.iter().for_each(JoinHandle::abort);
        }
    }

    /// A timer that never fires: a model that needs it to go on is reported as a deadlock.
    pub(crate) struct Sleep(Instant);

    impl Sleep {
        pub(crate) fn deadline(&self) -> Instant {
            self.0
        }

        pub(crate) fn reset(mut self: Pin<&mut Self>, deadline: Instant) {
            self.0 = deadline;
        }
    }

    impl Future for Sleep {
        type Output = ();

        fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            Poll::Pending
        }
    }

    pub(crate) fn sleep(duration: Duration) -> Sleep {
        sleep_until(Instant::now() + duration)
    }

    pub(crate) fn sleep_until(deadline: Instant) -> Sleep {
        Sleep(deadline)
    }
}
