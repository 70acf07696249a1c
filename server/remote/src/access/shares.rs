//! The one rule by which connections, streams, tickets and bytes are shared.
//!
//! A limit is one for all. The master token may take all of it; any other token or address half of
//! it, and all others together three quarters. So none of them keeps the master out.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::token::Hash;

/// Who takes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Holder {
    /// Who may do everything.
    Master,
    /// Any other token, wherever it is used.
    Token(Hash),
    /// Who has no valid token, by address. `None`: the address is unknown.
    Address(Option<IpAddr>),
    /// Who comes from this machine, such as a proxy with many clients: all that the master leaves.
    Loopback,
}

/// A limit, and what is taken of it.
#[derive(Debug)]
pub(crate) struct Shares {
    limit: usize,
    /// What only the master takes.
    reserve: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    by_master: usize,
    by_others: usize,
    by_holder: HashMap<Holder, usize>,
}

/// What a holder has taken, until it is dropped.
#[derive(Debug)]
pub(crate) struct Share {
    shares: Arc<Shares>,
    holder: Holder,
    amount: usize,
}

impl Shares {
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Self::with_reserve(limit, limit / 4)
    }

    /// Leaves nothing for a master.
    pub(crate) fn without_reserve(limit: usize) -> Arc<Self> {
        Self::with_reserve(limit, 0)
    }

    fn with_reserve(limit: usize, reserve: usize) -> Arc<Self> {
        Arc::new(Self {
            limit,
            reserve,
            taken: Mutex::default(),
        })
    }

    /// Takes an amount; `None` if the limit or the holder's share does not permit it.
    pub(crate) fn take(self: &Arc<Self>, holder: Holder, amount: usize) -> Option<Share> {
        let mut taken = self.taken();
        let of_all = (taken.by_master + taken.by_others).checked_add(amount)?;
        if of_all > self.limit {
            return None;
        }
        if holder == Holder::Master {
            taken.by_master += amount;
        } else {
            let own = taken.by_holder.get(&holder).copied().unwrap_or(0) + amount;
            let others = taken.by_others + amount;
            let exceeds_half = holder != Holder::Loopback && own > self.limit.div_ceil(2);
            if exceeds_half || others > self.limit - self.reserve {
                return None;
            }
            taken.by_others = others;
            taken.by_holder.insert(holder, own);
        }
        drop(taken);
        Some(Share {
            shares: self.clone(),
            holder,
            amount,
        })
    }

    #[cfg(test)]
    pub(crate) fn left(&self) -> usize {
        let taken = self.taken();
        self.limit - taken.by_master - taken.by_others
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        // Numbers are complete whenever a thread panics.
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Share {
    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Adds another share of the same holder.
    pub(crate) fn merge(&mut self, mut other: Self) {
        debug_assert!(Arc::ptr_eq(&self.shares, &other.shares) && self.holder == other.holder);
        self.amount += std::mem::take(&mut other.amount);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut taken = self.shares.taken();
        if self.holder == Holder::Master {
            taken.by_master -= self.amount;
            return;
        }
        taken.by_others -= self.amount;
        if let Some(own) = taken.by_holder.get_mut(&self.holder) {
            *own -= self.amount;
            if *own == 0 {
                taken.by_holder.remove(&self.holder);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(name: &str) -> Holder {
        Holder::Token(Hash::of(name))
    }

    #[test]
    fn a_token_has_half_and_the_master_what_is_left() {
        let shares = Shares::new(8);
        let first = shares.take(token("a"), 4).unwrap();
        assert!(shares.take(token("a"), 1).is_none());
        let second = shares.take(token("b"), 2).unwrap();
        assert!(shares.take(token("c"), 1).is_none(), "a quarter is left");
        let master = shares.take(Holder::Master, 2).unwrap();
        assert!(shares.take(Holder::Master, 1).is_none());
        drop((first, second, master));
        assert_eq!(shares.left(), 8);
        assert!(shares.taken().by_holder.is_empty());
        let whole = shares.take(Holder::Master, 8).unwrap();
        assert!(shares.take(token("a"), 1).is_none());
        drop(whole);
    }

    #[test]
    fn the_least_limit_is_for_anybody() {
        let shares = Shares::new(1);
        drop(shares.take(token("a"), 1).unwrap());
        drop(shares.take(Holder::Master, 1).unwrap());
        assert!(shares.take(Holder::Master, 2).is_none());
        assert!(Shares::new(0).take(Holder::Master, 1).is_none());
    }

    #[test]
    fn shares_of_one_holder_can_be_joined() {
        let shares = Shares::new(8);
        let mut share = shares.take(token("a"), 1).unwrap();
        share.merge(shares.take(token("a"), 2).unwrap());
        assert_eq!(shares.left(), 5);
        drop(share);
        assert_eq!(shares.left(), 8);
    }
}
