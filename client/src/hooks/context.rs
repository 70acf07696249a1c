//! The session of an agent's request.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_files::Roots;
use acp_sdk::v1::SessionId;

/// Identifies the connection of a [`Client`](crate::Client) to its agent in this process, also after it was
/// lost and opened again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConnectionId(u64);

impl ConnectionId {
    /// Returns an id that no other connection of this process has.
    pub(crate) fn new() -> Self {
        static CONNECTIONS: AtomicU64 = AtomicU64::new(0);
        Self(CONNECTIONS.fetch_add(1, Ordering::Relaxed))
    }
}

/// The session of an agent's request, as this client opened it.
#[derive(Debug, Clone)]
pub struct SessionContext {
    connection: ConnectionId,
    id: SessionId,
    directories: Arc<Directories>,
}

/// The directories of a session.
#[derive(Debug)]
pub(crate) struct Directories {
    cwd: PathBuf,
    additional: Vec<PathBuf>,
    roots: Roots,
}

impl Directories {
    /// Opens the directories before the request is sent, so that a directory that later replaces
    /// one of them is not used. A directory that cannot be opened, such as one of a remote agent,
    /// contains nothing. Blocks.
    pub(crate) fn open(cwd: &str, additional: &[String]) -> Arc<Self> {
        let cwd = PathBuf::from(cwd);
        let additional: Vec<_> = additional.iter().map(PathBuf::from).collect();
        let mut roots = Roots::new();
        for directory in std::iter::once(&cwd).chain(&additional) {
            if let Err(error) = roots.add(directory) {
                tracing::debug!(%error, directory = %directory.display(), "no files are served there");
            }
        }
        Arc::new(Self {
            cwd,
            additional,
            roots,
        })
    }
}

impl Directories {
    pub(crate) fn cwd(&self) -> &Path {
        &self.cwd
    }
}

impl SessionContext {
    pub(crate) fn new(
        connection: ConnectionId,
        id: SessionId,
        directories: Arc<Directories>,
    ) -> Self {
        Self {
            connection,
            id,
            directories,
        }
    }

    /// Returns the connection of the session. A hook that several clients share needs it, because two
    /// agents may choose the same session id.
    #[must_use]
    pub fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Returns the session's id, which is unique in its connection only.
    #[must_use]
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// Returns the working directory, as sent to the agent.
    #[must_use]
    pub fn cwd(&self) -> &Path {
        &self.directories.cwd
    }

    /// Returns the additional directories, as sent to the agent.
    #[must_use]
    pub fn additional_directories(&self) -> &[PathBuf] {
        &self.directories.additional
    }

    /// Returns the directories, held open since the session was opened: the working directory
    /// first, then the additional ones. Omits directories that do not exist on this machine.
    #[must_use]
    pub fn roots(&self) -> &Roots {
        &self.directories.roots
    }
}
