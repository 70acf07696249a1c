//! Leaving, closing, unloading and deleting sessions.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::HandlerResult;
use acp_sdk::v1::SessionId;

use super::ServerCore;
use super::records::{not_found, store_refused, store_unavailable};
use crate::Session;
use crate::connection::{Client, store_failed};
use crate::handler::HandlerState;
use crate::limits::OnDisconnect;
use crate::log_repeated;
use crate::panic::catch_panic;
use crate::store::{Commit, Lease, SessionRecord, StoreErrorKind};

/// Time for clients to be sent the last events of a session that is closed.
const DELIVERY_TIMEOUT: Duration = Duration::from_secs(1);

impl ServerCore {
    /// Ends a client's part in a session; the last client that may change the session closes it.
    pub(crate) async fn leave(
        self: &Arc<Self>,
        client: &Arc<Client>,
        id: &SessionId,
    ) -> HandlerResult<()> {
        let (client, id) = (client.clone(), id.clone());
        let left = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            let Some(subscription) = client.subscription(&id) else {
                client.forget_suspended(&id);
                core.sessions.forget_client(&id, client.id());
                return core.is_known(&id).await;
            };
            let session = subscription.session();
            session.cancel_prompts_of(Some(client.id()));
            let has_other = session.state().attached(true) > 1;
            if has_other {
                client.leave(session).await;
                session.offer_again(client.id());
            } else {
                // Also those that would outlive it.
                session.cancel();
                core.deactivate(session).await;
            }
            Ok(())
        });
        left.await
    }

    /// Ends the program's part in a session.
    pub(crate) async fn close(self: &Arc<Self>, id: &SessionId) -> HandlerResult<()> {
        let id = id.clone();
        let closed = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            let Some(session) = core.sessions.find(&id) else {
                core.is_known(&id).await?;
                return core.drop_prompts(&id).await;
            };
            session.cancel_prompts_of(None);
            if session.state().attached(true) == 0 {
                session.cancel();
                core.deactivate(&session).await;
            }
            Ok(())
        });
        closed.await
    }

    /// Cancels the prompts that wait in a session since its process has ended, unless it is open.
    pub(super) async fn cancel_unopened(self: &Arc<Self>, id: &SessionId) -> HandlerResult<()> {
        let id = id.clone();
        let cancelled = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            match core.sessions.find(&id) {
                None => core.drop_prompts(&id).await,
                Some(session) => {
                    session.cancel_turn();
                    Ok(session.cancellations_stored().await?)
                }
            }
        });
        cancelled.await
    }

    /// Removes the prompts that wait in a session which is not open. The id must be locked.
    async fn drop_prompts(&self, id: &SessionId) -> HandlerResult<()> {
        let prompts = self.store.prompts(id).await;
        let prompts = prompts.map_err(|error| store_unavailable(&error))?;
        if prompts.is_empty() {
            return Ok(());
        }
        self.refuse_once_closed()?;
        let acquired = self.store.acquire(id).await;
        let (_, lease) = acquired.map_err(|error| store_refused(id, &error))?;
        let mut commit = Commit {
            sync: true,
            ..Commit::default()
        };
        commit.prompts.remove = prompts.iter().map(|prompt| prompt.number).collect();
        let committed = self.store.commit(&lease, commit).await;
        self.release_lease(&lease).await;
        committed.map_err(|error| store_failed(id, &error))
    }

    /// # Errors
    ///
    /// Resource not found, when there is no such session.
    async fn is_known(&self, id: &SessionId) -> HandlerResult<()> {
        let found = self.find(id).await?;
        found.map(drop).ok_or_else(|| not_found(id))
    }

    /// Ends what runs in a session, and frees its memory. The id must be locked.
    pub(super) async fn deactivate(&self, session: &Session) {
        session.log().close_within(self.limits.close_timeout);
        session.stop().await;
        self.sessions.remove(session.id());
        // What it still appended is committed, or lost with an error that its turn has had.
        let _ = session.log().flush(session.log().epoch()).await;
        self.deliver(session).await;
        for attached in session.clients() {
            attached.client.leave(session).await;
        }
        let state = session.state().handler_state.take();
        if let Some(state) = state {
            self.close_handler(session, state).await;
        }
        self.release(session).await;
        session.set_closed();
        tracing::debug!(session = %session.id(), "closed a session");
    }

    /// Waits until the clients have been sent the end of a session's work, but not for those that
    /// do not read.
    async fn deliver(&self, session: &Session) {
        let last = session.last_appended();
        let delivered = async {
            for attached in session.clients() {
                // Events that cannot be read are lost for this client.
                let _ = attached.subscription.sent_through(last).await;
            }
        };
        let _ = tokio::time::timeout(DELIVERY_TIMEOUT, delivered).await;
    }

    /// Deletes a session; `false` if there is none.
    pub(crate) async fn delete(self: &Arc<Self>, id: &SessionId) -> HandlerResult<bool> {
        let id = id.clone();
        let deleted = self.finish(|core| async move {
            let _locked = core.sessions.lock(&id).await;
            if let Some(session) = core.sessions.find(&id) {
                core.deactivate(&session).await;
            }
            // One that cannot be read can still be deleted.
            let record = core.find(&id).await.ok().flatten();
            let deleted = core.store.delete(&id).await;
            let deleted = deleted.map_err(|error| store_refused(&id, &error))?;
            match record {
                Some(record) if deleted => core.deleted(&record).await,
                None if deleted => core.notify_deleted(&id),
                _ => {}
            }
            Ok(deleted)
        });
        deleted.await
    }

    /// The store has deleted a session.
    pub(super) async fn deleted(&self, session: &SessionRecord) {
        self.notify_deleted(&session.id);
        // Another agent may have to be started for it.
        let limit = self.limits.open_timeout;
        let deleting = async { tokio::time::timeout(limit, self.handler.deleted(session)).await };
        let id = &session.id;
        if let Ok(Err(_)) = catch_panic("the handler's deleted", Some(id), deleting).await {
            log_repeated!(
                warn, session = %id, ?limit,
                "the handler did not delete what belongs to a session in time"
            );
        }
    }

    /// Closes a session if it is open.
    pub(crate) async fn unload(self: &Arc<Self>, session: &Session) {
        let session = session.clone();
        let unloaded = self.finish(|core| async move {
            let _locked = core.sessions.lock(session.id()).await;
            // Another one of the same id may be open meanwhile.
            if core.sessions.find(session.id()).as_ref() == Some(&session) {
                core.deactivate(&session).await;
            }
            Ok(())
        });
        // Only a panic is an error here, and nobody waits for the result.
        let _ = unloaded.await;
    }

    /// Closes a session whose log has ended, so that it can be opened again.
    pub(crate) fn close_ended(self: &Arc<Self>, id: &SessionId) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (core, id) = (self.clone(), id.clone());
        let closed = async move {
            // It may be about to be entered.
            drop(core.sessions.lock(&id).await);
            let session = core.sessions.find(&id);
            // It may have been closed and opened again meanwhile.
            if let Some(session) = session.filter(|session| session.log().ended().is_some()) {
                core.unload(&session).await;
            }
        };
        self.tasks.spawn_on(closed, &runtime);
    }

    /// Closes a session after the idle timeout, unless it is used meanwhile.
    pub(crate) fn unload_later(self: &Arc<Self>, session: &Session) {
        let timeout = self.limits.idle_timeout;
        if timeout.is_zero() || self.closed.is_cancelled() || !is_unused(session) {
            return;
        }
        let (core, of) = (self.clone(), session.clone());
        let timer = tokio::spawn(async move {
            loop {
                let last = of.last_appended();
                tokio::select! {
                    () = tokio::time::sleep(timeout) => {}
                    () = of.closed() => return,
                    () = core.closed.cancelled() => return,
                }
                // Whoever uses it now starts another timer afterwards.
                if !is_unused(&of) || core.unload_idle(&of, last).await {
                    return;
                }
            }
        });
        let before = session.state().idle_timer.replace(timer.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }

    /// Closes a session that nobody uses, if it has had no event since `last` and loses nothing;
    /// `false` if it stays.
    async fn unload_idle(self: &Arc<Self>, session: &Session, last: u64) -> bool {
        let session = session.clone();
        let unloaded = self.finish(|core| async move {
            let _locked = core.sessions.lock(session.id()).await;
            let asks = !session.open_questions().is_empty();
            let stays = !is_unused(&session) || session.last_appended() != last || asks;
            if stays || !core.handler.may_unload(&session) {
                return Ok(false);
            }
            core.deactivate(&session).await;
            Ok(true)
        });
        // After a panic it is not tried again.
        unloaded.await.unwrap_or(true)
    }

    /// A client's connection has ended.
    pub(crate) fn disconnected(self: &Arc<Self>, client: &Arc<Client>, session: &Session) {
        session
            .state()
            .clients
            .retain(|old| old.client.id() != client.id());
        session.offer_again(client.id());
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let policy = session
            .policies()
            .on_disconnect
            .unwrap_or(client.on_disconnect);
        let (core, session, client) = (self.clone(), session.clone(), client.id());
        runtime.spawn(async move {
            if let OnDisconnect::Cancel { after } = policy {
                tokio::select! {
                    () = tokio::time::sleep(after) => {}
                    () = core.closed.cancelled() => {}
                }
                let is_alone = session.state().attached(true) == 0;
                if is_alone {
                    session.cancel_prompts_of(Some(client));
                }
            }
            core.unload_later(&session);
        });
    }

    pub(super) async fn close_handler(&self, session: &Session, state: HandlerState) {
        // A handler that hangs is dropped, and one that panics keeps nothing from being closed.
        let closing = async {
            let closing = self.handler.close(state, session);
            tokio::time::timeout(self.limits.close_timeout, closing).await
        };
        let id = session.id();
        if let Ok(Err(_)) = catch_panic("the handler's close", Some(id), closing).await {
            let limit = self.limits.close_timeout;
            log_repeated!(warn, session = %id, ?limit, "the handler did not close a session in time");
        }
    }

    pub(super) async fn release(&self, session: &Session) {
        let ended = session.log().ended();
        if ended.is_some_and(|error| error.kind() == StoreErrorKind::LeaseLost) {
            return;
        }
        if let Some(lease) = session.log().lease() {
            self.release_lease(lease).await;
        }
    }

    /// Gives a lease back. One that cannot be given back ends with the process.
    pub(super) async fn release_lease(&self, lease: &Lease) {
        if let Err(error) = self.store.release(lease).await {
            let session = lease.session.as_str();
            log_repeated!(
                warn, session, %error,
                "a session stays with this process: its lease could not be released"
            );
        }
    }
}

