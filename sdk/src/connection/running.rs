//! The handle of a connection that runs as a task.

use tokio::task::{JoinError, JoinSet};

use crate::error::{CloseReason, Error, Result};
use crate::peer::Peer;

/// A connection that runs as a task. Dropping it ends the connection at once; its callers do not
/// keep it open.
#[derive(Debug)]
#[must_use = "dropping it ends the connection at once"]
pub struct RunningConnection<H = Peer> {
    handle: H,
    pub(super) peer: Peer,
    pub(super) task: JoinSet<Result<()>>,
}

impl<H> RunningConnection<H> {
    pub(super) fn new(handle: H, peer: Peer, task: JoinSet<Result<()>>) -> Self {
        Self { handle, peer, task }
    }

    /// Returns the caller of the other side.
    #[must_use]
    pub fn handle(&self) -> &H {
        &self.handle
    }

    /// Returns the untyped caller of the other side.
    #[must_use]
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Closes the connection, see [`Peer::close`]. Returns at once.
    pub fn close(&self) {
        self.peer.close();
    }

    /// Returns whether the connection has ended.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.peer.is_closed()
    }

    /// Waits for the end of the connection.
    ///
    /// # Errors
    ///
    /// [`Error::Closed`] when reading or writing failed, or the peer stopped reading.
    pub async fn closed(&mut self) -> Result<()> {
        joined(self.task.join_next().await)
    }

    /// Closes the connection gracefully and waits for its end: cancels handlers, waits for them
    /// up to `shutdown_timeout`, and writes everything that was sent.
    ///
    /// # Errors
    ///
    /// As [`closed`](Self::closed).
    pub async fn shutdown(mut self) -> Result<()> {
        self.close();
        self.closed().await
    }
}

/// Returns what the task of a connection or a listener returned; its panic goes on in the caller.
pub(crate) fn joined(task: Option<Result<Result<()>, JoinError>>) -> Result<()> {
    match task {
        Some(Ok(result)) => result,
        Some(Err(failed)) if failed.is_panic() => std::panic::resume_unwind(failed.into_panic()),
        // Aborted by the shutdown of the runtime.
        Some(Err(_)) => Err(Error::Closed(CloseReason::Dropped)),
        // It was returned before.
        None => Ok(()),
    }
}
