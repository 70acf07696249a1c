//! Sessions of the agent's own, such as those of subagents, and the sessions that they belong to.
//!
//! An agent announces such a session in its parent (`subagent_update`), or names the parent in `_meta`
//! (`parentSessionId`). A child has no reader of its own. Memory: the latest [`MOST`] sessions, and
//! [`MOST_OF_ONE`] of a parent.

use std::collections::VecDeque;
use std::sync::Arc;

use acp_sdk::text::one_line;
use acp_sdk::v1::{SessionId, SessionUpdate};
use acp_sdk::{Meta, Patch};
use serde_json::Value;

use super::Inbox;

/// The maximum number of remembered child sessions, and of released ones.
const MOST: usize = 256;

/// The maximum number of remembered child sessions of a parent.
const MOST_OF_ONE: usize = 64;

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

/// The known child sessions of a connection.
#[derive(Debug, Default)]
pub(super) struct Children {
    known: VecDeque<Child>,
    /// Sessions that this client has released, with their children. They are nobody's.
    released: VecDeque<SessionId>,
}

#[derive(Debug)]
struct Child {
    info: ChildInfo,
    /// Knows the tool calls and messages of the child, once it has sent an update.
    inbox: Option<Arc<Inbox>>,
}

impl Children {
    /// Records the parent of a child.
    pub(super) fn adopt(&mut self, child: &SessionId, parent: &SessionId) {
        if child == parent {
            return;
        }
        if let Some(known) = self.find(child) {
            known.info.parent = parent.clone();
            return;
        }
        let of_parent = |known: &Child| known.info.parent == *parent;
        if self.known.iter().filter(|known| of_parent(known)).count() >= MOST_OF_ONE
            && let Some(oldest) = self.known.iter().position(of_parent)
        {
            self.known.remove(oldest);
        }
        let info = ChildInfo {
            session: child.clone(),
            parent: parent.clone(),
            title: None,
            can_cancel: false,
        };
        push(&mut self.known, Child { info, inbox: None });
    }

    /// Records what a parent has said about its child.
    pub(super) fn announce(&mut self, announced: Announced, parent: &SessionId) {
        self.adopt(&announced.session, parent);
        let Some(known) = self.find(&announced.session) else {
            return;
        };
        match announced.title {
            Patch::Absent => {}
            Patch::Null => known.info.title = None,
            Patch::Value(title) => known.info.title = Some(title),
        }
        if let Some(can_cancel) = announced.can_cancel {
            known.info.can_cancel = can_cancel;
        }
    }

    pub(super) fn get(&self, child: &SessionId) -> Option<&ChildInfo> {
        let known = self.known.iter().find(|known| known.info.session == *child);
        known.map(|known| &known.info)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &ChildInfo> {
        self.known.iter().map(|known| &known.info)
    }

    /// Returns the inbox of a child, which is `new` if it has none yet; `None` if it is no child.
    pub(super) fn inbox(
        &mut self,
        child: &SessionId,
        new: impl FnOnce() -> Arc<Inbox>,
    ) -> Option<Arc<Inbox>> {
        let known = self.find(child)?;
        Some(known.inbox.get_or_insert_with(new).clone())
    }

    /// Records that a session is open in this client, so that it is no child. Returns its inbox.
    pub(super) fn claim(&mut self, id: &SessionId) -> Option<Arc<Inbox>> {
        self.released.retain(|released| released != id);
        let at = self
            .known
            .iter()
            .position(|known| known.info.session == *id)?;
        self.known.remove(at)?.inbox
    }

    /// Records that a session is no longer open in this client.
    pub(super) fn release(&mut self, id: &SessionId) {
        for id in self.remove_of(id) {
            push(&mut self.released, id);
        }
    }

    /// Forgets the children of a session, whose history the agent sends again.
    pub(super) fn restart(&mut self, id: &SessionId) {
        self.remove_of(id);
    }

    /// Removes the children of a session and theirs. Returns their ids, with that of the session.
    fn remove_of(&mut self, id: &SessionId) -> Vec<SessionId> {
        let mut removed = vec![id.clone()];
        let mut next = 0;
        while let Some(id) = removed.get(next).cloned() {
            self.known.retain(|known| {
                let is_child = known.info.parent == id;
                if is_child {
                    removed.push(known.info.session.clone());
                }
                !is_child
            });
            next += 1;
        }
        removed
    }

    pub(super) fn is_released(&self, id: &SessionId) -> bool {
        self.released.contains(id)
    }

    fn find(&mut self, child: &SessionId) -> Option<&mut Child> {
        let mut known = self.known.iter_mut();
        known.find(|known| known.info.session == *child)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == MOST {
        list.pop_front();
    }
    list.push_back(item);
}

/// Returns the parent that the `_meta` of a message names, by itself or in the object of an agent.
pub fn named_parent(meta: &Meta) -> Option<SessionId> {
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
    pub session: SessionId,
    title: Patch<Arc<str>>,
    /// Whether the client may send it `session/cancel`.
    pub can_cancel: Option<bool>,
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
