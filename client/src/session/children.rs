//! Sessions of the agent's own, such as those of subagents, and the sessions that they belong to.
//!
//! An agent announces such a session in its parent (`subagent_update`), or names the parent in `_meta`
//! (`parentSessionId`). A child has no reader of its own. Memory: the latest sessions, up to the limit of the
//! [`SessionTree`], and [`MOST_OF_ONE`] of a parent.

use std::collections::HashMap;
use std::iter;
use std::sync::Arc;

use acp_sdk::text::one_line;
use acp_sdk::v1::{SessionId, SessionUpdate};
use acp_sdk::{Meta, Patch};
use serde_json::Value;

/// The maximum number of remembered child sessions of a parent.
const MOST_OF_ONE: usize = 64;

/// The maximum number of sessions from a child session to that of the client.
const DEEPEST: usize = 16;

/// The maximum length of a title, in characters.
const MOST_TITLE: usize = 200;

/// An update of a child session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildUpdate {
    /// The id of the child session.
    pub session: SessionId,
    /// The name of the child session: one line of at most 200 characters, if the agent has named it.
    pub title: Option<Arc<str>>,
    /// The update.
    pub update: SessionUpdate,
}

/// A session of the agent's own, such as that of a subagent.
///
/// The agent announces it by a `subagent_update` in its parent.
///
/// Spec: <https://agentclientprotocol.com/rfds/subagents>
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The id of the child session.
    pub session: SessionId,
    /// The session that it belongs to, which may be a child session itself.
    pub parent: SessionId,
    /// Its name: one line of at most 200 characters, if the agent has named it.
    pub title: Option<Arc<str>>,
    /// Whether the client may send it `session/cancel`.
    pub can_cancel: bool,
}

/// The open sessions of a connection and the agent's own sessions below them, each with a state `T`.
///
/// A session that the client has opened is no child. No session is below itself.
#[derive(Debug)]
pub struct SessionTree<T> {
    open: HashMap<SessionId, T>,
    children: HashMap<SessionId, Node<T>>,
    most_children: usize,
    /// The number of the child that was added last.
    last: u64,
}

#[derive(Debug)]
struct Node<T> {
    info: ChildInfo,
    /// The latest child has the highest number.
    number: u64,
    /// `None` until it is needed.
    state: Option<T>,
}

impl<T> SessionTree<T> {
    /// Creates a tree that remembers the latest `most_children` child sessions, and 64 of each parent.
    #[must_use]
    pub fn new(most_children: usize) -> Self {
        Self {
            open: HashMap::new(),
            children: HashMap::new(),
            most_children,
            last: 0,
        }
    }

    /// Returns the open sessions.
    #[must_use]
    pub fn all_open(&self) -> &HashMap<SessionId, T> {
        &self.open
    }

    /// Adds an open session, and returns its state, which `new` makes of that of a child. The sessions below it
    /// stay.
    pub fn open(&mut self, id: SessionId, new: impl FnOnce(Option<T>) -> T) -> &mut T {
        let child = self.children.remove(&id).and_then(|node| node.state);
        self.open.entry(id).insert_entry(new(child)).into_mut()
    }

    /// Removes a session that may be open, and all below it. Returns the ids, its own first, and its state.
    pub fn close(&mut self, id: &str) -> (Vec<SessionId>, Option<T>) {
        let removed = self.remove_below(id);
        let child = self.children.remove(id).and_then(|node| node.state);
        (removed, self.open.remove(id).or(child))
    }

    /// Removes the sessions below a session. Returns their ids after its own.
    pub fn remove_below(&mut self, id: &str) -> Vec<SessionId> {
        let mut removed = vec![SessionId::from(id)];
        let mut next = 0;
        while let Some(id) = removed.get(next).cloned() {
            let below = self.children.extract_if(|_, node| node.info.parent == id);
            removed.extend(below.map(|(id, _)| id));
            next += 1;
        }
        removed
    }

