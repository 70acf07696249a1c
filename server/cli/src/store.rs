//! The option `--store`: every store that the commands know is a variant of [`StoreKind`].

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use acp_server::store::{Durability, MemoryStore, SqliteOptions, SqliteStore, Store};
use clap::Args;

use super::Failure;
use super::usage::{UsageError, usage};

/// Where sessions are kept.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// File that keeps the sessions, `postgres://…` for a database that several servers share, or
    /// `memory` to forget them at the end; without it, ACP_STORE of the environment [default:
    /// acp-server/sessions.db in the user's data folder]
    #[arg(long, value_name = "PATH|URL")]
    pub store: Option<PathBuf>,
}

enum StoreKind {
    Memory,
    Sqlite(PathBuf),
    /// The URL of a `PostgresStore`, and the schema in it; `None`: the default.
    Postgres(String, Option<String>),
}

/// What else a store is opened with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StoreUse<'a> {
    /// Each commit is on the disk when it completes.
    pub(super) sync: bool,
    /// How a shared store knows this server; `None`: as one that is used for a moment.
    pub(super) node: Option<NodeIdentity<'a>>,
}

/// How a shared store knows a server.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(feature = "postgres"),
    expect(dead_code, reason = "no other store is shared")
)]
pub(super) struct NodeIdentity<'a> {
    /// Where other nodes reach it.
    pub(super) address: Option<&'a str>,
    /// The time without a sign of life after which others open its sessions.
    pub(super) takeover: Duration,
}

/// The store that forgets.
const MEMORY: &str = "memory";

/// The environment variable that names the store.
const VARIABLE: &str = "ACP_STORE";

/// Between the URL of a database and the schema of an agent.
const SCHEMA: char = '#';

impl StoreArgs {
    /// # Errors
    ///
    /// Wrong usage, for a URL of no database; when the user has no home folder.
    fn kind(&self) -> Result<StoreKind, Failure> {
        let Some(path) = self.named() else {
            return Ok(StoreKind::Sqlite(SqliteStore::default_path()?));
        };
        if path.as_os_str() == MEMORY {
            return Ok(StoreKind::Memory);
        }
        match path
            .to_str()
            .and_then(|text| Some((text, text.split_once("://")?.0)))
        {
            None => Ok(StoreKind::Sqlite(path)),
            Some((url, "postgres" | "postgresql")) => Ok(match url.split_once(SCHEMA) {
                Some((url, schema)) => StoreKind::Postgres(url.to_owned(), Some(schema.to_owned())),
                None => StoreKind::Postgres(url.to_owned(), None),
            }),
            Some((_, scheme)) => usage(format!(
                "--store {scheme}://… is no store that this command knows. Use a path, `memory`, or a \
                 URL with postgres://"
            )),
        }
    }

    /// Returns whether several servers can share the store and pass sessions to one another.
    ///
    /// # Errors
    ///
    /// As [`kind`](Self::kind).
    pub(super) fn is_shared(&self) -> Result<bool, Failure> {
        Ok(matches!(self.kind()?, StoreKind::Postgres(..)))
    }

    /// Returns whether nothing is kept on the disk.
    pub(super) fn is_memory(&self) -> bool {
        self.named().is_some_and(|path| path.as_os_str() == MEMORY)
    }

    /// Returns what names the store: the option, or else the environment, where the password of a database
    /// is not in the list of processes.
    fn named(&self) -> Option<PathBuf> {
        let named = self.store.clone();
        named.or_else(|| std::env::var_os(VARIABLE).map(PathBuf::from))
    }

