//! Tool calls: version 2 has one update that creates a call or changes it.

use acp_sdk::{v1, v2};

use super::{content, diff, patch, reread};

/// Converts a new tool call.
///
/// Members at their defaults are left out, which is right for an id that the client has not seen.
/// If a handler reports the same id as new again, the client keeps them from before.
pub(super) fn new_to_v2(call: &v1::ToolCall) -> v2::ToolCallUpdate {
    let mut next = v2::ToolCallUpdate::new(call.tool_call_id.as_str());
    next.title = call.title.clone().into();
    next.name = patch(call.name.clone());
    next.kind = patch(call.kind.as_ref().map(kind));
    next.status = patch(call.status.as_ref().map(status));
    if !call.content.is_empty() {
        next.content = contents(&call.content).into();
    }
    if !call.locations.is_empty() {
        next.locations = locations(&call.locations).into();
    }
    next.raw_input = patch(call.raw_input.clone());
    next.raw_output = patch(call.raw_output.clone());
    next.meta = patch(call.meta.clone());
    next
}

/// Converts an update of a tool call. Only what it sets is in the result.
pub(super) fn update_to_v2(update: &v1::ToolCallUpdate) -> v2::ToolCallUpdate {
    let mut next = v2::ToolCallUpdate::new(update.tool_call_id.as_str());
    next.title = patch(update.title.clone());
    next.name = patch(update.name.clone());
    next.kind = patch(update.kind.as_ref().map(kind));
    next.status = patch(update.status.as_ref().map(status));
    next.content = patch(update.content.as_deref().map(contents));
    next.locations = patch(update.locations.as_deref().map(locations));
    next.raw_input = patch(update.raw_input.clone());
    next.raw_output = patch(update.raw_output.clone());
    next.meta = patch(update.meta.clone());
    next
}

fn kind(kind: &v1::ToolKind) -> v2::ToolKind {
    kind.as_str().into()
}

fn status(status: &v1::ToolCallStatus) -> v2::ToolCallStatus {
    status.as_str().into()
}

fn contents(contents: &[v1::ToolCallContent]) -> Vec<v2::ToolCallContent> {
    contents.iter().filter_map(one_content).collect()
}

/// Converts an item of a tool call's content; `None` if version 2 refuses it.
///
/// A terminal of version 1 belongs to the client that runs it. Its output is not in the log, so
/// clients of version 2 are sent the id only.
fn one_content(item: &v1::ToolCallContent) -> Option<v2::ToolCallContent> {
    Some(match item {
        v1::ToolCallContent::Content(item) => {
            let mut next = v2::Content::new(content::to_v2(&item.content)?);
            next.meta.clone_from(&item.meta);
            next.into()
        }
        v1::ToolCallContent::Diff(item) => diff::to_v2(item).into(),
        v1::ToolCallContent::Terminal(item) => {
            let mut next = v2::Terminal::new(item.terminal_id.as_str());
            next.meta.clone_from(&item.meta);
            next.into()
        }
        v1::ToolCallContent::Unknown(unknown) => v2::ToolCallContent::Unknown(unknown.clone()),
        other => reread(other)?,
    })
}

/// Converts locations. Lines count from 1; a line 0 is left out.
fn locations(locations: &[v1::ToolCallLocation]) -> Vec<v2::ToolCallLocation> {
    let convert = |location: &v1::ToolCallLocation| {
        let mut next = v2::ToolCallLocation::new(location.path.as_str());
        next.line = location.line.filter(|line| *line > 0);
        next.meta.clone_from(&location.meta);
        next
    };
    locations.iter().map(convert).collect()
}
