//! Changing sessions. Every function runs inside a transaction of the writer.
//!
//! A function that refuses returns before its first statement that changes anything, so the
//! transaction can go on with the work of others.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension as _};

use acp_sdk::v1::SessionId;

use super::failure::Failure;
use super::owner::{self, Owner, Owners};
use super::read;
use crate::event::Batch;
use crate::store::{
    Commit, Lease, PromptChanges, RecordChange, SessionRecord, StoreError, StoreErrorKind, page,
};

/// The most sessions whose facts are cached.
const MAX_CACHED: usize = 10_000;

/// What the writer works on.
#[derive(Debug)]
pub(super) struct Tables {
    pub(super) connection: Connection,
    pub(super) owners: Owners,
    pub(super) owner: Owner,
    pub(super) max_record_bytes: usize,
    /// Whether rows were deleted, so that the file may have too much free space.
    pub(super) has_freed: Cell<bool>,
    pub(super) cache: Cache,
}

/// Sessions that this instance has leased, as they are while nobody else writes.
#[derive(Debug, Default)]
pub(super) struct Cache {
    leased: RefCell<HashMap<SessionId, Held>>,
    /// Changes when another connection has written.
    version: Cell<i64>,
}

/// A session as the writer sees it.
#[derive(Debug)]
struct Held {
    key: i64,
    token: u64,
    owner: Option<String>,
    running_turn: Option<u64>,
    oldest: u64,
    /// Number of the last event.
    last: u64,
}

impl Tables {
    /// Begins a transaction.
    pub(super) fn begin(&self) -> Result<(), Failure> {
        let begin = "BEGIN IMMEDIATE";
        self.connection.prepare_cached(begin)?.execute([])?;
        let version = "PRAGMA data_version";
        let mut version = self.connection.prepare_cached(version)?;
        let version = version.query_row([], |row| row.get(0))?;
        if self.cache.version.replace(version) != version {
            self.cache.leased.borrow_mut().clear();
        }
        Ok(())
    }

    pub(super) fn commit_transaction(&self) -> Result<(), Failure> {
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(())
    }

