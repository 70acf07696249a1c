//! The sessions of a store, read page by page.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use crate::Result;
use crate::store::{ListQuery, SessionRecord, Store};

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
pub struct StoredSessions {
    store: Arc<dyn Store>,
    query: ListQuery,
    page: VecDeque<SessionRecord>,
    /// Whether the store has no further page.
    is_last: bool,
}

impl StoredSessions {
    pub(super) fn new(store: Arc<dyn Store>) -> Self {
        Self {
            store,
            query: ListQuery::default(),
            page: VecDeque::new(),
            is_last: false,
        }
    }

    /// Leaves out sessions that do not work in this directory, an absolute path.
    #[must_use]
    pub fn of_directory(mut self, cwd: impl Into<String>) -> Self {
        self.query.cwd = Some(cwd.into());
        self
    }

    /// Leaves out all sessions but that of this name.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.query.name = Some(name.into());
        self
    }

    /// Returns the next session; `None` after the last.
    ///
    /// # Errors
    ///
    /// [`Error::Store`](crate::Error::Store). Another call tries again.
    pub async fn next(&mut self) -> Result<Option<SessionRecord>> {
        if self.page.is_empty() && !self.is_last {
            let page = self.store.list(&self.query).await?;
            self.is_last = page.len() < self.query.limit;
            if let Some(last) = page.last() {
                self.query.after = Some((last.updated_at.clone(), last.id.clone()));
            }
            self.page = page.into();
        }
        Ok(self.page.pop_front())
    }
}

impl fmt::Debug for StoredSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSessions")
            .field("query", &self.query)
            .finish_non_exhaustive()
    }
}
