//! The session of one call, and the place that it takes among the calls that run.

use std::path::{Path, PathBuf};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::slot::Slot;
use crate::client::Session;
use crate::error::{Error, Result};

/// A session with its place. Dropped, the session is closed where the agent can; the place is free
/// only afterwards, so the limit also bounds what the agent has open.
#[derive(Debug)]
pub(super) struct Place {
    session: Session,
    can_close: bool,
    permit: Option<OwnedSemaphorePermit>,
}

impl Place {
    /// Opens a session, in a task of its own: if nobody waits for it any more when it is there, it
    /// is closed. The agent is started if it does not run.
    pub(super) async fn open(
        slot: &Slot,
        cwd: &Path,
        permit: OwnedSemaphorePermit,
    ) -> Result<Self> {
        let (slot, cwd) = (slot.clone(), cwd.to_owned());
        let (mut caller, opened) = oneshot::channel();
        tokio::spawn(async move {
            let session = open(&slot, cwd, &mut caller).await;
            let place = session.map(|session| Self {
                can_close: session.can_close(),
                session,
                permit: Some(permit),
            });
            // Handed back to be dropped, if nobody waits.
            let _ = caller.send(place);
        });
        opened.await.unwrap_or(Err(Error::TurnLost))
    }

    pub(super) fn session(&self) -> &Session {
        &self.session
    }

    pub(super) async fn close(mut self) {
        if let Some(closing) = self.closing() {
            // A task of its own: it goes on if this future is dropped.
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

impl Drop for Place {
    fn drop(&mut self) {
        // Without a runtime the connection has ended.
        if let Ok(runtime) = Handle::try_current()
            && let Some(closing) = self.closing()
        {
            runtime.spawn(closing);
        }
    }
}

/// Closes a session when its turn has ended. The answer changes nothing.
async fn close(session: Session) {
    session.idle().await;
    if let Err(error) = session.close().await {
        tracing::debug!(%error, "a session that is done could not be closed");
    }
}

/// Opens a session, with a second agent if the first has died meanwhile.
///
/// Starting an agent ends when nobody waits for it. A session that the agent may have opened is
/// awaited even then, or it would stay open.
async fn open(
    slot: &Slot,
    cwd: PathBuf,
    caller: &mut oneshot::Sender<Result<Place>>,
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
