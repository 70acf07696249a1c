//! Tool calls: an announcement and its updates.

use super::weight;
use crate::v1::{ToolCall, ToolCallStatus, ToolCallUpdate};

/// Returns whether a tool call of this status has ended.
///
/// `cancelled`, a status of version 2, is final. `paused` and every other unknown status is not.
#[must_use]
pub fn is_final(status: Option<&ToolCallStatus>) -> bool {
    match status {
        Some(ToolCallStatus::Completed | ToolCallStatus::Failed) => true,
        Some(ToolCallStatus::Unknown(status)) => status == "cancelled",
        _ => false,
    }
}

/// Applies an update: omitted members are unchanged, lists are replaced.
///
/// Specification: [Updating tool calls](https://agentclientprotocol.com/protocol/v1/tool-calls#updating).
pub fn merge(call: &mut ToolCall, update: &ToolCallUpdate) {
    fn set<T: Clone>(field: &mut T, value: Option<&T>) {
        if let Some(value) = value {
            field.clone_from(value);
        }
    }
    fn set_some<T: Clone>(field: &mut Option<T>, value: &Option<T>) {
        if value.is_some() {
            field.clone_from(value);
        }
    }
    set(&mut call.title, update.title.as_ref());
    set(&mut call.content, update.content.as_ref());
    set(&mut call.locations, update.locations.as_ref());
    set_some(&mut call.name, &update.name);
    set_some(&mut call.kind, &update.kind);
    set_some(&mut call.status, &update.status);
    set_some(&mut call.raw_input, &update.raw_input);
    set_some(&mut call.raw_output, &update.raw_output);
    set_some(&mut call.meta, &update.meta);
}

/// Returns the size of the members that an update replaces, in a call of `bytes` bytes with lists
/// that are not replaced. The lists may be long, so they are measured only when they change.
pub(super) fn merge_measured(call: &mut ToolCall, update: &ToolCallUpdate, bytes: usize) -> usize {
    let lists = |call: &ToolCall| {
        let content = update.content.is_some();
        let locations = update.locations.is_some();
        let content = content.then(|| weight::contents(&call.content));
        let locations = locations.then(|| weight::locations(&call.locations));
        content.unwrap_or(0) + locations.unwrap_or(0) + weight::tool_call_alone(call)
    };
    let before = lists(call);
    merge(call, update);
    (bytes + lists(call)).saturating_sub(before)
}

/// Adds the announcement of a call that is known from updates only. What they have set is newer.
pub(super) fn announce_late(call: &mut ToolCall, announced: &ToolCall) {
    fn or<T: Clone>(field: &mut Option<T>, value: &Option<T>) {
        if field.is_none() {
            field.clone_from(value);
        }
    }
    if call.title.is_empty() {
        call.title.clone_from(&announced.title);
    }
    if call.content.is_empty() {
        call.content.clone_from(&announced.content);
    }
    if call.locations.is_empty() {
        call.locations.clone_from(&announced.locations);
    }
    or(&mut call.name, &announced.name);
    or(&mut call.kind, &announced.kind);
    or(&mut call.status, &announced.status);
    or(&mut call.raw_input, &announced.raw_input);
    or(&mut call.raw_output, &announced.raw_output);
    or(&mut call.meta, &announced.meta);
}

/// Removes what may be long, except the title.
pub(super) fn strip(call: &mut ToolCall) {
    call.content = Vec::new();
    call.locations = Vec::new();
    (call.raw_input, call.raw_output, call.meta) = (None, None, None);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cancelled_call_has_ended_and_a_paused_one_has_not() {
        for (status, ended) in [
            ("pending", false),
            ("in_progress", false),
            ("paused", false),
            ("_waiting", false),
            ("completed", true),
            ("failed", true),
            ("cancelled", true),
        ] {
            assert_eq!(is_final(Some(&status.into())), ended, "{status}");
        }
        assert!(!is_final(None));
    }
}
