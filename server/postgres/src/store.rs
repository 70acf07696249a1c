//! The store: which operation waits for which, and who ends it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::internal::log_repeated;
use acp_server::store::{
    Commit, EventPage, Lease, ListQuery, NodeStatistics, SessionOwner, SessionRecord, Store,
    StoreError, StoreErrorKind, StoreEvent, StoreFuture, StoreUsage, StoredPrompt,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_postgres::types::Type;

use crate::commit::Holder;
use crate::database::Database;
use crate::ending::{self, Ending};
use crate::failure::Failure;
use crate::node::{Identity, Node};
use crate::nodes::{self, NodeInfo};
use crate::slots::{Claimed, Slots};
use crate::{PostgresOptions, commit, lease, read, rows};

/// Time limit for the database to list the nodes for statistics.
const STATISTICS_LIMIT: Duration = Duration::from_secs(2);

/// Sessions in a PostgreSQL database, shared by any number of nodes.
///
/// One value is one node, whatever the number of its users: acquiring a session a second time
/// succeeds and invalidates the first lease. Its leases end when they are released, when it is
/// [closed](Self::close), or when it could not renew them for some time; see the
/// [guarantees](crate#guarantees).
///
/// Dropping it ends its leases in the background, in the runtime in which it was opened.
pub struct PostgresStore {
    inner: Arc<Inner>,
    /// Has the background task end.
    end: Option<oneshot::Sender<Ending>>,
}

/// What operations use, which may outlive the store by a moment.
struct Inner {
    database: Database,
    node: Node,
    slots: Arc<Slots>,
    max_record_bytes: usize,
    /// Sessions that were taken from nodes that had stopped renewing their leases.
    takeovers: AtomicU64,
}

impl PostgresStore {
    /// Opens a store with the default options, as [`PostgresOptions::open`].
    ///
    /// # Errors
    ///
    /// As [`PostgresOptions::open`].
    pub async fn open(url: &str) -> Result<Self, StoreError> {
        PostgresOptions::new().open(url).await
    }

    pub(crate) async fn start(
        options: &PostgresOptions,
        database: Database,
        control: Database,
        identity: Identity,
    ) -> Result<Self, StoreError> {
        let inner = Arc::new(Inner {
            database,
            node: Node::new(control, options.timing, identity),
            slots: Arc::default(),
            max_record_bytes: options.max_record_bytes,
            takeovers: AtomicU64::new(0),
        });
        inner.node.renew().await?;
        let (end, ended) = oneshot::channel();
        tokio::spawn(inner.clone().run(ended));
        Ok(Self {
            inner,
            end: Some(end),
        })
    }

    /// Ends the leases of this instance. Every operation that needs one fails from then on.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached. The leases then end by themselves, after
    /// [`takeover`](PostgresOptions::takeover).
    pub async fn close(&self) -> Result<(), StoreError> {
        self.inner.node.end().await
    }

    /// Returns all nodes that have not ended, the oldest first, with those that may have been killed.
    ///
    /// # Errors
    ///
    /// `Unavailable` when the database cannot be reached.
    pub async fn nodes(&self) -> Result<Vec<NodeInfo>, StoreError> {
        let nodes = nodes::list(&self.inner.database, self.inner.node.key()).await;
        nodes.map_err(|failure| self.inner.error(failure))
    }

    /// Returns the time since the begin of the latest successful renewal of the leases. It is at most
    /// a little more than [`heartbeat`](PostgresOptions::heartbeat) while all is well.
    #[must_use]
    pub fn heartbeat_age(&self) -> Duration {
        self.inner.node.age()
    }

    /// Returns the number of statements that were sent for sessions. Those of heartbeats do not count.
    #[must_use]
    pub fn statements(&self) -> u64 {
        self.inner.database.statements()
    }

    /// Does work on a session in a task once the work before it is done.
    async fn work<T: Send + 'static, F>(
        &self,
        session: &SessionId,
        work: impl FnOnce(Arc<Inner>, Claimed) -> F + Send,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        // Claimed before it is a task: tasks need not begin in the order in which they are spawned.
        let claimed = self.inner.slots.claim(session).await;
        let done = tokio::spawn(work(self.inner.clone(), claimed)).await;
        done.unwrap_or_else(|error| {
            let message = format!("the work on session {session} ended early: {error}");
            Err(StoreError::new(StoreErrorKind::Unavailable, message))
        })
    }

    async fn acquire_session(
        &self,
        session: &SessionId,
        unused: bool,
    ) -> Result<(SessionRecord, Lease), StoreError> {
        let id = session.clone();
        self.work(session, async move |inner, mut claimed| {
            inner.settle(&id, &mut claimed).await?;
            let acquired = inner.acquire(&id, unused).await?;
            claimed.attempts.clear();
            Ok(acquired)
        })
        .await
    }
}

