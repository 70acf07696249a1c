//! The sessions of a connection.
//!
//! An agent may send updates of a session before the response with its id. Updates of unknown
//! sessions are kept: of the latest [`UNCLAIMED`] sessions, each within the limit of its [`Inbox`].

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use acp_sdk::Meta;
use acp_sdk::v1::SessionId;

use super::Inbox;
use super::children::{Announced, ChildInfo, SessionTree, named_parent};
use crate::hooks::{ConnectionId, Directories, SessionContext};

/// Maximum number of unknown sessions whose updates are kept.
const UNCLAIMED: usize = 16;

/// Maximum number of remembered child sessions, and of released ones.
const MOST_CHILDREN: usize = 256;

#[derive(Debug)]
pub(crate) struct Sessions {
    connection: ConnectionId,
    table: Mutex<Table>,
    /// The number of calls in flight.
    calls: AtomicUsize,
}

/// A session that is being created: its id is not known yet.
pub(crate) struct Creating<'a> {
    sessions: &'a Sessions,
    directories: Arc<Directories>,
}

impl Drop for Creating<'_> {
    fn drop(&mut self) {
        let mut table = self.sessions.lock();
        let at = table
            .creating
            .iter()
            .position(|other| Arc::ptr_eq(other, &self.directories));
        if let Some(at) = at {
            table.creating.swap_remove(at);
        }
    }
}

#[derive(Debug)]
struct Table {
    /// The directories of sessions whose ids are not known yet.
    creating: Vec<Arc<Directories>>,
    /// The registered sessions. A child has an inbox, which knows its tool calls and messages, once it has sent
    /// an update.
    tree: SessionTree<Arc<Inbox>>,
    unclaimed: VecDeque<(SessionId, Arc<Inbox>)>,
    /// Sessions that this client has released, with their children. They are nobody's.
    released: VecDeque<SessionId>,
    ended: bool,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            creating: Vec::new(),
            tree: SessionTree::new(MOST_CHILDREN),
            unclaimed: VecDeque::new(),
            released: VecDeque::new(),
            ended: false,
        }
    }
}

/// The inbox of a session that has sent an update.
pub(crate) struct Receiver {
    pub(crate) inbox: Arc<Inbox>,
    /// The inbox of the session of this client that a child session belongs to.
    pub(crate) parent: Option<Arc<Inbox>>,
    /// The name of the child session.
    pub(crate) title: Option<Arc<str>>,
}

/// A call in flight.
pub(crate) struct Call<'a>(&'a Sessions);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Sessions {
    pub(crate) fn new() -> Self {
        Self {
            connection: ConnectionId::new(),
            table: Mutex::default(),
            calls: AtomicUsize::new(0),
        }
    }

    /// Returns the inbox of a session, known or not.
    pub(crate) fn inbox(&self, id: &SessionId) -> Arc<Inbox> {
        self.lock().inbox(id)
    }

    /// Returns the inbox of a session that has sent an update, and that of its parent if the agent has
    /// named one. The parent is never guessed, unlike that of a [request](Self::owner).
    pub(crate) fn receiver(&self, id: &SessionId, meta: Option<&Meta>) -> Receiver {
        let mut table = self.lock();
        if let Some(inbox) = table.claimed().get(id) {
            return Receiver {
                inbox: inbox.clone(),
                parent: None,
                title: None,
            };
        }
        table.tree.adopt_named(id, meta);
        let parent = table.tree.root(id.as_str());
        Receiver {
            title: table
                .tree
                .child(id.as_str())
                .and_then(|child| child.title.clone()),
            parent: parent
                .and_then(|parent| table.claimed().get(parent))
                .cloned(),
            inbox: table.inbox(id),
        }
    }

    /// Records what a session has said about its child session.
    pub(crate) fn announce(&self, announced: Announced, parent: &SessionId) {
        self.lock().tree.announce(announced, parent);
    }

    /// Returns what is known of a child session.
    pub(crate) fn child(&self, id: &SessionId) -> Option<ChildInfo> {
        self.lock().tree.child(id.as_str()).cloned()
    }

    /// Returns the child sessions of an open session, and theirs.
    pub(crate) fn children(&self, parent: &SessionId) -> Vec<ChildInfo> {
        self.lock().tree.below(parent)
    }

    /// Forgets the child sessions of a session, whose history the agent sends again.
    pub(crate) fn restart_children(&self, parent: &SessionId) {
        self.lock().tree.remove_below(parent.as_str());
    }

    /// Registers a session with the updates received so far; `None` if it is registered already.
    pub(crate) fn claim(&self, id: &SessionId) -> Option<Arc<Inbox>> {
        let mut table = self.lock();
        if table.claimed().contains_key(id) {
            return None;
        }
        table.released.retain(|released| released != id);
        let early = table.unclaimed.iter().position(|(known, _)| known == id);
        let early = early.and_then(|index| table.unclaimed.remove(index));
        let early = early.map(|(_, inbox)| inbox);
        let new = |as_child| early.or(as_child).unwrap_or_default();
        let inbox = table.tree.open(id.clone(), new).clone();
        inbox.claim();
        if table.ended {
            inbox.end();
        }
        Some(inbox)
    }

    /// Drops the updates of a session that was not registered: those of an earlier attempt to load it.
    pub(crate) fn forget_early(&self, id: &SessionId) {
        self.lock().unclaimed.retain(|(known, _)| known != id);
    }

