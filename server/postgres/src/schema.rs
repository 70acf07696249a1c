//! The tables, and how those of earlier versions become those of this one.

use std::time::Duration;

use tokio_postgres::types::Type;

use acp_server::store::{StoreError, StoreErrorKind};

use crate::database::{Connection, Database};
use crate::failure::Failure;

/// What brings the tables from one version to the next. The version is the number of the steps that
/// they have seen, in `acp_schema`. A step that was released never changes. `@` stands for the schema.
pub(crate) const STEPS: &[&str] = &[
    // 1: the beginning.
    r#"
    -- The tokens of all leases: one never comes twice, also not for a session that was deleted and
    -- created again.
    CREATE SEQUENCE @acp_tokens;

    -- The instances of the store. A row is removed when its instance ends. One that has expired never
    -- becomes valid again: the instance registers anew.
    CREATE TABLE @acp_nodes (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        -- Where other nodes reach it.
        address text,
        -- For people.
        name text,
        host text,
        pid bigint,
        started_at timestamptz NOT NULL,
        heartbeat timestamptz NOT NULL,
        -- Until when its leases are valid.
        expires timestamptz NOT NULL
    );

    CREATE TABLE @acp_sessions (
        key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        id text COLLATE "C" NOT NULL CONSTRAINT acp_sessions_id UNIQUE,
        name text COLLATE "C" CONSTRAINT acp_sessions_name UNIQUE,
        cwd text COLLATE "C" NOT NULL,
        -- JSON array of strings.
        additional_directories text NOT NULL,
        title text,
        created_at text COLLATE "C" NOT NULL,
        updated_at text COLLATE "C" NOT NULL,
        -- JSON object, values by option id.
        settings text NOT NULL,
        -- JSON. Texts, because jsonb changes numbers and refuses some characters.
        data text,
        running_turn bigint,
        forked_from text COLLATE "C",
        forked_at bigint,
        last_event bigint NOT NULL,
        oldest_event bigint NOT NULL,
        -- Bytes of all events that were ever written, and of those that were removed.
        bytes bigint NOT NULL,
        removed bigint NOT NULL,
        -- The latest lease: its token, and the node that has it, if one does.
        token bigint NOT NULL,
        owner bigint,
        -- Rises within a lease, to make statements void that may still be on their way.
        attempt bigint NOT NULL DEFAULT 0
    ) WITH (fillfactor = 70);
    CREATE INDEX acp_sessions_by_activity ON @acp_sessions (updated_at DESC, id);
    CREATE INDEX acp_sessions_by_cwd ON @acp_sessions (cwd, updated_at DESC, id);
    CREATE INDEX acp_sessions_by_owner ON @acp_sessions (owner) WHERE owner IS NOT NULL;

    -- The events of a commit: `first` to `last`, a JSON text per line. The key is that of the last one,
    -- so that the batch with the event after a number is the first one found.
    CREATE TABLE @acp_batches (
        session bigint NOT NULL,
        first bigint NOT NULL,
        last bigint NOT NULL,
        lines text NOT NULL,
        -- Milliseconds since 1970.
        time bigint,
        -- Bytes of the session's events up to the end of this batch.
        total bigint NOT NULL,
        PRIMARY KEY (session, last)
    );

    -- What was derived from the events of a session, and can be made again.
    CREATE TABLE @acp_derived (
        session bigint PRIMARY KEY REFERENCES @acp_sessions ON DELETE CASCADE,
        text text NOT NULL
    );
    "#,
    // 2: sessions whose node was killed in a turn are found without reading the others.
    "CREATE INDEX acp_sessions_running ON @acp_sessions (owner) WHERE running_turn IS NOT NULL",
    // 3: prompts that wait for their turns.
    "
    CREATE TABLE @acp_prompts (
        session bigint NOT NULL REFERENCES @acp_sessions ON DELETE CASCADE,
        number bigint NOT NULL,
        -- JSON.
        text text NOT NULL,
        PRIMARY KEY (session, number)
    );
    ",
];

/// Locks the tables of all schemas while they change: "ACPS".
const LOCK: i64 = 0x4143_5053;

