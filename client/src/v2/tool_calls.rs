//! Tool calls, which version 2 creates and changes by the same update, and whose content may be
//! sent in chunks.
//!
//! A chunk becomes an update with the complete content, which is remembered. Long content is
//! repeated only when it has grown by an eighth, and before any other update of the call. Memory:
//! 1,024 tool calls and 1 MiB of content for each session; a chunk beyond these limits becomes an
//! update of unknown kind.

use std::collections::VecDeque;
use std::mem;

use acp_sdk::convert::convert_logged;
use acp_sdk::json::encoded_len;
use acp_sdk::{Patch, v1, v2};

use super::digest;

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
        let mut updates = Vec::new();
        let (known, mut call) = self.take(&update.tool_call_id);
        let has_ended = has_ended(&update.status);
        let converted = match known {
            true => convert_logged(update).map(v1::SessionUpdate::ToolCallUpdate),
            false => convert_logged(update).map(v1::SessionUpdate::ToolCall),
        };
        let Some(mut converted) = converted else {
            self.put(call, &mut updates);
            return updates;
        };
        if let v1::SessionUpdate::ToolCallUpdate(update) = &mut converted {
            match &update.content {
                Some(content) => call.replace(content),
                None => update.content = call.take_pending_content(),
            }
        }
        if let v1::SessionUpdate::ToolCall(new) = &converted {
            call.replace(&new.content);
        }
        if has_ended {
            // No further chunks are expected.
            (call.content, call.bytes, call.shown) = (None, 0, 0);
        }
        updates.push(converted);
        self.put(call, &mut updates);
        updates
    }

    /// Records a chunk of content.
    pub(super) fn chunk(&mut self, chunk: v2::ToolCallContentChunk) -> Vec<v1::SessionUpdate> {
        let (_, mut call) = self.take(&chunk.tool_call_id);
        let items: Vec<_> = convert_logged(vec![chunk.content.clone()]).unwrap_or_default();
        let mut updates = Vec::new();
        let added: usize = items.iter().map(weight).sum();
        if call.content.is_none() || call.bytes + added > MOST_BYTES {
            updates.extend(
                call.take_pending_content()
                    .map(|content| content_update(&call.id, content)),
            );
            (call.content, call.bytes, call.shown) = (None, 0, 0);
            let chunk = v2::SessionUpdate::ToolCallContentChunk(chunk);
            updates.extend(convert_logged::<_, v1::SessionUpdate>(chunk));
            self.put(call, &mut updates);
            return updates;
        }
        call.keep(&items);
        if call.bytes <= SHORT || call.bytes - call.shown >= call.shown / 8 {
            updates.extend(
                call.take_pending_content()
                    .map(|content| content_update(&call.id, content)),
            );
        }
        self.put(call, &mut updates);
        updates
    }

    /// Returns updates with all pending content.
    pub(super) fn flush(&mut self) -> Vec<v1::SessionUpdate> {
        let calls = self.calls.iter_mut();
        let pending = calls.filter_map(|call| {
            Some(content_update(
                &call.id.clone(),
                call.take_pending_content()?,
            ))
        });
        pending.collect()
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
    fn put(&mut self, call: Call, updates: &mut Vec<v1::SessionUpdate>) {
        self.bytes += call.bytes;
        self.calls.push_back(call);
        let mut forget = |call: &mut Call| {
            updates.extend(
                call.take_pending_content()
                    .map(|content| content_update(&call.id, content)),
            );
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
    /// Replaces the content by one that an update contains.
    fn replace(&mut self, content: &[v1::ToolCallContent]) {
        (self.content, self.bytes) = (Some(Vec::new()), 0);
        self.keep(content);
        self.shown = self.bytes;
    }

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
    fn take_pending_content(&mut self) -> Option<Vec<v1::ToolCallContent>> {
        let shown = mem::replace(&mut self.shown, self.bytes);
        self.content.clone().filter(|_| self.bytes > shown)
    }
}

fn content_update(id: &v1::ToolCallId, content: Vec<v1::ToolCallContent>) -> v1::SessionUpdate {
    let update = v1::ToolCallUpdate::new(id.clone());
    v1::SessionUpdate::ToolCallUpdate(update.with_content(content))
}

/// Returns the approximate size of an item, in bytes.
fn weight(item: &v1::ToolCallContent) -> usize {
    let bytes = match item {
        v1::ToolCallContent::Content(item) => match &item.content {
            v1::ContentBlock::Text(text) => text.text.len(),
            _ => encoded_len(item),
        },
        item => encoded_len(item),
    };
    64 + bytes
}

fn has_ended(status: &Patch<v2::ToolCallStatus>) -> bool {
    use v2::ToolCallStatus::{Cancelled, Completed, Failed};
    matches!(status, Patch::Value(Completed | Failed | Cancelled))
}
