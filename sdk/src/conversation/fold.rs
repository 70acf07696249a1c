//! The effect of each kind of update on the items, before the limit is applied.

use super::item::{Change, Item, ItemId, ItemKind};
use super::message::{Message, Role};
use super::{Conversation, merge, tool_call, weight};
use crate::json::{Map, UnknownVariant, encoded_len};
use crate::v1::{
    ContentBlock, ContentChunk, MessageId, SessionUpdate, ToolCall, ToolCallContent, ToolCallId,
    ToolCallUpdate,
};
use crate::{Json, Patch};

impl Conversation {
    pub(super) fn chunk(&mut self, role: Role, chunk: &ContentChunk) -> Option<Change> {
        let id = chunk.message_id.as_ref();
        if role == Role::User {
            if self.repeats(id, std::slice::from_ref(&chunk.content)) {
                return None;
            }
        } else if let Some(change) = self.continued(role, chunk) {
            return Some(change);
        }
        let Some(item) = self.message(role, id) else {
            let content = std::slice::from_ref(&chunk.content);
            return Some(Change::Added(self.add_message(role, id.cloned(), content)));
        };
        self.open = Some(item);
        self.with_message(item, |message| message.append(&chunk.content));
        Some(Change::Appended(item))
    }

    /// Appends a chunk to the message of the previous chunk, if it continues that one. By far the
    /// most frequent case, so it finds the message once.
    fn continued(&mut self, role: Role, chunk: &ContentChunk) -> Option<Change> {
        let index = self.index(self.open?)?;
        let item = self.items.get_mut(index)?;
        let ItemKind::Message(message) = &mut item.kind else {
            return None;
        };
        let id = chunk.message_id.as_ref();
        if message.role != role || (id.is_some() && message.message_id.as_ref() != id) {
            return None;
        }
        let added = message.append(&chunk.content);
        item.bytes += added;
        self.bytes += added;
        Some(Change::Appended(item.id))
    }

    /// Returns the message that a chunk continues.
    fn message(&mut self, role: Role, id: Option<&MessageId>) -> Option<ItemId> {
        let open = self.open.and_then(|open| Some((open, self.item(open)?)));
        let open = open.and_then(|(open, item)| Some((open, item.as_message()?)));
        let open = open.filter(|(_, message)| message.role == role);
        let Some(id) = id else {
            return open.map(|(open, _)| open);
        };
        let without_id = open.filter(|(_, message)| message.message_id.is_none());
        let without_id = without_id.map(|(open, _)| open);
        if let Some(known) = self.messages.get(&(role, id.clone())) {
            return Some(*known);
        }
        self.identify(without_id?, id);
        without_id
    }

    /// Sets the id of a message.
    fn identify(&mut self, item: ItemId, id: &MessageId) {
        let index = self.index(item);
        let item = index.and_then(|index| self.items.get_mut(index));
        if let Some(item) = item
            && let ItemKind::Message(message) = &mut item.kind
        {
            message.message_id = Some(id.clone());
            item.bytes += id.as_str().len();
            self.bytes += id.as_str().len();
            self.messages.insert((message.role, id.clone()), item.id);
        }
    }

    /// Returns whether the agent repeats a prompt, or a part of it, with this content.
    fn repeats(&mut self, id: Option<&MessageId>, content: &[ContentBlock]) -> bool {
        let Some(echo) = self.echoes.front() else {
            return false;
        };
        let known = id.and_then(|id| self.messages.get(&(Role::User, id.clone())));
        let mut next = echo.clone();
        let prompt = self.item(next.item).and_then(Item::as_message);
        let is_other = prompt.is_none_or(|prompt| match &prompt.message_id {
            Some(of_prompt) => Some(of_prompt) != id,
            None => known.is_some(),
        });
        if is_other {
            return false;
        }
        let Some(prompt) = prompt else { return false };
        if !content.iter().all(|block| next.advance(prompt, block)) {
            return false;
        }
        let is_complete = next.is_complete(prompt);
        if prompt.message_id.is_none()
            && let Some(id) = id
        {
            self.identify(next.item, id);
        }
        self.echoes.pop_front();
        if !is_complete {
            self.echoes.push_front(next);
        }
        true
    }

