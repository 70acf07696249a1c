//! Files that tell local tools which servers run, and how to reach them.
//!
//! A server has one file, `acp-server-PORT.json`, which only its user can read, and locks it while
//! it runs. The system releases the lock when the process ends, however it ends, so a file that is
//! not locked is stale. A token that the server has made is in a file of its own beside it,
//! `acp-server-PORT.token`.

mod files;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use etcetera::BaseStrategy as _;
use serde::{Deserialize, Serialize};

use self::files::{is_at, is_locked, open_private, private_folder, remove};

/// The maximum bytes of a file.
const FILE_BYTES: u64 = 64 << 10;

/// Tries to lock a file that somebody may be looking at, 10 ms apart.
const TRIES: usize = 20;

/// The folder of the files.
#[derive(Clone, Debug)]
pub struct Discovery {
    folder: PathBuf,
}

/// What the file of a server says.
#[derive(Clone, Serialize, Deserialize)]
pub struct Announcement {
    /// `acp-server`.
    #[serde(default)]
    pub prefix: String,
    /// The process.
    pub pid: u32,
    /// When it started: seconds since 1970.
    #[serde(default)]
    pub started_at: f64,
    /// The port that it listens on.
    pub port: u16,
    /// The address that it is bound to.
    pub host: String,
    /// `http` or `https`.
    pub scheme: String,
    /// `token`: the user has set a token. `generated`: it is in the file beside this one.
    pub auth: String,
    /// The SHA-256 hash of the server's token, `sha256:…`: whoever has a token can see whether it is this
    /// one. `None`: the server needs none.
    #[serde(default)]
    pub auth_token_hash: Option<String>,
    /// The seconds within which the server ends after SIGTERM.
    #[serde(default)]
    pub ends_within: u64,
}

/// The files of this process. Dropping it removes them.
#[derive(Debug)]
pub struct Announced {
    file: File,
    path: PathBuf,
}

/// A file that was found.
#[derive(Clone, Debug)]
pub struct Found {
    /// The port in the file's name.
    pub port: u16,
    /// The file.
    pub path: PathBuf,
    /// Whether the server runs.
    pub alive: bool,
    /// What the file says; `None` if it cannot be parsed, as while a server writes it.
    pub announcement: Option<Announcement>,
}

/// Why a server could not be announced.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DiscoveryError {
    /// Another server runs on this port.
    #[error("an acp-server runs on port {port} already (pid {}). `acp-server stop --port {port}` \
        stops it", pid.map_or("unknown".to_owned(), |pid| pid.to_string()))]
    Taken {
        /// The port.
        port: u16,
        /// Its process, if the file says so.
        pid: Option<u32>,
    },
    /// The folder or the file cannot be used.
    #[error("cannot use {}: {source}", path.display())]
    Io {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The user has no folder for such files.
    #[error("cannot find the run folder of the user; set XDG_RUNTIME_DIR or HOME")]
    NoFolder,
}

impl Discovery {
    /// Returns the user's folder: `acp-server` in `$XDG_RUNTIME_DIR`, or in the state folder.
    ///
    /// # Errors
    ///
    /// When the user has no such folder.
    pub fn of_user() -> Result<Self, DiscoveryError> {
        let folders = etcetera::choose_base_strategy().map_err(|_| DiscoveryError::NoFolder)?;
        let folder = folders.runtime_dir().or_else(|| folders.state_dir());
        Ok(Self::new(
            folder
                .unwrap_or_else(|| folders.data_dir())
                .join("acp-server"),
        ))
    }

