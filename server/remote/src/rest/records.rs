//! The sessions in the stores of all agents, and their turns.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::v1::SessionConfigOptionValue;
use acp_server::store::{ListQuery, Page, Pages, Records, SessionRecord, Store, StoreError};

use super::failure::Failure;
use super::histories::MOST_BYTES;
use super::state::{Rest, StoredSession};
use super::summary::{History, TurnSummary};
use super::times::milliseconds;
use crate::agents::ServedAgent;

/// Sessions that are read from the store at a time.
const PAGE: usize = 500;

/// The most bytes of a session's turns that are kept in the store.
const MOST_KEPT_BYTES: usize = 4 << 20;

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
        let is_unknown = |session: &&StoredSession| histories.get(&session.id).is_none();
        let unknown: Vec<_> = self.page.iter().filter(is_unknown).collect();
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
        let unsaved = self.histories().take_unsaved();
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
                    let agent = record.agent.clone();
                    self.histories()
                        .save_later(agent, record.id.clone(), history.clone());
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