impl Inner {
    fn error(&self, failure: Failure) -> StoreError {
        failure.into_error(&self.database.place)
    }

    /// Refuses a lease that was given out while all leases were lost.
    fn check_lease(&self, node: i64) -> Result<(), StoreError> {
        match self.node.key_for_lease()? == node {
            true => Ok(()),
            false => {
                let message = "the leases of this node were lost meanwhile. Try again";
                Err(StoreError::new(StoreErrorKind::Unavailable, message))
            }
        }
    }

    async fn acquire(
        &self,
        session: &SessionId,
        unused: bool,
    ) -> Result<(SessionRecord, Lease), StoreError> {
        ending::settled(&self.database.tables()).await;
        let node = self.node.key_for_lease()?;
        let acquired = lease::acquire(&self.database, session, node, unused).await;
        let acquired = acquired.map_err(|failure| self.error(failure))?;
        if acquired.is_takeover {
            self.takeovers.fetch_add(1, Ordering::Relaxed);
        }
        self.check_lease(node)?;
        Ok((acquired.record, acquired.lease))
    }

    async fn delete(&self, session: &SessionId) -> Result<bool, StoreError> {
        ending::settled(&self.database.tables()).await;
        let node = self.node.key_for_lease()?;
        let deleted = lease::delete(&self.database, session, node).await;
        deleted.map_err(|failure| self.error(failure))
    }

    async fn settle(&self, session: &SessionId, claimed: &mut Claimed) -> Result<(), StoreError> {
        let Some(id) = rows::id(session) else {
            return Ok(());
        };
        let settled = commit::settle(&self.database, id, &mut claimed.attempts).await;
        settled.map_err(|failure| self.error(failure))
    }

    /// Renews the leases until the store is dropped, and settles what is in doubt.
    async fn run(self: Arc<Self>, mut ended: oneshot::Receiver<Ending>) {
        let mut next = self.node.next(true);
        // In a task of its own: it may wait for locks, and renewals must not.
        let mut settling: Option<JoinHandle<()>> = None;
        let ending = loop {
            tokio::select! {
                ending = &mut ended => break ending,
                () = sleep_until(next) => {}
            }
            let renewed = tokio::select! {
                ending = &mut ended => break ending,
                renewed = self.node.renew() => renewed,
            };
            if let Err(error) = &renewed {
                let seconds = self.node.age().as_secs();
                log_repeated!(warn, %error, seconds, "leases could not be renewed");
            } else if settling.as_ref().is_none_or(JoinHandle::is_finished) {
                settling = Some(tokio::spawn(self.clone().settle_all()));
            }
            next = self.node.next(renewed.is_ok()).max(Instant::now());
        };
        if let Err(error) = self.node.end().await {
            log_repeated!(warn, %error, "leases end later: the store could not end them");
        }
        drop(ending);
    }

