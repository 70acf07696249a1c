//! What a server does when its store could not renew its leases: another node may have the sessions soon.

use std::sync::Arc;

use tokio::sync::watch;

use super::{Server, ServerCore};

impl ServerCore {
    /// Starts the task that ends all open sessions when the store has lost their leases, if it does not
    /// run.
    pub(super) fn watch_leases(self: &Arc<Self>) {
        let (store, core) = (self.store.clone(), Arc::downgrade(self));
        self.start_once(&self.leases_watched, || async move {
            loop {
                store.leases_lost().await;
                match core.upgrade() {
                    Some(core) => core.end_unleased(),
                    None => return,
                }
            }
        });
    }

    /// Cancels all turns and closes all sessions. Their ends are not in the log: the store refuses them.
    fn end_unleased(self: &Arc<Self>) {
        let open = self.sessions.all();
        tracing::error!(
            sessions = open.len(),
            "the leases of all open sessions are lost: their turns are cancelled"
        );
        for session in open {
            let core = self.clone();
            self.tasks.spawn(async move { core.unload(&session).await });
        }
        self.leases_lost.send_modify(|times| *times += 1);
    }
}

impl Server {
    /// Returns a watch that changes each time the leases of all open sessions are lost. Clients that
    /// were attached to them must connect again.
    #[doc(hidden)]
    #[must_use]
    pub fn leases_lost(&self) -> watch::Receiver<u64> {
        self.core().leases_lost.subscribe()
    }
}
