//! Contents of files, by their hash.

use std::collections::HashSet;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::JournalError;

/// A folder with a file for each content, named by its SHA-256: equal contents are kept once.
#[derive(Debug)]
pub(super) struct Blobs(PathBuf);

pub(super) fn hash_of(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

pub(super) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

impl Blobs {
    pub(super) fn open(folder: PathBuf) -> Result<Self, JournalError> {
        super::create_private_dir(&folder)?;
        Ok(Self(folder))
    }

    /// Keeps a content under its hash. Readers see all of it or nothing.
    pub(super) fn put(&self, hash: &str, bytes: &[u8]) -> Result<(), JournalError> {
        let path = self.0.join(hash);
        let failed = |error| JournalError::Io {
            doing: "write",
            path: path.clone(),
            error,
        };
        // One of another length was cut by a crash of the system.
        let kept = fs::metadata(&path);
        if kept.is_ok_and(|kept| kept.len() == bytes.len() as u64) {
            return Ok(());
        }
        let new = self.0.join("new");
        let mut file = private_file(&new).map_err(failed)?;
        file.write_all(bytes).map_err(failed)?;
        file.sync_data().map_err(failed)?;
        drop(file);
        fs::rename(&new, &path).map_err(failed)
    }

    /// Returns a content.
    ///
    /// # Errors
    ///
    /// The reason, if it cannot be read or is another one.
    pub(super) fn get(&self, hash: &str) -> Result<Vec<u8>, String> {
        let bytes = fs::read(self.0.join(hash));
        let bytes = bytes.map_err(|error| format!("its content cannot be read: {error}"))?;
        match hash_of(&bytes) == hash {
            true => Ok(bytes),
            false => Err("its kept content is damaged".to_owned()),
        }
    }

    /// Removes all other contents. What cannot be removed stays until the next time.
    pub(super) fn retain(&self, used: &HashSet<String>) {
        let Ok(entries) = fs::read_dir(&self.0) else {
            return;
        };
        for entry in entries.flatten() {
            if !entry
                .file_name()
                .to_str()
                .is_some_and(|name| used.contains(name))
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

/// Creates or empties a file that only its owner reads.
pub(super) fn private_file(path: &Path) -> std::io::Result<fs::File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
