//! This instance as a node: it renews its leases, and knows when it could not.
//!
//! Leases belong to nodes, so one small statement renews all of them. The database judges whether a
//! node is valid by its own clock. This side judges more strictly and by the monotonic clock: from
//! `fence` after the *begin* of the latest successful renewal on, its leases are lost, whatever the
//! network does. That begin is before the time that the database took for it, and `fence` is shorter
//! than `takeover`, so nobody takes a session over from an instance that still uses it, as long as
//! both clocks run equally fast. A process that hung finds the same when it goes on. Correctness of
//! what is written does not depend on clocks: every commit compares the token.

use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use acp_server::store::{StoreError, StoreErrorKind};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::types::Type;

use crate::database::Database;
use crate::failure::Failure;

/// The times of renewals.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timing {
    pub(crate) heartbeat: Duration,
    pub(crate) fence: Duration,
    pub(crate) takeover: Duration,
}

impl Timing {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        let Self {
            heartbeat,
            fence,
            takeover,
        } = *self;
        if !heartbeat.is_zero() && heartbeat < fence && fence < takeover {
            return Ok(());
        }
        let message = format!(
            "the times of the session store contradict each other: expected heartbeat < fence < \
             takeover, got {heartbeat:?}, {fence:?} and {takeover:?}"
        );
        Err(StoreError::new(StoreErrorKind::Conflict, message))
    }
}

/// What others learn of this instance.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    address: Option<String>,
    name: Option<String>,
    host: Option<String>,
    pid: i64,
}

impl Identity {
    pub(crate) fn new(address: Option<String>, name: Option<String>) -> Self {
        #[cfg(unix)]
        let host = rustix::system::uname()
            .nodename()
            .to_str()
            .ok()
            .map(str::to_owned);
        #[cfg(not(unix))]
        let host = std::env::var("COMPUTERNAME").ok();
        Self {
            address,
            name,
            host,
            pid: std::process::id().into(),
        }
    }
}

/// This instance in `acp_nodes`.
#[derive(Debug)]
pub(crate) struct Node {
    /// One connection of its own: renewals do not wait for sessions.
    database: Database,
    timing: Timing,
    identity: Identity,
    standing: Mutex<Standing>,
    /// How many times all leases were lost.
    losses: watch::Sender<u64>,
    /// How many of these a caller was notified of.
    reported: AtomicU64,
}

#[derive(Debug)]
struct Standing {
    /// The row; none before it is registered, and after its leases were lost.
    key: Option<i64>,
    /// The row whose leases were lost, which is to be removed.
    lost: Option<i64>,
    /// Whether it was registered before.
    is_known: bool,
    /// The begin of the latest successful renewal.
    renewed: Instant,
    is_closed: bool,
}

