//! Connections to the database: a bounded pool, a time for each answer, and no connection that may
//! still be doing something else.
//!
//! Statements are sent unnamed, each with its parameters in one message, and transactions are begun
//! and ended by statements. So a connection has no state between two of them, as poolers in
//! transaction mode require.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use acp_server::store::{StoreError, StoreErrorKind};
use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use tokio::time::timeout;
use tokio_postgres::config::Host;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Config, Row};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::failure::Failure;

/// A parameter of a statement with its type.
pub(crate) type Param<'a> = (&'a (dyn ToSql + Sync), Type);

/// How long things may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Waiting for a free connection.
    pub(crate) queue: Duration,
    pub(crate) connect: Duration,
    /// A statement, on the server.
    pub(crate) statement: Duration,
}

/// Who gives the connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Via {
    /// The database: limits hold for the connection.
    Directly,
    /// A pooler, which refuses parameters that a connection begins with and gives it to others
    /// between transactions: limits hold for a transaction.
    Pooler,
}

/// A pool of connections.
#[derive(Debug)]
pub(crate) struct Database {
    pool: Pool,
    /// The schema, before each name of a table.
    prefix: String,
    /// Host and database, for errors: without user and password.
    pub(crate) place: String,
    /// Begins a transaction.
    begin: String,
    /// How long a statement may take on the server.
    limit: Duration,
    /// How long the answer may take.
    answer: Duration,
    statements: AtomicU64,
}

impl Database {
    pub(crate) fn new(
        config: &Config,
        via: Via,
        tls: MakeRustlsConnect,
        connections: usize,
        limits: Limits,
        schema: &str,
    ) -> Result<Self, StoreError> {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
        if schema.is_empty() || !schema.bytes().all(is_name) {
            let message = format!(
                "the schema {schema:?} is invalid: expected letters, digits and underscores"
            );
            return Err(StoreError::new(StoreErrorKind::Conflict, message));
        }
        let manager = ManagerConfig {
            recycling_method: RecyclingMethod::Fast,
        };
        let place = place(config);
        let mut config = config.clone();
        let mut begin = "BEGIN ISOLATION LEVEL READ COMMITTED".to_owned();
        let milliseconds = limits.statement.as_millis();
        for limit in ["statement_timeout", "idle_in_transaction_session_timeout"] {
            match via {
                Via::Directly => {
                    let options = config.get_options().unwrap_or_default();
                    let options = format!("-c {limit}={milliseconds} {options}");
                    config.options(options);
                }
                Via::Pooler => begin += &format!("; SET LOCAL {limit} = {milliseconds}"),
            }
        }
        let pool = Pool::builder(Manager::from_config(config, tls, manager))
            .max_size(connections)
            .wait_timeout(Some(limits.queue))
            .create_timeout(Some(limits.connect))
            .runtime(Runtime::Tokio1)
            .build();
        let pool = pool.map_err(|error| {
            let message = format!("session store {place}: {error}");
            StoreError::new(StoreErrorKind::Unavailable, message)
        })?;
        Ok(Self {
            pool,
            begin,
            prefix: format!("\"{schema}\"."),
            place,
            limit: limits.statement,
            // The server's own limit comes first, unless it cannot be reached any more.
            answer: limits.statement + limits.statement / 4,
            statements: AtomicU64::new(0),
        })
    }

    /// Returns the name of the schema.
    pub(crate) fn schema(&self) -> &str {
        self.prefix.trim_matches(['"', '.'])
    }

    /// Returns what distinguishes these tables from others, in this process.
    pub(crate) fn tables(&self) -> String {
        format!("{} {}", self.place, self.prefix)
    }

