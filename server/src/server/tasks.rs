//! Work that is finished once it has begun: opening, closing and deleting sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use acp_sdk::{HandlerError, HandlerResult};

use tokio::runtime::Handle;

use super::ServerCore;
use crate::in_place::{self, Begun};
use crate::panic::catch_panic;

impl ServerCore {
    /// Runs work to its end, even if this future is dropped meanwhile: a request may be dropped at
    /// each of its awaits, and a session must not stay half open or half closed.
    ///
    /// # Errors
    ///
    /// Those of the work; an internal error when it panics, or the runtime ends first.
    pub(crate) async fn finish<T, F>(
        self: &Arc<Self>,
        work: impl FnOnce(Arc<Self>) -> F,
    ) -> HandlerResult<T>
    where
        T: Send + 'static,
        F: Future<Output = HandlerResult<T>> + Send + 'static,
    {
        let work = catch_panic("a task of the server", None, work(self.clone()));
        // Tracked from the start, so that a shutdown does not miss it between here and the task.
        let finished = match in_place::begin(self.tasks.track_future(work)) {
            Begun::Done(finished) => Ok(finished),
            Begun::Waits(task) => task.await,
        };
        match finished {
            Ok(Ok(finished)) => finished,
            Ok(Err(panic)) => {
                let reason = format!("a task of the server panicked: {panic}");
                Err(HandlerError::internal(reason))
            }
            Err(_) => Err(HandlerError::internal("the server shut down")),
        }
    }

    /// Starts the tasks of the server that do not run yet. Outside of a runtime it starts none: the first
    /// connection does.
    pub(super) fn start_tasks(self: &Arc<Self>) {
        self.start_retention();
        self.watch_leases();
        self.start_adoption();
    }

    /// Starts a task of the server, unless it was started or there is no runtime yet. It ends when the server is
    /// closed.
    pub(super) fn start_once<F>(&self, started: &AtomicBool, task: impl FnOnce() -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let Ok(runtime) = Handle::try_current() else {
            return;
        };
        if started.swap(true, Ordering::AcqRel) {
            return;
        }
        let (closed, task) = (self.closed.clone(), task());
        runtime.spawn(async move {
            tokio::select! {
                biased;
                () = closed.cancelled() => {}
                () = task => {}
            }
        });
    }

    /// Refuses to take a lease once the server is closed, for another server may have the session. Work
    /// that passes this is waited for by the shutdown.
    pub(super) fn refuse_once_closed(&self) -> HandlerResult<()> {
        match self.closed.is_cancelled() {
            true => Err(shutting_down()),
            false => Ok(()),
        }
    }

    /// Closes all sessions, those that are being opened too, and waits for all that has begun.
    pub(super) async fn shut_down(self: &Arc<Self>) {
        self.closed.cancel();
        for session in self.sessions.close() {
            let core = self.clone();
            self.tasks.spawn(async move { core.unload(&session).await });
        }
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// The error of what begins behind a shutdown.
pub(super) fn shutting_down() -> HandlerError {
    crate::Error::Ending.into()
}
