//! Tool calls, which version 2 creates and changes by the same update, and whose content may be
//! sent in chunks.
//!
//! A chunk becomes an update with the complete content, which is remembered. Long content is
//! repeated only when it has grown by an eighth, and before any other update of the call. Memory:
//! 1,024 tool calls and 1 MiB of content for each session; a chunk beyond these limits becomes an
//! update of unknown kind.

use std::collections::VecDeque;
use std::mem;

use acp_sdk::{Json, Patch, v1, v2};

use super::{content, diff, digest, raw_variant, reread};

/// Maximum number of remembered tool calls. An older call counts as new when it is changed.
const MOST_CALLS: usize = 1024;

/// Maximum size of the remembered content, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Content up to this size in bytes is repeated with each chunk.
const SHORT: usize = 4 << 10;

/// The latest tool calls of a session.
#[derive(Debug, Default)]
pub(super) struct ToolCalls {
    calls: VecDeque<Call>,
    bytes: usize,
}

#[derive(Debug)]
struct Call {
    digest: u64,
    /// The complete content while it is received in chunks; `None` if it is too long.
    content: Option<Vec<v1::ToolCallContent>>,
    bytes: usize,
    /// The number of these bytes that updates have contained.
    shown: usize,
    /// For updates of this call that another call triggers.
    id: v1::ToolCallId,
}

impl ToolCalls {
    /// Converts an update of a tool call. Returns it after pending updates of other calls.
    pub(super) fn update(&mut self, update: v2::ToolCallUpdate) -> Vec<v1::SessionUpdate> {
        let mut said = Vec::new();
        let (known, mut call) = self.take(&update.tool_call_id);
        let content = match &update.content {
            Patch::Absent => None,
            Patch::Null => Some(Vec::new()),
            Patch::Value(items) => Some(all_from_v2(items)),
        };
        let content = match content {
            Some(content) => {
                (call.content, call.bytes) = (Some(Vec::new()), 0);
                call.keep(&content);
                call.shown = call.bytes;
                Some(content)
            }
            None => call.unsaid(),
        };
        if has_ended(&update.status) {
            // No further chunks are expected.
            (call.content, call.bytes, call.shown) = (None, 0, 0);
        }
        said.push(match known {
            true => changed(update, content).into(),
            false => created(update, content).into(),
        });
        self.put(call, &mut said);
        said
    }

    /// Records a chunk of content.
    pub(super) fn chunk(&mut self, chunk: v2::ToolCallContentChunk) -> Vec<v1::SessionUpdate> {
        let (_, mut call) = self.take(&chunk.tool_call_id);
        let items = one_from_v2(&chunk.content);
        let mut said = Vec::new();
        let added: usize = items.iter().map(weight).sum();
        if call.content.is_none() || call.bytes + added > MOST_BYTES {
            said.extend(call.unsaid().map(|content| say(&call.id, content)));
            (call.content, call.bytes, call.shown) = (None, 0, 0);
            let kind = "tool_call_content_chunk";
            let update = v2::SessionUpdate::ToolCallContentChunk(chunk);
            said.push(v1::SessionUpdate::Unknown(raw_variant(kind, &update)));
            self.put(call, &mut said);
            return said;
        }
        call.keep(&items);
        if call.bytes <= SHORT || call.bytes - call.shown >= call.shown / 8 {
            said.extend(call.unsaid().map(|content| say(&call.id, content)));
        }
        self.put(call, &mut said);
        said
    }

    /// Returns updates with all pending content.
    pub(super) fn flush(&mut self) -> Vec<v1::SessionUpdate> {
        let calls = self.calls.iter_mut();
        let unsaid = calls.filter_map(|call| Some(say(&call.id.clone(), call.unsaid()?)));
        unsaid.collect()
    }

    /// Clears the state.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Removes a call from the table, or creates one. Returns also whether it was known.
    fn take(&mut self, id: &v2::ToolCallId) -> (bool, Call) {
        let digest = digest(id.as_str());
        let at = self.calls.iter().rposition(|call| call.digest == digest);
        match at.and_then(|at| self.calls.remove(at)) {
            Some(call) => {
                self.bytes -= call.bytes;
                (true, call)
            }
            None => {
                let call = Call {
                    digest,
                    content: Some(Vec::new()),
                    bytes: 0,
                    shown: 0,
                    id: id.as_str().into(),
                };
                (false, call)
            }
        }
    }

    /// Returns a call to the table. Appends pending updates of calls that are dropped for it.
    fn put(&mut self, call: Call, said: &mut Vec<v1::SessionUpdate>) {
        self.bytes += call.bytes;
        self.calls.push_back(call);
        let mut forget = |call: &mut Call| {
            said.extend(call.unsaid().map(|content| say(&call.id, content)));
        };
        while self.calls.len() > MOST_CALLS {
            let Some(mut oldest) = self.calls.pop_front() else {
                return;
            };
            self.bytes -= oldest.bytes;
            forget(&mut oldest);
        }
        // The call alone is within the limit, so the latest one keeps its content.
        for call in &mut self.calls {
            if self.bytes <= MOST_BYTES {
                return;
            }
            self.bytes -= call.bytes;
            forget(call);
            if call.bytes > 0 {
                (call.content, call.bytes, call.shown) = (None, 0, 0);
            }
        }
    }
}

