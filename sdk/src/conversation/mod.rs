//! A conversation, folded from the updates of a session.
//!
//! Agents report a session as a stream of updates: chunks of messages, changes of tool calls, new
//! plans. A [`Conversation`] is the result of all of them: messages, thoughts and tool calls in
//! order, and the current plan, settings and usage. It does neither I/O nor waiting, and is the same
//! for live and for replayed updates.
//!
//! [`apply`](Conversation::apply) returns what an update changed, so that a user interface redraws
//! only that:
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! use acp_sdk::conversation::{Change, Changes, Conversation, ItemId, ItemKind};
//! use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate, ToolCall};
//!
//! /// The rows of an editor's view.
//! #[derive(Default)]
//! struct View {
//!     rows: BTreeMap<ItemId, String>,
//!     status: String,
//! }
//!
//! impl View {
//!     fn redraw(&mut self, conversation: &Conversation, changes: Changes) {
//!         for change in changes {
//!             match change {
//!                 Change::Removed(last) => self.rows.retain(|id, _| *id > last),
//!                 Change::Usage => self.status = format!("{:?}", conversation.usage()),
//!                 change => {
//!                     let item = change.item().and_then(|id| conversation.item(id));
//!                     if let Some(item) = item {
//!                         let row = match &item.kind {
//!                             ItemKind::Message(message) => message.text().into_owned(),
//!                             ItemKind::ToolCall(call) => format!("[{}]", call.title),
//!                             _ => continue,
//!                         };
//!                         self.rows.insert(item.id, row);
//!                     }
//!                 }
//!             }
//!         }
//!     }
//! }
//!
//! let mut conversation = Conversation::new();
//! let mut view = View::default();
//! let changes = conversation.prompt(&[ContentBlock::from("What is in it?")]);
//! view.redraw(&conversation, changes);
//! let chunk = |text: &str| SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)));
//! for update in [chunk("I re"), chunk("ad it."), ToolCall::new("1", "Read").into(), chunk("Words.")] {
//!     let changes = conversation.apply(&update);
//!     view.redraw(&conversation, changes);
//! }
//! let rows: Vec<_> = view.rows.values().map(String::as_str).collect();
//! assert_eq!(rows, ["What is in it?", "I read it.", "[Read]", "Words."]);
//! ```
//!
//! # Messages
//!
//! A chunk with an id belongs to the message of its author with this id, wherever it stands. A chunk
//! without an id, and one whose id is the first after chunks without, continues the message of the
//! previous chunk, unless an item of the conversation was added since: a message of another author,
//! a tool call, a prompt or the end of a turn. Updates of tool calls and of unknown kinds do not
//! separate messages. `_meta` of chunks is not kept.
//!
//! # Tool calls
//!
//! An update of an unknown call creates it. An announcement after updates fills in what they did not
//! set. A second announcement replaces the call in its place, or, in a later turn, begins another
//! call, because some agents count their calls anew in each turn.
//!
//! # Protocol versions
//!
//! The vocabulary is that of version 1. An update of version 2 is converted (`apply_v2`, with the
//! feature `v2`); kinds that only version 2 has are updates of unknown kind in the vocabulary of version 1. Of these, whole messages
//! replace what was received, and chunks of a tool call's content are appended; all others are kept
//! as they are.
//!
//! # Limit
//!
//! Contents count against a limit in bytes. Beyond it the oldest items are removed and counted in
//! [`omitted`](Conversation::omitted); a first item that takes more than half of the limit loses its
//! beginning instead ([`Item::omitted`]). A plan or a setting that is larger than the limit is not
//! kept. An update costs time in proportion to its own size, on average, however long the
//! conversation and its messages are.

mod echo;
mod fold;
mod item;
mod limit;
mod message;
mod settings;
mod tool_call;
mod weight;

use std::collections::{HashMap, VecDeque};

use self::echo::Echo;
pub use self::item::{Change, Changes, Item, ItemId, ItemKind};
use self::limit::PARTS;
pub use self::message::{Message, Role};
pub use self::settings::SessionSettings;
pub use self::tool_call::{is_final, merge};
use crate::v1::{
    ContentBlock, MessageId, Plan, SessionConfigOption, SessionModeState, SessionUpdate,
    StopReason, ToolCall, ToolCallId, UsageUpdate,
};

