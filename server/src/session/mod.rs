//! A session: where it works, what is set in it, whose turn it is and what it sends.

mod queue;
mod settings;
mod table;
mod wire;

pub use queue::Phase;
pub(crate) use queue::{Place, Refusal};
pub use settings::Settings;
pub(crate) use table::Sessions;
pub(crate) use wire::{Voice, Wire};

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{McpServer, SessionId};

use crate::store::SessionRecord;
use queue::Queue;

/// A session that is active: created, loaded or resumed, and not closed since. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Session(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    id: SessionId,
    cwd: String,
    state: Mutex<State>,
    queue: Arc<Queue>,
    /// Held while an update is kept and sent, so that both happen in the same order. Tokio's
    /// mutex is fair: updates leave in the order of the calls.
    wire: tokio::sync::Mutex<Wire>,
    /// The last number used in an id of something within the session.
    ids: AtomicU64,
}

#[derive(Debug)]
struct State {
    surroundings: Surroundings,
    settings: Settings,
    title: Option<String>,
    updated_at: String,
}

/// What a client says anew each time it creates, loads or resumes a session.
#[derive(Clone, Debug, Default)]
pub(crate) struct Surroundings {
    pub(crate) additional_directories: Vec<String>,
    pub(crate) mcp_servers: Vec<McpServer>,
}

impl Session {
    /// An active session made from what is known of it; `last` is the number of its last
    /// event, which is above the number of every id that it has given so far.
    pub(crate) fn new(record: &SessionRecord, last: u64, surroundings: Surroundings) -> Self {
        let state = State {
            surroundings,
            settings: Settings::new(),
            title: record.title.clone(),
            updated_at: record.updated_at.clone(),
        };
        Self(Arc::new(Inner {
            id: record.id.clone(),
            cwd: record.cwd.clone(),
            state: Mutex::new(state),
            queue: Arc::default(),
            wire: tokio::sync::Mutex::default(),
            ids: AtomicU64::new(last),
        }))
    }

    /// The id.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.0.id
    }

    /// The working directory, an absolute path.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.0.cwd
    }

    /// A path as the protocol wants it: absolute, a relative one being relative to
    /// [`cwd`](Self::cwd).
    #[must_use]
    pub fn resolve(&self, path: &str) -> String {
        Path::new(self.cwd())
            .join(path)
            .to_string_lossy()
            .into_owned()
    }

    /// Roots besides the working directory, absolute paths.
    #[must_use]
    pub fn additional_directories(&self) -> Vec<String> {
        self.state().surroundings.additional_directories.clone()
    }

    /// The MCP servers that the client wants the agent to use. The runtime does not connect
    /// to them; that is the handler's work.
    #[must_use]
    pub fn mcp_servers(&self) -> Vec<McpServer> {
        self.state().surroundings.mcp_servers.clone()
    }

    /// The title, if the session has one.
    #[must_use]
    pub fn title(&self) -> Option<String> {
        self.state().title.clone()
    }

    /// Modes and config options with their current values.
    #[must_use]
    pub fn settings(&self) -> Settings {
        self.state().settings.clone()
    }

    /// What the session is doing.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.0.queue.phase()
    }

    pub(crate) fn queue(&self) -> &Arc<Queue> {
        &self.0.queue
    }

    pub(crate) async fn wire(&self) -> tokio::sync::MutexGuard<'_, Wire> {
        self.0.wire.lock().await
    }

    pub(crate) fn set_title(&self, title: Option<String>) {
        self.state().title = title;
    }

    /// Something was said in the session just now.
    pub(crate) fn touch(&self) {
        self.state().updated_at = crate::clock::now();
    }

    pub(crate) fn surround(&self, surroundings: Surroundings) {
        self.state().surroundings = surroundings;
    }

    /// Changes settings under the lock.
    pub(crate) fn set<R>(&self, change: impl FnOnce(&mut Settings) -> R) -> R {
        change(&mut self.state().settings)
    }

    /// An id that nothing else in this session has or had.
    pub(crate) fn next_id(&self, kind: &str) -> String {
        format!("{kind}-{}", self.0.ids.fetch_add(1, Ordering::Relaxed) + 1)
    }

    /// What the store should know, as of now.
    pub(crate) fn record(&self) -> SessionRecord {
        let state = self.state();
        SessionRecord {
            id: self.id().clone(),
            // The store knows it better.
            number: 0,
            cwd: self.cwd().to_owned(),
            additional_directories: state.surroundings.additional_directories.clone(),
            title: state.title.clone(),
            updated_at: state.updated_at.clone(),
            settings: state.settings.changed().clone(),
        }
    }

    /// A std mutex: it is held for a few instructions and never across an await.
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