    /// Returns the store of one of several agents: a file beside that of the option, with the agent's name
    /// in its name or with the name `file`; of a database, a schema of this name.
    ///
    /// # Errors
    ///
    /// When the user has no home folder.
    pub(super) fn of_agent(&self, name: &str, file: Option<&Path>) -> Result<Self, Failure> {
        let path = match (self.kind()?, file) {
            (StoreKind::Memory, _) => return Ok(self.clone()),
            (StoreKind::Postgres(url, _), Some(file)) => {
                format!("{url}{SCHEMA}{}", file.display()).into()
            }
            (StoreKind::Postgres(url, schema), None) => {
                let schema = schema.as_deref().unwrap_or("agent");
                let name = name.to_ascii_lowercase().replace('-', "_");
                format!("{url}{SCHEMA}{schema}_{name}").into()
            }
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

    /// Opens the store.
    ///
    /// # Errors
    ///
    /// The store's.
    pub(super) async fn open(&self, used: StoreUse<'_>) -> Result<Arc<dyn Store>, Failure> {
        match self.kind()? {
            StoreKind::Postgres(url, schema) => postgres(&url, schema, used.node).await,
            StoreKind::Memory => Ok(Arc::new(MemoryStore::new())),
            StoreKind::Sqlite(path) => {
                let mut options = SqliteOptions::new();
                if used.sync {
                    options = options.durability(Durability::EveryCommit);
                }
                let opened = options.open(&path);
                Ok(Arc::new(opened.map_err(|error| {
                    format!("{error}. `--store memory` serves without a file")
                })?))
            }
        }
    }

    /// Opens a store that servers share; `None` for another one.
    ///
    /// # Errors
    ///
    /// The store's.
    #[cfg(feature = "postgres")]
    pub(super) async fn open_shared(
        &self,
    ) -> Result<Option<acp_server_postgres::PostgresStore>, Failure> {
        match self.kind()? {
            StoreKind::Postgres(url, schema) => Ok(Some(open_postgres(&url, schema, None).await?)),
            StoreKind::Memory | StoreKind::Sqlite(_) => Ok(None),
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
            StoreKind::Postgres(url, schema) => place_of(&url, schema.as_deref()),
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
            StoreKind::Memory | StoreKind::Postgres(..) => None,
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
            StoreKind::Postgres(..) => {
                let reason = "a store in a database has no file; use the tools of the database, such as pg_dump";
                Err(Box::new(UsageError(reason.to_owned())))
            }
            StoreKind::Memory => {
                let reason = "a store in memory has no file; name one with --store PATH";
                Err(Box::new(UsageError(reason.to_owned())))
            }
        }
    }
}

/// Returns a database for people: without user, password and parameters.
fn place_of(url: &str, schema: Option<&str>) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("postgres", url));
    let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
    let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
    let schema = schema
        .map(|schema| format!(", schema {schema}"))
        .unwrap_or_default();
    format!("{scheme}://{place}{schema}")
}

#[cfg(feature = "postgres")]
async fn postgres(
    url: &str,
    schema: Option<String>,
    node: Option<NodeIdentity<'_>>,
) -> Result<Arc<dyn Store>, Failure> {
    Ok(Arc::new(open_postgres(url, schema, node).await?))
}

#[cfg(feature = "postgres")]
async fn open_postgres(
    url: &str,
    schema: Option<String>,
    node: Option<NodeIdentity<'_>>,
) -> Result<acp_server_postgres::PostgresStore, Failure> {
    let mut options = acp_server_postgres::PostgresOptions::new();
    if let Some(schema) = schema {
        options = options.schema(schema);
    }
    if let Some(NodeIdentity { address, takeover }) = node {
        options = options
            .heartbeat(takeover / 3)
            .fence(takeover / 3 * 2)
            .takeover(takeover);
        if let Some(address) = address {
            options = options.address(address);
        }
    }
    Ok(options.open(url).await?)
}

#[cfg(not(feature = "postgres"))]
async fn postgres(
    _: &str,
    _: Option<String>,
    _: Option<NodeIdentity<'_>>,
) -> Result<Arc<dyn Store>, Failure> {
    usage(
        "this command was built without the feature `postgres`; `cargo install acp-server-cli` has it",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(text: &str) -> StoreArgs {
        let store = Some(text.into());
        StoreArgs { store }
    }

    #[test]
    fn a_store_with_an_unknown_scheme_is_refused() {
        for url in ["mysql://host/db", "redis://host", "http://host/x.db"] {
            let refused = store(url).kind().err().unwrap().to_string();
            assert!(refused.contains("is no store"), "{url}: {refused}");
        }
        for path in ["x.db", "./a/b.db", "/tmp/postgres.db", "memory"] {
            assert!(!store(path).is_shared().unwrap(), "{path}");
        }
        assert!(store("postgres://host/db").is_shared().unwrap());
    }

    #[test]
    fn no_secret_of_a_database_is_shown() {
        let of_agent = store("postgres://me:p@ss@host:1/db?sslmode=require");
        let of_agent = of_agent.of_agent("The-Coder", None).unwrap();
        let place = of_agent.place().unwrap();
        assert_eq!(place, "postgres://host:1/db, schema agent_the_coder");
        let named = store("postgres://host/db").of_agent("x", Some(Path::new("other")));
        assert_eq!(
            named.unwrap().place().unwrap(),
            "postgres://host/db, schema other"
        );
    }
}
