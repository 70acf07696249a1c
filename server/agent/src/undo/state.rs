//! What a path was at one time, and how it becomes that again.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cap_std::fs::{Dir, Metadata, OpenOptions};
use serde::{Deserialize, Serialize};

use super::blobs::{Blobs, hash_of};
use super::place::Place;
use crate::confined::{open_regular, read_up_to};

/// What a path is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum State {
    Absent,
    File {
        hash: String,
        size: u64,
        /// Permission bits, on Unix.
        mode: Option<u32>,
    },
    /// A symbolic link, which is not followed.
    Link {
        target: String,
    },
    /// A file above the limit, whose content is not kept.
    Large {
        size: u64,
    },
    /// A directory, pipe or device, or a link whose target is no text.
    Other,
}

impl State {
    /// Returns why this state cannot be restored.
    pub(super) fn unkept(&self) -> Option<String> {
        match self {
            Self::Absent | Self::File { .. } | Self::Link { .. } => None,
            Self::Large { size } => Some(format!("it has {size} bytes, which are not kept")),
            Self::Other => Some("it is a directory or a special file".to_owned()),
        }
    }

    /// Returns hash and size of the kept content.
    pub(super) fn blob(&self) -> Option<(&str, u64)> {
        match self {
            Self::File { hash, size, .. } => Some((hash, *size)),
            _ => None,
        }
    }
}

impl Place {
    /// Returns what is there, with its content.
    pub(super) fn state(&self, most: u64) -> io::Result<(State, Vec<u8>)> {
        let metadata = match self.root.symlink_metadata(&self.below) {
            Ok(metadata) => metadata,
            Err(error) if is_absent(&error) => return Ok((State::Absent, Vec::new())),
            Err(error) => return Err(error),
        };
        if metadata.is_symlink() {
            let target = self.root.read_link_contents(&self.below)?;
            let state = target.to_str().map_or(State::Other, |target| State::Link {
                target: target.to_owned(),
            });
            return Ok((state, Vec::new()));
        }
        if !metadata.is_file() {
            return Ok((State::Other, Vec::new()));
        }
        let size = metadata.len();
        if size > most {
            return Ok((State::Large { size }, Vec::new()));
        }
        let bytes = read_up_to(open_regular(&self.root, &self.below)?, most)?;
        let size = bytes.len() as u64;
        if size > most {
            return Ok((State::Large { size }, Vec::new()));
        }
        let state = State::File {
            hash: hash_of(&bytes),
            size,
            mode: mode(&metadata),
        };
        Ok((state, bytes))
    }

    /// Makes the path what it was.
    ///
    /// # Errors
    ///
    /// The reason; the path is unchanged then.
    pub(super) fn restore(&self, state: &State, blobs: &Blobs) -> Result<(), String> {
        let failed = |error: io::Error| error.to_string();
        match state {
            State::Absent => match self.root.remove_file(&self.below) {
                Err(error) if !is_absent(&error) => Err(failed(error)),
                _ => Ok(()),
            },
            State::File { hash, mode, .. } => {
                let bytes = blobs.get(hash)?;
                self.replace(|dir, name| write(dir, name, &bytes, *mode))
                    .map_err(failed)
            }
            State::Link { target } => {
                let target = Path::new(target);
                self.replace(|dir, name| link(dir, target, name))
                    .map_err(failed)
            }
            State::Large { .. } | State::Other => Err(state.unkept().unwrap_or_default()),
        }
    }

    /// Creates something beside the path, then gives it the name: others see the old or the new.
    fn replace(&self, create: impl FnOnce(&Dir, &Path) -> io::Result<()>) -> io::Result<()> {
        let (parent, name) = self.divided();
        let dir = match parent.as_os_str().is_empty() {
            true => self.root.try_clone()?,
            false => {
                self.root.create_dir_all(parent)?;
                self.root.open_dir(parent)?
            }
        };
        let new = unused_name();
        let replaced = create(&dir, &new).and_then(|()| dir.rename(&new, &dir, name));
        if replaced.is_err() {
            // The error that is reported is the one before.
            let _ = dir.remove_file(&new);
        }
        replaced
    }
}

fn write(dir: &Dir, name: &Path, bytes: &[u8], mode: Option<u32>) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    cap_std::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = dir.open_with(name, &options)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    if let Some(mode) = mode {
        file.set_permissions(cap_std::fs::PermissionsExt::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = mode;
    file.sync_data()
}

#[cfg(unix)]
fn link(dir: &Dir, target: &Path, name: &Path) -> io::Result<()> {
    dir.symlink_contents(target, name)
}

#[cfg(not(unix))]
fn link(_: &Dir, _: &Path, _: &Path) -> io::Result<()> {
    let reason = "symbolic links are restored on Unix only";
    Err(io::Error::new(io::ErrorKind::Unsupported, reason))
}

/// The permission bits; special bits are never restored.
#[cfg(unix)]
fn mode(metadata: &Metadata) -> Option<u32> {
    Some(cap_std::fs::MetadataExt::mode(metadata) & 0o777)
}

#[cfg(not(unix))]
fn mode(_: &Metadata) -> Option<u32> {
    None
}

fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

/// A name that hardly anybody else uses; creating one that is taken fails.
fn unused_name() -> PathBuf {
    let random = RandomState::new().build_hasher().finish();
    PathBuf::from(format!(".acp-undo-{random:016x}"))
}
