//! Properties of any sequence of updates.

use acp_sdk::v1::{ToolCall, ToolCallStatus, ToolCallUpdate};
use proptest::prelude::*;

use super::*;

/// An update in a few words, of few ids, so that they meet.
fn any_update() -> impl Strategy<Value = SessionUpdate> {
    let role = prop_oneof![Just(Role::User), Just(Role::Agent), Just(Role::Thought)];
    let id = prop_oneof![Just(None), Just(Some("1")), Just(Some("2"))];
    let text = (role, id, "[a-c ü]{0,6}").prop_map(|(role, id, text)| chunk(role, id, &text));
    let called = "[1-3]".prop_map(|id| ToolCall::new(id, "Call").into());
    let updated = "[1-3]".prop_map(|id| {
        let update = ToolCallUpdate::new(id).with_status(ToolCallStatus::InProgress);
        update.into()
    });
    let raw = "[a-c]".prop_map(|tag| update(&json!({"sessionUpdate": tag})));
    let mode = "[a-c]".prop_map(|mode| CurrentModeUpdate::new(mode).into());
    prop_oneof![4 => text, 1 => called, 1 => updated, 1 => raw, 1 => mode]
}

/// Splits a text at some of its characters.
fn split(text: &str, at: &[bool]) -> Vec<String> {
    let mut parts = vec![String::new()];
    for (index, char) in text.chars().enumerate() {
        if at.get(index).copied().unwrap_or(false) {
            parts.push(String::new());
        }
        parts.last_mut().expect("never empty").push(char);
    }
    parts
}

proptest! {
    #[test]
    fn any_split_of_texts_gives_the_same(
        messages in prop::collection::vec(
            (any_update(), prop::collection::vec(any::<bool>(), 0..8)), 0..12),
    ) {
        let whole: Vec<_> = messages.iter().map(|(update, _)| update.clone()).collect();
        let mut parts = Vec::new();
        for (update, at) in &messages {
            let (role, content) = match update {
                SessionUpdate::UserMessageChunk(content) => (Role::User, content),
                SessionUpdate::AgentMessageChunk(content) => (Role::Agent, content),
                SessionUpdate::AgentThoughtChunk(content) => (Role::Thought, content),
                other => {
                    parts.push(other.clone());
                    continue;
                }
            };
            let ContentBlock::Text(text) = &content.content else { unreachable!() };
            let id = content.message_id.as_ref().map(|id| id.as_str());
            parts.extend(split(&text.text, at).iter().map(|part| chunk(role, id, part)));
        }
        prop_assert_eq!(fold(&whole), fold(&parts));
    }

    #[test]
    fn a_replay_gives_the_same(updates in prop::collection::vec(any_update(), 0..40)) {
        let once = fold(&updates);
        prop_assert_eq!(&once, &fold(&updates));
        // Also where another conversation was before, except for the ids.
        let mut again = fold(&[said("before")]);
        let _ = again.restart();
        for update in &updates {
            let _ = again.apply(update);
        }
        prop_assert_eq!(words(&once), words(&again));
        let call = |of: &Conversation| of.tool_call(&"1".into()).map(|(_, call)| call.clone());
        prop_assert_eq!(call(&once), call(&again));
    }

    #[test]
    fn the_limit_holds_and_changes_are_complete(
        updates in prop::collection::vec(any_update(), 0..80),
        limit in 0_usize..6_000,
    ) {
        let mut conversation = Conversation::with_limit(limit);
        let mut shown = std::collections::BTreeMap::new();
        for update in &updates {
            for change in conversation.apply(update) {
                match change {
                    Change::Removed(last) => shown.retain(|id, _| *id > last),
                    change => {
                        let item = change.item().map(|id| conversation.item(id).unwrap());
                        shown.extend(item.map(|item| (item.id, item.clone())));
                    }
                }
            }
            prop_assert!(conversation.bytes() <= limit);
            // Redrawing what changed is as good as drawing all of it.
            prop_assert!(conversation.items().eq(shown.values()));
        }
        let total = conversation.omitted().items + conversation.items().len() as u64;
        prop_assert_eq!(total, conversation.items().last().map_or(total, |item| item.id.number()));
    }
}
