//! Appending events and changing records under a lease.
//!
//! One statement compares the lease and appends: an `UPDATE` of the session's row whose condition is
//! token, owner, attempt and last event, and in the same statement the `INSERT` of the events that
//! takes what the `UPDATE` returns. The `UPDATE` locks the row, as `acquire` does before it changes the
//! token. Whoever comes second waits, and in READ COMMITTED then judges its condition on the new
//! version of the row: a late writer finds another token and changes nothing. All conditions are on
//! this row, for what a condition reads of other tables would still be as it was when the statement
//! began.

use std::borrow::Cow;

use acp_server::event::Batch;
use acp_server::store::{Commit, Lease, RecordChange, SessionRecord, StoreError, StoreErrorKind};
use tokio_postgres::types::Type;

use crate::database::{Database, Param};
use crate::failure::Failure;
use crate::lease::taken;
use crate::read;
use crate::rows;
use crate::slots::Attempts;

/// A lease in the columns of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Holder<'a> {
    pub(crate) id: &'a str,
    pub(crate) token: i64,
    pub(crate) node: i64,
}

impl<'a> Holder<'a> {
    /// Returns the columns of a lease.
    pub(crate) fn new(lease: &'a Lease, node: Option<i64>) -> Result<Self, StoreError> {
        let lost = || StoreError::lost_lease(&lease.session);
        Ok(Self {
            id: rows::id(&lease.session).ok_or_else(lost)?,
            token: i64::try_from(lease.token).map_err(|_| lost())?,
            node: node.ok_or_else(lost)?,
        })
    }
}

/// Commits. The caller has settled what was in doubt.
pub(crate) async fn commit(
    database: &Database,
    lease: &Lease,
    holder: Holder<'_>,
    attempts: &mut Attempts,
    commit: &Commit,
    max_record_bytes: usize,
) -> Result<(), Failure> {
    let large = match is_large(&commit.change) {
        true => Some(changed(database, lease, &commit.change, max_record_bytes).await?),
        false => None,
    };
    let events = commit.events.as_deref();
    let events = events.filter(|events| !events.is_empty());
    let attempt = attempts.current(holder.token);
    let statement = Statement::new(holder, attempt, commit, events, large.as_ref())?;
    // Until the answer says otherwise, also if there never is one.
    attempts.doubt(holder.token);
    let written = database.query(&statement.sql(), &statement.params()).await;
    if !written.as_ref().is_err_and(Failure::leaves_doubt) {
        attempts.certain();
    }
    match written {
        Ok(rows) if !rows.is_empty() => Ok(()),
        Ok(_) => Err(refused(database, lease, holder, events).await?),
        Err(failure) => Err(match &large {
            Some(record) => taken(failure, record),
            None => failure,
        }),
    }
}

/// Makes what may still be on its way void, and waits for what is running; see [`crate::slots`].
pub(crate) async fn settle(
    database: &Database,
    id: &str,
    attempts: &mut Attempts,
) -> Result<(), Failure> {
    let Some((token, number)) = attempts.next() else {
        return Ok(());
    };
    let raised = database
        .query(
            "UPDATE @acp_sessions SET attempt = $3 WHERE id = $1 AND token = $2 AND attempt < $3",
            &[
                (&id, Type::TEXT),
                (&token, Type::INT8),
                (&number, Type::INT8),
            ],
        )
        .await;
    // No row: the session has another token or is gone.
    raised?;
    attempts.settle(number);
    Ok(())
}

/// Returns whether a change needs the rest of the record.
fn is_large(change: &RecordChange) -> bool {
    change.name.is_some()
        || change.additional_directories.is_some()
        || change.title.is_some()
        || change.settings.is_some()
        || change.data.is_some()
}

/// Returns the record after a change. Nobody else changes it before the commit, or the commit fails.
async fn changed(
    database: &Database,
    lease: &Lease,
    change: &RecordChange,
    max_bytes: usize,
) -> Result<SessionRecord, Failure> {
    let record = read::find(database, &lease.session).await?;
    let mut record = record.ok_or_else(|| StoreError::lost_lease(&lease.session))?;
    change.clone().apply(&mut record);
    record.check_bytes(max_bytes)?;
    Ok(record)
}