    /// Records the parent of a session that is not open. A child below an open session is not moved to a parent
    /// that is not.
    pub fn adopt(&mut self, child: &SessionId, parent: &SessionId) {
        // An agent may name parents in a circle.
        if self.open.contains_key(child) || self.ancestors(parent).any(|id| id == child) {
            return;
        }
        let is_better = self.root(parent.as_str()).is_some() || self.root(child.as_str()).is_none();
        if let Some(node) = self.children.get_mut(child) {
            if is_better {
                node.info.parent = parent.clone();
            }
            return;
        }
        let siblings = || {
            let nodes = self.children.values();
            nodes.filter(|node| node.info.parent == *parent)
        };
        if siblings().count() >= MOST_OF_ONE {
            self.remove_oldest(|node| node.info.parent == *parent);
        }
        if self.children.len() >= self.most_children {
            self.remove_oldest(|_| true);
        }
        self.last += 1;
        let info = ChildInfo {
            session: child.clone(),
            parent: parent.clone(),
            title: None,
            can_cancel: false,
        };
        let node = Node {
            info,
            number: self.last,
            state: None,
        };
        self.children.insert(child.clone(), node);
    }

    /// Records the parent that the `_meta` of a message of a session names.
    pub fn adopt_named(&mut self, child: &SessionId, meta: Option<&Meta>) {
        if !self.open.contains_key(child)
            && let Some(parent) = meta.and_then(named_parent)
        {
            self.adopt(child, &parent);
        }
    }

    /// Records what a parent has said about its child.
    pub fn announce(&mut self, announced: Announced, parent: &SessionId) {
        self.adopt(&announced.session, parent);
        let Some(node) = self.children.get_mut(&announced.session) else {
            return;
        };
        match announced.title {
            Patch::Absent => {}
            Patch::Null => node.info.title = None,
            Patch::Value(title) => node.info.title = Some(title),
        }
        if let Some(can_cancel) = announced.can_cancel {
            node.info.can_cancel = can_cancel;
        }
    }

    /// Returns what is known of a child session.
    #[must_use]
    pub fn child(&self, id: &str) -> Option<&ChildInfo> {
        self.children.get(id).map(|node| &node.info)
    }

    /// Returns the child sessions of an open session, and theirs, the latest last.
    #[must_use]
    pub fn below(&self, root: &SessionId) -> Vec<ChildInfo> {
        let nodes = self.children.iter();
        let mut below: Vec<_> = nodes
            .filter(|(id, _)| self.root(id.as_str()) == Some(root))
            .map(|(_, node)| node)
            .collect();
        below.sort_by_key(|node| node.number);
        below.into_iter().map(|node| node.info.clone()).collect()
    }

    /// Returns the open session that a session belongs to, which may be itself.
    #[must_use]
    pub fn root(&self, id: &str) -> Option<&SessionId> {
        if let Some((id, _)) = self.open.get_key_value(id) {
            return Some(id);
        }
        let parent = &self.children.get(id)?.info.parent;
        let mut ancestors = self.ancestors(parent).take(DEEPEST);
        ancestors.find(|id| self.open.contains_key(*id))
    }

    /// Returns the state of a session that is open or below an open one; `new` makes that of a child without.
    pub fn state(&mut self, id: &str, new: impl FnOnce() -> T) -> Option<&mut T> {
        self.root(id)?;
        match self.open.get_mut(id) {
            Some(state) => Some(state),
            None => Some(self.children.get_mut(id)?.state.get_or_insert_with(new)),
        }
    }

    /// Returns a session and those that it is below.
    fn ancestors<'a>(&'a self, id: &'a SessionId) -> impl Iterator<Item = &'a SessionId> {
        iter::successors(Some(id), |id| Some(&self.children.get(*id)?.info.parent))
    }

    fn remove_oldest(&mut self, among: impl Fn(&Node<T>) -> bool) {
        let nodes = self.children.values().filter(|node| among(node));
        let oldest = nodes.min_by_key(|node| node.number);
        if let Some(oldest) = oldest.map(|node| node.info.session.clone()) {
            self.children.remove(&oldest);
        }
    }
}

/// Returns the parent that the `_meta` of a message names, by itself or in the object of an agent.
pub(super) fn named_parent(meta: &Meta) -> Option<SessionId> {
    let meta: Value = serde_json::from_str(meta.as_str()).ok()?;
    let named = |value: &Value| Some(SessionId::from(value.get("parentSessionId")?.as_str()?));
    named(&meta).or_else(|| meta.as_object()?.values().find_map(named))
}

