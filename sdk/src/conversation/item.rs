//! Items of a conversation, and what an update changed.

use super::message::Message;
use crate::v1::{SessionUpdate, StopReason, ToolCall};

/// The id of an item: its number in the conversation, from 1.
///
/// Ids grow in the order of the items. An id is never used again, not even after
/// [`restart`](super::Conversation::restart).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemId(pub(super) u64);

impl ItemId {
    /// Returns the number.
    #[must_use]
    pub fn number(self) -> u64 {
        self.0
    }
}

/// An item of a conversation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its content.
    pub kind: ItemKind,
    /// The size in bytes of content of this item that was left out to keep the limit: the beginning
    /// of a message, or content, input and output of a tool call.
    pub omitted: usize,
    /// Counted against the limit.
    pub(super) bytes: usize,
    /// Whether the agent has announced the tool call, or only updated it.
    pub(super) is_announced: bool,
}

/// The content of an item.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ItemKind {
    /// A message of the user or of the agent, or a thought.
    Message(Message),
    /// A tool call with all its updates.
    ToolCall(Box<ToolCall>),
    /// The end of a turn.
    TurnEnd {
        /// The stop reason; `None` if the turn failed.
        stop_reason: Option<StopReason>,
    },
    /// Updates that the application has not received.
    Missed {
        /// Their number; `None` if it is not known.
        count: Option<u64>,
    },
    /// An update of any other kind, unchanged: notices, compactions, and kinds that this crate does
    /// not know.
    Other(Box<SessionUpdate>),
}

impl Item {
    /// Returns the message, if it is one.
    #[must_use]
    pub fn as_message(&self) -> Option<&Message> {
        match &self.kind {
            ItemKind::Message(message) => Some(message),
            _ => None,
        }
    }

    /// Returns the tool call, if it is one.
    #[must_use]
    pub fn as_tool_call(&self) -> Option<&ToolCall> {
        match &self.kind {
            ItemKind::ToolCall(call) => Some(call),
            _ => None,
        }
    }
}

/// A part of the conversation that a user interface must redraw.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Change {
    /// A new item, after all others.
    Added(ItemId),
    /// The content of the update was appended to a message or tool call; nothing else changed.
    Appended(ItemId),
    /// Any other change of an item.
    Changed(ItemId),
    /// The items up to and including this one were removed: to keep the limit, which
    /// [`omitted`](super::Conversation::omitted) counts, or by
    /// [`restart`](super::Conversation::restart).
    Removed(ItemId),
    /// The plan.
    Plan,
    /// The modes or the current mode.
    Modes,
    /// The config options.
    ConfigOptions,
    /// The slash commands.
    Commands,
    /// The title or the time of the last activity.
    Info,
    /// The tokens in use and the cost.
    Usage,
}

impl Change {
    /// Returns the item that was added or changed and still exists.
    #[must_use]
    pub fn item(self) -> Option<ItemId> {
        match self {
            Self::Added(id) | Self::Appended(id) | Self::Changed(id) => Some(id),
            _ => None,
        }
    }
}

/// The changes that an update made, in the order in which they are to be drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "the changes are what is to be redrawn; assign them to `_` otherwise"]
pub struct Changes(pub(super) [Option<Change>; 4]);

impl Changes {
    /// Returns whether nothing changed.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.into_iter().next().is_none()
    }
}

impl IntoIterator for Changes {
    type Item = Change;
    type IntoIter = std::iter::Flatten<std::array::IntoIter<Option<Change>, 4>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter().flatten()
    }
}
