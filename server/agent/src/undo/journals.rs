//! The journals of an agent's sessions.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::extensions::TurnRestoration;
use acp_sdk::v1::SessionId;
use acp_server::store::SessionRecord;
use acp_server::{HandlerError, HandlerResult, Session, Turn, UndoRequest};

use super::blobs::hash_of;
use super::{Ended, Journal, JournalError, JournalLimits};

/// The journal of a session.
#[derive(Debug, Default)]
struct Entry {
    journal: Mutex<Option<Journal>>,
    /// Whether the handler of the open turn has ended without ending it.
    is_abandoned: AtomicBool,
}

type Shared = Arc<Entry>;

impl Entry {
    /// Returns the journal, without a turn whose handler has ended. Blocks.
    fn lock(&self) -> Result<MutexGuard<'_, Option<Journal>>, JournalError> {
        let mut journal = self.journal.lock().unwrap_or_else(PoisonError::into_inner);
        if self.is_abandoned.swap(false, Ordering::AcqRel)
            && let Some(journal) = &mut *journal
        {
            journal.end()?;
        }
        Ok(journal)
    }
}

/// A [`Journal`] for each session, below one folder. Its file work runs on the runtime's blocking
/// threads.
#[derive(Debug)]
pub struct Journals {
    folder: PathBuf,
    limits: JournalLimits,
    open: Mutex<HashMap<SessionId, Shared>>,
}

/// The journal of a running turn, which ends with [`end`](Self::end), or in the background when it is
/// dropped.
#[derive(Debug)]
pub struct TurnJournal {
    journal: Shared,
    is_open: bool,
}

impl Journals {
    /// Creates journals below a folder, each in a folder of its own that is named by the hash of its
    /// session's id.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self::with_limits(folder, JournalLimits::default())
    }

    /// Creates journals with other limits.
    pub fn with_limits(folder: impl Into<PathBuf>, limits: JournalLimits) -> Self {
        Self {
            folder: folder.into(),
            limits,
            open: Mutex::default(),
        }
    }

    /// Begins a turn in the journal of its session.
    ///
    /// # Errors
    ///
    /// As [`Journal::open`] and [`Journal::begin`].
    pub async fn begin(&self, turn: &Turn) -> HandlerResult<TurnJournal> {
        let name = turn.id().0.to_string();
        let journal = self.of(turn.session());
        let begin = self.with(&journal, turn.session(), move |journal| {
            journal.begin(&name)
        });
        begin.await?;
        let is_open = true;
        Ok(TurnJournal { journal, is_open })
    }

    /// Undoes or redoes a turn of a session: the answer of [`Handler::undo`](acp_server::Handler::undo).
    ///
    /// # Errors
    ///
    /// As [`Journal::open`] and [`Journal::restore`].
    pub async fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> HandlerResult<TurnRestoration> {
        let journal = self.of(session);
        let UndoRequest {
            direction, force, ..
        } = request;
        let restored = self.with(&journal, session, move |journal| {
            journal.restore(direction, force)
        });
        restored.await
    }

    /// Closes the journal of a session, which stays in its folder.
    pub async fn close(&self, session: &Session) {
        let journal = self.sessions().remove(session.id());
        if let Some(journal) = journal {
            // Even if somebody still has it: the next one opens it anew. A turn that cannot be ended is
            // ended then.
            let _ = blocking(&journal, |journal| Ok(journal.take())).await;
        }
    }

    /// Removes the journal of a deleted session.
    ///
    /// # Errors
    ///
    /// Internal error, if the folder cannot be removed.
    pub async fn delete(&self, session: &SessionRecord) -> HandlerResult<()> {
        self.sessions().remove(&session.id);
        let folder = self.folder_of(&session.id);
        match tokio::fs::remove_dir_all(&folder).await {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                let folder = folder.display();
                let reason = format!("cannot remove the undo journal {folder}: {error}");
                Err(HandlerError::internal(reason))
            }
            _ => Ok(()),
        }
    }

    fn folder_of(&self, id: &SessionId) -> PathBuf {
        self.folder.join(hash_of(id.as_str().as_bytes()))
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Shared>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, session: &Session) -> Shared {
        let mut open = self.sessions();
        open.entry(session.id().clone()).or_default().clone()
    }

    /// Works on a journal, which is opened if necessary.
    async fn with<T: Send + 'static>(
        &self,
        journal: &Shared,
        session: &Session,
        work: impl FnOnce(&mut Journal) -> Result<T, JournalError> + Send + 'static,
    ) -> HandlerResult<T> {
        let folder = self.folder_of(session.id());
        let limits = self.limits.clone();
        let mut directories = vec![session.cwd().to_owned()];
        directories.extend(session.additional_directories());
        let done = blocking(journal, move |journal| {
            let journal = match journal {
                Some(journal) => journal,
                none => none.insert(Journal::open(&folder, directories, limits)?),
            };
            work(journal)
        });
        done.await
    }
}

impl TurnJournal {
    /// Keeps what a path is, before it is changed; see [`Journal::before_change`].
    ///
    /// # Errors
    ///
    /// As [`Journal::before_change`].
    pub async fn before_change(&mut self, path: &str) -> HandlerResult<()> {
        let path = path.to_owned();
        let kept = blocking(&self.journal, move |journal| match journal {
            Some(journal) => journal.before_change(&path),
            None => Err(JournalError::NoTurn),
        });
        kept.await
    }

    /// Ends the turn; see [`Journal::end`].
    ///
    /// # Errors
    ///
    /// As [`Journal::end`].
    pub async fn end(mut self) -> HandlerResult<Ended> {
        self.is_open = false;
        let ended = blocking(&self.journal, |journal| {
            journal.as_mut().ok_or(JournalError::NoTurn)?.end()
        });
        ended.await
    }
}

impl Drop for TurnJournal {
    fn drop(&mut self) {
        if !self.is_open {
            return;
        }
        self.journal.is_abandoned.store(true, Ordering::Release);
        // At once, before others change the files. Without a runtime, whoever uses the journal next
        // ends the turn.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let journal = self.journal.clone();
            runtime.spawn_blocking(move || {
                if let Err(error) = journal.lock() {
                    tracing::debug!(%error, "a turn did not end in the undo journal");
                }
            });
        }
    }
}

async fn blocking<T: Send + 'static>(
    journal: &Shared,
    work: impl FnOnce(&mut Option<Journal>) -> Result<T, JournalError> + Send + 'static,
) -> HandlerResult<T> {
    let journal = journal.clone();
    let done = tokio::task::spawn_blocking(move || work(&mut *journal.lock()?));
    let done = done.await.map_err(HandlerError::internal)?;
    done.map_err(|error| error.answer())
}
