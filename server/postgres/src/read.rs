//! Reading sessions and events. Each answer is of one statement, so of one moment.

use std::collections::HashMap;

use acp_sdk::v1::SessionId;
use acp_server::internal::store::PageBuilder;
use acp_server::store::{
    EventPage, ListQuery, SessionOwner, SessionRecord, StoreError, StoreUsage, StoredPrompt,
};
use tokio_postgres::types::Type;

use crate::database::{Database, Param};
use crate::failure::Failure;
use crate::rows::{self, COLUMNS};

pub(crate) async fn find(
    database: &Database,
    session: &SessionId,
) -> Result<Option<SessionRecord>, Failure> {
    let Some(id) = rows::id(session) else {
        return Ok(None);
    };
    let sql = format!("SELECT {COLUMNS} FROM @acp_sessions s WHERE s.id = $1");
    let found = database.read(&sql, &[(&id, Type::TEXT)]).await?;
    found.first().map(rows::record).transpose()
}

pub(crate) async fn list(
    database: &Database,
    query: &ListQuery,
) -> Result<Vec<SessionRecord>, Failure> {
    let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
    let mut sql = format!("SELECT {COLUMNS} FROM @acp_sessions s WHERE true");
    let mut params: Vec<Param<'_>> = vec![(&limit, Type::INT8)];
    if let Some(cwd) = &query.cwd {
        params.push((cwd, Type::TEXT));
        sql.push_str(&format!(" AND cwd = ${}", params.len()));
    }
    if let Some(name) = &query.name {
        params.push((name, Type::TEXT));
        sql.push_str(&format!(" AND name = ${}", params.len()));
    }
    let id = query.after.as_ref().map(|(_, id)| id.as_str());
    if let Some((activity, _)) = &query.after {
        let at = params.len() + 1;
        params.push((activity, Type::TEXT));
        params.push((&id, Type::TEXT));
        let (activity, id) = (format!("${at}"), format!("${}", at + 1));
        // The first comparison is the one that an index can answer.
        sql.push_str(&match query.oldest_first {
            true => format!(
                " AND updated_at >= {activity} AND (updated_at > {activity} OR s.id < {id})"
            ),
            false => format!(
                " AND updated_at <= {activity} AND (updated_at < {activity} OR s.id > {id})"
            ),
        });
    }
    sql.push_str(match query.oldest_first {
        true => " ORDER BY updated_at, s.id DESC LIMIT $1",
        false => " ORDER BY updated_at DESC, s.id LIMIT $1",
    });
    let found = database.read(&sql, &params).await?;
    found.iter().map(rows::record).collect()
}

/// Bytes of a small batch: so many rows are inspected for a page as would fill it.
const SMALL_BATCH: usize = 128;

pub(crate) async fn read(
    database: &Database,
    session: &SessionId,
    after: u64,
    max_bytes: usize,
) -> Result<EventPage, Failure> {
    let no_session = || Failure::Refused(StoreError::no_session(session));
    let id = rows::id(session).ok_or_else(no_session)?;
    let most = i64::try_from((max_bytes / SMALL_BATCH).clamp(16, 8192)).unwrap_or(i64::MAX);
    let bytes = i64::try_from(max_bytes).unwrap_or(i64::MAX);
    // Of the rows that may fit, those that begin within the page; the length of a large text is known
    // without reading it.
    let found = database
        .read(
            "SELECT s.oldest_event, s.last_event, b.first, b.last, b.lines, b.time
         FROM @acp_sessions s LEFT JOIN LATERAL (
             SELECT * FROM (
                 SELECT first, last, lines, time, row_number() OVER rows AS nth,
                     sum(octet_length(lines)) OVER rows AS bytes
                 FROM (
                     SELECT * FROM @acp_batches
                     WHERE session = s.key AND last > greatest($2, s.oldest_event - 1)
                     ORDER BY last LIMIT $3
                 ) candidates
                 WINDOW rows AS (ORDER BY last)
             ) counted
             WHERE nth = 1 OR bytes <= $4
         ) b ON true
         WHERE s.id = $1 ORDER BY b.last",
            &[
                (&id, Type::TEXT),
                (&rows::number(after), Type::INT8),
                (&most, Type::INT8),
                (&bytes, Type::INT8),
            ],
        )
        .await;
    let found = found?;
    let session_row = found.first().ok_or_else(no_session)?;
    let oldest = rows::unsigned(session_row.try_get(0)?)?;
    let last = rows::unsigned(session_row.try_get(1)?)?;
    let mut page = PageBuilder::new(session, (oldest, last), after, max_bytes);
    for row in &found {
        let Some(first) = row.try_get::<_, Option<i64>>(2)? else {
            break;
        };
        let numbers = (rows::unsigned(first)?, rows::unsigned(row.try_get(3)?)?);
        let time: Option<i64> = row.try_get(5)?;
        let time = time.map(rows::unsigned).transpose()?;
        let added = page.push(numbers, row.try_get(4)?, time);
        if !added.map_err(Failure::Corrupt)? {
            break;
        }
    }
    page.finish().map_err(Failure::Corrupt)
}

