//! What can be set of a store, and opening one.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use acp_server::store::{SessionRecord, StoreError, StoreErrorKind};

use crate::database::{Database, Limits, Via};
use crate::node::{Identity, Timing};
use crate::{PostgresStore, schema, tls};

/// Options of a [`PostgresStore`].
#[derive(Clone, Debug)]
pub struct PostgresOptions {
    password: Option<Secret>,
    pub(crate) address: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) timing: Timing,
    pool_size: usize,
    limits: Limits,
    schema: String,
    root_certificates: Option<PathBuf>,
    pub(crate) max_record_bytes: usize,
    steps: &'static [&'static str],
}

/// A text that is not shown.
#[derive(Clone)]
struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}

impl Default for PostgresOptions {
    fn default() -> Self {
        Self {
            password: None,
            address: None,
            name: None,
            timing: Timing {
                heartbeat: Duration::from_secs(10),
                fence: Duration::from_secs(20),
                takeover: Duration::from_secs(30),
            },
            pool_size: 10,
            limits: Limits {
                queue: Duration::from_secs(5),
                connect: Duration::from_secs(5),
                statement: Duration::from_secs(10),
            },
            schema: "public".to_owned(),
            root_certificates: None,
            max_record_bytes: SessionRecord::MAX_BYTES,
            steps: schema::STEPS,
        }
    }
}

impl PostgresOptions {
    /// Creates the default options.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the password (default: that of the URL). For URLs that others can see, such as arguments of
    /// a command.
    #[must_use]
    pub fn password(mut self, password: impl Into<String>) -> Self {
        self.password = Some(Secret(password.into()));
        self
    }

    /// Sets the address at which other nodes reach the server of this store (default: none). It is
    /// what [`StoreError::owner`] and [`Store::owner`](acp_server::store::Store::owner) return to
    /// them.
    #[must_use]
    pub fn address(mut self, address: impl Into<String>) -> Self {
        self.address = Some(address.into());
        self
    }

    /// Sets a name of the node for people (default: none). Host and process id are recorded anyway.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Sets the time between renewals of all leases of this instance (default 10 s). Each is one small
    /// statement. Must be less than [`fence`](Self::fence).
    #[must_use]
    pub fn heartbeat(mut self, time: Duration) -> Self {
        self.timing.heartbeat = time;
        self
    }

    /// Sets the time after the latest renewal in which the leases of this instance are valid for
    /// others, by the clock of the database (default 30 s). After that another node can take its
    /// sessions over.
    #[must_use]
    pub fn takeover(mut self, time: Duration) -> Self {
        self.timing.takeover = time;
        self
    }

    /// Sets the time after the begin of the latest renewal in which this instance uses its leases, by
    /// the monotonic clock of this machine (default 20 s). After that all of them are lost. Must be
    /// less than [`takeover`](Self::takeover): turns are stopped in the time between.
    #[must_use]
    pub fn fence(mut self, time: Duration) -> Self {
        self.timing.fence = time;
        self
    }

    /// Sets the maximum number of connections for sessions (default 10, at least 1). One more is for
    /// the heartbeat.
    #[must_use]
    pub fn pool_size(mut self, connections: usize) -> Self {
        self.pool_size = connections.max(1);
        self
    }

    /// Sets how long an operation waits for a free connection (default 5 s). It then fails with
    /// `Unavailable`.
    #[must_use]
    pub fn queue_timeout(mut self, time: Duration) -> Self {
        self.limits.queue = time;
        self
    }

    /// Sets how long connecting may take (default 5 s).
    #[must_use]
    pub fn connect_timeout(mut self, time: Duration) -> Self {
        self.limits.connect = time;
        self
    }

    /// Sets how long a statement may take (default 10 s; ten times as long if it copies or removes all
    /// events of a session). The database ends it then, and the operation fails with `Unavailable`.
    #[must_use]
    pub fn statement_timeout(mut self, time: Duration) -> Self {
        self.limits.statement = time;
        self
    }

    /// Sets the schema of the tables (default `public`). It is created if it is missing. Letters,
    /// digits and underscores.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets a PEM file of the certificate authorities that may sign the server's certificate (default:
    /// those of the operating system).
    #[must_use]
    pub fn root_certificates(mut self, path: impl Into<PathBuf>) -> Self {
        self.root_certificates = Some(path.into());
        self
    }

    /// Sets the maximum bytes of a record (default 1 MiB): id, name, directories, title, settings and
    /// the handler's data.
    #[must_use]
    pub fn max_record_bytes(mut self, bytes: usize) -> Self {
        self.max_record_bytes = bytes;
        self
    }

    /// Adds steps to those that bring the tables up to date; for tests.
    #[doc(hidden)]
    #[must_use]
    pub fn steps(mut self, steps: &'static [&'static str]) -> Self {
        self.steps = steps;
        self
    }

    /// Opens the store of a URL (`postgres://user:password@host:port/database?sslmode=require`) or of
    /// parameters (`host=/run/postgresql dbname=acp`). Creates the tables if they are missing, and
    /// registers this instance as a node.
    ///
    /// `sslmode` is `disable`, `prefer` (default) or `require`. With TLS, the server's certificate is
    /// always verified.
    ///
    /// Must be called in a tokio runtime with I/O and time, which renews the leases.
    ///
    /// # Errors
    ///
    /// - `Conflict`: the URL or the options are invalid.
    /// - `Corrupt`: the tables are of a later version, or the database is not in UTF-8.
    /// - `Unavailable`: the database cannot be reached, or refuses the login or the tables.
    pub async fn open(&self, url: &str) -> Result<PostgresStore, StoreError> {
        self.timing.check()?;
        let config = url.parse();
        let mut config: tokio_postgres::Config =
            config.map_err(|error: tokio_postgres::Error| {
                // The text of the error does not repeat the URL, which may have a password.
                let message = "the URL of the PostgreSQL store is invalid. Expected \
                 postgres://USER:PASSWORD@HOST:PORT/DATABASE";
                StoreError::new(StoreErrorKind::Conflict, message).with_source(error)
            })?;
        if let Some(Secret(password)) = &self.password {
            config.password(password);
        }
        if config.get_application_name().is_none() {
            config.application_name("acp-server");
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(self.limits.statement);
        }
        let tls = tls::connector(self.root_certificates.as_deref())?;
        let open =
            |size, via| Database::new(&config, via, tls.clone(), size, self.limits, &self.schema);
        let (mut control, mut via) = (open(1, Via::Directly)?, Via::Directly);
        if control.refuses_parameters().await {
            let place = &control.place;
            tracing::warn!(%place, "a pooler has no limit for single statements; set statement_timeout for its role");
            via = Via::Pooler;
            control = open(1, via)?;
        }
        let database = open(self.pool_size, via)?;
        schema::migrate(&database, self.steps).await?;
        let identity = Identity::new(self.address.clone(), self.name.clone());
        PostgresStore::start(self, database, control, identity).await
    }
}
