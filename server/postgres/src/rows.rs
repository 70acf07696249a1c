//! Rows as records, and texts as columns.

use std::borrow::Cow;
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::store::{SessionRecord, StoreError, StoreErrorKind};
use tokio_postgres::Row;

use crate::failure::Failure;

/// The columns of [`record`], of the table `s`.
pub(crate) const COLUMNS: &str = "s.id, s.name, s.cwd, s.additional_directories, s.title, \
     s.created_at, s.updated_at, s.settings, s.data, s.running_turn, s.forked_from, s.forked_at, \
     s.last_event, s.oldest_event";

/// Returns a number for a column, whose integers have a sign.
pub(crate) fn number(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Returns the number of a column.
pub(crate) fn unsigned(number: i64) -> Result<u64, Failure> {
    let negative = |_| Failure::Corrupt(format!("expected a number of at least 0, got {number}"));
    u64::try_from(number).map_err(negative)
}

/// Returns the time between two moments of the database, in milliseconds there.
pub(crate) fn milliseconds(time: i64) -> Duration {
    Duration::from_millis(u64::try_from(time).unwrap_or(0))
}

/// Returns the id of a session as it is in the table; `None` if no session there can have it, because
/// PostgreSQL has no text with the character NUL.
pub(crate) fn id(session: &SessionId) -> Option<&str> {
    let id = session.as_str();
    (!id.contains('\0')).then_some(id)
}

/// Returns a text that people gave, with U+FFFD in place of NUL.
pub(crate) fn text(text: &Option<String>) -> Option<Cow<'_, str>> {
    let text = text.as_deref()?;
    Some(match text.contains('\0') {
        true => Cow::Owned(text.replace('\0', "\u{fffd}")),
        false => Cow::Borrowed(text),
    })
}

/// Refuses an id or a path that the table cannot have.
pub(crate) fn check_texts(record: &SessionRecord) -> Result<(), StoreError> {
    if id(&record.id).is_some() && !record.cwd.contains('\0') {
        return Ok(());
    }
    let message = format!(
        "id or working directory of session {:?} has the character NUL, which PostgreSQL has no \
         place for",
        record.id.as_str()
    );
    Err(StoreError::new(StoreErrorKind::Full, message))
}

/// Returns the handler's data as JSON.
pub(crate) fn data(record: &SessionRecord) -> Option<&str> {
    record.data.as_ref().map(acp_sdk::Json::get)
}

/// Returns the further directories as JSON.
pub(crate) fn directories(record: &SessionRecord) -> String {
    serde_json::Value::from(record.additional_directories.clone()).to_string()
}

/// Reads a record.
pub(crate) fn record(row: &Row) -> Result<SessionRecord, Failure> {
    let id: &str = row.try_get(0)?;
    let no_json =
        |error| Failure::Corrupt(format!("record of session {id}: {error}, expected JSON"));
    let mut record = SessionRecord::new(id, row.try_get::<_, &str>(2)?);
    record.name = row.try_get(1)?;
    record.additional_directories = serde_json::from_str(row.try_get(3)?).map_err(no_json)?;
    record.title = row.try_get(4)?;
    record.created_at = row.try_get(5)?;
    record.updated_at = row.try_get(6)?;
    record.settings = serde_json::from_str(row.try_get(7)?).map_err(no_json)?;
    let data: Option<&str> = row.try_get(8)?;
    record.data = data
        .map(serde_json::from_str)
        .transpose()
        .map_err(no_json)?;
    let running: Option<i64> = row.try_get(9)?;
    record.running_turn = running.map(unsigned).transpose()?;
    let forked_from: Option<&str> = row.try_get(10)?;
    let forked_at: Option<i64> = row.try_get(11)?;
    let forked_at = forked_at.map(unsigned).transpose()?;
    record.forked_from = forked_from.map(SessionId::from).zip(forked_at);
    record.last_event = unsigned(row.try_get(12)?)?;
    record.oldest_event = unsigned(row.try_get(13)?)?;
    Ok(record)
}
