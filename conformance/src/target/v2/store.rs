//! Where the reference agent of version 2 keeps sessions: in memory, for all its connections, or in a
//! folder, for all its processes.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{fs, io};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::settings::Settings;

/// How many sessions are kept at most; the oldest ones go.
const SESSIONS: usize = 10_000;

/// Sessions by id. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Store {
    inner: Arc<Mutex<Inner>>,
    folder: Option<Arc<Folder>>,
}

#[derive(Debug, Default)]
struct Inner {
    /// Numbers of sessions, messages and requests.
    last: u64,
    /// Empty with a folder.
    sessions: BTreeMap<String, Stored>,
}

/// A file for each session.
#[derive(Debug)]
struct Folder {
    path: PathBuf,
    /// Tells the numbers of this process from those of others.
    process: String,
}

/// What is kept of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Stored {
    pub(super) cwd: Value,
    pub(super) history: Vec<Value>,
    pub(super) settings: Settings,
}

impl Store {
    /// Keeps sessions in a folder, which is created if it is missing.
    ///
    /// # Errors
    /// When the folder cannot be created.
    pub fn in_folder(path: &Path) -> io::Result<Self> {
        fs::create_dir_all(path)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let started = now.unwrap_or_default().as_nanos();
        let folder = Folder {
            path: path.to_owned(),
            process: format!("{}-{started}", std::process::id()),
        };
        Ok(Self {
            folder: Some(Arc::new(folder)),
            ..Self::default()
        })
    }

    /// A panic under the lock leaves whole sessions.
    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns an id that no connection had before; it begins with `what`.
    pub(super) fn id(&self, what: &str) -> String {
        let mut inner = self.inner();
        inner.last += 1;
        match &self.folder {
            Some(folder) => format!("{what}-{}-{}", folder.process, inner.last),
            None => format!("{what}-{}", inner.last),
        }
    }

    /// Keeps a session in place of what was kept of it.
    ///
    /// # Errors
    /// When its file cannot be written.
    pub(super) fn put(&self, id: &str, session: &Stored) -> io::Result<()> {
        if let Some(folder) = &self.folder {
            return folder.put(id, session);
        }
        let mut inner = self.inner();
        inner.sessions.insert(id.to_owned(), session.clone());
        if inner.sessions.len() > SESSIONS {
            inner.sessions.pop_first();
        }
        Ok(())
    }

    /// Returns a session.
    pub(super) fn get(&self, id: &str) -> Option<Stored> {
        match &self.folder {
            Some(folder) => folder.get(id),
            None => self.inner().sessions.get(id).cloned(),
        }
    }

    /// Removes a session.
    pub(super) fn remove(&self, id: &str) {
        match &self.folder {
            Some(folder) => folder.remove(id),
            None => drop(self.inner().sessions.remove(id)),
        }
    }

    /// Returns all sessions with their directories.
    pub(super) fn directories(&self) -> Vec<(String, Value)> {
        if let Some(folder) = &self.folder {
            let ids = folder.ids().into_iter();
            let known = ids.filter_map(|id| Some((folder.get(&id)?.cwd, id)));
            return known.map(|(cwd, id)| (id, cwd)).collect();
        }
        let inner = self.inner();
        let sessions = inner.sessions.iter();
        sessions
            .map(|(id, session)| (id.clone(), session.cwd.clone()))
            .collect()
    }
}

impl Folder {
    /// Returns the file of a session; `None` for what cannot be an id of this agent.
    fn file(&self, id: &str) -> Option<PathBuf> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
        let is_ours = !id.is_empty() && id.chars().all(plain);
        is_ours.then(|| self.path.join(format!("{id}.json")))
    }

    /// Readers see the old file or the new one.
    fn put(&self, id: &str, session: &Stored) -> io::Result<()> {
        let Some(file) = self.file(id) else {
            return Err(io::ErrorKind::InvalidInput.into());
        };
        let new = file.with_extension("new");
        fs::write(&new, serde_json::to_vec(session)?)?;
        fs::rename(new, file)
    }

    fn get(&self, id: &str) -> Option<Stored> {
        let bytes = fs::read(self.file(id)?).ok()?;
        serde_json::from_slice(&bytes).ok()
    }

    fn remove(&self, id: &str) {
        if let Some(file) = self.file(id) {
            // It may be gone already.
            let _ = fs::remove_file(file);
        }
    }

    fn ids(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.path).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        let sessions = files.filter(|file| file.extension() == Some(OsStr::new("json")));
        let name = |file: PathBuf| file.file_stem()?.to_str().map(str::to_owned);
        sessions.filter_map(name).take(SESSIONS).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_in_a_folder_are_those_of_all_processes() {
        let folder = tempfile::tempdir().unwrap();
        let (one, other) = (
            Store::in_folder(folder.path()).unwrap(),
            Store::in_folder(folder.path()).unwrap(),
        );
        let session = Stored {
            cwd: "/tmp".into(),
            history: vec!["said".into()],
            settings: Settings::default(),
        };
        let (first, second) = (one.id("session"), other.id("session"));
        assert_ne!(first, second);
        one.put(&first, &session).unwrap();
        other.put(&second, &session).unwrap();
        assert_eq!(other.get(&first).unwrap().history, session.history);
        assert_eq!(one.directories().len(), 2);
        one.remove(&second);
        assert!(other.get(&second).is_none());
        assert!(one.get("../elsewhere").is_none());
    }
}
