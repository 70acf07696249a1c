//! Ending the turns of servers that were killed: one of the other servers of the store opens their sessions.
//!
//! A turn that was killed stays open in the log until its session is opened. Clients that wait for its
//! end, and schedules of its handler, need somebody who opens it. Each server asks the store for such
//! sessions from time to time, and opens them one after the other: the lease decides which server has
//! a session, and the others leave it out.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{HandlerError, HandlerResult};

use super::ServerCore;
use super::records::store_unavailable;
use crate::clock::jittered;
use crate::limits::Adoption;
use crate::log_repeated;
use crate::store::{StoreError, StoreErrorKind};

impl ServerCore {
    /// Starts the task that opens sessions of servers that were killed, if it does not run.
    pub(super) fn start_adoption(self: &Arc<Self>) {
        let adoption = self.limits.adoption.clone();
        if adoption.per_second == 0 {
            return;
        }
        let core = Arc::downgrade(self);
        self.start_once(&self.adoption_started, || async move {
            loop {
                tokio::time::sleep(jittered(adoption.interval)).await;
                let Some(core) = core.upgrade() else {
                    return;
                };
                match core.adopt(&adoption).await {
                    Ok(true) => {}
                    // No other server has the store.
                    Ok(false) => return,
                    Err(error) => {
                        log_repeated!(warn, %error, "sessions of ended nodes are not looked for");
                    }
                }
            }
        });
    }

    /// Opens what there is now; `false` if the store is not shared.
    async fn adopt(self: &Arc<Self>, adoption: &Adoption) -> HandlerResult<bool> {
        let pause = Duration::from_secs(1) / adoption.per_second;
        // As many as can be opened in an interval: later ones may be other servers' by then.
        let limit = (adoption.interval.as_millis() / pause.as_millis().max(1)).max(1);
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        while !self.draining.load(Ordering::Acquire) {
            let found = self.store.abandoned(limit).await;
            let Some(found) = found.map_err(|error| store_unavailable(&error))? else {
                return Ok(false);
            };
            for session in &found {
                self.adopt_session(session).await;
                tokio::time::sleep(jittered(pause)).await;
            }
            if found.len() < limit {
                break;
            }
        }
        Ok(true)
    }

    async fn adopt_session(self: &Arc<Self>, id: &SessionId) {
        match self.open(id).await {
            Ok(_) => {
                self.counters.adopted.increment();
                tracing::info!(session = %id, "opened a session whose node has ended");
            }
            // Another server was faster, or it was deleted.
            Err(error) if is_settled(&error) => {}
            // Its turn has ended in the log if the store takes anything; the next client opens it.
            Err(error) => {
                log_repeated!(warn, session = %id, %error, "a session whose node has ended cannot be opened");
            }
        }
    }
}

/// Returns whether nothing is left to do for a session that could not be opened.
fn is_settled(error: &HandlerError) -> bool {
    let source = error.source();
    let refusal = source.and_then(|source| source.downcast_ref::<StoreError>());
    error.code() == ErrorCode::RESOURCE_NOT_FOUND
        || refusal.is_some_and(|error| error.kind() == StoreErrorKind::InUse)
}
