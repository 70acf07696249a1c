//! Sessions of the agent's own, such as those of subagents, and the sessions that they belong to.
//!
//! An agent names the parent of such a session in `_meta` (`parentSessionId`), or announces the session
//! in its parent (`subagent_update`, a proposal). Memory: the latest [`MOST`] sessions.

use std::collections::VecDeque;

use acp_sdk::Meta;
use acp_sdk::v1::{SessionId, SessionUpdate};
use serde_json::Value;

/// The maximum number of remembered child sessions, and of released ones.
const MOST: usize = 256;

/// An update of a child session.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChildUpdate {
    /// The id of the child session.
    pub session: SessionId,
    /// The update.
    pub update: SessionUpdate,
}

/// The known child sessions of a connection.
#[derive(Debug, Default)]
pub(super) struct Children {
    /// Each child and its parent, which may be a child itself.
    parents: VecDeque<(SessionId, SessionId)>,
    /// Sessions that this client has released, with their children. They are nobody's.
    released: VecDeque<SessionId>,
}

impl Children {
    /// Records the parent of a child.
    pub(super) fn adopt(&mut self, child: &SessionId, parent: &SessionId) {
        if child == parent || self.parent(child) == Some(parent) {
            return;
        }
        self.parents.retain(|(known, _)| known != child);
        push(&mut self.parents, (child.clone(), parent.clone()));
    }

    pub(super) fn parent(&self, child: &SessionId) -> Option<&SessionId> {
        let mut parents = self.parents.iter();
        parents
            .find(|(known, _)| known == child)
            .map(|(_, parent)| parent)
    }

    /// Records that a session is open in this client, so that it is no child.
    pub(super) fn claim(&mut self, id: &SessionId) {
        self.parents.retain(|(child, _)| child != id);
        self.released.retain(|released| released != id);
    }

    /// Records that a session is no longer open in this client.
    pub(super) fn release(&mut self, id: &SessionId) {
        let mut released = VecDeque::from([id.clone()]);
        while let Some(id) = released.pop_front() {
            self.parents.retain(|(child, parent)| {
                if *parent == id {
                    released.push_back(child.clone());
                }
                *parent != id
            });
            push(&mut self.released, id);
        }
    }

    pub(super) fn is_released(&self, id: &SessionId) -> bool {
        self.released.contains(id)
    }
}

fn push<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() == MOST {
        list.pop_front();
    }
    list.push_back(item);
}

/// Returns the parent that the `_meta` of a message names, by itself or in the object of an agent.
pub(super) fn named_parent(meta: &Meta) -> Option<SessionId> {
    let meta: Value = serde_json::from_str(meta.as_str()).ok()?;
    let named = |value: &Value| Some(SessionId::from(value.get("parentSessionId")?.as_str()?));
    named(&meta).or_else(|| meta.as_object()?.values().find_map(named))
}

/// The kind of the update that announces a child session.
const ANNOUNCEMENT: &str = "subagent_update";

/// Returns the child session that an update of its parent announces.
pub(crate) fn announced_child(update: &SessionUpdate) -> Option<SessionId> {
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
    // A proposal has a type of its own only in some builds of `acp-sdk`.
    let update = serde_json::to_value(update).ok()?;
    let is_announced = update["sessionUpdate"] == ANNOUNCEMENT;
    let child = update["sessionId"].as_str().filter(|_| is_announced)?;
    Some(child.into())
}