/// Content that was removed to keep the limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Omitted {
    /// The number of removed items.
    pub items: u64,
    /// The size of what was removed, in bytes, including parts of items and settings.
    pub bytes: u64,
}

/// A conversation, folded from the updates of a session. See the [module](self).
#[derive(Clone, Debug, PartialEq)]
pub struct Conversation {
    /// Their ids are consecutive.
    items: VecDeque<Item>,
    /// The id of the next item.
    next: u64,
    /// The first id of the current turn. Earlier tool calls are not announced again.
    turn: ItemId,
    /// The message of the previous chunk, unless an item was added since.
    open: Option<ItemId>,
    /// The messages with ids, and the latest tool call of each id.
    messages: HashMap<(Role, MessageId), ItemId>,
    calls: HashMap<ToolCallId, ItemId>,
    /// Prompts that the agent has not repeated yet.
    echoes: VecDeque<Echo>,
    settings: SessionSettings,
    plan: Option<Plan>,
    usage: Option<UsageUpdate>,
    /// The sizes of the parts that are not items, see `limit`.
    parts: [usize; PARTS],
    limit: usize,
    /// The size of items and parts.
    bytes: usize,
    omitted: Omitted,
}

impl Default for Conversation {
    fn default() -> Self {
        Self::new()
    }
}

impl Conversation {
    /// The default limit in bytes: 64 MiB.
    pub const DEFAULT_LIMIT: usize = 64 << 20;

    /// Creates an empty conversation with the default limit.
    #[must_use]
    pub fn new() -> Self {
        Self::with_limit(Self::DEFAULT_LIMIT)
    }

    /// Creates an empty conversation that keeps about `limit` bytes.
    #[must_use]
    pub fn with_limit(limit: usize) -> Self {
        Self {
            items: VecDeque::new(),
            next: 1,
            turn: ItemId(1),
            open: None,
            messages: HashMap::new(),
            calls: HashMap::new(),
            echoes: VecDeque::new(),
            settings: SessionSettings::default(),
            plan: None,
            usage: None,
            parts: [0; PARTS],
            limit,
            bytes: 0,
            omitted: Omitted::default(),
        }
    }

    /// Applies an update, live or replayed.
    pub fn apply(&mut self, update: &SessionUpdate) -> Changes {
        // Exhaustive: a new kind of update does not compile before its effect is decided here.
        let change = match update {
            SessionUpdate::UserMessageChunk(chunk) => self.chunk(Role::User, chunk),
            SessionUpdate::AgentMessageChunk(chunk) => self.chunk(Role::Agent, chunk),
            SessionUpdate::AgentThoughtChunk(chunk) => self.chunk(Role::Thought, chunk),
            SessionUpdate::ToolCall(call) => Some(self.announced(call)),
            SessionUpdate::ToolCallUpdate(update) => Some(self.updated(update)),
            SessionUpdate::Plan(plan) => {
                settings::replace_some(&mut self.plan, plan).then_some(Change::Plan)
            }
            SessionUpdate::UsageUpdate(usage) => {
                settings::replace_some(&mut self.usage, usage).then_some(Change::Usage)
            }
            SessionUpdate::AvailableCommandsUpdate(_)
            | SessionUpdate::CurrentModeUpdate(_)
            | SessionUpdate::ConfigOptionUpdate(_)
            | SessionUpdate::SessionInfoUpdate(_) => self.settings.apply(update),
            SessionUpdate::Unknown(unknown) => match self.known_to_v2(unknown) {
                Some(change) => change,
                None => Some(self.other(update)),
            },
            SessionUpdate::Notice(_)
            | SessionUpdate::CompactionUpdate(_)
            | SessionUpdate::CompactionSummaryChunk(_) => Some(self.other(update)),
            #[cfg(feature = "unstable")]
            SessionUpdate::PlanUpdate(_)
            | SessionUpdate::PlanRemoved(_)
            | SessionUpdate::SubagentUpdate(_)
            | SessionUpdate::SessionMessage(_)
            | SessionUpdate::SessionMessageChunk(_) => Some(self.other(update)),
        };
        self.finish(change)
    }