    pub(super) fn roll_back(&self) {
        self.cache.leased.borrow_mut().clear();
        // After some errors SQLite has rolled back by itself.
        if !self.connection.is_autocommit() {
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }

    pub(super) fn create(&self, record: &SessionRecord) -> Result<Lease, Failure> {
        self.check_free(record)?;
        let lease = self.next_lease(&record.id)?;
        let mut record = record.clone();
        record.oldest_event = 1;
        self.insert(&record, &lease)?;
        Ok(lease)
    }

    pub(super) fn acquire(&self, session: &SessionId) -> Result<(SessionRecord, Lease), Failure> {
        let held = self.held(session)?;
        let held = held.ok_or_else(|| StoreError::no_session(session))?;
        self.check_not_in_use(session, &held)?;
        let record = read::find(&self.connection, session)?;
        let record = record.ok_or_else(|| StoreError::no_session(session))?;
        let lease = self.next_lease(session)?;
        self.cache.leased.borrow_mut().remove(session);
        let sql = "UPDATE sessions SET token = ?2, owner = ?3 WHERE key = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute((held.key, lease.token, self.owner.name()))?;
        Ok((record, lease))
    }

    pub(super) fn acquire_unused(
        &self,
        session: &SessionId,
    ) -> Result<(SessionRecord, Lease), Failure> {
        let held = self.held(session)?;
        if held.is_some_and(|held| held.owner.as_deref() == Some(self.owner.name())) {
            return Err(StoreError::in_use(session).into());
        }
        self.acquire(session)
    }

    pub(super) fn release(&self, lease: &Lease) -> Result<(), Failure> {
        self.cache.leased.borrow_mut().remove(&lease.session);
        let sql = "UPDATE sessions SET owner = NULL WHERE id = ?1 AND token = ?2 AND owner = ?3";
        let mut statement = self.connection.prepare_cached(sql)?;
        let token = read::number(lease.token);
        statement.execute((lease.session.as_str(), token, self.owner.name()))?;
        Ok(())
    }

    pub(super) fn commit(&self, lease: &Lease, commit: &Commit) -> Result<(), Failure> {
        let session = &lease.session;
        let (session_id, mut held) = self.leased(lease)?;
        let events = commit.events.as_ref().filter(|events| !events.is_empty());
        if let Some(events) = events
            && events.first() != held.last + 1
        {
            return Err(StoreError::gap(session, held.last, events.first()).into());
        }
        self.change(session, &mut held, &commit.change)?;
        if let Some(events) = events {
            self.append(held.key, events)?;
            held.last = events.last();
        }
        if let Some(before) = commit.trim_before {
            self.trim(&mut held, before)?;
        }
        self.change_prompts(held.key, &commit.prompts)?;
        let mut leased = self.cache.leased.borrow_mut();
        if leased.len() >= MAX_CACHED {
            leased.clear();
        }
        leased.insert(session_id, held);
        Ok(())
    }

    pub(super) fn fork(
        &self,
        source: &SessionId,
        up_to: Option<u64>,
        target: &SessionRecord,
    ) -> Result<Lease, Failure> {
        let key = read::key_of(&self.connection, source)?;
        let (key, oldest) = key.ok_or_else(|| StoreError::no_session(source))?;
        self.check_free(target)?;
        let last = read::last_event(&self.connection, key)?.unwrap_or(oldest - 1);
        let last = last.min(up_to.unwrap_or(u64::MAX));
        let mut record = target.clone();
        record.oldest_event = oldest.min(last + 1);
        record.forked_from = Some((source.clone(), last));
        let lease = self.next_lease(&record.id)?;
        let fork = self.insert(&record, &lease)?;
        if record.oldest_event > last {
            return Ok(lease);
        }
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO batches (session, first, last, lines, time)
             SELECT ?1, first, last, lines, time FROM batches WHERE session = ?2 AND last <= ?3
             ORDER BY last",
        )?;
        statement.execute((fork, key, last))?;
        let mut statement = self.connection.prepare_cached(
            "SELECT first, last, lines, time FROM batches
             WHERE session = ?1 AND last > ?2 AND first <= ?2 ORDER BY last LIMIT 1",
        )?;
        let row =
            |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        let row = statement.query_row((key, last), row).optional()?;
        if let Some((first, end, lines, time)) = row {
            let batch = page::batch(source, first, end, lines).map_err(Failure::Corrupt)?;
            self.append(fork, &batch.with_time(time).up_to(last))?;
        }
        Ok(lease)
    }

    pub(super) fn delete(&self, session: &SessionId) -> Result<bool, Failure> {
        let Some(held) = self.held(session)? else {
            return Ok(false);
        };
        self.check_not_in_use(session, &held)?;
        self.cache.leased.borrow_mut().remove(session);
        for delete in [
            "DELETE FROM batches WHERE session = ?1",
            "DELETE FROM activity WHERE session = ?1",
            "DELETE FROM derived WHERE session = ?1",
            "DELETE FROM prompts WHERE session = ?1",
            "DELETE FROM sessions WHERE key = ?1",
        ] {
            let mut statement = self.connection.prepare_cached(delete)?;
            statement.execute([held.key])?;
        }
        self.has_freed.set(true);
        Ok(true)
    }