/// Returns whether no client that may change an open session, and no turn uses it.
fn is_unused(session: &Session) -> bool {
    let state = session.state();
    state.attached(true) == 0 && !state.queue.has_runner() && !state.queue.is_closed()
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{RequestPermissionRequest, StopReason, ToolCallUpdate};

    use super::*;
    use crate::session::{Ask, Phase};
    use crate::{Handler, Server, Turn};

    struct Least;

    impl Handler for Least {
        type State = ();

        async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
            Ok(StopReason::EndTurn)
        }
    }

    /// An agent that works in the background waits for the answer.
    #[tokio::test(start_paused = true)]
    async fn a_session_with_an_open_question_stays_in_memory() {
        let server = Server::new(Least);
        let session = server.create_session("/w").await.unwrap();
        let call = ToolCallUpdate::new("call");
        let request = RequestPermissionRequest::new(session.id(), call, vec![]);
        let asked = session.append_outside(|appender| {
            session.write_question(appender, Ask::Permission(request), None)
        });
        let (withdrawn, _reply) = asked.await.unwrap();
        let timeout = server.core().limits.idle_timeout;
        tokio::time::sleep(5 * timeout).await;
        assert_eq!(session.phase(), Phase::Idle);
        drop(withdrawn);
        tokio::time::sleep(3 * timeout).await;
        assert_eq!(session.phase(), Phase::Closed);
    }
}
