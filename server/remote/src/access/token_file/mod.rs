//! A file with named tokens, which commands change while servers use it.

mod entry;
#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use acp_sdk::v1::SessionId;
use acp_server::Access;
use serde::{Deserialize, Serialize};

use super::token::Token;
pub use entry::NamedToken;
pub(super) use entry::session_name;

/// The version of the format.
const VERSION: u32 = 1;

/// The maximum bytes of a file.
const FILE_BYTES: u64 = 16 << 20;

/// The longest name that somebody can choose.
const NAME_CHARS: usize = 64;

/// Tries to lock the file, 10 ms apart.
const TRIES: usize = 200;

/// A file with named tokens, each with its right and its expiry. It has SHA-256 hashes only.
///
/// Every change replaces the file by a new one (mode 0600) in one step. Commands and servers change
/// it one after the other: they lock `FILE.lock` meanwhile. [`Tokens::with_file`](super::Tokens::with_file)
/// uses it.
///
/// All methods block.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: PathBuf,
}

/// Why a file of tokens cannot be read or changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenFileError {
    /// The file or its folder cannot be used.
    #[error("cannot use the token file {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file is not in the format of this version.
    #[error(
        "expected named tokens in {}, got {reason}; restore the file, or remove it and add the \
         tokens again",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What it has instead.
        reason: String,
    },
    /// Others than the file's user can read or write it.
    #[error("other users can access {0}; `chmod 600 {0}` prevents it", path.display())]
    Exposed {
        /// The file.
        path: PathBuf,
    },
    /// Another process has locked the file for 2 seconds.
    #[error("another process holds the lock {}; try again when it has ended", path.display())]
    Locked {
        /// The lock file.
        path: PathBuf,
    },
    /// The name cannot be one of a token.
    #[error(
        "expected a name of 1 to {NAME_CHARS} ASCII letters, digits, `.`, `_` and `-`, got {0:?}"
    )]
    Name(String),
    /// A token has the name already.
    #[error("a token {name} is in {} already; `acp-server tokens revoke {name}` removes it", path.display())]
    Exists {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// No token has the name.
    #[error("no token {name:?} is in {}; `acp-server tokens list` shows the names", path.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        path: PathBuf,
    },
    /// The system has no source of random numbers.
    #[error("no random numbers for a token: {0}")]
    Random(#[from] getrandom::Error),
}

/// Identifies a state of a file. `None`: there is no file.
pub(super) type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    tokens: Vec<NamedToken>,
}

impl TokenFile {
    /// Names a file, which need not exist: then it has no tokens.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// Returns the path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the tokens, the oldest first. Expired ones stay until they are revoked.
    ///
    /// # Errors
    ///
    /// When the file cannot be read, is damaged, or others can access it.
    pub fn list(&self) -> Result<Vec<NamedToken>, TokenFileError> {
        self.read().map(|(tokens, _)| tokens)
    }

    /// Adds a token and returns its secret, which is kept nowhere.
    ///
    /// # Errors
    ///
    /// When the name cannot be one or is taken, or the file cannot be read or written.
    pub fn add(
        &self,
        name: &str,
        access: Access,
        expires: Option<SystemTime>,
    ) -> Result<Token, TokenFileError> {
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
        if !(1..=NAME_CHARS).contains(&name.len()) || !name.bytes().all(is_part) {
            return Err(TokenFileError::Name(name.to_owned()));
        }
        let token = Token::random()?;
        self.change(|tokens| {
            if tokens.iter().any(|known| known.name == name) {
                let (name, path) = (name.to_owned(), self.path.clone());
                return Err(TokenFileError::Exists { name, path });
            }
            tokens.push(NamedToken::new(name.to_owned(), access, expires, &token));
            Ok(())
        })?;
        Ok(token)
    }

    /// Removes a token.
    ///
    /// # Errors
    ///
    /// When no token has the name, or the file cannot be read or written.
    pub fn revoke(&self, name: &str) -> Result<(), TokenFileError> {
        self.change(|tokens| {
            let before = tokens.len();
            tokens.retain(|token| token.name != name);
            if tokens.len() < before {
                return Ok(());
            }
            let (name, path) = (name.to_owned(), self.path.clone());
            Err(TokenFileError::Unknown { name, path })
        })
    }

