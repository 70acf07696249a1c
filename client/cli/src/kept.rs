//! Session names, stored per agent and directory.
//!
//! Each name is a file in the data folder, replaced atomically. A second file is locked while a run
//! uses the name; the system unlocks it when the process exits.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use acp_sdk::v1::SessionId;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use super::folders;

/// Maximum size of a file, in bytes. The agent chooses the length of ids.
const LARGEST_FILE: u64 = 1 << 20;

/// Maximum number of files that are read for a list.
const MOST_FILES: usize = 20_000;

/// The contents of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    name: String,
    agent: String,
    directory: String,
    session_id: Option<SessionId>,
}

impl Record {
    fn new(name: &str, agent: &str, directory: &str) -> Self {
        Self {
            name: name.to_owned(),
            agent: agent.to_owned(),
            directory: directory.to_owned(),
            session_id: None,
        }
    }

    fn file(&self, folder: &Path) -> PathBuf {
        folder.join(format!("{}.json", stem(self)))
    }

    /// Reads the file of the same name, agent and directory, if there is one.
    fn read(&self, folder: &Path) -> Result<Option<Self>, String> {
        let file = self.file(folder);
        let failed =
            |error: &dyn std::fmt::Display| format!("cannot use {}: {error}", file.display());
        let text = super::text_file::read(&file, LARGEST_FILE);
        let Some(text) = text.map_err(|reason| failed(&reason))? else {
            return Ok(None);
        };
        let invalid = |error| failed(&format_args!("{error}. Remove it"));
        let record: Self = serde_json::from_str(&text).map_err(invalid)?;
        let same = (&record.name, &record.agent, &record.directory)
            == (&self.name, &self.agent, &self.directory);
        match same {
            true => Ok(Some(record)),
            false => Err(failed(&"it is about another session. Remove it")),
        }
    }
}

/// A name that this process has locked.
#[derive(Debug)]
pub(super) struct Kept {
    file: PathBuf,
    record: Record,
    /// Closing the file unlocks it.
    _lock: File,
}

impl Kept {
    /// Locks a name for this process.
    ///
    /// # Errors
    ///
    /// Fails when another process uses it or its file cannot be used; the message has the remedy.
    pub(super) fn take(name: &str, agent: &str, directory: &str) -> Result<Self, String> {
        let folder = folders::data().ok_or("the system has no folder for data")?;
        Self::take_in(&folder.join("sessions"), name, agent, directory)
    }

    /// Returns the session of a name, without locking it; `None` if there is no such name.
    ///
    /// # Errors
    ///
    /// Fails when its file cannot be used.
    pub(super) fn find(
        name: &str,
        agent: &str,
        directory: &str,
    ) -> Result<Option<SessionId>, String> {
        let Some(folder) = folders::data() else {
            return Ok(None);
        };
        let wanted = Record::new(name, agent, directory);
        let record = wanted.read(&folder.join("sessions"))?;
        Ok(record.and_then(|record| record.session_id))
    }

    fn take_in(folder: &Path, name: &str, agent: &str, directory: &str) -> Result<Self, String> {
        let failed = |what: &Path, error: &dyn std::fmt::Display| {
            format!("cannot use {}: {error}", what.display())
        };
        folders::create(folder).map_err(|error| failed(folder, &error))?;
        let wanted = Record::new(name, agent, directory);
        let stem = stem(&wanted);
        let lock_file = folder.join(format!("{stem}.lock"));
        let lock = folders::open_file(&lock_file).map_err(|error| failed(&lock_file, &error))?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(format!(
                    "another acp uses the session {name:?}. Wait for its end, or use another name"
                ));
            }
            Err(TryLockError::Error(error)) => return Err(failed(&lock_file, &error)),
        }
        let record = wanted.read(folder)?;
        Ok(Self {
            file: wanted.file(folder),
            record: record.unwrap_or(wanted),
            _lock: lock,
        })
    }

    /// Returns the session of the name, if it has one.
    pub(super) fn session(&self) -> Option<&SessionId> {
        self.record.session_id.as_ref()
    }

    /// Returns the path of the socket of the process that uses the name.
    #[cfg(unix)]
    pub(super) fn socket(&self) -> PathBuf {
        self.file.with_extension("sock")
    }

    /// Removes the name.
    ///
    /// # Errors
    ///
    /// Fails when its file cannot be removed.
    pub(super) fn forget(self) -> Result<(), String> {
        let removed = std::fs::remove_file(&self.file);
        removed.map_err(|error| format!("cannot remove {}: {error}", self.file.display()))
    }

    /// Stores a session under the name.
    ///
    /// # Errors
    ///
    /// Fails when the file cannot be written.
    pub(super) fn keep(&mut self, session: &SessionId) -> Result<(), String> {
        self.record.session_id = Some(session.clone());
        let written = || {
            let folder = self.file.parent().unwrap_or(Path::new("."));
            let mut file = tempfile::NamedTempFile::new_in(folder)?;
            serde_json::to_writer(&mut file, &self.record)?;
            file.flush()?;
            file.as_file().sync_all()?;
            file.persist(&self.file)?;
            Ok::<_, std::io::Error>(())
        };
        written().map_err(|error| format!("cannot write {}: {error}", self.file.display()))
    }
}

