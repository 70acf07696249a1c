//! The limit in bytes.

use super::item::{Change, Changes, Item, ItemId, ItemKind};
use super::{Conversation, tool_call, weight};
use crate::json::encoded_len;

/// The number of parts that are not items.
pub(super) const PARTS: usize = 6;

/// Returns the index of a part that is not an item.
fn part(change: Change) -> Option<usize> {
    match change {
        Change::Plan => Some(0),
        Change::Modes => Some(1),
        Change::ConfigOptions => Some(2),
        Change::Commands => Some(3),
        Change::Info => Some(4),
        Change::Usage => Some(5),
        Change::Added(_) | Change::Appended(_) | Change::Changed(_) | Change::Removed(_) => None,
    }
}

impl Conversation {
    /// Applies the limit after a change, and returns all changes.
    pub(super) fn finish(&mut self, change: Option<Change>) -> Changes {
        if let Some(changed) = change {
            self.count_part(changed);
        }
        if self.bytes <= self.limit {
            return Changes([None, None, change, None]);
        }
        let (mut omitted, mut cut) = (None, None);
        while self.bytes > self.limit {
            if let Some(id) = self.cut_first() {
                cut = Some(id);
            } else if let Some(item) = self.items.pop_front() {
                self.bytes -= item.bytes;
                self.forget(&item);
                self.omit(1, item.bytes);
                omitted = Some(item.id);
            } else {
                // The parts alone are within the limit, see `count_part`.
                break;
            }
        }
        let is_left = |id: ItemId| omitted.is_none_or(|omitted| id > omitted);
        let mut change = change.filter(|change| change.item().is_none_or(is_left));
        let mut cut = cut.filter(|id| is_left(*id));
        if cut.is_some() && change.and_then(Change::item) == cut {
            if let (Some(Change::Appended(_)), Some(id)) = (change, cut) {
                change = Some(Change::Changed(id));
            }
            cut = None;
        }
        Changes([
            omitted.map(Change::Removed),
            cut.map(Change::Changed),
            change,
            None,
        ])
    }

    /// Measures a part that was set. Removes it if the parts alone exceed the limit.
    pub(super) fn count_part(&mut self, changed: Change) {
        let Some(part) = part(changed) else { return };
        let settings = &self.settings;
        let bytes = match changed {
            Change::Plan => encoded_len(&self.plan),
            Change::Modes => encoded_len(&settings.modes),
            Change::ConfigOptions => encoded_len(&settings.config_options),
            Change::Commands => encoded_len(&settings.commands),
            Change::Info => encoded_len(&(&settings.title, &settings.updated_at)),
            _ => encoded_len(&self.usage),
        };
        let before = std::mem::replace(&mut self.parts[part], bytes);
        self.bytes = self.bytes + bytes - before;
        if self.parts.iter().sum::<usize>() <= self.limit {
            return;
        }
        self.bytes -= std::mem::take(&mut self.parts[part]);
        self.omit(0, bytes);
        let settings = &mut self.settings;
        match changed {
            Change::Plan => self.plan = None,
            Change::Modes => settings.modes = None,
            Change::ConfigOptions => settings.config_options = None,
            Change::Commands => settings.commands = Vec::new(),
            Change::Info => (settings.title, settings.updated_at) = (None, None),
            _ => self.usage = None,
        }
    }

    /// Removes a part of the first item if it takes more than half of the limit. A part is at least
    /// a quarter of the limit, so that the time for moving the rest is spent rarely.
    fn cut_first(&mut self) -> Option<ItemId> {
        let excess = self.bytes - self.limit;
        let first = self.items.front_mut()?;
        if first.bytes <= self.limit / 2 {
            return None;
        }
        let freed = match &mut first.kind {
            ItemKind::Message(message) => message.cut(excess + self.limit / 4),
            ItemKind::ToolCall(call) => {
                tool_call::strip(call);
                first
                    .bytes
                    .saturating_sub(weight::ITEM + weight::tool_call(call))
            }
            _ => 0,
        };
        if freed == 0 {
            return None;
        }
        first.bytes -= freed;
        first.omitted += freed;
        let id = first.id;
        self.bytes -= freed;
        self.omit(0, freed);
        Some(id)
    }

    /// Removes the ids of a removed item.
    fn forget(&mut self, item: &Item) {
        match &item.kind {
            ItemKind::Message(message) => {
                if let Some(id) = &message.message_id {
                    self.messages.remove(&(message.role, id.clone()));
                }
                // Both are in order, so it is the first one, if any.
                if self.echoes.front().is_some_and(|echo| echo.item == item.id) {
                    self.echoes.pop_front();
                }
            }
            // The id may be that of a later call by now.
            ItemKind::ToolCall(call) if self.calls.get(&call.tool_call_id) == Some(&item.id) => {
                self.calls.remove(&call.tool_call_id);
            }
            _ => {}
        }
    }

    fn omit(&mut self, items: u64, bytes: usize) {
        self.omitted.items += items;
        self.omitted.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
    }
}