    /// Applies an update that version 1 does not have and version 2 has. `None` if it is another.
    pub(super) fn known_to_v2(&mut self, update: &UnknownVariant) -> Option<Option<Change>> {
        let role = match update.tag() {
            "user_message" => Role::User,
            "agent_message" => Role::Agent,
            "agent_thought" => Role::Thought,
            "tool_call_content_chunk" => {
                let id: ToolCallId = update.get("toolCallId")?.parse().ok()?;
                let content = tool_call_content(update.get("content")?)?;
                return Some(Some(self.tool_call_chunk(&id, content)));
            }
            _ => return None,
        };
        let id: MessageId = update.get("messageId")?.parse().ok()?;
        let content = match update.get("content") {
            Some(content) => content.parse::<Patch<Vec<ContentBlock>>>().ok()?,
            None => Patch::Absent,
        };
        Some(match content {
            Patch::Absent => None,
            Patch::Null => self.whole(role, &id, &[]),
            Patch::Value(content) => self.whole(role, &id, &content),
        })
    }

    /// Replaces the content of a message.
    fn whole(&mut self, role: Role, id: &MessageId, content: &[ContentBlock]) -> Option<Change> {
        if role == Role::User && self.repeats(Some(id), content) {
            return None;
        }
        let Some(item) = self.messages.get(&(role, id.clone())).copied() else {
            let item = self.add_message(role, Some(id.clone()), content);
            return Some(Change::Added(item));
        };
        let (index, item) = self.indexed(item)?;
        let mut message = Message::new(role, Some(id.clone()));
        let bytes: usize = content.iter().map(|block| message.append(block)).sum();
        (item.kind, item.omitted) = (ItemKind::Message(message), 0);
        let item = item.id;
        self.recount(index, weight::ITEM + id.as_str().len() + bytes);
        Some(Change::Changed(item))
    }

    pub(super) fn announced(&mut self, call: &ToolCall) -> Change {
        let known = self.calls.get(&call.tool_call_id).copied();
        let turn = self.turn;
        let Some((index, item)) = known.and_then(|id| self.indexed(id)) else {
            return Change::Added(self.add_call(call.clone(), true));
        };
        let ItemKind::ToolCall(old) = &mut item.kind else {
            return Change::Added(self.add_call(call.clone(), true));
        };
        if !std::mem::replace(&mut item.is_announced, true) {
            tool_call::announce_late(old, call);
        } else if item.id < turn {
            return Change::Added(self.add_call(call.clone(), true));
        } else {
            old.as_mut().clone_from(call);
            item.omitted = 0;
        }
        let (id, bytes) = (item.id, weight::ITEM + weight::tool_call(old));
        self.recount(index, bytes);
        Change::Changed(id)
    }

    pub(super) fn updated(&mut self, update: &ToolCallUpdate) -> Change {
        let known = self.calls.get(&update.tool_call_id).copied();
        if let Some((index, item)) = known.and_then(|id| self.indexed(id))
            && let ItemKind::ToolCall(call) = &mut item.kind
        {
            let bytes = tool_call::merge_measured(call, update, item.bytes);
            let id = item.id;
            self.recount(index, bytes);
            return Change::Changed(id);
        }
        let mut call = ToolCall::new(update.tool_call_id.clone(), "");
        merge(&mut call, update);
        Change::Added(self.add_call(call, false))
    }

