//! The turns of sessions, as far as they are remembered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::SessionId;

use super::summary::History;
use crate::agents::ServedAgent;

/// The most bytes of the turns that are remembered; few in the tests of this module.
pub(super) const MOST_BYTES: usize = if cfg!(test) { 64 << 10 } else { 32 << 20 };

/// Sessions whose turns wait to be kept in the store.
const MOST_UNSAVED: usize = 500;

/// The turns of sessions that were read. They are read on from where they end.
#[derive(Default)]
pub(super) struct Histories(Mutex<Kept>);

/// The turns of a session that the store of its agent does not have yet.
type Unsaved = (Arc<ServedAgent>, SessionId, Arc<History>);

#[derive(Default)]
struct Kept {
    by_session: HashMap<SessionId, Arc<History>>,
    bytes: usize,
    /// What is not in the store of its agent yet.
    unsaved: Vec<Unsaved>,
}

impl Histories {
    pub(super) fn forget(&self, session: &SessionId) {
        self.kept().remove(session);
    }

    pub(super) fn get(&self, session: &SessionId) -> Option<Arc<History>> {
        self.kept().by_session.get(session).cloned()
    }

    pub(super) fn keep(&self, session: &SessionId, history: Arc<History>) {
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

    pub(super) fn save_later(
        &self,
        agent: Arc<ServedAgent>,
        session: SessionId,
        history: Arc<History>,
    ) {
        let mut kept = self.kept();
        if kept.unsaved.len() < MOST_UNSAVED {
            kept.unsaved.push((agent, session, history));
        }
    }

    pub(super) fn take_unsaved(&self) -> Vec<Unsaved> {
        std::mem::take(&mut self.kept().unsaved)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rest::state::Rest;
    use crate::rest::summary::TurnSummary;
    use crate::{EndpointSettings, Token, Tokens};
    use acp_reference_agent::Reference;
    use acp_server::Server;
    use acp_server::event::{Batch, TurnId};
    use acp_server::store::{Commit, MemoryStore, SessionRecord, Store as _};

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