/// Returns why a commit changed nothing.
async fn refused(
    database: &Database,
    lease: &Lease,
    holder: Holder<'_>,
    events: Option<&Batch>,
) -> Result<Failure, Failure> {
    let session = &lease.session;
    let rows = database
        .read(
            "SELECT last_event FROM @acp_sessions WHERE id = $1 AND token = $2 AND owner = $3",
            &[
                (&holder.id, Type::TEXT),
                (&holder.token, Type::INT8),
                (&holder.node, Type::INT8),
            ],
        )
        .await;
    let rows = rows?;
    let Some(row) = rows.first() else {
        return Ok(StoreError::lost_lease(session).into());
    };
    let last = rows::unsigned(row.try_get(0)?)?;
    if let Some(events) = events
        && events.first() != last.saturating_add(1)
    {
        return Ok(StoreError::gap(session, last, events.first()).into());
    }
    let message = format!("session {session} was changed by someone else. Load it again");
    Ok(StoreError::new(StoreErrorKind::Conflict, message).into())
}

/// The statement of a commit with its parameters.
struct Statement<'a> {
    holder: Holder<'a>,
    attempt: i64,
    first: Option<i64>,
    last: Option<i64>,
    lines: Option<&'a str>,
    time: Option<i64>,
    bytes: i64,
    updated_at: &'a Option<String>,
    sets_running: bool,
    running: Option<i64>,
    trim: Option<i64>,
    large: Option<Large<'a>>,
    added: Option<Added<'a>>,
    /// Numbers of prompts.
    removed: Option<Vec<i64>>,
}

/// Prompts that wait from now on.
struct Added<'a> {
    numbers: Vec<i64>,
    texts: Vec<&'a str>,
}

/// The columns that are written together, because one of them changes.
struct Large<'a> {
    name: Option<Cow<'a, str>>,
    title: Option<Cow<'a, str>>,
    directories: String,
    settings: String,
    data: Option<&'a str>,
}

impl<'a> Statement<'a> {
    fn new(
        holder: Holder<'a>,
        attempt: i64,
        commit: &'a Commit,
        events: Option<&'a Batch>,
        record: Option<&'a SessionRecord>,
    ) -> Result<Self, StoreError> {
        let large = record.map(|record| {
            Ok::<_, StoreError>(Large {
                name: rows::text(&record.name),
                title: rows::text(&record.title),
                directories: rows::directories(record),
                settings: record.settings_text()?,
                data: rows::data(record),
            })
        });
        let time = events.and_then(|events| events.time(events.first()));
        let bytes = events.map_or(0, Batch::bytes);
        let running = commit.change.running_turn;
        let prompts = &commit.prompts;
        Ok(Self {
            holder,
            attempt,
            first: events.map(|events| rows::number(events.first())),
            last: events.map(|events| rows::number(events.last())),
            lines: events.map(Batch::lines),
            time: time.map(rows::number),
            bytes: i64::try_from(bytes).unwrap_or(i64::MAX),
            updated_at: &commit.change.updated_at,
            sets_running: running.is_some(),
            running: running.flatten().map(rows::number),
            trim: commit.trim_before.map(rows::number),
            large: large.transpose()?,
            added: (!prompts.add.is_empty()).then(|| Added {
                numbers: prompts
                    .add
                    .iter()
                    .map(|new| rows::number(new.number))
                    .collect(),
                texts: prompts.add.iter().map(|new| &*new.text).collect(),
            }),
            removed: (!prompts.remove.is_empty()).then(|| {
                let numbers = prompts.remove.iter();
                numbers.map(|number| rows::number(*number)).collect()
            }),
        })
    }

