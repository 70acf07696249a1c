//! Reading sessions and events.

use std::path::Path;

use rusqlite::{Connection, OptionalExtension as _, Row, ToSql};

use acp_sdk::v1::SessionId;

use super::failure::Failure;
use super::owner::Owners;
use crate::store::page::PageBuilder;
use crate::store::{EventPage, ListQuery, SessionRecord, StoreError, StoreUsage, StoredPrompt};

/// The columns of [`record`].
const COLUMNS: &str = "id, name, cwd, additional_directories, title, created_at, updated_at, \
     settings, running_turn, forked_from, forked_at, data, oldest, \
     (SELECT max(last) FROM batches WHERE batches.session = sessions.key)";

pub(super) fn find(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<SessionRecord>, Failure> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions JOIN activity ON activity.session = key WHERE id = ?1"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([session.as_str()])?;
    rows.next()?.map(record).transpose()
}

pub(super) fn prompts(
    connection: &Connection,
    session: &SessionId,
) -> Result<Vec<StoredPrompt>, Failure> {
    let sql = "SELECT number, text FROM sessions JOIN prompts ON prompts.session = key
         WHERE id = ?1 ORDER BY number";
    let mut statement = connection.prepare_cached(sql)?;
    let prompt = |row: &Row<'_>| Ok(StoredPrompt::new(row.get(0)?, row.get::<_, String>(1)?));
    let prompts = statement.query_map([session.as_str()], prompt)?;
    Ok(prompts.collect::<Result<_, _>>()?)
}

/// Returns sessions in which prompts wait, and that no instance has.
pub(super) fn abandoned(
    connection: &Connection,
    owners: &Owners,
    limit: usize,
) -> Result<Vec<SessionId>, Failure> {
    let sql = "SELECT id, owner FROM sessions WHERE key IN (SELECT session FROM prompts)
         ORDER BY random()";
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()?
        && found.len() < limit
    {
        let owner: Option<String> = row.get(1)?;
        // Whoever opens the session says why its owner cannot be inspected.
        if !owner.is_some_and(|owner| owners.is_locked(&owner).unwrap_or(false)) {
            found.push(SessionId::from(row.get::<_, String>(0)?));
        }
    }
    Ok(found)
}

pub(super) fn derived(
    connection: &Connection,
    sessions: &[SessionId],
) -> Result<Vec<Option<String>>, Failure> {
    let sql = "SELECT text FROM sessions JOIN derived ON derived.session = key WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let texts = sessions.iter().map(|session| {
        let text = statement.query_row([session.as_str()], |row| row.get(0));
        text.optional()
    });
    Ok(texts.collect::<Result<_, _>>()?)
}

pub(super) fn list(
    connection: &Connection,
    query: &ListQuery,
) -> Result<Vec<SessionRecord>, Failure> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    // In the order of activity, so that a page is found without sorting all sessions.
    let join = match query.name {
        None => "CROSS JOIN",
        Some(_) => "JOIN",
    };
    let mut sql = format!(
        "SELECT {COLUMNS} FROM activity {join} sessions ON key = activity.session WHERE true"
    );
    let mut values: Vec<(&str, &dyn ToSql)> = vec![(":limit", &limit)];
    if let Some(cwd) = &query.cwd {
        sql.push_str(" AND cwd = :cwd");
        values.push((":cwd", cwd));
    }
    if let Some(name) = &query.name {
        sql.push_str(" AND name = :name");
        values.push((":name", name));
    }
    let id = query.after.as_ref().map(|(_, id)| id.as_str());
    let (after, order) = match query.oldest_first {
        true => (
            " AND updated_at >= :activity AND (updated_at > :activity OR id < :id)",
            " ORDER BY updated_at, id DESC LIMIT :limit",
        ),
        false => (
            " AND updated_at <= :activity AND (updated_at < :activity OR id > :id)",
            " ORDER BY updated_at DESC, id LIMIT :limit",
        ),
    };
    if let Some((activity, _)) = &query.after {
        // The first comparison is the one that an index can answer.
        sql.push_str(after);
        values.push((":activity", activity));
        values.push((":id", &id));
    }
    sql.push_str(order);
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(&*values)?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(record(row)?);
    }
    Ok(records)
}