    pub(crate) fn connection(&self) -> ConnectionId {
        self.connection
    }

    /// Removes a session; its readers receive no more events.
    pub(crate) fn release(&self, id: &SessionId) {
        let inbox = {
            let mut table = self.lock();
            let (released, inbox) = table.tree.close(id.as_str());
            table.released.extend(released);
            let surplus = table.released.len().saturating_sub(MOST_CHILDREN);
            table.released.drain(..surplus);
            inbox
        };
        if let Some(inbox) = inbox {
            inbox.end();
        }
    }

    /// Ends all sessions with the connection.
    pub(crate) fn end(&self) {
        let inboxes: Vec<_> = {
            let mut table = self.lock();
            table.ended = true;
            table.claimed().values().cloned().collect()
        };
        inboxes.iter().for_each(|inbox| inbox.end());
    }

    /// Records the directories of a session that is being created, until the result is dropped.
    pub(crate) fn creating(&self, directories: &Arc<Directories>) -> Creating<'_> {
        self.lock().creating.push(directories.clone());
        Creating {
            sessions: self,
            directories: directories.clone(),
        }
    }

    /// Returns the directories of a session. An agent may request files of a session before it has
    /// responded with its id: if exactly one session is being created, its directories are
    /// returned.
    pub(crate) fn context(&self, id: &SessionId) -> Option<SessionContext> {
        let table = self.lock();
        let unclaimed = || table.unclaimed.iter().find(|(known, _)| known == id);
        let directories = match (table.claimed().get(id), &table.creating[..]) {
            (Some(inbox), _) => inbox.directories(),
            (None, creating) => {
                let answered = unclaimed().and_then(|(_, inbox)| inbox.directories());
                let only = creating.first().filter(|_| creating.len() == 1);
                answered.or_else(|| only.cloned())
            }
        };
        Some(SessionContext::new(
            self.connection,
            id.clone(),
            directories?,
        ))
    }

    /// Returns the session in which a file or a terminal is served to a session: its own context, or
    /// for a child session that of its [owner](Self::owner), which then remains its parent.
    pub(crate) fn serving(&self, id: &SessionId, meta: Option<&Meta>) -> Option<SessionContext> {
        let owner = self.owner(id, meta).unwrap_or_else(|| id.clone());
        let context = self.context(&owner)?;
        if owner != *id {
            self.lock().tree.adopt(id, &owner);
        }
        Some(context)
    }

    /// Returns the session that a request about session `id` belongs to. Agents make sessions of their
    /// own for subagents: such a one belongs to the session that `_meta` names as its parent or that is
    /// known as such, else to the only one with a running turn, else to the only one. `None` if there are
    /// several, or none, or for a session that this client has released.
    pub(crate) fn owner(&self, id: &SessionId, meta: Option<&Meta>) -> Option<SessionId> {
        let table = self.lock();
        if table.claimed().contains_key(id) {
            return Some(id.clone());
        }
        let named = meta.and_then(named_parent);
        let named = named
            .as_ref()
            .and_then(|named| table.tree.root(named.as_str()));
        if let Some(parent) = named.or_else(|| table.tree.root(id.as_str())) {
            return Some(parent.clone());
        }
        // The session may be the one that is being created, or was created for a caller that is gone.
        if !table.creating.is_empty() || table.is_answered(id) {
            return Some(id.clone());
        }
        if table.released.contains(id) {
            return None;
        }
        let running = table.claimed().iter();
        let running = running.filter(|(_, inbox)| inbox.turn().is_some());
        only(running.map(|(id, _)| id)).or_else(|| only(table.claimed().keys()))
    }

    /// Counts a call in flight, until the result is dropped.
    pub(crate) fn call(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Call(self)
    }

    /// Returns whether more than the turn of one session needs the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0 || self.lock().claimed().len() > 1
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the inbox of a session, known or not.
    fn inbox(&mut self, id: &SessionId) -> Arc<Inbox> {
        let early = self.unclaimed.iter().position(|(known, _)| known == id);
        let unclaimed = &mut self.unclaimed;
        let new = || {
            let early = early.and_then(|index| unclaimed.remove(index));
            early.map(|(_, inbox)| inbox).unwrap_or_default()
        };
        if let Some(inbox) = self.tree.state(id.as_str(), new) {
            return inbox.clone();
        }
        if let Some((_, inbox)) = early.and_then(|index| self.unclaimed.get(index)) {
            return inbox.clone();
        }
        if self.unclaimed.len() == UNCLAIMED {
            self.unclaimed.pop_front();
        }
        let inbox = Arc::new(Inbox::default());
        self.unclaimed.push_back((id.clone(), inbox.clone()));
        inbox
    }

    /// Returns the registered sessions.
    fn claimed(&self) -> &HashMap<SessionId, Arc<Inbox>> {
        self.tree.all_open()
    }

    /// Returns whether the agent has answered the request that creates a session.
    fn is_answered(&self, id: &SessionId) -> bool {
        let mut unclaimed = self.unclaimed.iter();
        let found = unclaimed.find(|(known, _)| known == id);
        found.is_some_and(|(_, inbox)| inbox.directories().is_some())
    }
}

fn only<'a>(mut ids: impl Iterator<Item = &'a SessionId>) -> Option<SessionId> {
    let first = ids.next()?;
    ids.next().is_none().then(|| first.clone())
}

#[cfg(test)]
mod tests;
