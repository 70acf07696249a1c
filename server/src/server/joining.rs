//! Joining a client and a session.

use std::sync::Arc;

use acp_sdk::v1::SessionId;
use acp_sdk::{HandlerError, HandlerResult};

use super::opening::{OpeningClient, new_id};
use super::{NextSession, ServerCore};
use crate::Session;
use crate::connection::{Barrier, Client, Replay, Subscription};
use crate::session::{Attached, Environment};

/// Which session a client joins.
#[derive(Debug)]
pub(crate) enum Joining {
    New {
        cwd: String,
        environment: Environment,
        opening: OpeningClient,
    },
    Existing {
        id: SessionId,
        /// The working directory, which is not changed, and the rest; `None` keeps the rest, too.
        place: Option<(String, Environment)>,
        opening: OpeningClient,
    },
    Fork {
        source: SessionId,
        up_to: Option<u64>,
        cwd: Option<String>,
        opening: OpeningClient,
    },
}

/// A client's part in a session.
pub(crate) struct Joined {
    pub(crate) session: Session,
    pub(crate) subscription: Arc<Subscription>,
    /// Holds what follows the replay until the request is answered.
    pub(crate) barrier: Barrier,
    pub(crate) attachment: Attachment,
}

/// Detaches a client whose request to join a session is dropped, is cancelled or fails, unless it
/// joined the session in another way.
pub(crate) struct Attachment(Option<(Arc<Client>, Arc<Subscription>)>);

impl Attachment {
    fn new(client: &Arc<Client>, subscription: &Arc<Subscription>) -> Self {
        subscription.begin_joining();
        Self(Some((client.clone(), subscription.clone())))
    }

    /// The request succeeds. It has ended when the result is dropped: until its answer is in the
    /// output buffer the client knows of no session, and is asked nothing.
    #[must_use = "the client is asked nothing before this is dropped"]
    pub(crate) fn keep(mut self) -> Option<Unanswered> {
        let (_, subscription) = self.0.take()?;
        Some(Unanswered(subscription))
    }

    /// The request is cancelled.
    pub(crate) async fn undo(mut self) {
        if let Some((client, subscription)) = self.0.take() {
            detach(client, subscription).await;
        }
    }
}

/// A request that has joined a session, and is not answered yet.
pub(crate) struct Unanswered(Arc<Subscription>);

impl Drop for Unanswered {
    fn drop(&mut self) {
        self.0.end_joining(true);
    }
}

impl Drop for Attachment {
    fn drop(&mut self) {
        if let Some((client, subscription)) = self.0.take()
            && let Ok(runtime) = tokio::runtime::Handle::try_current()
        {
            runtime.spawn(detach(client, subscription));
        }
    }
}

async fn detach(client: Arc<Client>, subscription: Arc<Subscription>) {
    let core = client.core().clone();
    let detached = core.finish(|core| async move {
        let session = subscription.session();
        // Clients join under the lock, too.
        let _locked = core.sessions.lock(session.id()).await;
        let current = client.subscription(session.id());
        let is_current = current.is_some_and(|current| Arc::ptr_eq(&current, &subscription));
        let stays = subscription.end_joining(false);
        if is_current && stays {
            // What it was not asked because of the request.
            session.offer_left(&client, &subscription);
        } else if is_current {
            client.leave(session).await;
            session.offer_again(client.id());
            core.unload_later(session);
        }
        Ok(())
    });
    // Only a panic is an error here, and nobody waits for the result.
    let _ = detached.await;
}

impl ServerCore {
    /// Opens a session if need be, and attaches a client to it.
    pub(crate) async fn join(
        self: &Arc<Self>,
        client: &Arc<Client>,
        joining: Joining,
        replay: Replay,
    ) -> HandlerResult<Joined> {
        let client = client.clone();
        let joined =
            self.finish(|core| async move { core.open_and_attach(&client, joining, replay).await });
        joined.await
    }

    /// Until the client is attached the session must not leave memory, so its id is locked.
    async fn open_and_attach(
        self: &Arc<Self>,
        client: &Arc<Client>,
        joining: Joining,
        replay: Replay,
    ) -> HandlerResult<Joined> {
        match joining {
            Joining::New {
                cwd,
                environment,
                opening,
            } => {
                let next = self.take_next_session();
                let Some(id) = self.existing(next.as_ref(), &cwd).await? else {
                    let name = match next {
                        Some(NextSession::Named(name)) => Some(name),
                        _ => None,
                    };
                    let id = new_id()?;
                    let _locked = self.sessions.lock(&id).await;
                    let created = self.create_locked(&id, cwd, name, environment, opening);
                    let created = created.await?;
                    return attach(client, created, Replay::Created(0));
                };
                let _locked = self.sessions.lock(&id).await;
                let place = Some((cwd, environment));
                let session = self.open_locked(&id, place, opening).await?;
                attach(client, session, Replay::AfterAnswer)
            }
            Joining::Fork {
                source,
                up_to,
                cwd,
                opening,
            } => {
                let id = new_id()?;
                let _locked = self.sessions.lock(&id).await;
                let (forked, copied) = self.fork(&source, &id, up_to, cwd, opening).await?;
                // The client is sent what its opening has added.
                attach(client, forked, Replay::Created(copied))
            }
            Joining::Existing { id, place, opening } => {
                let _locked = self.sessions.lock(&id).await;
                let session = match client.access().may_write() {
                    true => self.open_locked(&id, place, opening).await?,
                    false => self.opened(&id).await?,
                };
                attach(client, session, replay)
            }
        }
    }
}

/// Attaches a client to an open session, or sets its cursor back if it is attached.
pub(super) fn attach(
    client: &Arc<Client>,
    session: Session,
    replay: Replay,
) -> HandlerResult<Joined> {
    if let Some(subscription) = client.subscription(session.id()) {
        let attachment = Attachment::new(client, &subscription);
        let barrier = subscription.restart(replay);
        return Ok(Joined {
            session,
            attachment,
            subscription,
            barrier,
        });
    }
    let subscription = Subscription::new(&session, client, client.encoding());
    // Before others see the client, or they would ask it something.
    let attachment = Attachment::new(client, &subscription);
    let barrier = subscription.restart(replay);
    {
        let limit = session.core().limits.clients_per_session;
        let mut state = session.state();
        // Each kind has a limit of its own: readers must not keep those out that use the session.
        if state.attached(client.access().may_write()) >= limit {
            let id = session.id();
            let reason = format!("session {id} has {limit} clients, which is the limit");
            return Err(crate::Error::Full(reason).into());
        }
        let (client, subscription) = (client.clone(), subscription.clone());
        state.clients.push(Attached {
            client,
            subscription,
        });
    }
    if !client.enter(&subscription) {
        client.remove_from(&session);
        session.core().unload_later(&session);
        return Err(HandlerError::cancelled());
    }
    subscription.follow();
    if let Some(gate) = client.gate() {
        gate.attached(&subscription);
    }
    Ok(Joined {
        session,
        attachment,
        subscription,
        barrier,
    })
}
