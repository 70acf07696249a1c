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
use super::children::{Announced, ChildInfo, Children, named_parent};
use crate::hooks::{ConnectionId, Directories, SessionContext};

/// Maximum number of unknown sessions whose updates are kept.
const UNCLAIMED: usize = 16;

/// Maximum number of sessions from a child session to that of the client.
const DEEPEST: usize = 16;

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

#[derive(Debug, Default)]
struct Table {
    /// The directories of sessions whose ids are not known yet.
    creating: Vec<Arc<Directories>>,
    claimed: HashMap<SessionId, Arc<Inbox>>,
    unclaimed: VecDeque<(SessionId, Arc<Inbox>)>,
    children: Children,
    ended: bool,
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
        if let Some(inbox) = table.claimed.get(id) {
            return Receiver {
                inbox: inbox.clone(),
                parent: None,
                title: None,
            };
        }
        if let Some(named) = meta.and_then(named_parent) {
            table.children.adopt(id, &named);
        }
        let parent = table.ancestor(id);
        Receiver {
            title: table.children.get(id).and_then(|child| child.title.clone()),
            parent: parent.map(|parent| table.inbox(&parent)),
            inbox: table.inbox(id),
        }
    }

    /// Records what a session has said about its child session.
    pub(crate) fn announce(&self, announced: Announced, parent: &SessionId) {
        self.lock().children.announce(announced, parent);
    }

    /// Returns what is known of a child session.
    pub(crate) fn child(&self, id: &SessionId) -> Option<ChildInfo> {
        self.lock().children.get(id).cloned()
    }

    /// Returns the child sessions of an open session, and theirs.
    pub(crate) fn children(&self, parent: &SessionId) -> Vec<ChildInfo> {
        let table = self.lock();
        let all = table.children.all();
        let of_parent = all.filter(|child| table.ancestor(&child.session).as_ref() == Some(parent));
        of_parent.cloned().collect()
    }

    /// Forgets the child sessions of a session, whose history the agent sends again.
    pub(crate) fn restart_children(&self, parent: &SessionId) {
        self.lock().children.restart(parent);
    }

    /// Registers a session with the updates received so far; `None` if it is registered already.
    pub(crate) fn claim(&self, id: &SessionId) -> Option<Arc<Inbox>> {
        let mut table = self.lock();
        if table.claimed.contains_key(id) {
            return None;
        }
        let early = table.unclaimed.iter().position(|(known, _)| known == id);
        let early = early.and_then(|index| table.unclaimed.remove(index));
        let as_child = table.children.claim(id);
        let inbox = early.map(|(_, inbox)| inbox).or(as_child);
        let inbox = inbox.unwrap_or_default();
        inbox.claim();
        if table.ended {
            inbox.end();
        }
        table.claimed.insert(id.clone(), inbox.clone());
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
            table.children.release(id);
            table.claimed.remove(id)
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
            table.claimed.values().cloned().collect()
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
        let directories = match (table.claimed.get(id), &table.creating[..]) {
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
            self.lock().children.adopt(id, &owner);
        }
        Some(context)
    }

    /// Returns the session that a request about session `id` belongs to. Agents make sessions of their
    /// own for subagents: such a one belongs to the session that `_meta` names as its parent or that is
    /// known as such, else to the only one with a running turn, else to the only one. `None` if there are
    /// several, or none, or for a session that this client has released.
    pub(crate) fn owner(&self, id: &SessionId, meta: Option<&Meta>) -> Option<SessionId> {
        let table = self.lock();
        if table.claimed.contains_key(id) {
            return Some(id.clone());
        }
        let named = meta.and_then(named_parent);
        let named = named.and_then(|named| table.claimed_or_ancestor(named));
        if let Some(parent) = named.or_else(|| table.ancestor(id)) {
            return Some(parent);
        }
        // The session may be the one that is being created, or was created for a caller that is gone.
        if !table.creating.is_empty() || table.is_answered(id) {
            return Some(id.clone());
        }
        if table.children.is_released(id) {
            return None;
        }
        let running = table.claimed.iter();
        let running = running.filter(|(_, inbox)| inbox.turn().is_some());
        only(running.map(|(id, _)| id)).or_else(|| only(table.claimed.keys()))
    }

    /// Counts a call in flight, until the result is dropped.
    pub(crate) fn call(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Call(self)
    }

    /// Returns whether more than the turn of one session needs the connection.
    pub(crate) fn is_shared(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0 || self.lock().claimed.len() > 1
    }

    /// A std mutex suffices: it is held for a few instructions and never across an await.
    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    /// Returns the inbox of a session, known or not.
    fn inbox(&mut self, id: &SessionId) -> Arc<Inbox> {
        if let Some(inbox) = self.claimed.get(id) {
            return inbox.clone();
        }
        let early = self.unclaimed.iter().position(|(known, _)| known == id);
        if self.ancestor(id).is_some() {
            let early = early.and_then(|index| self.unclaimed.remove(index));
            let new = || early.map(|(_, inbox)| inbox).unwrap_or_default();
            if let Some(inbox) = self.children.inbox(id, new) {
                return inbox;
            }
        } else if let Some((_, inbox)) = early.and_then(|index| self.unclaimed.get(index)) {
            return inbox.clone();
        }
        if self.unclaimed.len() == UNCLAIMED {
            self.unclaimed.pop_front();
        }
        let inbox = Arc::new(Inbox::default());
        self.unclaimed.push_back((id.clone(), inbox.clone()));
        inbox
    }

    /// Returns the open session that a child session is known to belong to.
    fn ancestor(&self, child: &SessionId) -> Option<SessionId> {
        self.claimed_or_ancestor(self.children.get(child)?.parent.clone())
    }

    fn claimed_or_ancestor(&self, mut id: SessionId) -> Option<SessionId> {
        // An agent may name parents in a circle.
        for _ in 0..DEEPEST {
            if self.claimed.contains_key(&id) {
                return Some(id);
            }
            id = self.children.get(&id)?.parent.clone();
        }
        None
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