    /// Puts a token of a session in place of its earlier one.
    pub(super) fn replace_session(
        &self,
        session: &SessionId,
        token: &Token,
    ) -> Result<(), TokenFileError> {
        let name = session_name(session);
        let access = Access::Session(session.clone());
        self.change(|tokens| {
            tokens.retain(|token| token.name != name);
            tokens.push(NamedToken::new(name, access, None, token));
            Ok(())
        })
    }

    /// Returns which state of the file is there.
    pub(super) fn stamp(&self) -> io::Result<Stamp> {
        match fs::metadata(&self.path) {
            Ok(metadata) => stamp_of(&metadata),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads the tokens, and which state of the file they are from.
    pub(super) fn read(&self) -> Result<(Vec<NamedToken>, Stamp), TokenFileError> {
        let file = match File::open(&self.path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
            Err(error) => return Err(self.failed(error)),
        };
        let metadata = file.metadata().map_err(|error| self.failed(error))?;
        let stamp = stamp_of(&metadata).map_err(|error| self.failed(error))?;
        self.check_mode(&metadata)?;
        let mut text = String::new();
        file.take(FILE_BYTES)
            .read_to_string(&mut text)
            .map_err(|error| self.failed(error))?;
        Ok((self.parse(&text)?, stamp))
    }

    fn parse(&self, text: &str) -> Result<Vec<NamedToken>, TokenFileError> {
        let damaged = |reason: String| TokenFileError::Damaged {
            path: self.path.clone(),
            reason,
        };
        let Contents { version, tokens } =
            serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
        if version != VERSION {
            return Err(damaged(format!("version {version} of the format")));
        }
        let mut names: Vec<_> = tokens.iter().map(|token| &token.name).collect();
        names.sort();
        if let Some(pair) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(damaged(format!("two tokens {:?}", pair[0])));
        }
        Ok(tokens)
    }

    /// Changes the tokens, while nobody else does.
    fn change(
        &self,
        edit: impl FnOnce(&mut Vec<NamedToken>) -> Result<(), TokenFileError>,
    ) -> Result<(), TokenFileError> {
        create_folder(self.folder()).map_err(|error| self.failed(error))?;
        let _lock = self.lock()?;
        let mut tokens = self.list()?;
        edit(&mut tokens)?;
        self.write(tokens).map_err(|error| self.failed(error))
    }

    fn write(&self, tokens: Vec<NamedToken>) -> io::Result<()> {
        let contents = Contents {
            version: VERSION,
            tokens,
        };
        let mut text = serde_json::to_string_pretty(&contents)?;
        text.push('\n');
        // For this user only: the mode of new files of this crate.
        let mut file = tempfile::Builder::new()
            .suffix(".part")
            .tempfile_in(self.folder())?;
        file.write_all(text.as_bytes())?;
        // A token that was revoked must not come back after a loss of power.
        file.as_file().sync_all()?;
        file.persist(&self.path)
            .map(drop)
            .map_err(|error| error.error)
    }

    fn lock(&self) -> Result<File, TokenFileError> {
        let mut path = self.path.clone().into_os_string();
        path.push(".lock");
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let failed = |source| TokenFileError::Io {
            path: path.clone(),
            source,
        };
        let file = options.open(&path).map_err(failed)?;
        for _ in 0..TRIES {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
                Err(TryLockError::Error(error)) => return Err(failed(error)),
            }
        }
        Err(TokenFileError::Locked { path })
    }

    #[cfg(unix)]
    fn check_mode(&self, metadata: &Metadata) -> Result<(), TokenFileError> {
        use std::os::unix::fs::PermissionsExt as _;
        if metadata.permissions().mode() & 0o077 == 0 {
            return Ok(());
        }
        let path = self.path.clone();
        Err(TokenFileError::Exposed { path })
    }

    #[cfg(not(unix))]
    fn check_mode(&self, _: &Metadata) -> Result<(), TokenFileError> {
        Ok(())
    }

    fn folder(&self) -> &Path {
        let folder = self.path.parent();
        folder
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."))
    }

    fn failed(&self, source: io::Error) -> TokenFileError {
        let path = self.path.clone();
        TokenFileError::Io { path, source }
    }
}

fn stamp_of(metadata: &Metadata) -> io::Result<Stamp> {
    #[cfg(unix)]
    let file = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let file = 0;
    Ok(Some((metadata.modified()?, metadata.len(), file)))
}

fn create_folder(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}
