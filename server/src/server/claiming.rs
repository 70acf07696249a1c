//! Leasing a session before it is opened, where several servers of one store are asked for it at once.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::SessionId;

use super::records::store_refused;
use super::{Server, ServerCore};
use crate::store::Lease;

/// The time in which a claimed session must be opened; afterwards any server may open it.
const CLAIM_LIMIT: Duration = Duration::from_secs(10);

impl ServerCore {
    async fn claim(self: &Arc<Self>, id: &SessionId) -> HandlerResult<()> {
        let id = id.clone();
        let claimed = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            if core.sessions.find(&id).is_some() {
                return Ok(());
            }
            core.refuse_once_closed()?;
            let acquired = core.store.acquire_unused(&id).await;
            let (_, lease) = acquired.map_err(|error| store_refused(&id, &error))?;
            core.clone().release_claim_later(lease);
            Ok(())
        });
        claimed.await
    }

    /// Releases the lease of a claim. Opening the session has replaced it, and then the store ignores it.
    fn release_claim_later(self: Arc<Self>, lease: Lease) {
        let core = self.clone();
        self.tasks.spawn(async move {
            tokio::select! {
                () = tokio::time::sleep(CLAIM_LIMIT) => {}
                () = core.closed.cancelled() => {}
            }
            let _locked = core.sessions.lock(&lease.session).await;
            if core.sessions.find(&lease.session).is_none() {
                core.release_lease(&lease).await;
            }
        });
    }
}

impl Server {
    /// Leases a session that nobody has, for who is about to open it: from then on, the store names this
    /// one as the owner. The lease ends after 10 s unless the session was opened.
    ///
    /// # Errors
    ///
    /// Those of [`Store::acquire_unused`](crate::store::Store::acquire_unused). The source of an error is
    /// the one of the store: it names the owner.
    #[doc(hidden)]
    pub async fn claim_session(&self, id: &SessionId) -> HandlerResult<()> {
        self.core().claim(id).await
    }
}