    fn tool_call_chunk(&mut self, id: &ToolCallId, content: ToolCallContent) -> Change {
        let known = self.calls.get(id).copied();
        if let Some((index, item)) = known.and_then(|id| self.indexed(id))
            && let ItemKind::ToolCall(call) = &mut item.kind
        {
            let bytes = item.bytes + weight::contents(std::slice::from_ref(&content));
            call.content.push(content);
            let id = item.id;
            self.recount(index, bytes);
            return Change::Appended(id);
        }
        let mut call = ToolCall::new(id.clone(), "");
        call.content.push(content);
        Change::Added(self.add_call(call, false))
    }

    pub(super) fn other(&mut self, update: &SessionUpdate) -> Change {
        // It is not part of what is said, so it does not end a message.
        let open = self.open;
        let bytes = size_of::<SessionUpdate>() + encoded_len(update);
        let item = self.add(ItemKind::Other(Box::new(update.clone())), bytes);
        self.open = open;
        Change::Added(item)
    }

    pub(super) fn begin_turn(&mut self) {
        self.turn = ItemId(self.next);
        self.open = None;
        self.echoes.clear();
    }

    pub(super) fn add_message(
        &mut self,
        role: Role,
        id: Option<MessageId>,
        content: &[ContentBlock],
    ) -> ItemId {
        let mut message = Message::new(role, None);
        let bytes = content.iter().map(|block| message.append(block)).sum();
        let item = self.add(ItemKind::Message(message), bytes);
        if let Some(id) = id {
            self.identify(item, &id);
        }
        if role == Role::User {
            self.turn = item;
        }
        self.open = Some(item);
        item
    }

    fn add_call(&mut self, call: ToolCall, is_announced: bool) -> ItemId {
        let (id, bytes) = (call.tool_call_id.clone(), weight::tool_call(&call));
        let item = self.add(ItemKind::ToolCall(Box::new(call)), bytes);
        if let Some((_, added)) = self.indexed(item) {
            added.is_announced = is_announced;
        }
        self.calls.insert(id, item);
        item
    }

    pub(super) fn add(&mut self, kind: ItemKind, bytes: usize) -> ItemId {
        let id = ItemId(self.next);
        self.next += 1;
        let bytes = weight::ITEM + bytes;
        self.items.push_back(Item {
            id,
            kind,
            omitted: 0,
            bytes,
            is_announced: false,
        });
        self.bytes += bytes;
        self.open = None;
        id
    }

    /// Changes a message. `change` returns the size of what it adds.
    fn with_message(&mut self, item: ItemId, change: impl FnOnce(&mut Message) -> usize) {
        let index = self.index(item);
        if let Some(item) = index.and_then(|index| self.items.get_mut(index))
            && let ItemKind::Message(message) = &mut item.kind
        {
            let added = change(message);
            item.bytes += added;
            self.bytes += added;
        }
    }

    /// Sets the size of an item.
    fn recount(&mut self, index: usize, bytes: usize) {
        if let Some(item) = self.items.get_mut(index) {
            let before = std::mem::replace(&mut item.bytes, bytes);
            self.bytes = (self.bytes + bytes).saturating_sub(before);
        }
    }

    pub(super) fn index(&self, id: ItemId) -> Option<usize> {
        let first = self.items.front()?.id;
        usize::try_from(id.0.checked_sub(first.0)?).ok()
    }

    fn indexed(&mut self, id: ItemId) -> Option<(usize, &mut Item)> {
        let index = self.index(id)?;
        Some((index, self.items.get_mut(index)?))
    }
}

/// Reads an item of content. What version 1 has in another form, diffs of version 2, is kept as it is.
fn tool_call_content(json: &Json) -> Option<ToolCallContent> {
    if let Ok(content) = json.parse() {
        return Some(content);
    }
    let members: Map<Json> = json.parse().ok()?;
    let tag: String = members.get("type")?.parse().ok()?;
    let members = members.iter();
    let members = members.map(|(name, value)| (name.to_owned(), value.clone()));
    Some(ToolCallContent::Unknown(UnknownVariant::new(
        tag,
        members.collect(),
    )))
}
