//! A file with named tokens, which commands change while servers use it.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

use acp_sdk::v1::SessionId;
use acp_server::Access;
use acp_server::internal::clock;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::token::{Hash, Token};

/// The version of the format.
const VERSION: u32 = 1;

/// The maximum bytes of a file.
const FILE_BYTES: u64 = 16 << 20;

/// The longest name that somebody can choose.
const NAME_CHARS: usize = 64;

/// Tries to lock the file, 10 ms apart.
const TRIES: usize = 200;

/// What precedes the session in the name of a session's token. No name of a command contains it.
const SESSION: &str = "session:";

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

/// A token of a [`TokenFile`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "Entry", try_from = "Entry")]
#[non_exhaustive]
pub struct NamedToken {
    /// What it is called. Of a session's token that `POST /session` issued: `session:ID`.
    pub name: String,
    /// What it permits.
    pub access: Access,
    /// When it was added.
    pub created: SystemTime,
    /// When it ends; `None`: never.
    pub expires: Option<SystemTime>,
    pub(super) hash: Hash,
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

/// What tells one state of a file from another. `None`: there is no file.
pub(super) type Stamp = Option<(SystemTime, u64, u64)>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Contents {
    version: u32,
    tokens: Vec<NamedToken>,
}

/// A token as the file has it. A member that this version does not know could limit the token.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    name: String,
    sha256: String,
    access: Right,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    created: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Right {
    Full,
    ReadOnly,
    Session,
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

impl NamedToken {
    fn new(name: String, access: Access, expires: Option<SystemTime>, token: &Token) -> Self {
        Self {
            name,
            access,
            created: SystemTime::now(),
            expires,
            hash: token.hash(),
        }
    }

    /// Returns whether the token has ended by itself.
    #[must_use]
    pub fn has_expired(&self, now: SystemTime) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Returns whether it is the same token with the same right, whenever it expires.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        (&self.name, &self.access, self.hash) == (&other.name, &other.access, other.hash)
    }

    /// Returns whether a server issued it for a session.
    pub(super) fn is_of_session(&self) -> bool {
        self.name.starts_with(SESSION)
    }
}

impl From<NamedToken> for Entry {
    fn from(token: NamedToken) -> Self {
        let (access, session) = match token.access {
            Access::Full => (Right::Full, None),
            Access::ReadOnly => (Right::ReadOnly, None),
            Access::Session(session) => (Right::Session, Some(session.to_string())),
        };
        Self {
            name: token.name,
            sha256: token.hash.digits(),
            access,
            session,
            created: clock::text_of(token.created),
            expires: token.expires.map(clock::text_of),
        }
    }
}

impl TryFrom<Entry> for NamedToken {
    type Error = String;

