//! Going on with the work of servers that have ended: one of the servers of the store opens their sessions.
//!
//! A turn that was killed stays open in the log until its session is opened. Clients that wait for its
//! end, and schedules of its handler, need somebody who opens it. So do prompts that were accepted and
//! wait. Each server asks the store for such sessions from time to time, and opens them one after the
//! other: the lease decides which server has a session, and the others leave it out.
//!
//! When many of a thousand servers end, all others find the same sessions. Each takes a few at a time, and
//! asks who has a session right before it opens it, which costs a fraction of an attempt that comes too late.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use acp_sdk::v1::{ErrorCode, SessionId};
use acp_sdk::{HandlerError, HandlerResult};

use tokio::time::Instant;

use super::ServerCore;
use super::records::store_unavailable;
use crate::clock::jittered;
use crate::limits::Adoption;
use crate::log_repeated;
use crate::store::{StoreError, StoreErrorKind};

/// The most sessions that are remembered because they could not be opened.
const MOST_FAILED: usize = 1024;

/// The longest time until such a session is tried again.
const LONGEST_WAIT: Duration = Duration::from_secs(600);

/// Sessions that could not be opened: until when each is left alone, and for how long the next time.
#[derive(Default)]
struct Failed(HashMap<SessionId, (Instant, Duration)>);

impl Failed {
    fn is_due(&self, session: &SessionId) -> bool {
        let failed = self.0.get(session);
        failed.is_none_or(|(until, _)| *until <= Instant::now())
    }

    fn note(&mut self, session: &SessionId, is_open: bool, interval: Duration) {
        if is_open {
            self.0.remove(session);
            return;
        }
        if self.0.len() >= MOST_FAILED {
            self.0.clear();
        }
        let wait = self.0.get(session).map_or(interval, |(_, wait)| *wait);
        let next = (wait * 2).min(LONGEST_WAIT);
        let failed = (Instant::now() + wait, next);
        self.0.insert(session.clone(), failed);
    }
}

impl ServerCore {
    /// Starts the task that opens sessions of servers that have ended, if it does not run.
    pub(super) fn start_adoption(self: &Arc<Self>) {
        let adoption = self.limits.adoption.clone();
        if adoption.per_second == 0 {
            return;
        }
        let core = Arc::downgrade(self);
        self.start_once(&self.adoption_started, || async move {
            let mut failed = Failed::default();
            loop {
                tokio::time::sleep(jittered(adoption.interval)).await;
                let Some(core) = core.upgrade() else {
                    return;
                };
                match core.adopt(&adoption, &mut failed).await {
                    Ok(true) => {}
                    // The store ends with this process.
                    Ok(false) => return,
                    Err(error) => {
                        log_repeated!(warn, %error, "sessions of ended nodes are not looked for");
                    }
                }
            }
        });
    }

    /// Opens what there is now; `false` if the store ends with this process.
    async fn adopt(
        self: &Arc<Self>,
        adoption: &Adoption,
        failed: &mut Failed,
    ) -> HandlerResult<bool> {
        let pause = Duration::from_secs(1) / adoption.per_second;
        // As many as can be opened in a second: later ones are other servers' by then.
        let limit = usize::try_from(adoption.per_second).unwrap_or(usize::MAX);
        while !self.draining.load(Ordering::Acquire) {
            let found = self.store.abandoned(limit).await;
            let Some(found) = found.map_err(|error| store_unavailable(&error))? else {
                return Ok(false);
            };
            for session in &found {
                if failed.is_due(session) {
                    let is_open = self.adopt_session(session).await;
                    failed.note(session, is_open, adoption.interval);
                }
                tokio::time::sleep(jittered(pause)).await;
            }
            if found.len() < limit {
                break;
            }
        }
        Ok(true)
    }

    /// Returns whether nothing is left to do.
    async fn adopt_session(self: &Arc<Self>, id: &SessionId) -> bool {
        // A store that cannot be read is reported by the attempt to open.
        if let Ok(Some(_)) = self.store.owner(id).await {
            return true;
        }
        match self.open(id).await {
            Ok(_) => {
                self.counters.adopted.increment();
                tracing::info!(session = %id, "opened a session whose node has ended");
            }
            // Another server was faster, or it was deleted.
            Err(error) if is_settled(&error) => {}
            // Its turn has ended in the log if the store takes anything; prompts wait on.
            Err(error) => {
                log_repeated!(warn, session = %id, %error, "a session whose node has ended cannot be opened");
                return false;
            }
        }
        true
    }
}

/// Returns whether nothing is left to do for a session that could not be opened.
fn is_settled(error: &HandlerError) -> bool {
    let source = error.source();
    let refusal = source.and_then(|source| source.downcast_ref::<StoreError>());
    error.code() == ErrorCode::RESOURCE_NOT_FOUND
        || refusal.is_some_and(|error| error.kind() == StoreErrorKind::InUse)
}
