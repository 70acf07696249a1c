//! The turns of the sessions in the store, as far as they are remembered.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{SessionConfigOptionValue, SessionId};
use acp_server::store::{ListQuery, Page, Pages, Records, SessionRecord, Store, StoreError};
use axum::http::StatusCode;

use super::failure::Failure;
use super::runs::milliseconds;
use super::state::{Rest, StoredSession};
use super::summary::{History, TurnSummary};
use crate::agents::ServedAgent;

/// The most bytes of the turns that are remembered; few in the tests of this module.
const MOST_BYTES: usize = if cfg!(test) { 64 << 10 } else { 32 << 20 };

/// Sessions that are read from the store at a time.
const PAGE: usize = 500;

/// The most bytes of a session's turns that are kept in the store.
const MOST_KEPT_BYTES: usize = 4 << 20;

/// The turns of sessions that were read. They are read on from where they end.
#[derive(Default)]
pub(super) struct Histories(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    by_session: HashMap<SessionId, Arc<History>>,
    bytes: usize,
    /// What is not in the store of its agent yet.
    unsaved: Vec<(Arc<ServedAgent>, SessionId, Arc<History>)>,
}

impl Histories {
    pub(super) fn forget(&self, session: &SessionId) {
        self.kept().remove(session);
    }

    fn get(&self, session: &SessionId) -> Option<Arc<History>> {
        self.kept().by_session.get(session).cloned()
    }

    fn keep(&self, session: &SessionId, history: Arc<History>) {
        let mut kept = self.kept();
        kept.remove(session);
        let bytes = size(session, &history);
        while kept.bytes + bytes > MOST_BYTES {
            // Whichever comes first: it can be read again.
            let Some(some) = kept.by_session.keys().next().cloned() else {
                return;
            };
            kept.remove(&some);
        }
        kept.bytes += bytes;
        kept.by_session.insert(session.clone(), history);
    }

    fn save_later(&self, session: &StoredSession, history: Arc<History>) {
        let mut kept = self.kept();
        if kept.unsaved.len() < PAGE {
            let agent = session.agent.clone();
            kept.unsaved.push((agent, session.id.clone(), history));
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn remove(&mut self, session: &SessionId) {
        if let Some(history) = self.by_session.remove(session) {
            self.bytes -= size(session, &history);
        }
    }
}

fn size(session: &SessionId, history: &History) -> usize {
    size_of::<History>() + session.as_str().len() + history.bytes()
}

/// The sessions of several agents, the latest activity first.
pub(super) struct AllRecords<'a> {
    stores: Vec<AgentRecords<'a>>,
    operation: &'static str,
    rest: &'a Rest,
    /// Whether the turns of the sessions are needed.
    with_turns: bool,
    page: VecDeque<StoredSession>,
}

/// The sessions of one agent, the latest activity first.
struct AgentRecords<'a> {
    agent: &'a Arc<ServedAgent>,
    records: Records<&'a dyn Store>,
    /// The next one, if it was read.
    next: Option<SessionRecord>,
}