    pub(super) fn keep_derived(&self, derived: &[(SessionId, String)]) -> Result<(), Failure> {
        let sql = "INSERT OR REPLACE INTO derived SELECT key, ?2 FROM sessions WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        for (session, text) in derived {
            statement.execute((session.as_str(), text))?;
        }
        Ok(())
    }

    /// Returns a session that this instance has leased, and takes it out of the cache. A commit that
    /// succeeds puts it back.
    fn leased(&self, lease: &Lease) -> Result<(SessionId, Held), Failure> {
        let session = &lease.session;
        let cached = self.cache.leased.borrow_mut().remove_entry(session);
        if let Some((session, held)) = cached
            && held.token == lease.token
        {
            return Ok((session, held));
        }
        let held = self.held(session)?.filter(|held| {
            held.token == lease.token && held.owner.as_deref() == Some(self.owner.name())
        });
        let held = held.ok_or_else(|| StoreError::lost_lease(session))?;
        Ok((session.clone(), held))
    }

    fn held(&self, session: &SessionId) -> Result<Option<Held>, Failure> {
        let sql = "SELECT key, token, owner, running_turn, max(oldest, 1),
                 (SELECT max(last) FROM batches WHERE batches.session = sessions.key)
             FROM sessions JOIN activity ON activity.session = key WHERE id = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        let held = statement.query_row([session.as_str()], |row| {
            let oldest = row.get(4)?;
            Ok(Held {
                key: row.get(0)?,
                token: row.get(1)?,
                owner: row.get(2)?,
                running_turn: row.get(3)?,
                oldest,
                last: row.get::<_, Option<u64>>(5)?.unwrap_or(oldest - 1),
            })
        });
        Ok(held.optional()?)
    }

    fn check_not_in_use(&self, session: &SessionId, held: &Held) -> Result<(), Failure> {
        let Some(owner) = &held.owner else {
            return Ok(());
        };
        if owner == self.owner.name() {
            return Ok(());
        }
        let alive = self.owners.is_alive(owner).map_err(|error| {
            let message = format!("cannot tell whether session {session} is in use: {error}");
            StoreError::new(StoreErrorKind::Unavailable, message).with_source(error)
        })?;
        if alive {
            let process = owner::process_of(owner);
            let message = format!(
                "session {session} is open in process {process}. Close it there first, or end \
                 that process"
            );
            return Err(StoreError::new(StoreErrorKind::InUse, message).into());
        }
        Ok(())
    }

    fn check_free(&self, record: &SessionRecord) -> Result<(), Failure> {
        if read::key_of(&self.connection, &record.id)?.is_some() {
            return Err(StoreError::id_taken(&record.id).into());
        }
        self.check_name(record)?;
        record.check_bytes(self.max_record_bytes)?;
        Ok(())
    }

    /// Refuses a name that another session has.
    fn check_name(&self, record: &SessionRecord) -> Result<(), Failure> {
        let Some(name) = &record.name else {
            return Ok(());
        };
        let sql = "SELECT 1 FROM sessions WHERE name = ?1 AND id <> ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        if statement.exists((name, record.id.as_str()))? {
            return Err(StoreError::name_taken(name).into());
        }
        Ok(())
    }

    fn next_lease(&self, session: &SessionId) -> Result<Lease, Failure> {
        let sql = "UPDATE store SET tokens = tokens + 1 RETURNING tokens";
        let mut statement = self.connection.prepare_cached(sql)?;
        let token = statement.query_row([], |row| row.get(0))?;
        Ok(Lease::new(session.clone(), token))
    }

    fn insert(&self, record: &SessionRecord, lease: &Lease) -> Result<i64, Failure> {
        let forked_from = record.forked_from.as_ref();
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO sessions (id, name, cwd, additional_directories, title, created_at,
                 settings, forked_from, forked_at, data, token, owner)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)",
        )?;
        statement.execute((
            record.id.as_str(),
            &record.name,
            &record.cwd,
            directories(record),
            &record.title,
            &record.created_at,
            record.settings_text()?,
            forked_from.map(|(id, _)| id.as_str()),
            forked_from.map(|(_, number)| read::number(*number)),
            data(record),
            lease.token,
            self.owner.name(),
        ))?;
        let key = self.connection.last_insert_rowid();
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO activity (session, updated_at, running_turn, oldest)
             VALUES (?1, ?2, ?3, ?4)",
        )?;
        statement.execute((
            key,
            &record.updated_at,
            record.running_turn.map(read::number),
            read::number(record.oldest_event),
        ))?;
        Ok(key)
    }

    /// Changes a record. The row of the session, which can be large, is not written for what each
    /// turn changes.
    fn change(
        &self,
        session: &SessionId,
        held: &mut Held,
        change: &RecordChange,
    ) -> Result<(), Failure> {
        let RecordChange {
            name,
            additional_directories,
            title,
            updated_at,
            settings,
            data,
            running_turn,
        } = change;
        let is_larger = name.is_some()
            || additional_directories.is_some()
            || title.is_some()
            || settings.is_some()
            || data.is_some();
        if is_larger {
            let record = read::find(&self.connection, session)?;
            let mut record = record.ok_or_else(|| StoreError::no_session(session))?;
            change.clone().apply(&mut record);
            self.check_name(&record)?;
            self.update(held.key, &record)?;
        }
        if let Some(updated_at) = updated_at {
            let sql = "UPDATE activity SET updated_at = ?2 WHERE session = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute((held.key, updated_at))?;
        }
        if let Some(running_turn) = *running_turn
            && running_turn != held.running_turn
        {
            let sql = "UPDATE activity SET running_turn = ?2 WHERE session = ?1";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute((held.key, running_turn.map(read::number)))?;
            held.running_turn = running_turn;
        }
        Ok(())
    }

    fn change_prompts(&self, key: i64, prompts: &PromptChanges) -> Result<(), Failure> {
        for prompt in &prompts.add {
            let sql = "INSERT OR IGNORE INTO prompts (session, number, text) VALUES (?1, ?2, ?3)";
            let mut statement = self.connection.prepare_cached(sql)?;
            statement.execute((key, read::number(prompt.number), &*prompt.text))?;
        }
        for number in &prompts.remove {
            let sql = "DELETE FROM prompts WHERE session = ?1 AND number = ?2";
            let mut statement = self.connection.prepare_cached(sql)?;
            if statement.execute((key, read::number(*number)))? > 0 {
                self.has_freed.set(true);
            }
        }
        Ok(())
    }

    fn update(&self, key: i64, record: &SessionRecord) -> Result<(), Failure> {
        record.check_bytes(self.max_record_bytes)?;
        let mut statement = self.connection.prepare_cached(
            "UPDATE sessions SET name = ?2, additional_directories = ?3, title = ?4, settings = ?5,
                 data = ?6 WHERE key = ?1",
        )?;
        statement.execute((
            key,
            &record.name,
            directories(record),
            &record.title,
            record.settings_text()?,
            data(record),
        ))?;
        Ok(())
    }

    /// Removes the events before a number. A row stays until its last event is removed.
    fn trim(&self, held: &mut Held, before: u64) -> Result<(), Failure> {
        let before = before.min(held.last + 1);
        if before <= held.oldest {
            return Ok(());
        }
        held.oldest = before;
        let before = read::number(before);
        let sql = "UPDATE activity SET oldest = ?2 WHERE session = ?1";
        let mut statement = self.connection.prepare_cached(sql)?;
        statement.execute((held.key, before))?;
        let sql = "DELETE FROM batches WHERE session = ?1 AND last < ?2";
        let mut statement = self.connection.prepare_cached(sql)?;
        if statement.execute((held.key, before))? > 0 {
            self.has_freed.set(true);
        }
        Ok(())
    }

    fn append(&self, key: i64, batch: &Batch) -> Result<(), Failure> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO batches (session, first, last, lines, time) VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        let (first, last) = (batch.first(), batch.last());
        let time = batch.time(first).map(read::number);
        statement.execute((key, first, last, batch.lines(), time))?;
        Ok(())
    }
}

/// Returns the handler's data as JSON.
fn data(record: &SessionRecord) -> Option<&str> {
    record.data.as_ref().map(acp_sdk::Json::get)
}

/// Returns the further directories as JSON.
fn directories(record: &SessionRecord) -> String {
    serde_json::Value::from(record.additional_directories.clone()).to_string()
}
