//! Who may write: creating, acquiring, releasing, deleting and forking sessions.
//!
//! Deleting locks the row of the session first (`SELECT … FOR UPDATE`), and judges the owner in a further
//! statement, which sees what was committed before it began: also a node that registered while this one
//! waited for the row. Leasing needs one statement, for tokens never come twice.

use acp_sdk::v1::SessionId;
use acp_server::store::{Lease, SessionOwner, SessionRecord, StoreError};
use tokio_postgres::Row;
use tokio_postgres::types::Type;

use crate::database::{Connection, Database, Param};
use crate::failure::Failure;
use crate::rows::{self, COLUMNS};

/// How often a session is asked for that others lease at the same time.
const ATTEMPTS: u32 = 3;

/// A session whose row is locked.
struct Locked {
    key: i64,
    owner: Option<i64>,
}

pub(crate) async fn create(
    database: &Database,
    record: &SessionRecord,
    node: i64,
) -> Result<Lease, Failure> {
    let columns = Columns::of(record)?;
    let rows = database
        .query(
            "INSERT INTO @acp_sessions (id, name, cwd, additional_directories, title, created_at,
             updated_at, settings, data, running_turn, last_event, oldest_event, bytes, removed,
             owner, token)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, 0, 1, 0, 0, $11, nextval('@acp_tokens'))
         RETURNING token",
            &columns.params(&node),
        )
        .await;
    let rows = rows.map_err(|failure| taken(failure, record))?;
    let row = rows.first();
    let row = row.ok_or_else(|| Failure::Corrupt("no token of a new session".to_owned()))?;
    lease(&record.id, row)
}

/// A session that was leased.
pub(crate) struct Acquired {
    pub(crate) record: SessionRecord,
    pub(crate) lease: Lease,
    /// Whether a node had it that had stopped renewing its leases.
    pub(crate) is_takeover: bool,
}

/// Leases a session in one statement. `unused`: also this node must not have it.
///
/// The statement judges the owner as it was when it began, and takes the session if its token is still the
/// same once the row is locked: nobody has leased it meanwhile. An owner that had expired stays so.
pub(crate) async fn acquire(
    database: &Database,
    session: &SessionId,
    node: i64,
    unused: bool,
) -> Result<Acquired, Failure> {
    let no_session = || StoreError::no_session(session);
    let id = rows::id(session).ok_or_else(no_session)?;
    let sql = format!(
        "WITH old AS (
             SELECT s.key, s.owner, s.token, n.address,
                 (extract(epoch FROM clock_timestamp() - n.heartbeat) * 1000)::bigint AS age,
                 n.expires > clock_timestamp() AS is_valid
             FROM @acp_sessions s LEFT JOIN @acp_nodes n ON n.key = s.owner WHERE s.id = $1
         ), taken AS (
             UPDATE @acp_sessions s
             SET owner = $2, token = nextval('@acp_tokens'), attempt = 0
             FROM old WHERE s.key = old.key AND s.token = old.token
                 AND CASE WHEN old.owner = $2 THEN NOT $3 ELSE old.is_valid IS NOT TRUE END
             RETURNING {COLUMNS}, s.token AS lease
         )
         SELECT taken.*, old.owner, old.address, old.age, old.is_valid
         FROM old LEFT JOIN taken ON true"
    );
    let params: [Param<'_>; 3] = [
        (&id, Type::TEXT),
        (&node, Type::INT8),
        (&unused, Type::BOOL),
    ];
    for _ in 0..ATTEMPTS {
        let rows = database.query(&sql, &params).await?;
        let row = rows.first().ok_or_else(no_session)?;
        let owner: Option<i64> = row.try_get("owner")?;
        let is_own = owner == Some(node);
        // No row of a node: it has ended, or registered again.
        let is_valid: Option<bool> = row.try_get("is_valid")?;
        if let Some(token) = row.try_get("lease")? {
            return Ok(Acquired {
                record: rows::record(row)?,
                lease: Lease::new(session.clone(), rows::unsigned(token)?),
                is_takeover: !is_own && is_valid == Some(false),
            });
        }
        if is_own && unused {
            break;
        }
        if is_valid == Some(true) && !is_own {
            let last_seen = rows::milliseconds(row.try_get("age")?);
            let owner = SessionOwner::new(row.try_get("address")?, false, last_seen);
            return Err(StoreError::in_use_by(session, &owner).into());
        }
        // Another one was faster: who is it?
    }
    Err(StoreError::in_use(session).into())
}

