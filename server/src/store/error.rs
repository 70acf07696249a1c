//! Why an operation of a store failed.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use acp_sdk::v1::SessionId;

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
}

impl StoreError {
    /// Creates an error from its kind and a text that names the operation and its object.
    pub fn new(kind: StoreErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Sets the cause.
    #[must_use]
    pub fn with_source(mut self, source: impl StdError + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// Returns the kind.
    #[must_use]
    pub fn kind(&self) -> StoreErrorKind {
        self.kind
    }
}

/// The failures that every store has, in the same words.
impl StoreError {
    pub(super) fn no_session(session: &SessionId) -> Self {
        let message = format!("there is no session {session}");
        Self::new(StoreErrorKind::NotFound, message)
    }

    /// Another user of this store has a lease.
    pub(super) fn in_use(session: &SessionId) -> Self {
        let message = format!("session {session} is open in this process. Close it first");
        Self::new(StoreErrorKind::InUse, message)
    }

    pub(super) fn id_taken(session: &SessionId) -> Self {
        let message = format!("there is already a session {session}");
        Self::new(StoreErrorKind::Conflict, message)
    }

    pub(super) fn name_taken(name: &str) -> Self {
        let message = format!("there is already a session named {name:?}");
        Self::new(StoreErrorKind::Conflict, message)
    }

    pub(super) fn lost_lease(session: &SessionId) -> Self {
        let message = format!(
            "the lease of session {session} is no longer valid: the session was opened elsewhere, or \
             deleted. Load it again"
        );
        Self::new(StoreErrorKind::LeaseLost, message)
    }

    pub(super) fn gap(session: &SessionId, last: u64, first: u64) -> Self {
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
