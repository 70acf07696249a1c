//! What is wrong with a store, without changing it.

use std::path::Path;

use rusqlite::Connection;

use super::failure::Failure;
use super::owner::Owners;
use super::{SqliteStore, file};
use crate::store::StoreError;

/// The most problems that are listed.
const MOST_PROBLEMS: usize = 100;

/// The first version whose sessions can have lost their oldest events to retention.
const REMOVES_EVENTS: i32 = 4;

/// The first version with a table of what turns change.
const ACTIVITY: i32 = 5;

/// The first version with prompts that wait for their turns.
const PROMPTS: i32 = 7;

/// What is in a store, and what is wrong with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct StoreCheck {
    /// The version of its tables.
    pub version: i32,
    /// The number of sessions.
    pub sessions: u64,
    /// The number of events.
    pub events: u64,
    /// The number of sessions that a running process has open.
    pub open: u64,
    /// The number of sessions whose process has ended without closing them. The next one that opens
    /// them ends their turns.
    pub abandoned: u64,
    /// The number of prompts that wait for their turns.
    pub prompts: u64,
    /// What is wrong, 100 problems at most; empty for a sound store.
    pub problems: Vec<String>,
}

impl SqliteStore {
    /// Checks the store at `path`: the database itself, the numbers of all events, prompts that wait, and who
    /// has sessions open. Servers may use it meanwhile. Changes nothing.
    ///
    /// Blocks while it reads the whole file.
    ///
    /// # Errors
    ///
    /// - `Corrupt`: there is no store at `path`, it is of a later version, or so damaged that it
    ///   cannot be read.
    /// - `Unavailable`: it cannot be read.
    pub fn check(path: impl AsRef<Path>) -> Result<StoreCheck, StoreError> {
        let path = path.as_ref();
        check(path).map_err(|failure| failure.into_error(path))
    }
}

impl StoreCheck {
    fn problem(&mut self, problem: impl Into<String>) {
        if self.problems.len() < MOST_PROBLEMS {
            self.problems.push(problem.into());
        }
    }
}

fn check(path: &Path) -> Result<StoreCheck, Failure> {
    let connection = file::open_existing(path)?;
    // All of it is that of one moment.
    let connection = connection.unchecked_transaction()?;
    let mut found = StoreCheck {
        version: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
        ..StoreCheck::default()
    };
    integrity(&connection, &mut found)?;
    events(&connection, &mut found)?;
    activity(&connection, &mut found)?;
    prompts(&connection, &mut found)?;
    leases(path, &connection, &mut found)?;
    Ok(found)
}

fn integrity(connection: &Connection, found: &mut StoreCheck) -> Result<(), Failure> {
    let mut statement = connection.prepare("PRAGMA integrity_check")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let line: String = row.get(0)?;
        if line != "ok" {
            found.problem(format!("the database: {line}"));
        }
    }
    Ok(())
}

/// Each session has its events from the oldest that it keeps to the last, and as many as the numbers
/// say. What is older may be part of the batch with the oldest.
fn events(connection: &Connection, found: &mut StoreCheck) -> Result<(), Failure> {
    found.sessions = connection.query_row("SELECT count(*) FROM sessions", [], |row| row.get(0))?;
    let (oldest, activity) = match found.version {
        ..REMOVES_EVENTS => ("1", ""),
        REMOVES_EVENTS..ACTIVITY => ("max(oldest, 1)", ""),
        _ => (
            "max(ifnull(oldest, 1), 1)",
            "LEFT JOIN activity ON activity.session = sessions.key",
        ),
    };
    let mut statement = connection.prepare(&format!(
        "SELECT batches.session, id, first, last, lines, {oldest} FROM batches
         LEFT JOIN sessions ON sessions.key = batches.session {activity} ORDER BY batches.session, last"
    ))?;
    let mut rows = statement.query([])?;
    let mut before: Option<(i64, u64)> = None;
    while let Some(row) = rows.next()? {
        let (key, first, last): (i64, u64, u64) = (row.get(0)?, row.get(2)?, row.get(3)?);
        let id: Option<String> = row.get(1)?;
        let follows = match before {
            Some((session, last)) if session == key => Some(last + 1),
            _ => None,
        };
        before = Some((key, last));
        let Some(id) = id else {
            found.problem(format!("events {first} to {last} belong to no session"));
            continue;
        };
        let oldest: u64 = row.get(5)?;
        let expected = follows.unwrap_or_else(|| first.min(oldest));
        if first != expected {
            found.problem(format!(
                "session {id}: expected event {expected}, got event {first}"
            ));
        }
        let lines = row.get_ref(4)?.as_bytes().unwrap_or_default();
        let count = memchr::memchr_iter(b'\n', lines).count();
        let count = u64::try_from(count).unwrap_or(u64::MAX);
        let removed = oldest.saturating_sub(first).min(count);
        found.events = found.events.saturating_add(count - removed);
        if last.checked_sub(first).is_none_or(|more| more + 1 != count) {
            found.problem(format!(
                "session {id}: events {first} to {last} are {count} lines"
            ));
        }
    }
    Ok(())
}

/// Each session has one row of activity.
fn activity(connection: &Connection, found: &mut StoreCheck) -> Result<(), Failure> {
    if found.version < ACTIVITY {
        return Ok(());
    }
    let sql = "SELECT id FROM sessions WHERE key NOT IN (SELECT session FROM activity) ORDER BY id";
    let mut statement = connection.prepare(sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let id: String = row.get(0)?;
        found.problem(format!("session {id}: it has no row of activity"));
    }
    Ok(())
}

/// Each prompt that waits is that of a session, and can be read.
fn prompts(connection: &Connection, found: &mut StoreCheck) -> Result<(), Failure> {
    if found.version < PROMPTS {
        return Ok(());
    }
    let mut statement = connection.prepare(
        "SELECT id, number, json_valid(text) FROM prompts LEFT JOIN sessions ON key = session ORDER BY session, number",
    )?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, number): (Option<String>, u64) = (row.get(0)?, row.get(1)?);
        found.prompts += 1;
        match id {
            Some(_) if row.get(2)? => {}
            Some(id) => found.problem(format!("session {id}: prompt {number} cannot be read")),
            None => found.problem(format!("prompt {number} belongs to no session")),
        }
    }
    Ok(())
}

fn leases(path: &Path, connection: &Connection, found: &mut StoreCheck) -> Result<(), Failure> {
    let owners = Owners::of(&file::existing(path)?);
    let held = "SELECT id, owner FROM sessions WHERE owner IS NOT NULL ORDER BY id";
    let mut statement = connection.prepare(held)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (id, owner): (String, String) = (row.get(0)?, row.get(1)?);
        match owners.is_locked(&owner) {
            Ok(true) => found.open += 1,
            Ok(false) => found.abandoned += 1,
            Err(error) => found.problem(format!("session {id}: its owner {owner}: {error}")),
        }
    }
    Ok(())
}
