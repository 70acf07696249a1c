//! Tool calls as dialects show them.

use acp_sdk::v1::{ContentBlock, ToolCall, ToolCallContent, ToolCallStatus, ToolKind};

/// Returns whether a call that has ended succeeded.
pub(crate) fn has_succeeded(call: &ToolCall) -> bool {
    call.status == Some(ToolCallStatus::Completed)
}

/// Returns the kind of a call.
pub(crate) fn kind(kind: Option<&ToolKind>) -> &str {
    kind.map_or("other", ToolKind::as_str)
}

/// Returns what a call has shown as text, or else its raw output.
pub(crate) fn output(call: &ToolCall) -> Option<String> {
    let texts = call.content.iter().filter_map(|content| match content {
        ToolCallContent::Content(content) => match &content.content {
            ContentBlock::Text(text) => Some(text.text.as_str()),
            _ => None,
        },
        ToolCallContent::Diff(diff) => Some(diff.path.as_str()),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    match text.is_empty() {
        true => call.raw_output.as_ref().map(|raw| raw.get().to_owned()),
        false => Some(text),
    }
}