    /// Applies an update of version 2.
    ///
    /// It is converted by itself: what a session of version 1 has no place for is lost, see
    /// [`convert`](crate::convert).
    #[cfg(feature = "v2")]
    pub fn apply_v2(&mut self, update: crate::v2::SessionUpdate) -> Changes {
        match crate::convert::convert_logged::<_, SessionUpdate>(update) {
            Some(update) => self.apply(&update),
            None => Changes::default(),
        }
    }

    /// Applies a prompt that the client sends, and begins a turn.
    ///
    /// A repetition of it by the agent is recognised and not added again.
    pub fn prompt(&mut self, prompt: &[ContentBlock]) -> Changes {
        let item = self.add_message(Role::User, None, prompt);
        // It is complete: chunks do not continue it.
        self.open = None;
        self.echoes.push_back(Echo::new(item));
        self.finish(Some(Change::Added(item)))
    }

    /// Applies the end of a turn. `stop_reason` is `None` if it failed.
    pub fn end_turn(&mut self, stop_reason: Option<StopReason>) -> Changes {
        let item = self.add(ItemKind::TurnEnd { stop_reason }, 0);
        self.begin_turn();
        self.finish(Some(Change::Added(item)))
    }

    /// Applies the end of a replayed history: later updates do not continue its last message.
    pub fn end_history(&mut self) {
        self.begin_turn();
    }

    /// Adds a mark for updates that were not received; `count` is their number, if it is known.
    pub fn missed(&mut self, count: Option<u64>) -> Changes {
        let item = self.add(ItemKind::Missed { count }, 0);
        self.finish(Some(Change::Added(item)))
    }

    /// Applies the modes and config options in the response to a request that opens a session. An
    /// omitted one changes nothing.
    pub fn opened(
        &mut self,
        modes: Option<SessionModeState>,
        options: Option<Vec<SessionConfigOption>>,
    ) -> Changes {
        let changed = [
            modes.is_some().then_some(Change::Modes),
            options.is_some().then_some(Change::ConfigOptions),
        ];
        self.settings.opened(modes, options);
        for changed in changed.into_iter().flatten() {
            self.count_part(changed);
        }
        let Changes([omitted, cut, ..]) = self.finish(None);
        let [modes, options] = changed;
        Changes([omitted, cut, modes, options])
    }

    /// Removes all items before the agent replays the session from its beginning. Settings, plan and
    /// usage stay until they are replaced; ids are not used again.
    pub fn restart(&mut self) -> Changes {
        let last = self.items.back().map(|item| Change::Removed(item.id));
        let mut empty = Self::with_limit(self.limit);
        empty.next = self.next;
        empty.turn = ItemId(self.next);
        empty.bytes = self.parts.iter().sum();
        empty.parts = self.parts;
        empty.settings = std::mem::take(&mut self.settings);
        empty.plan = self.plan.take();
        empty.usage = self.usage.take();
        *self = empty;
        Changes([last, None, None, None])
    }

    /// Returns the items in order, without those that were [omitted](Self::omitted).
    pub fn items(&self) -> impl DoubleEndedIterator<Item = &Item> + ExactSizeIterator {
        self.items.iter()
    }

    /// Returns the items in order, without copying them.
    pub fn into_items(self) -> impl DoubleEndedIterator<Item = Item> + ExactSizeIterator {
        self.items.into_iter()
    }

    /// Returns an item; `None` if it was removed.
    #[must_use]
    pub fn item(&self, id: ItemId) -> Option<&Item> {
        self.items.get(self.index(id)?)
    }

    /// Returns the latest tool call with an id, for permission requests that refer to it.
    #[must_use]
    pub fn tool_call(&self, id: &ToolCallId) -> Option<(ItemId, &ToolCall)> {
        let item = self.item(*self.calls.get(id)?)?;
        Some((item.id, item.as_tool_call()?))
    }

    /// Returns the latest plan.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()
    }

    /// Returns the tokens in use and the cost, as last reported.
    #[must_use]
    pub fn usage(&self) -> Option<&UsageUpdate> {
        self.usage.as_ref()
    }

    /// Returns modes, config options, commands and title.
    #[must_use]
    pub fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// Returns what was removed to keep the limit. Unless it is empty, a mark before the first item
    /// should show it.
    #[must_use]
    pub fn omitted(&self) -> Omitted {
        self.omitted
    }

    /// Returns the counted size in bytes: approximately the memory in use.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}
