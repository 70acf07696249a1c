//! The session and the concurrency permit of one call.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::slot::Slot;
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
    permit: Option<OwnedSemaphorePermit>,
}

impl CallSession {
    /// Opens a session in a separate task, and starts the agent if necessary. If this future is
    /// dropped, the task closes the new session.
    pub(super) async fn open(
        slot: &Slot,
        cwd: &Path,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let (slot, cwd) = (slot.clone(), cwd.to_owned());
        let (mut caller, opened) = oneshot::channel();
        tokio::spawn(async move {
            let session = open(&slot, cwd, &mut caller).await;
            let session = session.map(|session| Self {
                can_close: session.can_close(),
                session,
                permit: Some(permit),
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
        let permit = self.permit.take();
        let session = self.session.clone();
        std::mem::take(&mut self.can_close).then_some(async move {
            close(session).await;
            drop(permit);
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

/// Opens a session, and retries once with a restarted agent if the process has died.
///
/// Starting an agent is aborted when the caller is dropped. A `session/new` in flight is awaited even
/// then, because otherwise the session would stay open.
async fn open(
    slot: &Slot,
    cwd: PathBuf,
    caller: &mut oneshot::Sender<Result<CallSession>>,
) -> Result<Session> {
    let mut may_restart = true;
    loop {
        let (client, number) = tokio::select! {
            biased;
            () = caller.closed() => return Err(Error::TurnLost),
            client = slot.client() => client?,
        };
        match client.new_session(&cwd).await {
            Err(error) if may_restart && is_closed(&error) && slot.replace(number).await => {
                may_restart = false;
            }
            opened => return opened,
        }
    }
}

fn is_closed(error: &Error) -> bool {
    match error {
        Error::AgentExited { .. } | Error::AgentHungUp { .. } => true,
        Error::Sdk(error) => error.is_closed(),
        _ => false,
    }
}
