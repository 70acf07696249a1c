//! The option `--store`: every store that the commands know is a variant of [`StoreKind`].

use std::path::{Path, PathBuf};
use std::sync::Arc;

use acp_server::store::{Durability, MemoryStore, SqliteOptions, SqliteStore, Store};
use clap::Args;

use super::Failure;
use super::usage::UsageError;

/// Where sessions are kept.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// File that keeps the sessions, or `memory` to forget them at the end [default:
    /// acp-server/sessions.db in the user's data folder]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
}

enum StoreKind {
    Memory,
    Sqlite(PathBuf),
}

impl StoreArgs {
    /// # Errors
    ///
    /// When the user has no home folder.
    fn kind(&self) -> Result<StoreKind, Failure> {
        match &self.store {
            Some(_) if self.is_memory() => Ok(StoreKind::Memory),
            Some(path) => Ok(StoreKind::Sqlite(path.clone())),
            None => Ok(StoreKind::Sqlite(SqliteStore::default_path()?)),
        }
    }

    /// Returns whether nothing is kept on the disk.
    pub(super) fn is_memory(&self) -> bool {
        self.store
            .as_ref()
            .is_some_and(|path| path.as_os_str() == "memory")
    }

    /// Returns the store of one of several agents: a file beside that of the option, with the agent's name
    /// in its name or with the name `file`.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn of_agent(&self, name: &str, file: Option<&Path>) -> Result<Self, Failure> {
        let path = match (self.kind()?, file) {
            (StoreKind::Memory, _) => return Ok(self.clone()),
            (StoreKind::Sqlite(path), Some(file)) => path.with_file_name("").join(file),
            (StoreKind::Sqlite(path), None) => {
                let mut named = path.file_stem().unwrap_or_default().to_owned();
                named.push(".");
                named.push(name);
                if let Some(extension) = path.extension() {
                    named.push(".");
                    named.push(extension);
                }
                path.with_file_name(named)
            }
        };
        Ok(Self { store: Some(path) })
    }

    /// Opens the store. `sync`: each commit is on the disk when it completes.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) fn open(&self, sync: bool) -> Result<Arc<dyn Store>, Failure> {
        match self.kind()? {
            StoreKind::Memory => Ok(Arc::new(MemoryStore::new())),
            StoreKind::Sqlite(path) => {
                let mut options = SqliteOptions::new();
                if sync {
                    options = options.durability(Durability::EveryCommit);
                }
                let opened = options.open(&path);
                Ok(Arc::new(opened.map_err(|error| {
                    format!("{error}. `--store memory` serves without a file")
                })?))
            }
        }
    }

    /// Returns where the store is, for people.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn place(&self) -> Result<String, Failure> {
        Ok(match self.kind()? {
            StoreKind::Memory => "memory; sessions end with the server".to_owned(),
            // It exists; the absolute path is for whoever reads the log elsewhere.
            StoreKind::Sqlite(path) => path.canonicalize().unwrap_or(path).display().to_string(),
        })
    }

    /// Returns the folder in which servers of the store that host an agent register; `None` for a store in
    /// memory.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn agents_folder(&self) -> Result<Option<PathBuf>, Failure> {
        Ok(match self.kind()? {
            StoreKind::Memory => None,
            StoreKind::Sqlite(path) => {
                let mut folder = path.into_os_string();
                folder.push(".agents");
                Some(folder.into())
            }
        })
    }

    /// Returns the file of the store.
    ///
    /// # Errors
    ///
    /// Wrong usage for one in memory; when the user has no home folder.
    pub(super) fn file(&self) -> Result<PathBuf, Failure> {
        match self.kind()? {
            StoreKind::Sqlite(path) => Ok(path),
            StoreKind::Memory => {
                let reason = "a store in memory has no file; name one with --store PATH";
                Err(Box::new(UsageError(reason.to_owned())))
            }
        }
    }
}
