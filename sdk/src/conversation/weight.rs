//! Sizes of values in bytes, for the limit of a conversation.

use serde_core::Serialize;

use crate::json::encoded_len;
use crate::v1::{ContentBlock, ToolCall, ToolCallContent, ToolCallLocation};

/// Added to each item for its place in the list and the table of ids.
pub(super) const ITEM: usize = 256;

/// Returns the size of a list. The JSON of an element may be much shorter than the element.
fn list<T: Serialize>(list: &[T]) -> usize {
    size_of_val(list) + list.iter().map(encoded_len).sum::<usize>()
}

pub(super) fn block(block: &ContentBlock) -> usize {
    let content = match block {
        // By far the most frequent kind; serializing it would be too expensive.
        ContentBlock::Text(text) if text.annotations.is_none() && text.meta.is_none() => {
            text.text.len()
        }
        other => encoded_len(other),
    };
    size_of::<ContentBlock>() + content
}

pub(super) fn contents(contents: &[ToolCallContent]) -> usize {
    list(contents)
}

pub(super) fn locations(locations: &[ToolCallLocation]) -> usize {
    list(locations)
}

pub(super) fn tool_call(call: &ToolCall) -> usize {
    tool_call_alone(call) + contents(&call.content) + locations(&call.locations)
}

/// Returns the size of a tool call without its lists.
pub(super) fn tool_call_alone(call: &ToolCall) -> usize {
    let raw = |json: &Option<crate::Json>| json.as_ref().map_or(0, |json| json.get().len());
    size_of::<ToolCall>()
        + call.tool_call_id.as_str().len()
        + call.title.len()
        + call.name.as_ref().map_or(0, String::len)
        + call.kind.as_ref().map_or(0, |kind| kind.as_str().len())
        + call
            .status
            .as_ref()
            .map_or(0, |status| status.as_str().len())
        + raw(&call.raw_input)
        + raw(&call.raw_output)
        + call.meta.as_ref().map_or(0, |meta| meta.as_str().len())
}