    /// Settles the sessions whose callers have not asked again.
    async fn settle_all(self: Arc<Self>) {
        for session in self.slots.in_doubt() {
            if let Some(mut claimed) = self.slots.claim_busy(&session).await {
                // The next caller, or the next round, does it again.
                let _ = self.settle(&session, &mut claimed).await;
            }
        }
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            // Fails if the runtime has ended: then the leases end after `takeover`.
            let _ = end.send(Ending::new(self.inner.database.tables()));
        }
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("PostgresStore");
        let shown = shown.field("database", &self.inner.database.place);
        shown
            .field("node", &self.inner.node.key())
            .finish_non_exhaustive()
    }
}

impl Store for PostgresStore {
    fn create<'a>(&'a self, record: &'a SessionRecord) -> StoreFuture<'a, Lease> {
        Box::pin(async move {
            let record = record.clone();
            let id = record.id.clone();
            self.work(&id, async move |inner, mut claimed| {
                record.check_bytes(inner.max_record_bytes)?;
                let node = inner.node.key_for_lease()?;
                let created = lease::create(&inner.database, &record, node).await;
                let lease = created.map_err(|failure| inner.error(failure))?;
                claimed.attempts.clear();
                inner.check_lease(node)?;
                Ok(lease)
            })
            .await
        })
    }