    fn try_from(entry: Entry) -> Result<Self, String> {
        let name = &entry.name;
        let time = |text: String| {
            let time = text.parse::<Timestamp>().map(SystemTime::from);
            time.map_err(|_| format!("{text:?} as a time of the token {name:?}"))
        };
        let access = match (entry.access, entry.session) {
            (Right::Full, None) => Access::Full,
            (Right::ReadOnly, None) => Access::ReadOnly,
            (Right::Session, Some(session)) => Access::Session(session.into()),
            _ => {
                return Err(format!(
                    "a token {name:?} whose access and session disagree"
                ));
            }
        };
        let hash = Hash::of_digits(&entry.sha256);
        Ok(Self {
            hash: hash.ok_or_else(|| format!("no SHA-256 hash of the token {name:?}"))?,
            created: time(entry.created)?,
            expires: entry.expires.map(time).transpose()?,
            access,
            name: entry.name,
        })
    }
}

/// Returns the name of a session's token.
pub(super) fn session_name(session: &SessionId) -> String {
    format!("{SESSION}{session}")
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> (tempfile::TempDir, TokenFile) {
        let folder = tempfile::tempdir().unwrap();
        let file = TokenFile::new(folder.path().join("new/tokens.json"));
        (folder, file)
    }

    #[test]
    fn tokens_are_kept_as_hashes_in_a_file_of_this_user() {
        let (_folder, file) = file();
        assert_eq!(file.list().unwrap(), []);
        let expires = SystemTime::UNIX_EPOCH + Duration::from_secs(4_000_000_000);
        let secret = file.add("ci", Access::ReadOnly, Some(expires)).unwrap();
        let own = Access::Session("s".into());
        file.add("editor", own.clone(), None).unwrap();
        let tokens = file.list().unwrap();
        assert_eq!(
            (&*tokens[0].name, &tokens[0].access),
            ("ci", &Access::ReadOnly)
        );
        assert_eq!(tokens[0].expires, Some(expires));
        assert_eq!((&tokens[1].access, tokens[1].expires), (&own, None));
        let text = fs::read_to_string(file.path()).unwrap();
        assert!(!text.contains(secret.secret()));
        assert!(text.contains(&secret.hash().digits()), "{text}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
            assert_eq!(mode(file.path()), 0o600);
            assert_eq!(mode(file.folder()), 0o700);
        }
        file.revoke("ci").unwrap();
        assert_eq!(file.list().unwrap().len(), 1);
        assert!(matches!(
            file.revoke("ci"),
            Err(TokenFileError::Unknown { .. })
        ));
    }

    #[test]
    fn names_are_plain_and_unique() {
        let (_folder, file) = file();
        let long = "a".repeat(NAME_CHARS + 1);
        for name in ["", "a b", "session:s", "ü", "a\n", &long] {
            let refused = file.add(name, Access::Full, None);
            assert!(matches!(refused, Err(TokenFileError::Name(_))), "{name}");
        }
        file.add("a.b-c_9", Access::Full, None).unwrap();
        let refused = file.add("a.b-c_9", Access::Full, None).unwrap_err();
        assert!(
            refused.to_string().contains("tokens revoke a.b-c_9"),
            "{refused}"
        );
    }

    #[test]
    fn a_damaged_file_is_refused_with_the_reason() {
        let (_folder, file) = file();
        file.add("a", Access::Full, None).unwrap();
        let good = fs::read_to_string(file.path()).unwrap();
        let digits = file.list().unwrap()[0].hash.digits();
        let twice = {
            let mut contents: serde_json::Value = serde_json::from_str(&good).unwrap();
            let token = contents["tokens"][0].clone();
            contents["tokens"].as_array_mut().unwrap().push(token);
            contents.to_string()
        };
        for (text, reason) in [
            (String::new(), "EOF"),
            (good[..good.len() / 2].to_owned(), "EOF"),
            (
                good.replace("\"version\": 1", "\"version\": 2"),
                "version 2",
            ),
            (good.replace(&digits, "abc"), "SHA-256"),
            (good.replace("\"full\"", "\"session\""), "disagree"),
            (good.replace("\"full\"", "\"everything\""), "everything"),
            (
                good.replace("\"name\"", "\"only_from\": 1, \"name\""),
                "only_from",
            ),
            (good.replace("\"created\": \"2", "\"created\": \"x"), "time"),
            (twice, "two tokens \"a\""),
        ] {
            fs::write(file.path(), text).unwrap();
            let error = file.list().unwrap_err().to_string();
            assert!(
                error.contains(reason) && error.contains("tokens.json"),
                "{error}"
            );
            assert!(file.add("b", Access::Full, None).is_err());
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_can_access_is_refused() {
        use std::os::unix::fs::PermissionsExt as _;
        let (_folder, file) = file();
        file.add("a", Access::Full, None).unwrap();
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o620)).unwrap();
        let error = file.list().unwrap_err();
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }

    #[test]
    fn changes_come_one_after_the_other() {
        let (_folder, file) = file();
        thread::scope(|scope| {
            for number in 0..8 {
                let file = &file;
                scope.spawn(move || file.add(&format!("n{number}"), Access::Full, None).unwrap());
            }
        });
        assert_eq!(file.list().unwrap().len(), 8);
    }
}