    /// Returns the number of statements that were sent.
    pub(crate) fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
    }

    /// Returns a free connection.
    pub(crate) async fn connection(&self) -> Result<Connection<'_>, Failure> {
        let object = self.pool.get().await.map_err(Failure::NotSent)?;
        Ok(Connection {
            database: self,
            object: Some(object),
            is_clean: true,
            answer: self.answer,
        })
    }

    /// Returns whether connections are refused for the parameters that they begin with.
    pub(crate) async fn refuses_parameters(&self) -> bool {
        let connected = self.connection().await;
        connected.is_err_and(|failure| failure.is_of_parameters())
    }

    /// Has one statement done, in a transaction of its own. `@` stands for the schema.
    pub(crate) async fn query(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        let mut connection = self.connection().await?;
        connection.query(sql, params).await
    }

    /// As [`query`](Self::query), for a statement that changes nothing: one that fails because an
    /// idle connection had broken is sent again on a new one.
    pub(crate) async fn read(&self, sql: &str, params: &[Param<'_>]) -> Result<Vec<Row>, Failure> {
        match self.query(sql, params).await {
            Err(failure) if failure.ends_connection() && !matches!(failure, Failure::NoAnswer) => {
                self.query(sql, params).await
            }
            result => result,
        }
    }

    /// Begins a transaction, in which each statement sees what was committed before it.
    pub(crate) async fn begin(&self) -> Result<Connection<'_>, Failure> {
        let mut connection = self.connection().await?;
        connection.execute(&self.begin).await?;
        connection.is_clean = false;
        Ok(connection)
    }

    /// As [`begin`](Self::begin), for statements that copy or remove all events of a session.
    pub(crate) async fn begin_long(&self) -> Result<Connection<'_>, Failure> {
        let mut connection = self.begin().await?;
        let milliseconds = (self.limit * LONG).as_millis();
        let set = format!("SET LOCAL statement_timeout = {milliseconds}");
        connection.execute(&set).await?;
        connection.wait(self.answer * LONG);
        Ok(connection)
    }
}

/// How many times longer than others a statement may take that copies or removes all of a session.
const LONG: u32 = 10;

/// A connection of the pool. Dropped in the middle of a statement or of a transaction, it is closed,
/// which rolls the transaction back.
#[derive(Debug)]
pub(crate) struct Connection<'a> {
    database: &'a Database,
    object: Option<Object>,
    /// Whether another user can have it: outside of a transaction, and nothing is going on.
    is_clean: bool,
    answer: Duration,
}

impl Connection<'_> {
    /// Sets how long an answer may take.
    pub(crate) fn wait(&mut self, answer: Duration) {
        self.answer = answer;
    }

    pub(crate) async fn query(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<Row>, Failure> {
        let sql = sql.replace('@', &self.database.prefix);
        let object = self.object.as_ref().ok_or(Failure::NoAnswer)?;
        let was_clean = std::mem::replace(&mut self.is_clean, false);
        self.database.statements.fetch_add(1, Ordering::Relaxed);
        let result = timeout(self.answer, object.query_typed(&sql, params)).await;
        self.settle(
            was_clean,
            result.map(|result| result.map_err(Failure::from)),
        )
    }

    /// Has statements without parameters done.
    pub(crate) async fn execute(&mut self, sql: &str) -> Result<(), Failure> {
        let sql = sql.replace('@', &self.database.prefix);
        let object = self.object.as_ref().ok_or(Failure::NoAnswer)?;
        let was_clean = std::mem::replace(&mut self.is_clean, false);
        self.database.statements.fetch_add(1, Ordering::Relaxed);
        let result = timeout(self.answer, object.batch_execute(&sql)).await;
        self.settle(
            was_clean,
            result.map(|result| result.map_err(Failure::from)),
        )
    }

    /// Commits the transaction.
    pub(crate) async fn commit(mut self) -> Result<(), Failure> {
        self.execute("COMMIT").await?;
        self.is_clean = true;
        Ok(())
    }

    /// Rolls the transaction back.
    pub(crate) async fn roll_back(mut self) -> Result<(), Failure> {
        self.execute("ROLLBACK").await?;
        self.is_clean = true;
        Ok(())
    }

    fn settle<T>(
        &mut self,
        was_clean: bool,
        result: Result<Result<T, Failure>, tokio::time::error::Elapsed>,
    ) -> Result<T, Failure> {
        let result = result.unwrap_or(Err(Failure::NoAnswer));
        match &result {
            Err(failure) if failure.ends_connection() => {
                self.close();
                // The other idle connections went to the same server. Each of them would cost its
                // user a failure.
                self.database.pool.retain(|_, _| false);
            }
            _ => self.is_clean = was_clean,
        }
        result
    }

    fn close(&mut self) {
        // Not given back: dropping it ends its task, which closes the socket.
        drop(self.object.take().map(Object::take));
    }
}

impl Drop for Connection<'_> {
    fn drop(&mut self) {
        if !self.is_clean {
            self.close();
        }
    }
}

/// Returns what a configuration connects to, without user and password.
fn place(config: &Config) -> String {
    let hosts = config.get_hosts().iter().map(|host| match host {
        Host::Tcp(name) => name.clone(),
        #[cfg(unix)]
        Host::Unix(path) => path.display().to_string(),
    });
    let hosts: Vec<_> = hosts.collect();
    let port = match config.get_ports() {
        [port] => format!(":{port}"),
        _ => String::new(),
    };
    let database = config.get_dbname().unwrap_or_default();
    format!("postgres://{}{port}/{database}", hosts.join(","))
}