impl AllRecords<'_> {
    /// Returns the next session; `None` at the end.
    ///
    /// # Errors
    ///
    /// 500 with the name of the operation, when the store fails.
    pub(super) async fn next(&mut self) -> Result<Option<StoredSession>, Failure> {
        if self.page.is_empty() {
            while self.page.len() < PAGE
                && let Some(record) = self.read().await?
            {
                self.page.push_back(record);
            }
            if self.with_turns {
                self.remember().await?;
            }
        }
        Ok(self.page.pop_front())
    }

    /// Reads the next session of the agent whose next one was active last.
    async fn read(&mut self) -> Result<Option<StoredSession>, Failure> {
        let operation = self.operation;
        for store in &mut self.stores {
            if store.next.is_none() {
                let next = store.records.next().await;
                store.next =
                    next.map_err(|error| Failure::internal(operation, error.to_string()))?;
            }
        }
        let activity = |store: &&mut AgentRecords<'_>| {
            store
                .next
                .as_ref()
                .map(|next| milliseconds(&next.updated_at))
        };
        // The first of equal ones, so that the order is that of the agents.
        let latest = self.stores.iter_mut().rev().max_by_key(activity);
        Ok(latest.and_then(|store| {
            let record = store.next.take()?;
            let agent = store.agent.clone();
            Some(StoredSession { record, agent })
        }))
    }

    /// Reads what the store has kept of the turns of a page's sessions, in one go.
    async fn remember(&self) -> Result<(), Failure> {
        let histories = self.rest.histories();
        let unknown: Vec<_> = {
            let kept = histories.kept();
            let is_known = |session: &&StoredSession| kept.by_session.contains_key(&session.id);
            let unknown = self.page.iter().filter(|session| !is_known(session));
            unknown.collect()
        };
        for AgentRecords { agent, .. } in &self.stores {
            let of_agent = unknown
                .iter()
                .filter(|session| Arc::ptr_eq(&session.agent, agent));
            let ids: Vec<_> = of_agent.clone().map(|session| session.id.clone()).collect();
            let texts = agent.server().store().derived(&ids).await;
            let texts =
                texts.map_err(|error| Failure::internal(self.operation, error.to_string()))?;
            for (session, text) in of_agent.zip(texts) {
                let history = text.and_then(|text| History::of_text(&text, session.last_event));
                if let Some(history) = history {
                    histories.keep(&session.id, Arc::new(history));
                }
                tokio::task::consume_budget().await;
            }
        }
        self.rest.save_histories().await;
        Ok(())
    }
}

impl Rest {
    /// Returns the sessions of these agents.
    pub(super) fn all_records<'a>(
        &'a self,
        agents: &'a [Arc<ServedAgent>],
        operation: &'static str,
        with_turns: bool,
    ) -> AllRecords<'a> {
        let mut query = ListQuery::default();
        query.limit = PAGE;
        let stores = agents.iter().map(|agent| AgentRecords {
            agent,
            records: Records::new(&**agent.server().store(), query.clone()),
            next: None,
        });
        AllRecords {
            stores: stores.collect(),
            operation,
            rest: self,
            with_turns,
            page: VecDeque::new(),
        }
    }

    /// Keeps in the store what was read of turns since the last time, for later processes.
    pub(super) async fn save_histories(&self) {
        let unsaved = std::mem::take(&mut self.histories().kept().unsaved);
        for agent in self.agents().iter() {
            let of_agent = unsaved.iter().filter(|(of, ..)| Arc::ptr_eq(of, agent));
            let texts = of_agent.filter_map(|(_, id, history)| {
                let text = history.to_text()?;
                (text.len() <= MOST_KEPT_BYTES).then(|| (id.clone(), text))
            });
            let texts: Vec<_> = texts.collect();
            if texts.is_empty() {
                continue;
            }
            // It can be made again.
            if let Err(error) = agent.server().store().keep_derived(texts).await {
                tracing::debug!(%error, "the turns of sessions are not kept in the store");
            }
        }
    }

    /// Calls a function with each turn of a session up to the last event of its record, and with its
    /// model, if it is known. Returns the model of the session; `None` if it is unknown.
    ///
    /// # Errors
    ///
    /// 404 or 500 with the name of the operation, when the events cannot be read.
    pub(super) async fn each_turn(
        &self,
        record: &StoredSession,
        operation: &'static str,
        mut visit: impl FnMut(&TurnSummary, Option<&str>),
    ) -> Result<Option<String>, Failure> {
        let mut history = self.histories().get(&record.id).unwrap_or_default();
        let current = self.current_model(record);
        // What was never changed is what it was.
        let unchanged = |history: &History| match history.model() {
            None => current.clone(),
            Some(_) => None,
        };
        if history.last() < record.last_event {
            let mut longer = Arc::unwrap_or_clone(history);
            let mut is_whole = true;
            let store = record.agent.server().store();
            let mut pages = Pages::new(&**store, &record.id, longer.last(), record.last_event);
            let failed = |error: StoreError| Failure::store(operation, &error);
            let turns = self.long_reads().turns();
            while let Some(chunk) = turns.next(&mut pages).await.map_err(failed)? {
                let observe = move |pages: &[Page]| {
                    for stored in pages.iter().flat_map(Page::events) {
                        longer.observe(stored);
                    }
                    longer
                };
                longer = chunk.run(observe).await.map_err(failed)?;
                if longer.bytes() > MOST_BYTES {
                    is_whole = false;
                    let unchanged = unchanged(&longer);
                    for turn in longer.take_earlier() {
                        visit(
                            &turn,
                            turn.details.model.as_deref().or(unchanged.as_deref()),
                        );
                    }
                }
            }
            history = Arc::new(longer);
            if is_whole {
                self.histories().keep(&record.id, history.clone());
                // A running turn changes it soon.
                if record.running_turn.is_none() {
                    self.histories().save_later(record, history.clone());
                }
            }
        }
        let unchanged = unchanged(&history);
        history.each(|turn| visit(turn, turn.details.model.as_deref().or(unchanged.as_deref())));
        Ok(match self.in_memory(&record.id) {
            Some(_) => current,
            None => history.model().map(str::to_owned).or(current),
        })
    }

    /// Returns the model of a session as its settings say, if they do.
    pub(super) fn current_model(&self, record: &SessionRecord) -> Option<String> {
        if let Some(session) = self.in_memory(&record.id) {
            return session.settings().model().map(str::to_owned);
        }
        match record.settings.get("model") {
            Some(SessionConfigOptionValue::ValueId(value)) => Some(value.value.to_string()),
            _ => None,
        }
    }
}