/// Returns the names of an agent's sessions in all directories. Skips files that cannot be used.
pub(super) fn names(agent: &str) -> BTreeMap<SessionId, Vec<String>> {
    let mut names = BTreeMap::<_, Vec<_>>::new();
    for (_, record) in records().filter(|(_, record)| record.agent == agent) {
        if let Some(session) = record.session_id {
            names.entry(session).or_default().push(record.name);
        }
    }
    names
}

/// Returns the agents that have a name in a directory, and the sockets of the processes that may use it.
pub(super) fn sockets(name: &str, directory: &str) -> Vec<(String, PathBuf)> {
    let records =
        records().filter(|(_, record)| (&*record.name, &*record.directory) == (name, directory));
    let sockets = records.map(|(file, record)| (record.agent, file.with_extension("sock")));
    sockets.collect()
}

/// Returns the files with their contents. Skips those that cannot be used.
fn records() -> impl Iterator<Item = (PathBuf, Record)> {
    let listed = folders::data().and_then(|folder| folder.join("sessions").read_dir().ok());
    let entries = listed.into_iter().flatten().flatten().take(MOST_FILES);
    let files = entries.map(|entry| entry.path());
    let files = files.filter(|file| {
        file.extension()
            .is_some_and(|extension| extension == "json")
    });
    files.filter_map(|file| {
        let text = super::text_file::read(&file, LARGEST_FILE).ok()??;
        Some((file, serde_json::from_str(&text).ok()?))
    })
}

/// Returns a hash as the name of the files, because a session name may contain any characters.
fn stem(record: &Record) -> String {
    let mut hash = Sha256::new();
    for part in [&record.name, &record.agent, &record.directory] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part.as_bytes());
    }
    let digits = hash.finalize();
    digits
        .iter()
        .take(16)
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_for_an_agent_and_a_directory() {
        let dir = tempfile::tempdir().unwrap();
        let take = |name, agent, cwd| Kept::take_in(dir.path(), name, agent, cwd);
        let mut kept = take("a/../b", "agent", "/").unwrap();
        assert_eq!(kept.session(), None);
        kept.keep(&SessionId::from("1")).unwrap();
        drop(kept);
        let kept = take("a/../b", "agent", "/").unwrap();
        assert_eq!(kept.session(), Some(&SessionId::from("1")));
        for (name, agent, cwd) in [
            ("a", "agent", "/"),
            ("a/../b", "agent/", ""),
            ("a/../b", "x", "/"),
        ] {
            assert_eq!(take(name, agent, cwd).unwrap().session(), None);
        }
    }

    #[test]
    fn a_name_is_used_once_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let first = Kept::take_in(dir.path(), "n", "a", "/").unwrap();
        let error = Kept::take_in(dir.path(), "n", "a", "/").unwrap_err();
        assert!(error.contains("another acp uses"), "{error}");
        drop(first);
        Kept::take_in(dir.path(), "n", "a", "/").unwrap();
    }

    #[test]
    fn a_broken_file_is_no_new_session() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Kept::take_in(dir.path(), "n", "a", "/").unwrap();
        kept.keep(&SessionId::from("1")).unwrap();
        std::fs::write(&kept.file, "{").unwrap();
        drop(kept);
        assert!(Kept::take_in(dir.path(), "n", "a", "/").is_err());
    }
}
