//! The sessions that the client of a connection uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;
use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use acp_server::{Server, Session};

use crate::feed::{Encode, Feed, Start};

/// Returns a working directory as the runtime needs it, absolute.
///
/// # Errors
///
/// Invalid params, for an empty path.
pub(crate) fn absolute(cwd: &str) -> HandlerResult<String> {
    let path = std::path::absolute(cwd).map_err(|error| {
        let reason = format!("no absolute path for the working directory {cwd:?}: {error}");
        HandlerError::new(ErrorCode::INVALID_PARAMS, reason)
    })?;
    Ok(path.to_string_lossy().into_owned())
}

/// Feeds by session. They end with the connection.
pub(crate) struct Feeds {
    server: Server,
    history: u64,
    feeds: Mutex<HashMap<SessionId, Arc<Feed>>>,
}

impl Feeds {
    pub(crate) fn new(server: Server, history: u64) -> Self {
        Self {
            server,
            history,
            feeds: Mutex::default(),
        }
    }

    pub(crate) fn server(&self) -> &Server {
        &self.server
    }

    /// Returns the feed of a session, and opens the session if necessary. Its past is not sent.
    ///
    /// # Errors
    ///
    /// Resource not found; the handler's error, or that of the store.
    pub(crate) async fn open(
        &self,
        id: &SessionId,
        encoder: impl Encode,
    ) -> HandlerResult<Arc<Feed>> {
        let session = self.server.session(id).await?;
        Ok(self.feed(session, encoder))
    }

    /// Sends what happens in a new session, once `answered` completes: its client must know it first.
    pub(crate) fn created(
        &self,
        session: Session,
        encoder: impl Encode,
        answered: impl Future<Output = ()> + Send + 'static,
    ) {
        let start = self.start(0);
        let id = session.id().clone();
        let feed = Feed::new(session, start, encoder, answered);
        self.table().insert(id, Arc::new(feed));
    }

    /// Returns the feed of an open session.
    pub(crate) fn feed(&self, session: Session, encoder: impl Encode) -> Arc<Feed> {
        let mut feeds = self.table();
        let start = self.start(session.last_event());
        let at_once = std::future::ready(());
        match feeds.entry(session.id().clone()) {
            Entry::Occupied(old) if !old.get().has_ended() && *old.get().session() == session => {
                old.get().clone()
            }
            Entry::Occupied(mut old) => {
                // The session has left memory meanwhile, or its log could not be read.
                let start = self.start(old.get().passed());
                let feed = Arc::new(Feed::new(session, start, encoder, at_once));
                old.insert(feed.clone());
                feed
            }
            Entry::Vacant(place) => {
                let feed = Feed::new(session, start, encoder, at_once);
                place.insert(Arc::new(feed)).clone()
            }
        }
    }

    fn start(&self, after: u64) -> Start {
        Start {
            after,
            history: self.history,
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
