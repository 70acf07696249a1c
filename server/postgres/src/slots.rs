//! The sessions that this instance is working on: one operation at a time for each, and what is not
//! known about the one before.
//!
//! An operation that has begun runs to its end in a task, also when its caller is gone. The next one
//! for the session waits for it. So nothing that was abandoned happens after something later.
//!
//! # Doubt
//!
//! A commit whose connection broke may have happened, may be running in the database, or may still be
//! on its way there in some buffer. Nothing may be said about the session before that is settled,
//! because a commit that has failed must not happen later. Each commit compares the number `attempt`
//! of the row, and settling raises it:
//!
//! - A statement that is running has locked the row. Raising waits for its end, and then sees its
//!   effect.
//! - A statement that arrives later finds a higher number and changes nothing.
//!
//! Raising may fail in the same way, so it sets a number that this instance never sent before, and
//! only raises: one that arrives late is lower than the one that succeeded. A row with another token
//! needs nothing, because the old token makes the statements void. Until one attempt to settle has
//! succeeded, `find` and all that writes fail with `Unavailable`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;
use tokio::sync::OwnedMutexGuard;

/// All sessions with an operation in progress or with numbers to remember.
#[derive(Debug, Default)]
pub(crate) struct Slots(Mutex<HashMap<SessionId, Arc<tokio::sync::Mutex<Attempts>>>>);

/// The attempts to write under one lease.
#[derive(Debug, Default)]
pub(crate) struct Attempts {
    /// The token of the lease.
    token: i64,
    /// The number in the row.
    current: i64,
    /// The highest number that was sent.
    sent: i64,
    is_in_doubt: bool,
}

impl Attempts {
    /// Returns the number that a commit with this token must find.
    pub(crate) fn current(&self, token: i64) -> i64 {
        match self.token == token {
            true => self.current,
            false => 0,
        }
    }

    /// A commit with this token may have happened, or may happen later.
    pub(crate) fn doubt(&mut self, token: i64) {
        if self.token != token {
            *self = Self {
                token,
                ..Self::default()
            };
        }
        self.is_in_doubt = true;
    }

    /// The commit in doubt has happened, or never will.
    pub(crate) fn certain(&mut self) {
        self.is_in_doubt = false;
    }

    /// Returns the token in doubt and a number that makes its statements void.
    pub(crate) fn next(&mut self) -> Option<(i64, i64)> {
        if !self.is_in_doubt {
            return None;
        }
        self.sent += 1;
        Some((self.token, self.sent))
    }

    /// The row has this number, or another token.
    pub(crate) fn settle(&mut self, number: i64) {
        self.current = number;
        self.is_in_doubt = false;
    }

    /// Returns whether there is nothing to remember.
    fn is_idle(&self) -> bool {
        !self.is_in_doubt && self.sent == 0
    }

    /// The session has another lease, or is gone: what was in doubt is void.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// The session has no lease any more. What is in doubt stays so: it may be of an earlier node of
    /// this instance, whose lease was not released.
    pub(crate) fn release(&mut self) {
        if !self.is_in_doubt {
            self.clear();
        }
    }
}

/// The right to work on a session, until dropped.
#[derive(Debug)]
pub(crate) struct Claimed {
    // Dropped first: the place looks whether anybody has the slot.
    pub(crate) attempts: OwnedMutexGuard<Attempts>,
    #[expect(dead_code, reason = "it acts when it is dropped")]
    place: Waiting,
}

/// Removes the slot of a session when it is dropped, unless somebody uses it.
#[derive(Debug)]
struct Waiting {
    slots: Arc<Slots>,
    session: SessionId,
}

impl Slots {
    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<tokio::sync::Mutex<Attempts>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the operation in progress on a session.
    pub(crate) async fn claim(self: &Arc<Self>, session: &SessionId) -> Claimed {
        let slot = self.table().entry(session.clone()).or_default().clone();
        self.wait(session, slot).await
    }

    /// As [`claim`](Self::claim); `None` if there is nothing to wait for and nothing in doubt.
    pub(crate) async fn claim_busy(self: &Arc<Self>, session: &SessionId) -> Option<Claimed> {
        let slot = self.table().get(session).cloned()?;
        Some(self.wait(session, slot).await)
    }

    async fn wait(
        self: &Arc<Self>,
        session: &SessionId,
        slot: Arc<tokio::sync::Mutex<Attempts>>,
    ) -> Claimed {
        let waiting = Waiting {
            slots: self.clone(),
            session: session.clone(),
        };
        let attempts = slot.lock_owned().await;
        Claimed {
            attempts,
            place: waiting,
        }
    }

    /// Returns the sessions in doubt that nobody works on.
    pub(crate) fn in_doubt(&self) -> Vec<SessionId> {
        let table = self.table();
        let in_doubt = table.iter().filter(|(_, slot)| {
            let attempts = slot.try_lock();
            attempts.is_ok_and(|attempts| attempts.is_in_doubt)
        });
        in_doubt.map(|(session, _)| session.clone()).collect()
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut table = self.slots.table();
        let Some(slot) = table.get(&self.session) else {
            return;
        };
        // Under the lock of the table nobody can begin to wait.
        let is_free = Arc::strong_count(slot) == 1;
        if is_free && slot.try_lock().is_ok_and(|attempts| attempts.is_idle()) {
            table.remove(&self.session);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_slot_goes_when_it_is_idle() {
        let slots = Arc::new(Slots::default());
        let session = SessionId::from("s");
        let first = slots.claim(&session).await;
        let mut second = Box::pin(slots.claim(&session));
        let waits = std::future::poll_fn(|context| {
            std::task::Poll::Ready(second.as_mut().poll(context).is_pending())
        });
        assert!(waits.await, "two have one session");
        drop(first);
        let mut second = second.await;
        assert_eq!(slots.table().len(), 1);
        second.attempts.doubt(7);
        drop(second);
        assert_eq!(slots.in_doubt(), std::slice::from_ref(&session));

        let mut third = slots.claim_busy(&session).await.unwrap();
        assert_eq!(third.attempts.next(), Some((7, 1)));
        // The first attempt to settle failed.
        assert_eq!(third.attempts.next(), Some((7, 2)));
        third.attempts.settle(2);
        assert_eq!(third.attempts.next(), None);
        assert_eq!(
            (third.attempts.current(7), third.attempts.current(8)),
            (2, 0)
        );
        drop(third);
        assert_eq!(slots.table().len(), 1, "the number is forgotten");
        let mut last = slots.claim(&session).await;
        last.attempts.clear();
        drop(last);
        assert!(slots.claim_busy(&session).await.is_none());
    }
}