pub(crate) async fn release(database: &Database, lease: &Lease, node: i64) -> Result<(), Failure> {
    let (Some(id), Ok(token)) = (rows::id(&lease.session), i64::try_from(lease.token)) else {
        return Ok(());
    };
    let released = database
        .query(
            "UPDATE @acp_sessions SET owner = NULL WHERE id = $1 AND token = $2 AND owner = $3",
            &[(&id, Type::TEXT), (&token, Type::INT8), (&node, Type::INT8)],
        )
        .await;
    released.map(drop)
}

pub(crate) async fn delete(
    database: &Database,
    session: &SessionId,
    node: i64,
) -> Result<bool, Failure> {
    let mut transaction = database.begin_long().await?;
    let result = async {
        let Some(locked) = lock(&mut transaction, session).await? else {
            return Ok(false);
        };
        check_not_in_use(&mut transaction, session, &locked, node).await?;
        let deleted = transaction
            .query(
                "WITH gone AS (DELETE FROM @acp_sessions WHERE key = $1)
             DELETE FROM @acp_batches WHERE session = $1",
                &[(&locked.key, Type::INT8)],
            )
            .await;
        deleted?;
        Ok(true)
    };
    let result = result.await;
    finish(transaction, result).await
}

/// Copies a session in one statement, so that the events are those of one moment.
pub(crate) async fn fork(
    database: &Database,
    source: &SessionId,
    up_to: Option<u64>,
    target: &SessionRecord,
    node: i64,
) -> Result<Lease, Failure> {
    let no_session = || Failure::Refused(StoreError::no_session(source));
    let source_id = rows::id(source).ok_or_else(no_session)?;
    let up_to = up_to.map_or(i64::MAX, rows::number);
    let columns = Columns::of(target)?;
    let mut params = columns.params(&node);
    params.push((&source_id, Type::TEXT));
    params.push((&up_to, Type::INT8));
    let mut transaction = database.begin_long().await?;
    // A batch that goes beyond the last event is cut: it has a line for each number.
    let rows = transaction
        .query(
            r"WITH source AS (
              SELECT key, least(last_event, $13) AS last, removed,
                  least(oldest_event, least(last_event, $13) + 1) AS oldest
              FROM @acp_sessions WHERE id = $12
          ), rows AS (
              SELECT b.first, least(b.last, source.last) AS last, b.time,
                  CASE WHEN b.last <= source.last THEN b.lines ELSE array_to_string(
                      (string_to_array(b.lines, E'\n'))[1 : (source.last - b.first + 1)::integer],
                      E'\n') || E'\n' END AS lines,
                  b.total - octet_length(b.lines) AS before
              FROM source JOIN @acp_batches b ON b.session = source.key
              WHERE b.first <= source.last AND b.last >= source.oldest
                  AND source.oldest <= source.last
          ), fork AS (
              INSERT INTO @acp_sessions (id, name, cwd, additional_directories, title, created_at,
                  updated_at, settings, data, running_turn, owner, token, forked_from, forked_at,
                  last_event, oldest_event, bytes, removed)
              SELECT $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, nextval('@acp_tokens'), $12,
                  source.last, source.last, source.oldest,
                  coalesce((SELECT max(before + octet_length(lines)) FROM rows), source.removed),
                  source.removed
              FROM source RETURNING key, token
          ), copied AS (
              INSERT INTO @acp_batches (session, first, last, lines, time, total)
              SELECT fork.key, first, last, lines, time, before + octet_length(lines)
              FROM fork, rows
          )
          SELECT token FROM fork",
            &params,
        )
        .await;
    let forked = rows.map_err(|failure| taken(failure, target));
    let forked = forked.and_then(|rows| lease(&target.id, rows.first().ok_or_else(no_session)?));
    finish(transaction, forked).await
}