/// The kind of the update that announces a child session.
pub const ANNOUNCEMENT: &str = "subagent_update";

/// What an update of a parent says about its child. What is absent is unchanged.
#[derive(Debug)]
pub struct Announced {
    /// The id of the child session.
    session: SessionId,
    title: Patch<Arc<str>>,
    /// Whether the client may send it `session/cancel`.
    can_cancel: Option<bool>,
}

/// Returns the child session that an update of its parent announces or changes.
pub fn announced_child(update: &SessionUpdate) -> Option<Announced> {
    use SessionUpdate as V1;
    match update {
        // The frequent kinds.
        V1::AgentMessageChunk(_)
        | V1::AgentThoughtChunk(_)
        | V1::UserMessageChunk(_)
        | V1::ToolCall(_)
        | V1::ToolCallUpdate(_)
        | V1::Plan(_)
        | V1::UsageUpdate(_) => return None,
        V1::Unknown(update) if update.tag() != ANNOUNCEMENT => return None,
        _ => {}
    }
    // In version 1 a proposal has a type of its own only in some builds of `acp-sdk`.
    let update = serde_json::to_value(update).ok()?;
    let is_announced = update["sessionUpdate"] == ANNOUNCEMENT;
    let child = update["sessionId"].as_str().filter(|_| is_announced)?;
    let title = match update.get("title") {
        Some(Value::String(title)) => Patch::Value(one_line(title, MOST_TITLE).into()),
        Some(_) => Patch::Null,
        None => Patch::Absent,
    };
    let capabilities = update.get("capabilities");
    Some(Announced {
        session: child.into(),
        title,
        can_cancel: capabilities.map(|all| all["cancel"].is_object()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_below_an_open_one_are_bounded_and_end_with_it() {
        let mut tree = SessionTree::<()>::new(100);
        let id = |number: usize| SessionId::from(number.to_string());
        let open = SessionId::from("open");
        tree.open(open.clone(), |_| ());
        for number in 0..=MOST_OF_ONE {
            tree.adopt(&id(number), &open);
        }
        assert_eq!(tree.below(&open).len(), MOST_OF_ONE);
        assert!(tree.child("0").is_none(), "the oldest");
        for number in 1000..1000 + 2 * DEEPEST {
            let parent = if number == 1000 { 64 } else { number - 1 };
            tree.adopt(&id(number), &id(parent));
        }
        let is_known =
            |tree: &SessionTree<()>, number: usize| tree.root(id(number).as_str()).is_some();
        assert!(is_known(&tree, 1000 + DEEPEST - 2) && !is_known(&tree, 1000 + DEEPEST - 1));
        for number in 2000..2200 {
            tree.adopt(&id(number), &id(number + 1000));
        }
        assert_eq!(tree.children.len(), 100);
        assert!(tree.below(&open).is_empty(), "the latest are others");
    }

    #[test]
    fn a_child_that_is_opened_is_none_and_keeps_its_own() {
        let mut tree = SessionTree::new(100);
        let (a, b, c) = (
            SessionId::from("a"),
            SessionId::from("b"),
            SessionId::from("c"),
        );
        tree.open(a.clone(), |_| 1);
        // A parent may be named before its own.
        tree.adopt(&c, &b);
        assert_eq!(tree.state("c", || 3), None);
        tree.adopt(&b, &a);
        assert_eq!(tree.state("b", || 2), Some(&mut 2));
        assert_eq!(tree.root("c"), Some(&a));
        tree.adopt(&b, &c);
        assert_eq!(tree.root("b"), Some(&a), "not below itself");
        tree.adopt(&b, &"unknown".into());
        assert_eq!(tree.root("b"), Some(&a), "not below one that is nobody's");
        tree.open(b.clone(), |child| child.unwrap_or_default() + 10);
        tree.adopt(&b, &a);
        assert_eq!((tree.root("c"), tree.all_open()["b"]), (Some(&b), 12));
        let (mut closed, state) = tree.close("b");
        closed.sort_by_key(ToString::to_string);
        assert_eq!((closed, state), (vec![b, c], Some(12)));
        assert!(tree.below(&a).is_empty());
    }
}