impl Call {
    fn keep(&mut self, items: &[v1::ToolCallContent]) {
        let added: usize = items.iter().map(weight).sum();
        if self.bytes + added > MOST_BYTES {
            (self.content, self.bytes) = (None, 0);
        } else if let Some(content) = &mut self.content {
            content.extend_from_slice(items);
            self.bytes += added;
        }
    }

    /// Returns the complete content if some of it is pending.
    fn unsaid(&mut self) -> Option<Vec<v1::ToolCallContent>> {
        let shown = mem::replace(&mut self.shown, self.bytes);
        self.content.clone().filter(|_| self.bytes > shown)
    }
}

fn say(id: &v1::ToolCallId, content: Vec<v1::ToolCallContent>) -> v1::SessionUpdate {
    let update = v1::ToolCallUpdate::new(id.clone());
    v1::SessionUpdate::ToolCallUpdate(update.with_content(content))
}

/// Returns the approximate size of an item, in bytes.
fn weight(item: &v1::ToolCallContent) -> usize {
    let bytes = match item {
        v1::ToolCallContent::Content(item) => match &item.content {
            v1::ContentBlock::Text(text) => text.text.len(),
            _ => serde_json::to_vec(item).map_or(0, |text| text.len()),
        },
        item => serde_json::to_vec(item).map_or(0, |text| text.len()),
    };
    64 + bytes
}

fn has_ended(status: &Patch<v2::ToolCallStatus>) -> bool {
    use v2::ToolCallStatus::{Cancelled, Completed, Failed};
    matches!(status, Patch::Value(Completed | Failed | Cancelled))
}

fn created(update: v2::ToolCallUpdate, content: Option<Vec<v1::ToolCallContent>>) -> v1::ToolCall {
    let update = changed(update, content);
    let title = update.title.or_else(|| update.name.clone());
    let mut next = v1::ToolCall::new(update.tool_call_id, title.unwrap_or_default());
    next.name = update.name;
    next.kind = update.kind;
    next.status = update.status;
    next.content = update.content.unwrap_or_default();
    next.locations = update.locations.unwrap_or_default();
    next.raw_input = update.raw_input;
    next.raw_output = update.raw_output;
    next.meta = update.meta;
    next
}

/// Converts the members that an update sets. Version 1 cannot clear a member, so a cleared member
/// is set to an empty value.
fn changed(
    update: v2::ToolCallUpdate,
    content: Option<Vec<v1::ToolCallContent>>,
) -> v1::ToolCallUpdate {
    let mut next = v1::ToolCallUpdate::new(update.tool_call_id.as_str());
    next.title = set(update.title, String::new);
    next.name = set(update.name, String::new);
    let kind = set(update.kind, || v2::ToolKind::Other);
    next.kind = kind.map(|kind| kind.as_str().into());
    let status = set(update.status, || v2::ToolCallStatus::Pending);
    next.status = status.map(|status| status.as_str().into());
    next.content = content;
    next.locations = set(update.locations, Vec::new)
        .map(|locations| locations.into_iter().map(location).collect());
    let null = || Json::from(serde_json::Value::Null);
    next.raw_input = set(update.raw_input, null);
    next.raw_output = set(update.raw_output, null);
    next.meta = update.meta.value().cloned();
    next
}

fn set<T>(patch: Patch<T>, cleared: impl FnOnce() -> T) -> Option<T> {
    match patch {
        Patch::Absent => None,
        Patch::Null => Some(cleared()),
        Patch::Value(value) => Some(value),
    }
}

fn location(location: v2::ToolCallLocation) -> v1::ToolCallLocation {
    let mut next = v1::ToolCallLocation::new(location.path.as_str());
    next.line = location.line;
    next.meta = location.meta;
    next
}

/// Converts the tool call of a permission request, without recording it.
pub(super) fn asked(update: v2::ToolCallUpdate) -> v1::ToolCallUpdate {
    let content = match &update.content {
        Patch::Absent => None,
        Patch::Null => Some(Vec::new()),
        Patch::Value(items) => Some(all_from_v2(items)),
    };
    changed(update, content)
}

fn all_from_v2(items: &[v2::ToolCallContent]) -> Vec<v1::ToolCallContent> {
    items.iter().flat_map(one_from_v2).collect()
}

/// Converts an item of content. A diff may become several items.
fn one_from_v2(item: &v2::ToolCallContent) -> Vec<v1::ToolCallContent> {
    let one = match item {
        v2::ToolCallContent::Content(item) => {
            let mut next = v1::Content::new(content::from_v2(item.content.clone()));
            next.meta.clone_from(&item.meta);
            next.into()
        }
        v2::ToolCallContent::Diff(item) => {
            let diffs = diff::from_v2(item).into_iter();
            return diffs.map(v1::ToolCallContent::Diff).collect();
        }
        v2::ToolCallContent::Unknown(unknown) => v1::ToolCallContent::Unknown(unknown.clone()),
        // A terminal has the same form in both versions, but belongs to the agent here.
        other => match reread(other) {
            Some(item) => item,
            None => return Vec::new(),
        },
    };
    vec![one]
}
