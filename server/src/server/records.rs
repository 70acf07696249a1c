//! What the store knows of sessions, and its errors as those of a request.

use acp_sdk::v1::SessionId;
use acp_sdk::{HandlerError, HandlerResult};

use super::ServerCore;
use crate::connection::{check, store_failed};
use crate::store::{ListQuery, SessionRecord, StoreError, StoreErrorKind};

impl ServerCore {
    pub(crate) async fn find(&self, id: &SessionId) -> HandlerResult<Option<SessionRecord>> {
        let found = self.store.find(id).await;
        found.map_err(|error| store_failed(id, &error))
    }

    /// Returns a page of sessions, and the cursor of the next one.
    pub(crate) async fn list(
        &self,
        cwd: Option<String>,
        after: Option<(String, SessionId)>,
    ) -> HandlerResult<(Vec<SessionRecord>, Option<String>)> {
        let limit = self.limits.list_page;
        let mut query = ListQuery::default();
        (query.cwd, query.after) = (cwd, after);
        // One more than a page shows whether there is a next one.
        query.limit = limit + 1;
        let found = self.store.list(&query).await;
        let mut found = found.map_err(|error| store_unavailable(&error))?;
        let more = found.len() > limit;
        found.truncate(limit);
        let last = found.last().filter(|_| more);
        let next = last.map(|record| check::cursor(&record.updated_at, &record.id));
        Ok((found, next))
    }

    /// Returns the number of the oldest event that a session still has.
    pub(crate) async fn oldest(&self, id: &SessionId) -> HandlerResult<u64> {
        let record = self.find(id).await?;
        Ok(record.map_or(1, |record| record.oldest_event))
    }
}

pub(super) fn not_found(id: &SessionId) -> HandlerError {
    HandlerError::resource_not_found(format!("session {id}"))
}

pub(super) fn store_refused(id: &SessionId, error: &StoreError) -> HandlerError {
    match error.kind() {
        StoreErrorKind::NotFound => not_found(id),
        // The store has not failed. Its error says where the session is open.
        StoreErrorKind::InUse => error.clone().into(),
        _ => store_failed(id, error),
    }
}

pub(super) fn store_unavailable(error: &StoreError) -> HandlerError {
    HandlerError::internal(format!("the store failed: {error}"))
}