/// How long a step may take: it may write large tables again.
const PATIENCE: Duration = Duration::from_secs(3600);

/// Brings the tables up to date.
pub(crate) async fn migrate(database: &Database, steps: &[&str]) -> Result<(), StoreError> {
    let migrated = run(database, steps).await;
    migrated.map_err(|failure| failure.into_error(&database.place))
}

async fn run(database: &Database, steps: &[&str]) -> Result<(), Failure> {
    let newest = i32::try_from(steps.len()).unwrap_or(i32::MAX);
    let mut connection = database.connection().await?;
    check_encoding(&mut connection).await?;
    // Most instances find the tables as they should be, and need no right to change them.
    if let Some(version) = version(&mut connection, database.schema()).await?
        && check_version(version, newest)?
    {
        return Ok(());
    }
    drop(connection);
    let mut transaction = database.begin().await?;
    transaction.wait(PATIENCE);
    transaction
        .execute("SET LOCAL statement_timeout = 0")
        .await?;
    let lock = "SELECT pg_advisory_xact_lock($1)";
    transaction.query(lock, &[(&LOCK, Type::INT8)]).await?;
    // Another instance may have been faster.
    let from = match version(&mut transaction, database.schema()).await? {
        Some(version) if check_version(version, newest)? => return transaction.commit().await,
        Some(version) => version,
        None => {
            create(&mut transaction, database.schema()).await?;
            0
        }
    };
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
        transaction.execute(step).await?;
    }
    let update = "UPDATE @acp_schema SET version = $1";
    transaction.query(update, &[(&newest, Type::INT4)]).await?;
    transaction.commit().await
}

/// Creates the table of the version, and the schema if it is missing: `CREATE SCHEMA IF NOT EXISTS`
/// needs the right to create one even if there is one.
async fn create(transaction: &mut Connection<'_>, schema: &str) -> Result<(), Failure> {
    let exists = "SELECT 1 FROM pg_namespace WHERE nspname = $1";
    let found = transaction.query(exists, &[(&schema, Type::TEXT)]).await?;
    if found.is_empty() {
        let create = format!("CREATE SCHEMA \"{schema}\"");
        transaction.execute(&create).await?;
    }
    let create = "CREATE TABLE @acp_schema (version integer NOT NULL);
         INSERT INTO @acp_schema VALUES (0)";
    transaction.execute(create).await
}

/// Returns the version of the tables; `None` if there are none.
async fn version(connection: &mut Connection<'_>, schema: &str) -> Result<Option<i32>, Failure> {
    // Not `to_regclass`: while a transaction waits for the lock, what it has cached of names grows old.
    let exists = "SELECT 1 FROM pg_tables WHERE schemaname = $1 AND tablename = 'acp_schema'";
    let found = connection.query(exists, &[(&schema, Type::TEXT)]).await?;
    if found.is_empty() {
        return Ok(None);
    }
    let rows = connection
        .query("SELECT version FROM @acp_schema", &[])
        .await?;
    Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
}

/// Returns whether the tables are those of this version.
fn check_version(version: i32, newest: i32) -> Result<bool, StoreError> {
    if version <= newest {
        return Ok(version == newest);
    }
    let message = format!(
        "the tables of the session store have version {version}, newer than version {newest}, which \
         this program knows. Use a newer program"
    );
    Err(StoreError::new(StoreErrorKind::Corrupt, message))
}

/// Events are text in UTF-8; other encodings lack characters.
async fn check_encoding(connection: &mut Connection<'_>) -> Result<(), Failure> {
    let rows = connection
        .query("SELECT current_setting('server_encoding')", &[])
        .await?;
    let encoding: Option<String> = rows.first().map(|row| row.try_get(0)).transpose()?;
    if encoding.as_deref() == Some("UTF8") {
        return Ok(());
    }
    let message = format!(
        "the database of the session store has the encoding {}, expected UTF8. Create it with \
         `ENCODING 'UTF8' TEMPLATE template0`",
        encoding.unwrap_or_default()
    );
    Err(StoreError::new(StoreErrorKind::Corrupt, message).into())
}
