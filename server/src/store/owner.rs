//! Nodes: who has a session, and how the nodes are, for stores that several machines share.

use std::time::Duration;

/// The instance of a store that has the valid lease of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionOwner {
    /// Address at which other nodes reach the owner; `None` if it was given none.
    pub address: Option<String>,
    /// Whether it is the instance that was asked.
    pub is_this_instance: bool,
    /// Time since the owner last renewed its leases, by the clock of the store.
    pub last_seen: Duration,
}

impl SessionOwner {
    /// Creates an owner; for implementations of stores.
    pub fn new(address: Option<String>, is_this_instance: bool, last_seen: Duration) -> Self {
        Self {
            address,
            is_this_instance,
            last_seen,
        }
    }
}

/// Numbers of an instance of a store as one of several nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeStatistics {
    /// Time since this instance last renewed its leases, by its own clock.
    pub renewal_age: Duration,
    /// Sessions that this instance has taken from a node that had stopped renewing its leases.
    pub takeovers: u64,
    /// Times that all leases of this instance have ended, because it could not renew them.
    pub leases_lost: u64,
    /// The nodes, if the store said so in time.
    pub nodes: Option<NodesSeen>,
}

/// The nodes of a store, as the store knows them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodesSeen {
    /// Sessions that the instance that was asked has leased.
    pub sessions: u64,
    /// Nodes whose leases are valid.
    pub alive: u64,
    /// Nodes that have neither ended nor renewed their leases; the store forgets them after a day.
    pub gone: u64,
    /// The longest time since a node that is alive has renewed its leases, by the clock of the store.
    pub oldest_heartbeat: Duration,
}
