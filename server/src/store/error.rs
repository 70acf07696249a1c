//! Why an operation of a store failed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

use super::SessionOwner;

/// What kind of failure it is, for the caller's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The store cannot be reached or used now; another attempt may succeed. The operation may have
    /// happened.
    Unavailable,
    /// There is no such session.
    NotFound,
    /// Another process holds the session.
    InUse,
    /// The write does not follow the last one, or an id is taken.
    Conflict,
    /// The lease is no longer valid: the session was opened elsewhere, or deleted. It must be opened
    /// again.
    LeaseLost,
    /// There is no space, or a limit is reached.
    Full,
    /// The store's data cannot be understood. Nothing was changed.
    Corrupt,
}

/// The failure of a store's operation.
#[derive(Clone, Debug)]
pub struct StoreError {
    kind: StoreErrorKind,
    message: String,
    source: Option<Arc<dyn StdError + Send + Sync>>,
    owner: Option<Arc<str>>,
}

impl StoreError {
    /// Creates an error from its kind and a text that names the operation and its object.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
            owner: None,
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Sets the address of the node that has the session, for [`StoreErrorKind::InUse`].
    #[must_use]
    pub fn with_owner(mut self, address: impl Into<String>) -> Self {
        self.owner = Some(address.into().into());
        self
    }

    /// Returns the address of the node that has the session, if it is known.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.owner.as_deref()
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

/// The failures that every store has, in the same words; for implementations of stores.
impl StoreError {
    /// `NotFound`: there is no such session.
    pub fn no_session(session: &SessionId) -> Self {
        let message = format!("there is no session {session}");
        Self::new(StoreErrorKind::NotFound, message)
    }

    /// `InUse`: another user of this instance has a lease.
    pub fn in_use(session: &SessionId) -> Self {
        let message = format!("session {session} is open in this process. Close it first");
        Self::new(StoreErrorKind::InUse, message)
    }

    /// `InUse`: another instance of the store has a lease.
    pub fn in_use_by(session: &SessionId, owner: &SessionOwner) -> Self {
        let seconds = owner.last_seen.as_secs();
        let message = match &owner.address {
            Some(address) => format!(
                "session {session} is open in the node at {address}, which was seen {seconds} s ago. \
                 Ask that node, or close the session there first"
            ),
            None => format!(
                "session {session} is open in a node without an address, which was seen {seconds} s \
                 ago. Close the session there first, or end that node"
            ),
        };
        let error = Self::new(StoreErrorKind::InUse, message);
        match &owner.address {
            Some(address) => error.with_owner(address.as_str()),
            None => error,
        }
    }

    /// `Conflict`: another session has the id.
    pub fn id_taken(session: &SessionId) -> Self {
        let message = format!("there is already a session {session}");
        Self::new(StoreErrorKind::Conflict, message)
    }

    /// `Conflict`: another session has the name.
    pub fn name_taken(name: &str) -> Self {
        let message = format!("there is already a session named {name:?}");
        Self::new(StoreErrorKind::Conflict, message)
    }

    /// `LeaseLost`: the lease is no longer valid.
    pub fn lost_lease(session: &SessionId) -> Self {
        let message = format!(
            "the lease of session {session} is no longer valid: the session was opened elsewhere, or \
             deleted. Load it again"
        );
        Self::new(StoreErrorKind::LeaseLost, message)
    }

    /// `Conflict`: the event `first` does not follow the event `last`.
    pub fn gap(session: &SessionId, last: u64, first: u64) -> Self {
        let message = format!(
            "expected event {} of session {session}, got event {first}",
            last.saturating_add(1)
        );
        Self::new(StoreErrorKind::Conflict, message)
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl StdError for StoreError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_ref().map(|source| &**source as _)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_session_in_use_names_its_owner() {
        let address = Some("http://10.0.0.2:7000".to_owned());
        let owner = SessionOwner::new(address, false, Duration::from_millis(4_200));
        let error = StoreError::in_use_by(&"s".into(), &owner);
        assert_eq!(error.owner(), Some("http://10.0.0.2:7000"));
        let text = error.to_string();
        assert!(text.contains("http://10.0.0.2:7000"), "{text}");
        assert!(text.contains("4 s ago"), "{text}");
        let owner = SessionOwner::new(None, false, Duration::ZERO);
        assert_eq!(StoreError::in_use_by(&"s".into(), &owner).owner(), None);
    }
}
