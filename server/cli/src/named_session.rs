//! The session that a command names, how its output is written, and why the command failed.

use std::io;

use acp_sdk::v1::SessionId;
use acp_server::store::{ListQuery, SessionRecord, Store, StoreError};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SessionsError {
    /// The store failed, or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// There is no such session.
    #[error("no session has the id or name {0:?}. `acp-server sessions list` shows all")]
    NotFound(String),
    /// The session has fewer events.
    #[error("session {session} has no event {at}; its last is {last}")]
    NoEvent {
        /// The session.
        session: SessionId,
        /// The number that was asked for.
        at: u64,
        /// The number of the last event.
        last: u64,
    },
    /// An id for a new session cannot be made.
    #[error("no random numbers for a session id: {0}")]
    Random(#[from] getrandom::Error),
    /// The output cannot be written. A broken pipe means that its reader has seen enough.
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

pub(super) type Result<T> = std::result::Result<T, SessionsError>;

/// How output is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// For people. Control characters are left out.
    #[default]
    Text,
    /// A JSON value per line.
    Json,
}

/// Finds a session by its id or its name.
pub(super) async fn resolve(store: &dyn Store, session: &str) -> Result<SessionRecord> {
    if let Some(record) = store.find(&SessionId::from(session)).await? {
        return Ok(record);
    }
    let mut query = ListQuery::default();
    query.name = Some(session.to_owned());
    query.limit = 1;
    let named = store.list(&query).await?.pop();
    named.ok_or_else(|| SessionsError::NotFound(session.to_owned()))
}
