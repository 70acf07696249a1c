//! Who has a session: for stores that several machines share.

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
