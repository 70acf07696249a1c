//! The sessions of a store, read page by page.

use std::fmt;
use std::sync::Arc;

use crate::Result;
use crate::store::{ListQuery, Records, SessionRecord, Store};

/// The sessions of a store, the latest activity first; see
/// [`Server::stored_sessions`](crate::Server::stored_sessions).
///
/// ```
/// async fn titles(server: &acp_server::Server) -> acp_server::Result<()> {
///     let mut sessions = server.stored_sessions().of_directory("/srv/project");
///     while let Some(record) = sessions.next().await? {
///         println!("{} {}", record.id, record.title.as_deref().unwrap_or("(no title)"));
///     }
///     Ok(())
/// }
/// ```
///
/// A session that becomes active while they are read may be left out.
pub struct StoredSessions(Records<Arc<dyn Store>>);

impl StoredSessions {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self(Records::new(store, ListQuery::default()))
    }

    /// Leaves out sessions that do not work in this directory, an absolute path.
    #[must_use]
    pub fn of_directory(mut self, cwd: impl Into<String>) -> Self {
        self.0.query.cwd = Some(cwd.into());
        self
    }

    /// Leaves out all sessions but that of this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.0.query.name = Some(name.into());
        self
    }

    /// Returns the next session; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store). Another call tries again.
    pub async fn next(&mut self) -> Result<Option<SessionRecord>> {
        Ok(self.0.next().await?)
    }
}

impl fmt::Debug for StoredSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSessions")
            .field("query", &self.0.query)
            .finish_non_exhaustive()
    }
}
