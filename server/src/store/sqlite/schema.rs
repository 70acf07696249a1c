//! The tables, and how files of earlier versions become files of this one.

use rusqlite::Connection;

/// Marks a file as ours: "ACPS".
pub(super) const APPLICATION_ID: i32 = 0x4143_5053;

/// What brings a file from one version to the next. The version of a file is the number of the
/// steps that it has seen, in `PRAGMA user_version`. A step that was released never changes.
pub(super) const STEPS: &[&str] = &[
    // 1: the beginning.
    "
    -- One row: counters of the whole store.
    CREATE TABLE store (
        -- The highest token of a lease.
        tokens INTEGER NOT NULL,
        -- Changes so that there is something to write to the disk.
        syncs INTEGER NOT NULL
    ) STRICT;
    INSERT INTO store VALUES (0, 0);

    CREATE TABLE sessions (
        key INTEGER PRIMARY KEY,
        id TEXT NOT NULL UNIQUE,
        name TEXT UNIQUE,
        cwd TEXT NOT NULL,
        -- JSON array of strings.
        additional_directories TEXT NOT NULL,
        title TEXT,
        created_at TEXT NOT NULL,
        updated_at TEXT NOT NULL,
        -- JSON object, values by option id.
        settings TEXT NOT NULL,
        running_turn INTEGER,
        forked_from TEXT,
        forked_at INTEGER,
        -- The latest lease: its token, and the instance that holds it, if one does.
        token INTEGER NOT NULL,
        owner TEXT
    ) STRICT;
    CREATE INDEX sessions_by_activity ON sessions (updated_at DESC, id);
    CREATE INDEX sessions_by_cwd ON sessions (cwd, updated_at DESC, id);

    -- The events of a commit: `first` to `last`, a JSON text per line.
    CREATE TABLE batches (
        key INTEGER PRIMARY KEY,
        session INTEGER NOT NULL,
        first INTEGER NOT NULL,
        last INTEGER NOT NULL,
        lines TEXT NOT NULL
    ) STRICT;
    -- By the last number, so that the batch with the event after a number is the first one found.
    CREATE UNIQUE INDEX batches_by_last ON batches (session, last);
    ",
    // 2: what the handler keeps of a session, as JSON.
    "ALTER TABLE sessions ADD COLUMN data TEXT",
    // 3: when a batch was committed, in milliseconds since 1970; null for those of earlier versions.
    "ALTER TABLE batches ADD COLUMN time INTEGER",
    // 4: the number of the oldest event of a session. Those before it were removed.
    "ALTER TABLE sessions ADD COLUMN oldest INTEGER NOT NULL DEFAULT 1",
    // 5: what a turn changes of a session, in a small row of its own. The row of the session is large
    // and has indexes. Nothing is written for the sake of a sync.
    "
    CREATE TABLE activity (
        -- The key of the session.
        session INTEGER PRIMARY KEY,
        updated_at TEXT NOT NULL,
        running_turn INTEGER,
        oldest INTEGER NOT NULL
    ) STRICT;
    INSERT INTO activity SELECT key, updated_at, running_turn, oldest FROM sessions;
    -- Sessions are listed in this order, also those of one directory.
    CREATE INDEX activity_by_time ON activity (updated_at DESC);
    DROP INDEX sessions_by_activity;
    DROP INDEX sessions_by_cwd;
    ALTER TABLE sessions DROP COLUMN updated_at;
    ALTER TABLE sessions DROP COLUMN running_turn;
    ALTER TABLE sessions DROP COLUMN oldest;
    ALTER TABLE store DROP COLUMN syncs;
    ",
    // 6: what was derived from the events of a session, and can be made again.
    "
    CREATE TABLE derived (
        -- The key of the session.
        session INTEGER PRIMARY KEY,
        text TEXT NOT NULL
    ) STRICT;
    ",
    // 7: prompts that wait for their turns.
    "
    CREATE TABLE prompts (
        -- The key of the session.
        session INTEGER NOT NULL,
        number INTEGER NOT NULL,
        -- JSON.
        text TEXT NOT NULL,
        PRIMARY KEY (session, number)
    ) STRICT;
    ",
];

/// Returns the version that `steps` lead to.
pub(super) fn version_of(steps: &[&str]) -> i32 {
    i32::try_from(steps.len()).unwrap_or(i32::MAX)
}

/// Runs the steps that a file has not seen. The caller has begun a transaction.
pub(super) fn migrate(
    connection: &Connection,
    from: i32,
    steps: &[&str],
) -> Result<(), rusqlite::Error> {
    for step in steps.iter().skip(usize::try_from(from).unwrap_or(0)) {
        connection.execute_batch(step)?;
    }
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", version_of(steps))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_runs_once() {
        let connection = Connection::open_in_memory().unwrap();
        let version = || {
            connection
                .pragma_query_value(None, "user_version", |row| row.get::<_, i32>(0))
                .unwrap()
        };
        let mut steps = STEPS.to_vec();
        migrate(&connection, version(), &steps).unwrap();
        assert_eq!(version(), 7);
        steps.push("ALTER TABLE store ADD COLUMN later INTEGER");
        steps.push("UPDATE store SET later = 7");
        migrate(&connection, version(), &steps).unwrap();
        assert_eq!(version(), 9);
        migrate(&connection, version(), &steps).unwrap();
        let later = connection.query_row("SELECT later FROM store", [], |row| row.get(0));
        assert_eq!(later, Ok(7));
    }
}