impl Node {
    pub(crate) fn new(database: Database, timing: Timing, identity: Identity) -> Self {
        Self {
            database,
            timing,
            identity,
            standing: Mutex::new(Standing {
                key: None,
                lost: None,
                is_known: false,
                renewed: Instant::now(),
                is_closed: false,
            }),
            losses: watch::Sender::new(0),
            reported: AtomicU64::new(0),
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        // Every change is a single assignment.
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the key under which this instance has leases; `None` if it must not use any.
    ///
    /// It looks at the clock itself: a process that hung has run no timer yet.
    pub(crate) fn key(&self) -> Option<i64> {
        let mut standing = self.standing();
        if standing.key.is_some() && standing.renewed.elapsed() >= self.timing.fence {
            self.lose(&mut standing);
        }
        standing.key
    }

    /// As [`key`](Self::key), for an operation that gives out a lease.
    pub(crate) fn key_for_lease(&self) -> Result<i64, StoreError> {
        self.key().ok_or_else(|| {
            let place = &self.database.place;
            let message = match self.standing().is_closed {
                true => format!("session store {place}: it was closed"),
                false => format!(
                    "session store {place}: this node could not renew its leases. Check that the \
                     database can be reached"
                ),
            };
            StoreError::new(StoreErrorKind::Unavailable, message)
        })
    }

    /// Returns the time since the begin of the latest successful renewal.
    pub(crate) fn age(&self) -> Duration {
        self.standing().renewed.elapsed()
    }

    /// Returns how many times all leases were lost.
    pub(crate) fn losses(&self) -> u64 {
        *self.losses.borrow()
    }

    fn lose(&self, standing: &mut Standing) {
        if let Some(key) = standing.key.take() {
            standing.lost = Some(key);
            self.losses.send_modify(|losses| *losses += 1);
        }
    }

    /// Completes when leases were lost since the last time that it completed.
    pub(crate) async fn leases_lost(&self) {
        let before = self.reported.load(Ordering::SeqCst);
        let mut losses = self.losses.subscribe();
        // The sender lives as long as this node.
        if let Ok(losses) = losses.wait_for(|losses| *losses > before).await {
            self.reported.fetch_max(*losses, Ordering::SeqCst);
        }
    }

    /// Renews the leases once, or registers anew if they were lost. Notices when it takes too long.
    pub(crate) async fn renew(&self) -> Result<(), StoreError> {
        let mut renewal = pin!(self.attempt());
        loop {
            let deadline = {
                let standing = self.standing();
                let deadline = standing.renewed + self.timing.fence;
                standing.key.map(|_| deadline)
            };
            let Some(deadline) = deadline else {
                return renewal.await;
            };
            tokio::select! {
                result = &mut renewal => return result,
                () = sleep_until(deadline) => drop(self.key()),
            }
        }
    }

    /// Returns when to renew next, after a renewal with this result.
    pub(crate) fn next(&self, renewed: bool) -> Instant {
        let standing = self.standing();
        let now = Instant::now();
        if renewed {
            return standing.renewed + self.timing.heartbeat;
        }
        let again = now + self.timing.heartbeat / 4;
        match standing.key {
            Some(_) => again.min(standing.renewed + self.timing.fence),
            None => again,
        }
    }

    async fn attempt(&self) -> Result<(), StoreError> {
        let begun = Instant::now();
        if let Some(key) = self.key() {
            let renewed = self.heartbeat(key).await;
            let renewed = renewed.map_err(|failure| failure.into_error(&self.database.place))?;
            let mut standing = self.standing();
            if standing.key != Some(key) {
                // Too late, or closed meanwhile. The next renewal registers.
                return Ok(());
            }
            if renewed {
                standing.renewed = begun;
                return Ok(());
            }
            // The database says that it expired: its clock or this one has jumped, or this machine slept.
            self.lose(&mut standing);
        }
        let begun = Instant::now();
        let (lost, is_first) = {
            let standing = self.standing();
            if standing.is_closed {
                return Ok(());
            }
            (standing.lost, !standing.is_known)
        };
        let key = self.register(lost, is_first).await;
        let key = key.map_err(|failure| failure.into_error(&self.database.place))?;
        let mut standing = self.standing();
        if standing.is_closed {
            // `end` removes it.
            standing.lost = Some(key);
        } else {
            standing.key = Some(key);
            standing.lost = None;
            standing.is_known = true;
            standing.renewed = begun;
        }
        Ok(())
    }

    async fn heartbeat(&self, key: i64) -> Result<bool, Failure> {
        // Not if it has expired: someone may have taken sessions over.
        let rows = self
            .database
            .query(
                "UPDATE @acp_nodes SET heartbeat = clock_timestamp(),
                 expires = clock_timestamp() + $2 * interval '1 millisecond'
             WHERE key = $1 AND expires > clock_timestamp() RETURNING key",
                &[(&key, Type::INT8), (&self.takeover(), Type::INT8)],
            )
            .await;
        Ok(!rows?.is_empty())
    }

    /// Registers this instance under a new key, and removes the row whose leases were lost, and rows of
    /// nodes that ended long ago without saying so.
    ///
    /// A process that is started replaces the node at its address, which was killed: its sessions are free at
    /// once. Should that node live after all, its next renewal fails, and it registers beside this one.
    async fn register(&self, lost: Option<i64>, is_first: bool) -> Result<i64, Failure> {
        let Identity {
            address,
            name,
            host,
            pid,
        } = &self.identity;
        let rows = self
            .database
            .query(
                "WITH gone AS (
                 DELETE FROM @acp_nodes
                 WHERE key = $1 OR expires < clock_timestamp() - interval '1 day'
                     OR ($7 AND address = $2)
             )
             INSERT INTO @acp_nodes (address, name, host, pid, started_at, heartbeat, expires)
             VALUES ($2, $3, $4, $5, clock_timestamp(), clock_timestamp(),
                 clock_timestamp() + $6 * interval '1 millisecond')
             RETURNING key",
                &[
                    (&lost, Type::INT8),
                    (address, Type::TEXT),
                    (name, Type::TEXT),
                    (host, Type::TEXT),
                    (pid, Type::INT8),
                    (&self.takeover(), Type::INT8),
                    (&is_first, Type::BOOL),
                ],
            )
            .await;
        let rows = rows?;
        let row = rows.first();
        let row = row.ok_or_else(|| Failure::Corrupt("no key of a new node".to_owned()))?;
        Ok(row.try_get(0)?)
    }

    fn takeover(&self) -> i64 {
        i64::try_from(self.timing.takeover.as_millis()).unwrap_or(i64::MAX)
    }

    /// Ends the leases of this instance for good.
    pub(crate) async fn end(&self) -> Result<(), StoreError> {
        let key = {
            let mut standing = self.standing();
            standing.is_closed = true;
            standing.lost = standing.key.take().or(standing.lost);
            standing.lost
        };
        let Some(key) = key else {
            return Ok(());
        };
        let ended = self
            .database
            .query(
                "DELETE FROM @acp_nodes WHERE key = $1",
                &[(&key, Type::INT8)],
            )
            .await;
        ended.map_err(|failure| failure.into_error(&self.database.place))?;
        self.standing().lost = None;
        Ok(())
    }
}