/// Returns who has the valid lease of a session. `key` is this node.
pub(crate) async fn owner(
    database: &Database,
    session: &SessionId,
    key: Option<i64>,
) -> Result<Option<SessionOwner>, Failure> {
    let Some(id) = rows::id(session) else {
        return Ok(None);
    };
    let found = database
        .read(
            "SELECT n.address, coalesce(n.key = $2, false),
             (extract(epoch FROM clock_timestamp() - n.heartbeat) * 1000)::bigint
         FROM @acp_sessions s JOIN @acp_nodes n ON n.key = s.owner
         WHERE s.id = $1 AND n.expires > clock_timestamp()",
            &[(&id, Type::TEXT), (&key, Type::INT8)],
        )
        .await;
    let found = found?;
    let Some(row) = found.first() else {
        return Ok(None);
    };
    let last_seen = rows::milliseconds(row.try_get(2)?);
    let owner = SessionOwner::new(row.try_get(0)?, row.try_get(1)?, last_seen);
    Ok(Some(owner))
}

pub(crate) async fn prompts(
    database: &Database,
    session: &SessionId,
) -> Result<Vec<StoredPrompt>, Failure> {
    let Some(id) = rows::id(session) else {
        return Ok(Vec::new());
    };
    let found = database
        .read(
            "SELECT p.number, p.text FROM @acp_sessions s JOIN @acp_prompts p ON p.session = s.key
         WHERE s.id = $1 ORDER BY p.number",
            &[(&id, Type::TEXT)],
        )
        .await;
    let found = found?;
    let prompts = found.iter().map(|row| {
        let number = rows::unsigned(row.try_get(0)?)?;
        Ok(StoredPrompt::new(number, row.try_get::<_, &str>(1)?))
    });
    prompts.collect()
}

/// Returns sessions that no node has, with a turn to be ended or prompts that wait.
pub(crate) async fn abandoned(
    database: &Database,
    limit: usize,
) -> Result<Vec<SessionId>, Failure> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let found = database
        .read(
            "SELECT s.id FROM (
             SELECT id, owner FROM @acp_sessions WHERE running_turn IS NOT NULL
             UNION
             SELECT id, owner FROM @acp_sessions
             WHERE key IN (SELECT session FROM @acp_prompts)
         ) s
         WHERE NOT EXISTS (
             SELECT FROM @acp_nodes n WHERE n.key = s.owner AND n.expires > clock_timestamp())
         ORDER BY random() LIMIT $1",
            &[(&limit, Type::INT8)],
        )
        .await;
    let found = found?;
    let ids = found.iter().map(|row| row.try_get::<_, String>(0));
    ids.map(|id| Ok(SessionId::from(id?))).collect()
}

pub(crate) async fn derived(
    database: &Database,
    sessions: &[SessionId],
) -> Result<Vec<Option<String>>, Failure> {
    let ids: Vec<&str> = sessions.iter().filter_map(rows::id).collect();
    let found = database
        .read(
            "SELECT s.id, d.text FROM @acp_sessions s JOIN @acp_derived d ON d.session = s.key
         WHERE s.id = ANY($1)",
            &[(&ids, Type::TEXT_ARRAY)],
        )
        .await;
    let mut texts = HashMap::new();
    for row in &found? {
        texts.insert(row.try_get::<_, String>(0)?, row.try_get::<_, String>(1)?);
    }
    let texts = sessions.iter().map(|id| texts.get(id.as_str()).cloned());
    Ok(texts.collect())
}

/// Returns how much the store keeps, without reading events.
pub(crate) async fn usage(database: &Database) -> Result<StoreUsage, Failure> {
    let found = database
        .read(
            "SELECT count(*), coalesce(sum(last_event - oldest_event + 1), 0)::bigint,
             coalesce(sum(bytes - removed + pg_column_size(s)), 0)::bigint,
             pg_total_relation_size('@acp_sessions') + pg_total_relation_size('@acp_batches')
                 + pg_total_relation_size('@acp_derived') + pg_total_relation_size('@acp_nodes')
                 + pg_total_relation_size('@acp_prompts')
         FROM @acp_sessions s",
            &[],
        )
        .await;
    let found = found?;
    let row = found.first();
    let row = row.ok_or_else(|| Failure::Corrupt("no row of a count".to_owned()))?;
    let number = |column: usize| rows::unsigned(row.try_get(column)?);
    let mut usage = StoreUsage::default();
    usage.sessions = number(0)?;
    usage.events = number(1)?;
    usage.used_bytes = number(2)?;
    usage.disk_bytes = number(3)?;
    Ok(usage)
}