    fn sql(&self) -> String {
        let mut sql = String::from(
            "WITH moved AS (
                 UPDATE @acp_sessions AS s SET
                     last_event = coalesce($6, s.last_event),
                     bytes = s.bytes + $9,
                     updated_at = coalesce($10, s.updated_at),
                     running_turn = CASE WHEN $11 THEN $12 ELSE s.running_turn END",
        );
        let mut next = 13;
        let mut param = || {
            next += 1;
            next - 1
        };
        let trim = self.trim.map(|_| param());
        if let Some(trim) = trim {
            // The number of the oldest event after this commit.
            let oldest = format!("least(${trim}, coalesce($6, s.last_event) + 1)");
            sql.push_str(&format!(
                ", oldest_event = greatest(s.oldest_event, {oldest}),
                 removed = CASE WHEN {oldest} > coalesce($6, s.last_event) THEN s.bytes + $9
                     ELSE coalesce((SELECT b.total FROM @acp_batches b
                         WHERE b.session = s.key AND b.last < {oldest}
                         ORDER BY b.last DESC LIMIT 1), s.removed) END"
            ));
        }
        if self.large.is_some() {
            for column in [
                "name",
                "title",
                "additional_directories",
                "settings",
                "data",
            ] {
                sql.push_str(&format!(", {column} = ${}", param()));
            }
        }
        sql.push_str(
            " WHERE s.id = $1 AND s.token = $2 AND s.owner = $3 AND s.attempt = $4
                 AND ($5 IS NULL OR s.last_event = $5 - 1)
             RETURNING s.key, s.oldest_event, s.bytes
             ), added AS (
                 INSERT INTO @acp_batches (session, first, last, lines, time, total)
                 SELECT key, $5, $6, $7, $8, bytes FROM moved
                 WHERE $5 IS NOT NULL AND $6 >= oldest_event
             )",
        );
        if trim.is_some() {
            // A row stays until its last event is removed.
            sql.push_str(
                ", trimmed AS (
                     DELETE FROM @acp_batches b USING moved
                     WHERE b.session = moved.key AND b.last < moved.oldest_event
                 )",
            );
        }
        if self.added.is_some() {
            sql.push_str(&format!(
                ", kept AS (
                     INSERT INTO @acp_prompts (session, number, text)
                     SELECT key, number, text FROM moved,
                         unnest(${}::bigint[], ${}::text[]) AS new (number, text)
                     ON CONFLICT DO NOTHING
                 )",
                param(),
                param()
            ));
        }
        if self.removed.is_some() {
            sql.push_str(&format!(
                ", begun AS (
                     DELETE FROM @acp_prompts p USING moved
                     WHERE p.session = moved.key AND p.number = ANY(${})
                 )",
                param()
            ));
        }
        sql.push_str(" SELECT key FROM moved");
        sql
    }

    fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> = vec![
            (&self.holder.id, Type::TEXT),
            (&self.holder.token, Type::INT8),
            (&self.holder.node, Type::INT8),
            (&self.attempt, Type::INT8),
            (&self.first, Type::INT8),
            (&self.last, Type::INT8),
            (&self.lines, Type::TEXT),
            (&self.time, Type::INT8),
            (&self.bytes, Type::INT8),
            (self.updated_at, Type::TEXT),
            (&self.sets_running, Type::BOOL),
            (&self.running, Type::INT8),
        ];
        if let Some(trim) = &self.trim {
            params.push((trim, Type::INT8));
        }
        if let Some(large) = &self.large {
            params.extend([
                (&large.name as _, Type::TEXT),
                (&large.title as _, Type::TEXT),
                (&large.directories as _, Type::TEXT),
                (&large.settings as _, Type::TEXT),
                (&large.data as _, Type::TEXT),
            ] as [Param<'_>; 5]);
        }
        if let Some(added) = &self.added {
            params.push((&added.numbers, Type::INT8_ARRAY));
            params.push((&added.texts, Type::TEXT_ARRAY));
        }
        if let Some(removed) = &self.removed {
            params.push((removed, Type::INT8_ARRAY));
        }
        params
    }
}