/// Reads a page of events from one state of the database. Small batches are joined.
pub(super) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    max_bytes: usize,
) -> Result<EventPage, Failure> {
    let transaction = connection.unchecked_transaction()?;
    let key = key_of(&transaction, session)?;
    let (key, oldest) = key.ok_or_else(|| StoreError::no_session(session))?;
    let last = last_event(&transaction, key)?.unwrap_or(oldest - 1);
    let mut page = PageBuilder::new(session, (oldest, last), after, max_bytes);
    if after >= last {
        return page.finish().map_err(Failure::Corrupt);
    }
    let after = after.max(oldest - 1);
    let mut statement = transaction.prepare_cached(
        "SELECT first, last, lines, time FROM batches WHERE session = ?1 AND last > ?2
         ORDER BY last",
    )?;
    let mut rows = statement.query((key, number(after)))?;
    while let Some(row) = rows.next()? {
        let (first, last): (u64, u64) = (row.get(0)?, row.get(1)?);
        let lines = row.get_ref(2)?.as_str();
        let lines = lines.map_err(|error| {
            Failure::Corrupt(format!("batch {first} of session {session}: {error}"))
        })?;
        let added = page.push((first, last), lines, row.get(3)?);
        if !added.map_err(Failure::Corrupt)? {
            break;
        }
    }
    page.finish().map_err(Failure::Corrupt)
}

/// Returns how much the store keeps, without reading events.
pub(super) fn usage(connection: &Connection, path: &Path) -> Result<StoreUsage, Failure> {
    let transaction = connection.unchecked_transaction()?;
    // A session's events have no holes.
    let sql = "SELECT count(*), ifnull(sum(1 - oldest + ifnull(
             (SELECT max(last) FROM batches WHERE batches.session = activity.session), oldest - 1)), 0)
         FROM activity";
    let mut statement = transaction.prepare_cached(sql)?;
    let (sessions, events) = statement.query_row([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let number = |name| transaction.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let pages = number("page_count")?.saturating_sub(number("freelist_count")?);
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    // Without a log there is no file.
    let bytes = |path: &Path| path.metadata().map_or(0, |file| file.len());
    Ok(StoreUsage {
        sessions,
        events,
        used_bytes: pages * number("page_size")?,
        disk_bytes: bytes(path) + bytes(log.as_ref()),
    })
}

/// Returns the key of a session, and the number of its oldest event, 1 at least.
pub(super) fn key_of(
    connection: &Connection,
    session: &SessionId,
) -> Result<Option<(i64, u64)>, rusqlite::Error> {
    let sql = "SELECT key, max(oldest, 1) FROM sessions JOIN activity ON session = key
         WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([session.as_str()], |row| Ok((row.get(0)?, row.get(1)?)));
    found.optional()
}

/// Returns the number of the last event; none if the session has no events. Then its last one was
/// that before the oldest.
pub(super) fn last_event(
    connection: &Connection,
    key: i64,
) -> Result<Option<u64>, rusqlite::Error> {
    let sql = "SELECT max(last) FROM batches WHERE session = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    statement.query_row([key], |row| row.get(0))
}

/// Returns an event number for a comparison in SQL, whose integers have a sign.
pub(super) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn record(row: &Row<'_>) -> Result<SessionRecord, Failure> {
    let id: String = row.get(0)?;
    let cwd: String = row.get(2)?;
    let json = |column: usize| -> Result<&str, Failure> {
        let value = row.get_ref(column)?.as_str();
        value.map_err(|error| Failure::Corrupt(format!("record of session {id}: {error}")))
    };
    let no_json =
        |error| Failure::Corrupt(format!("record of session {id}: {error}, expected JSON"));
    let additional_directories = serde_json::from_str(json(3)?).map_err(no_json)?;
    let settings = serde_json::from_str(json(7)?).map_err(no_json)?;
    let forked_from: Option<String> = row.get(9)?;
    let forked_at: Option<u64> = row.get(10)?;
    let data = match row.get_ref(11)? {
        rusqlite::types::ValueRef::Null => None,
        _ => Some(serde_json::from_str(json(11)?).map_err(no_json)?),
    };
    let oldest = row.get::<_, u64>(12)?.max(1);
    let last: Option<u64> = row.get(13)?;
    Ok(SessionRecord {
        name: row.get(1)?,
        cwd,
        additional_directories,
        title: row.get(4)?,
        created_at: row.get(5)?,
        updated_at: row.get(6)?,
        settings,
        data,
        running_turn: row.get(8)?,
        last_event: last.unwrap_or(oldest - 1),
        oldest_event: oldest,
        forked_from: forked_from.map(SessionId::from).zip(forked_at),
        id: id.into(),
    })
}