/// Commits if the work succeeded, otherwise rolls back.
async fn finish<T>(transaction: Connection<'_>, result: Result<T, Failure>) -> Result<T, Failure> {
    match result {
        Ok(value) => {
            transaction.commit().await?;
            Ok(value)
        }
        Err(failure) => {
            // Otherwise dropping it ends the connection, and the transaction with it.
            if !failure.ends_connection() {
                transaction.roll_back().await?;
            }
            Err(failure)
        }
    }
}

async fn lock(
    transaction: &mut Connection<'_>,
    session: &SessionId,
) -> Result<Option<Locked>, Failure> {
    let Some(id) = rows::id(session) else {
        return Ok(None);
    };
    let rows = transaction
        .query(
            "SELECT key, owner FROM @acp_sessions WHERE id = $1 FOR UPDATE",
            &[(&id, Type::TEXT)],
        )
        .await;
    let rows = rows?;
    let Some(row) = rows.first() else {
        return Ok(None);
    };
    let (key, owner) = (row.try_get(0)?, row.try_get(1)?);
    Ok(Some(Locked { key, owner }))
}

/// Fails if another node has the lease.
async fn check_not_in_use(
    transaction: &mut Connection<'_>,
    session: &SessionId,
    locked: &Locked,
    node: i64,
) -> Result<(), Failure> {
    let Some(owner) = locked.owner.filter(|owner| *owner != node) else {
        return Ok(());
    };
    let rows = transaction
        .query(
            "SELECT address, (extract(epoch FROM clock_timestamp() - heartbeat) * 1000)::bigint,
             expires > clock_timestamp()
         FROM @acp_nodes WHERE key = $1",
            &[(&owner, Type::INT8)],
        )
        .await;
    let rows = rows?;
    let Some(row) = rows.first() else {
        // It has ended, or registered again.
        return Ok(());
    };
    if !row.try_get::<_, bool>(2)? {
        return Ok(());
    }
    let last_seen = rows::milliseconds(row.try_get(1)?);
    let owner = SessionOwner::new(row.try_get(0)?, false, last_seen);
    Err(StoreError::in_use_by(session, &owner).into())
}

fn lease(session: &SessionId, row: &Row) -> Result<Lease, Failure> {
    let token = rows::unsigned(row.try_get(0)?)?;
    Ok(Lease::new(session.clone(), token))
}

/// Returns the error of a session whose id or name is taken.
pub(crate) fn taken(failure: Failure, record: &SessionRecord) -> Failure {
    match (failure.constraint(), &record.name) {
        (Some("acp_sessions_id"), _) => StoreError::id_taken(&record.id).into(),
        (Some("acp_sessions_name"), Some(name)) => StoreError::name_taken(name).into(),
        _ => failure,
    }
}

/// The columns of a new session.
struct Columns<'a> {
    record: &'a SessionRecord,
    id: &'a str,
    name: Option<std::borrow::Cow<'a, str>>,
    title: Option<std::borrow::Cow<'a, str>>,
    directories: String,
    settings: String,
    data: Option<&'a str>,
    running_turn: Option<i64>,
}

impl<'a> Columns<'a> {
    fn of(record: &'a SessionRecord) -> Result<Self, StoreError> {
        rows::check_texts(record)?;
        Ok(Self {
            record,
            id: record.id.as_str(),
            name: rows::text(&record.name),
            title: rows::text(&record.title),
            directories: rows::directories(record),
            settings: record.settings_text()?,
            data: rows::data(record),
            running_turn: record.running_turn.map(rows::number),
        })
    }

    /// Returns the first eleven parameters.
    fn params<'b>(&'b self, node: &'b i64) -> Vec<Param<'b>> {
        vec![
            (&self.id, Type::TEXT),
            (&self.name, Type::TEXT),
            (&self.record.cwd, Type::TEXT),
            (&self.directories, Type::TEXT),
            (&self.title, Type::TEXT),
            (&self.record.created_at, Type::TEXT),
            (&self.record.updated_at, Type::TEXT),
            (&self.settings, Type::TEXT),
            (&self.data, Type::TEXT),
            (&self.running_turn, Type::INT8),
            (node, Type::INT8),
        ]
    }
}