    /// Uses a folder, which need not exist.
    #[must_use]
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        let folder = folder.into();
        Self { folder }
    }

    /// Takes the file of a port for this process, also a stale one.
    ///
    /// # Errors
    ///
    /// When another server has it, or folder or file cannot be used.
    pub fn take(&self, port: u16) -> Result<Announced, DiscoveryError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| DiscoveryError::Io { path, source }
        };
        private_folder(&self.folder).map_err(failed(&self.folder))?;
        let path = self.path(port);
        for _ in 0..TRIES {
            let file = open_private(&path).map_err(failed(&path))?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::Error(source)) => return Err(failed(&path)(source)),
                Err(TryLockError::WouldBlock) => {
                    // `status` locks a file for a moment to see whether it can.
                    thread::sleep(Duration::from_millis(10));
                    continue;
                }
            }
            // The server before may have removed the file after it was opened here.
            if is_at(&file, &path) {
                // One of an earlier server opens nothing, and would mislead.
                remove(&path.with_extension("token")).map_err(failed(&path))?;
                return Ok(Announced { file, path });
            }
        }
        let pid = read(&path).map(|announcement| announcement.pid);
        Err(DiscoveryError::Taken { port, pid })
    }

    /// Returns all servers, by port.
    ///
    /// # Errors
    ///
    /// When the folder cannot be read. A missing one has no servers.
    pub fn list(&self) -> Result<Vec<Found>, DiscoveryError> {
        let failed = |source| DiscoveryError::Io {
            path: self.folder.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            let port = name.to_str().and_then(port_of);
            found.extend(port.and_then(|port| self.find(port)));
        }
        found.sort_by_key(|found| found.port);
        Ok(found)
    }

    /// Returns the server of a port; `None` without a file.
    #[must_use]
    pub fn find(&self, port: u16) -> Option<Found> {
        let path = self.path(port);
        let file = File::open(&path).ok()?;
        let alive = is_locked(&file);
        drop(file);
        let announcement = read(&path);
        Some(Found {
            port,
            path,
            alive,
            announcement,
        })
    }

    fn path(&self, port: u16) -> PathBuf {
        self.folder.join(format!("acp-server-{port}.json"))
    }
}

impl Found {
    /// Returns whether the server runs now.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        File::open(&self.path).is_ok_and(|file| is_locked(&file))
    }

    /// Returns the token that the server has made, if it has made one.
    #[must_use]
    pub fn token(&self) -> Option<String> {
        let token = fs::read_to_string(self.path.with_extension("token")).ok()?;
        Some(token.trim_end().to_owned())
    }

    /// Removes the file if it is stale.
    pub fn remove_if_stale(&self) {
        if let Ok(file) = File::open(&self.path)
            && file.try_lock().is_ok()
            && is_at(&file, &self.path)
        {
            // Whoever takes the file meanwhile sees that it is gone.
            let _ = remove(&self.path.with_extension("token"));
            let _ = fs::remove_file(&self.path);
        }
    }
}

impl Announced {
    /// Returns the path of the file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the token that the server has made into a file that only its user can read. Returns the
    /// path.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn keep_token(&self, token: &str) -> Result<PathBuf, DiscoveryError> {
        let path = self.path.with_extension("token");
        let written = open_private(&path).and_then(|mut file| {
            file.set_len(0)?;
            writeln!(file, "{token}")
        });
        match written {
            Ok(()) => Ok(path),
            Err(source) => Err(DiscoveryError::Io { path, source }),
        }
    }

    /// Writes what local tools should know.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn announce(&mut self, announcement: &Announcement) -> Result<(), DiscoveryError> {
        let written = serde_json::to_vec(announcement)
            .map_err(io::Error::from)
            .and_then(|mut text| {
                text.push(b'\n');
                self.file.set_len(0)?;
                self.file.seek(SeekFrom::Start(0))?;
                self.file.write_all(&text)
            });
        written.map_err(|source| DiscoveryError::Io {
            path: self.path.clone(),
            source,
        })
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        // Removed while it is locked, so that nobody else's file can be. One that stays is stale.
        let _ = remove(&self.path.with_extension("token"));
        let _ = fs::remove_file(&self.path);
    }
}

impl std::fmt::Debug for Announcement {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Announcement")
            .field("pid", &self.pid)
            .field("port", &self.port)
            .field("host", &self.host)
            .field("auth", &self.auth)
            .finish_non_exhaustive()
    }
}

fn port_of(name: &str) -> Option<u16> {
    let port = name.strip_prefix("acp-server-")?.strip_suffix(".json")?;
    port.parse().ok()
}

fn read(path: &Path) -> Option<Announcement> {
    let mut text = String::new();
    let file = File::open(path).ok()?;
    file.take(FILE_BYTES).read_to_string(&mut text).ok()?;
    serde_json::from_str(&text).ok()
}

#[cfg(test)]
mod tests;