    fn acquire<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(self.acquire_session(session, false))
    }

    fn acquire_unused<'a>(
        &'a self,
        session: &'a SessionId,
    ) -> StoreFuture<'a, (SessionRecord, Lease)> {
        Box::pin(self.acquire_session(session, true))
    }

    fn release<'a>(&'a self, lease: &'a Lease) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let lease = lease.clone();
            let id = lease.session.clone();
            self.work(&id, async move |inner, mut claimed| {
                // Without a valid node there is no valid lease.
                let Some(node) = inner.node.key() else {
                    return Ok(());
                };
                let released = lease::release(&inner.database, &lease, node).await;
                released.map_err(|failure| inner.error(failure))?;
                claimed.attempts.release();
                Ok(())
            })
            .await
        })
    }

    fn commit<'a>(&'a self, lease: &'a Lease, commit: Commit) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            let lease = lease.clone();
            let id = lease.session.clone();
            self.work(&id, async move |inner, mut claimed| {
                let holder = Holder::new(&lease, inner.node.key())?;
                inner.settle(&lease.session, &mut claimed).await?;
                let written = commit::commit(
                    &inner.database,
                    &lease,
                    holder,
                    &mut claimed.attempts,
                    &commit,
                    inner.max_record_bytes,
                );
                written.await.map_err(|failure| inner.error(failure))
            })
            .await
        })
    }

    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        Box::pin(async move {
            if let Some(mut claimed) = self.inner.slots.claim_busy(session).await {
                self.inner.settle(session, &mut claimed).await?;
            }
            let found = read::find(&self.inner.database, session).await;
            found.map_err(|failure| self.inner.error(failure))
        })
    }

    fn list<'a>(&'a self, query: &'a ListQuery) -> StoreFuture<'a, Vec<SessionRecord>> {
        Box::pin(async move {
            let listed = read::list(&self.inner.database, query).await;
            listed.map_err(|failure| self.inner.error(failure))
        })
    }

    fn read<'a>(
        &'a self,
        session: &'a SessionId,
        after: u64,
        max_bytes: usize,
    ) -> StoreFuture<'a, EventPage> {
        Box::pin(async move {
            let page = read::read(&self.inner.database, session, after, max_bytes).await;
            page.map_err(|failure| self.inner.error(failure))
        })
    }

    fn fork<'a>(
        &'a self,
        source: &'a SessionId,
        up_to: Option<u64>,
        target: &'a SessionRecord,
    ) -> StoreFuture<'a, Lease> {
        Box::pin(async move {
            let (source, target) = (source.clone(), target.clone());
            let id = target.id.clone();
            self.work(&id, async move |inner, mut claimed| {
                target.check_bytes(inner.max_record_bytes)?;
                let node = inner.node.key_for_lease()?;
                let forked = lease::fork(&inner.database, &source, up_to, &target, node).await;
                let lease = forked.map_err(|failure| inner.error(failure))?;
                claimed.attempts.clear();
                inner.check_lease(node)?;
                Ok(lease)
            })
            .await
        })
    }

    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        Box::pin(async move {
            let id = session.clone();
            self.work(session, async move |inner, mut claimed| {
                let deleted = inner.delete(&id).await?;
                claimed.attempts.clear();
                Ok(deleted)
            })
            .await
        })
    }

    fn derived<'a>(&'a self, sessions: &'a [SessionId]) -> StoreFuture<'a, Vec<Option<String>>> {
        Box::pin(async move {
            let derived = read::derived(&self.inner.database, sessions).await;
            derived.map_err(|failure| self.inner.error(failure))
        })
    }

    fn keep_derived<'a>(&'a self, mut derived: Vec<(SessionId, String)>) -> StoreFuture<'a, ()> {
        Box::pin(async move {
            // A statement cannot write a row twice, and PostgreSQL has no text with NUL.
            derived.retain(|(id, text)| rows::id(id).is_some() && !text.contains('\0'));
            derived.reverse();
            derived.sort_by(|(a, _), (b, _)| a.as_str().cmp(b.as_str()));
            derived.dedup_by(|(a, _), (b, _)| a == b);
            let ids: Vec<&str> = derived.iter().map(|(id, _)| id.as_str()).collect();
            let texts: Vec<&str> = derived.iter().map(|(_, text)| text.as_str()).collect();
            let kept = self
                .inner
                .database
                .query(
                    "INSERT INTO @acp_derived (session, text)
                 SELECT s.key, given.text
                 FROM unnest($1, $2) AS given (id, text) JOIN @acp_sessions s ON s.id = given.id
                 ON CONFLICT (session) DO UPDATE SET text = excluded.text",
                    &[(&ids, Type::TEXT_ARRAY), (&texts, Type::TEXT_ARRAY)],
                )
                .await;
            kept.map(drop).map_err(|failure| self.inner.error(failure))
        })
    }

    fn owner<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionOwner>> {
        Box::pin(async move {
            let key = self.inner.node.key();
            let owner = read::owner(&self.inner.database, session, key).await;
            owner.map_err(|failure| self.inner.error(failure))
        })
    }

    fn prompts<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Vec<StoredPrompt>> {
        Box::pin(async move {
            let prompts = read::prompts(&self.inner.database, session).await;
            prompts.map_err(|failure| self.inner.error(failure))
        })
    }

    fn abandoned(&self, limit: usize) -> StoreFuture<'_, Option<Vec<SessionId>>> {
        Box::pin(async move {
            let found = read::abandoned(&self.inner.database, limit).await;
            found.map(Some).map_err(|failure| self.inner.error(failure))
        })
    }

    fn leases_lost(&self) -> StoreEvent<'_> {
        Box::pin(self.inner.node.leases_lost())
    }

    fn node_statistics(&self) -> StoreFuture<'_, Option<NodeStatistics>> {
        Box::pin(async move {
            let nodes = timeout(STATISTICS_LIMIT, self.nodes()).await;
            let mut statistics = NodeStatistics::default();
            statistics.renewal_age = self.heartbeat_age();
            statistics.takeovers = self.inner.takeovers.load(Ordering::Relaxed);
            statistics.leases_lost = self.inner.node.losses();
            // What this node knows itself is worth most while the database does not answer.
            statistics.nodes = nodes
                .ok()
                .and_then(Result::ok)
                .map(|nodes| nodes::seen(&nodes));
            Ok(Some(statistics))
        })
    }

    fn usage(&self) -> StoreFuture<'_, StoreUsage> {
        Box::pin(async move {
            let usage = read::usage(&self.inner.database).await;
            usage.map_err(|failure| self.inner.error(failure))
        })
    }
}
