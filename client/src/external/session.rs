//! The session and the concurrency permit of one call.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::sleep;

use super::ExternalAgent;
use super::lifetime::Use;
use super::retry::{Pauses, is_closed};
use crate::client::Session;
use crate::error::{Error, Result};

/// A session with the concurrency permit of its call.
///
/// Dropping it closes the session if the agent supports that. The permit is released afterwards, so
/// the limit also bounds the agent's open sessions.
#[derive(Debug)]
pub(super) struct CallSession {
    session: Session,
    can_close: bool,
    /// Dropped when the session is closed.
    held: Option<(OwnedSemaphorePermit, Use)>,
}

impl CallSession {
    /// Opens a session in a separate task, and starts the agent if necessary. If this future is
    /// dropped, the task closes the new session.
    pub(super) async fn open(
        agent: &ExternalAgent,
        cwd: &Path,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let (agent, cwd) = (agent.clone(), cwd.to_owned());
        let held = (permit, agent.begin_use());
        let (mut caller, opened) = oneshot::channel();
        tokio::spawn(async move {
            let session = open(&agent, cwd, &mut caller).await;
            let session = session.map(|session| Self {
                can_close: session.can_close(),
                session,
                held: Some(held),
            });
            // If the caller was dropped, the value returns and is dropped here.
            let _ = caller.send(session);
        });
        opened.await.unwrap_or(Err(Error::TurnLost))
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) async fn close(mut self) {
        if let Some(closing) = self.closing() {
            // A separate task continues if this future is dropped.
            let _ = tokio::spawn(closing).await;
        }
    }

    fn closing(&mut self) -> Option<impl Future<Output = ()> + Send + use<>> {
        let held = self.held.take();
        let session = self.session.clone();
        std::mem::take(&mut self.can_close).then_some(async move {
            close(session).await;
            drop(held);
        })
    }
}

impl Drop for CallSession {
    fn drop(&mut self) {
        // Without a runtime the connection has ended.
        if let Ok(runtime) = Handle::try_current()
            && let Some(closing) = self.closing()
        {
            runtime.spawn(closing);
        }
    }
}

/// Closes a session after its turn. An error is logged only.
async fn close(session: Session) {
    session.idle().await;
    if let Err(error) = session.close().await {
        tracing::debug!(%error, "cannot close the session of an ended call");
    }
}

/// Opens a session, and restarts an agent whose process has died once. Other failures are repeated
/// as often as [`ExternalAgent::retries`] says.
///
/// Starting an agent is aborted when the caller is dropped. A `session/new` in flight is awaited even
/// then, because otherwise the session would stay open.
async fn open(
    agent: &ExternalAgent,
    cwd: PathBuf,
    caller: &mut oneshot::Sender<Result<CallSession>>,
) -> Result<Session> {
    let (slot, limit) = (&agent.slot, agent.config.restarts);
    let mut may_restart = true;
    let mut pauses = Pauses::new(agent.config.retries);
    loop {
        let client = tokio::select! {
            biased;
            () = caller.closed() => return Err(Error::TurnLost),
            client = slot.client(limit) => client,
        };
        let error = match client {
            Err(error) => error,
            Ok((client, number)) => match client.new_session(&cwd).await {
                Ok(session) => return Ok(session),
                Err(error) if is_closed(&error) && slot.replace(number).await && may_restart => {
                    may_restart = false;
                    continue;
                }
                Err(error) => error,
            },
        };
        let Some(pause) = pauses.after(&error) else {
            return Err(error);
        };
        tracing::debug!(%error, ?pause, "an agent is tried again");
        tokio::select! {
            biased;
            () = caller.closed() => return Err(Error::TurnLost),
            () = sleep(pause) => {}
        }
    }
}