/// Returns `None` for a session that was deleted while it was listed.
///
/// # Errors
///
/// Every other failure.
pub(super) fn unless_deleted<T>(found: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match found {
        Ok(found) => Ok(Some(found)),
        Err(failure) if failure.status() == StatusCode::NOT_FOUND => Ok(None),
        Err(failure) => Err(failure),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EndpointSettings, Token, Tokens};
    use acp_reference_agent::Reference;
    use acp_server::Server;
    use acp_server::event::{Batch, TurnId};
    use acp_server::store::{Commit, MemoryStore};

    /// Returns the routes' state over a store with sessions that have this many turns.
    async fn rest(turns: &[(&str, u64)]) -> Rest {
        let store = MemoryStore::new();
        for (id, turns) in turns {
            let lease = store.create(&SessionRecord::new(*id, "/")).await.unwrap();
            let mut batch = Batch::new(1);
            for turn in (0..*turns).map(|turn| 2 * turn + 1) {
                batch.push(&format!(r#"{{"event":"turn_started","turn":{turn}}}"#));
                batch.push(&format!(r#"{{"event":"turn_ended","turn":{turn}}}"#));
            }
            let mut commit = Commit::default();
            commit.events = Some(Arc::new(batch));
            store.commit(&lease, commit).await.unwrap();
        }
        let server = Server::builder(Reference).store(Arc::new(store)).build();
        let tokens = Tokens::new(&Token::random().unwrap());
        Rest::new(server.into(), EndpointSettings::default(), tokens)
    }

    async fn turns(rest: &Rest, id: &str) -> Vec<TurnId> {
        let record = rest.record(&id.into()).await.ok().unwrap();
        let mut turns = Vec::new();
        let visit = |turn: &TurnSummary, _: Option<&str>| turns.push(turn.usage.turn);
        let visited = rest.each_turn(&record, "failed", visit).await;
        assert!(visited.is_ok());
        turns
    }

    #[tokio::test]
    async fn turns_are_found_whether_or_not_they_are_remembered() {
        let sessions = [
            ("small", 3),
            ("large", 5_000),
            ("other", 100),
            ("third", 100),
        ];
        let rest = rest(&sessions).await;
        for (id, count) in sessions.iter().chain(&sessions) {
            let expected: Vec<_> = (0..*count).map(|turn| TurnId(2 * turn + 1)).collect();
            assert_eq!(turns(&rest, id).await, expected, "{id}");
            let kept = rest.histories().kept();
            assert!(kept.bytes <= MOST_BYTES, "{}", kept.bytes);
            let bytes = kept.by_session.iter();
            let bytes = bytes.map(|(id, history)| size(id, history));
            assert_eq!(kept.bytes, bytes.sum::<usize>());
            assert_eq!(kept.by_session.contains_key(*id), *id != "large");
        }
        for (id, _) in sessions {
            rest.histories().forget(&id.into());
        }
        assert_eq!(rest.histories().kept().bytes, 0);
    }
}
