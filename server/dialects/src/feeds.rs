//! The sessions that the client of a connection uses.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;
use acp_sdk::{ErrorCode, HandlerError, HandlerResult};
use acp_server::{Server, Session};

use crate::feed::{Encode, Feed};

/// Feeds by session. They end with the connection.
pub(crate) struct Feeds {
    server: Server,
    history: u64,
    /// The directory of sessions whose client names none.
    cwd: PathBuf,
    feeds: Mutex<HashMap<SessionId, Arc<Feed>>>,
}

impl Feeds {
    pub(crate) fn new(server: Server, history: u64) -> Self {
        Self {
            server,
            history,
            cwd: PathBuf::from("."),
            feeds: Mutex::default(),
        }
    }

    /// Sets the directory of sessions whose client names none (that of the process).
    pub(crate) fn set_cwd(&mut self, cwd: PathBuf) {
        self.cwd = cwd;
    }

    /// Returns the working directory of a new session as the runtime needs it, absolute.
    ///
    /// # Errors
    ///
    /// Invalid params, for an empty path.
    pub(crate) fn working_directory(&self, named: Option<&str>) -> HandlerResult<String> {
        let path = match named {
            Some("") => PathBuf::new(),
            Some(named) => self.cwd.join(named),
            None => self.cwd.clone(),
        };
        let path = std::path::absolute(&path).map_err(|error| {
            let reason = format!("no absolute path for the working directory {path:?}: {error}");
            HandlerError::new(ErrorCode::INVALID_PARAMS, reason)
        })?;
        Ok(path.to_string_lossy().into_owned())
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
        let after = async move {
            answered.await;
            0
        };
        let id = session.id().clone();
        let feed = Feed::new(session, self.history, encoder, after);
        self.table().insert(id, Arc::new(feed));
    }

    /// Returns the feed of an open session.
    pub(crate) fn feed(&self, session: Session, encoder: impl Encode) -> Arc<Feed> {
        let mut feeds = self.table();
        let last = session.last_event();
        match feeds.entry(session.id().clone()) {
            Entry::Occupied(old) if !old.get().has_ended() && *old.get().session() == session => {
                old.get().clone()
            }
            Entry::Occupied(mut place) => {
                // The session has left memory meanwhile, or its log could not be read.
                let old = place.get().clone();
                let after = async move { old.ended().await };
                let feed = Arc::new(Feed::new(session, self.history, encoder, after));
                place.insert(feed.clone());
                feed
            }
            Entry::Vacant(place) => {
                let feed = Feed::new(session, self.history, encoder, std::future::ready(last));
                place.insert(Arc::new(feed)).clone()
            }
        }
    }

    /// Ends the feed of a session.
    pub(crate) fn remove(&self, id: &SessionId) {
        self.table().remove(id);
    }

    fn table(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
