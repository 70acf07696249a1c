//! A model of a database: it answers a number of queries a second, in order, and knows who has a session.

use std::collections::HashMap;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{MemoryStore, StoreError, StoreErrorKind};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, sleep_until, timeout};

/// As the defaults of the store in PostgreSQL.
const HEARTBEAT: Duration = Duration::from_secs(10);
const FENCE: Duration = Duration::from_secs(20);
const TAKEOVER: Duration = Duration::from_secs(30);

/// Connections of a node besides the one for its leases, and how long a query waits for one.
const POOL: usize = 10;
const POOL_WAIT: Duration = Duration::from_secs(5);

pub(super) struct Database {
    pub(super) store: MemoryStore,
    /// The time for one query; none while sessions are prepared.
    pub(super) cost: Mutex<Duration>,
    pub(super) load: Mutex<Load>,
    /// Until when each node's leases are valid.
    nodes: Mutex<Vec<Standing>>,
    owners: Mutex<HashMap<SessionId, (usize, u32)>>,
    /// Sessions in which a turn has begun.
    pub(super) begun: Mutex<Vec<SessionId>>,
    random: Mutex<u64>,
}

/// What the database had to do.
pub(super) struct Load {
    pub(super) began: Instant,
    free_at: Instant,
    /// Queries by second.
    pub(super) queries: Vec<u32>,
    pub(super) longest_wait: Duration,
    /// Nodes whose leases ended because they could not renew them in time.
    pub(super) fenced: u32,
    /// Attempts to open a session that another node was faster with.
    pub(super) late: u32,
}

struct Standing {
    expires: Instant,
    is_dead: bool,
    /// How many times its leases ended.
    losses: u32,
    lost: Arc<Notify>,
    pool: Arc<Semaphore>,
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics")
}

impl Database {
    pub(super) fn new(nodes: usize) -> Self {
        let standing = |_| Standing {
            expires: Instant::now() + TAKEOVER,
            is_dead: false,
            losses: 0,
            lost: Arc::default(),
            pool: Arc::new(Semaphore::new(POOL)),
        };
        Self {
            store: MemoryStore::new(),
            cost: Mutex::default(),
            load: Mutex::new(Load::new()),
            nodes: Mutex::new((0..nodes).map(standing).collect()),
            owners: Mutex::default(),
            begun: Mutex::default(),
            random: Mutex::new(1),
        }
    }

    /// From now on, queries take time and are counted.
    pub(super) fn count(&self, per_second: u32) {
        *lock(&self.cost) = Duration::from_secs(1) / per_second;
        *lock(&self.load) = Load::new();
    }

    /// The database answers nothing for some time.
    pub(super) fn stop(&self, time: Duration) {
        lock(&self.load).free_at = Instant::now() + time;
    }

    pub(super) fn own(&self, session: &SessionId, node: usize) {
        let losses = lock(&self.nodes)[node].losses;
        lock(&self.owners).insert(session.clone(), (node, losses));
    }

    /// The node that has a session and whose leases are valid.
    pub(super) fn owner(&self, session: &SessionId) -> Option<usize> {
        let (node, losses) = *lock(&self.owners).get(session)?;
        let standing = &lock(&self.nodes)[node];
        (standing.losses == losses && standing.expires > Instant::now()).then_some(node)
    }

    /// Whether a node has a session that answers what it is asked.
    pub(super) fn is_served(&self, session: &SessionId) -> bool {
        let owner = self.owner(session);
        owner.is_some_and(|node| !lock(&self.nodes)[node].is_dead)
    }

    /// A node gives a session back, whose turn has ended.
    pub(super) fn free(&self, session: &SessionId, node: usize) {
        if self.owner(session) == Some(node) {
            lock(&self.owners).remove(session);
            lock(&self.begun).retain(|begun| begun != session);
        }
    }

    /// A node gives all sessions back, and asks nothing more.
    pub(super) async fn end(&self, node: usize) {
        self.answer(node).await;
        let standing = &mut lock(&self.nodes)[node];
        standing.losses += 1;
        standing.is_dead = true;
    }

    pub(super) fn kill(&self, node: usize) {
        lock(&self.nodes)[node].is_dead = true;
    }

    /// Returns a number below a bound, the same ones in each run.
    pub(super) fn random(&self, bound: usize) -> usize {
        let mut state = lock(&self.random);
        *state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (*state >> 33) as usize % bound.max(1)
    }

    /// Completes when a node has lost its leases.
    pub(super) async fn leases_lost(&self, node: usize) {
        let lost = lock(&self.nodes)[node].lost.clone();
        lost.notified().await;
    }

    /// Waits for the answer to a query of a node over one of the connections of its pool. A dead node gets none.
    pub(super) async fn query(&self, node: usize) -> Result<(), StoreError> {
        let pool = lock(&self.nodes)[node].pool.clone();
        let Ok(Ok(_connection)) = timeout(POOL_WAIT, pool.acquire()).await else {
            let message = "no free connection";
            return Err(StoreError::new(StoreErrorKind::Unavailable, message));
        };
        self.answer(node).await;
        Ok(())
    }

    /// Waits for the answer to a query over a connection that is free.
    async fn answer(&self, node: usize) {
        let cost = *lock(&self.cost);
        if !cost.is_zero() {
            let done = {
                let (mut load, now) = (lock(&self.load), Instant::now());
                load.free_at = load.free_at.max(now) + cost;
                load.longest_wait = load.longest_wait.max(load.free_at - now);
                let second = (now - load.began).as_secs() as usize;
                if load.queries.len() <= second {
                    load.queries.resize(second + 1, 0);
                }
                load.queries[second] += 1;
                load.free_at
            };
            sleep_until(done).await;
        }
        if lock(&self.nodes)[node].is_dead {
            std::future::pending::<()>().await;
        }
    }

    /// Renews the leases of a node until it dies, as the store in PostgreSQL does.
    pub(super) async fn renew(&self, node: usize, first: Duration) {
        let mut renewed = Instant::now();
        let mut next = renewed + first;
        loop {
            sleep_until(next).await;
            let mut begun = Instant::now();
            let mut answer = pin!(self.answer(node));
            tokio::select! {
                () = &mut answer => {}
                () = sleep_until(renewed + FENCE) => {
                    self.lose(node);
                    answer.await;
                    // It registers anew, without the sessions that it had.
                    begun = Instant::now();
                    self.answer(node).await;
                }
            }
            lock(&self.nodes)[node].expires = Instant::now() + TAKEOVER;
            renewed = begun;
            next = begun + HEARTBEAT;
        }
    }

    fn lose(&self, node: usize) {
        let standing = &mut lock(&self.nodes)[node];
        if standing.is_dead {
            return;
        }
        standing.losses += 1;
        standing.lost.notify_waiters();
        lock(&self.load).fenced += 1;
    }
}

impl Load {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            began: now,
            free_at: now,
            queries: Vec::new(),
            longest_wait: Duration::ZERO,
            fenced: 0,
            late: 0,
        }
    }
}
