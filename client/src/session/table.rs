//! Which sessions there are.
//!
//! An agent may write updates of a session before the answer that tells its id, so updates
//! of unknown sessions are kept for a while: of the latest [`UNCLAIMED`] sessions, and each
//! within the limit of its [`Inbox`].

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::v1::{SessionId, SessionUpdate};

use super::{Gap, Inbox};

/// Sessions that nobody has claimed yet and for which updates are kept.
const UNCLAIMED: usize = 16;

/// Updates that came while no turn was going on, the latest of them.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Missed {
    /// In the order in which the agent wrote them.
    pub updates: Vec<SessionUpdate>,
    /// How many older ones were dropped to bound memory.
    pub dropped: u64,
    /// The connection was lost meanwhile, and updates may be missing.
    pub gap: Option<Gap>,
}

impl Missed {
    /// Whether nothing came.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.updates.is_empty() && self.dropped == 0 && self.gap.is_none()
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sessions(Mutex<Table>);

#[derive(Debug, Default)]
struct Table {
    claimed: HashMap<SessionId, Arc<Inbox>>,
    unclaimed: VecDeque<(SessionId, Arc<Inbox>)>,
}

impl Sessions {
    /// The inbox of a session, known or not.
    pub(crate) fn inbox(&self, id: &SessionId) -> Arc<Inbox> {
        let mut table = self.lock();
        if let Some(inbox) = table.claimed.get(id) {
            return inbox.clone();
        }
        if let Some((_, inbox)) = table.unclaimed.iter().find(|(known, _)| known == id) {
            return inbox.clone();
        }
        if table.unclaimed.len() == UNCLAIMED {
            table.unclaimed.pop_front();
        }
        let inbox = Arc::new(Inbox::default());
        table.unclaimed.push_back((id.clone(), inbox.clone()));
        inbox
    }

    /// Makes a session known, with what has come for it so far; none if it is known already.
    pub(crate) fn claim(&self, id: &SessionId) -> Option<Arc<Inbox>> {
        let mut table = self.lock();
        if table.claimed.contains_key(id) {
            return None;
        }
        let early = table.unclaimed.iter().position(|(known, _)| known == id);
        let early = early.and_then(|index| table.unclaimed.remove(index));
        let inbox = early.map_or_else(Arc::default, |(_, inbox)| inbox);
        inbox.claim();
        table.claimed.insert(id.clone(), inbox.clone());
        Some(inbox)
    }

    /// Forgets a session.
    pub(crate) fn release(&self, id: &SessionId) {
        self.lock().claimed.remove(id);
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use acp_sdk::v1::{ContentBlock, ContentChunk};

    use super::*;

    fn text(text: &str) -> SessionUpdate {
        let block = ContentBlock::from(text);
        SessionUpdate::AgentMessageChunk(ContentChunk::new(block))
    }

    fn put(sessions: &Sessions, id: &SessionId, word: &str) {
        let waiting = sessions.inbox(id).take_in(text(word));
        assert!(waiting.is_none(), "there is always room outside of turns");
    }

    #[test]
    fn what_comes_early_is_kept_for_the_session() {
        let sessions = Sessions::default();
        let (a, b) = (SessionId::from("a"), SessionId::from("b"));
        put(&sessions, &a, "one");
        put(&sessions, &b, "other");
        put(&sessions, &a, "two");
        let inbox = sessions.claim(&a).unwrap();
        assert_eq!(inbox.take_missed().updates, [text("one"), text("two")]);
        put(&sessions, &a, "three");
        assert_eq!(inbox.take_missed().updates, [text("three")]);
        assert!(sessions.claim(&a).is_none());
        sessions.release(&a);
        assert!(sessions.claim(&a).is_some());
    }

    #[test]
    fn sessions_that_nobody_knows_are_bounded() {
        let sessions = Sessions::default();
        for number in 0..1000 {
            let id = SessionId::from(format!("{number}"));
            put(&sessions, &id, "early");
        }
        assert_eq!(sessions.lock().unclaimed.len(), UNCLAIMED);
        let latest = sessions.claim(&"999".into()).unwrap();
        assert_eq!(latest.take_missed().updates.len(), 1);
        let oldest = sessions.claim(&"0".into()).unwrap();
        assert_eq!(oldest.take_missed().updates.len(), 0);
    }
}
