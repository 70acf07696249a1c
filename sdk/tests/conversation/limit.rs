//! The limit in bytes.

use std::time::{Duration, Instant};

use acp_sdk::v1::{AvailableCommand, AvailableCommandsUpdate, ToolCall, ToolCallUpdate};

use super::*;

#[test]
fn the_oldest_items_are_left_out_and_counted() {
    let mut conversation = Conversation::with_limit(10_000);
    for number in 0..100 {
        let text = "x".repeat(500);
        let _ = conversation.apply(&chunk(Role::Agent, Some(&number.to_string()), &text));
        assert!(conversation.bytes() <= 10_000);
    }
    let left = conversation.items().len();
    assert!(left > 5, "{left}");
    let omitted = conversation.omitted();
    assert_eq!(omitted.items, 100 - left as u64);
    assert!(omitted.bytes >= 500 * omitted.items);
    let first = conversation.items().next().unwrap().id;
    assert_eq!(first.number(), omitted.items + 1);
    // An id whose message is gone begins another one.
    let changed = conversation.apply(&chunk(Role::Agent, Some("0"), "late"));
    let last = conversation.items().last().unwrap().id;
    assert!(changes(changed).contains(&Change::Added(last)));
}

#[test]
fn a_change_names_the_last_removed_item() {
    let mut conversation = Conversation::with_limit(4_000);
    let mut shown = Vec::new();
    for number in 0..40 {
        let id = format!("{number}");
        for change in conversation.apply(&ToolCall::new(id, "x".repeat(300)).into()) {
            match change {
                Change::Added(id) => shown.push(id),
                Change::Removed(last) => shown.retain(|id| *id > last),
                other => panic!("{other:?}"),
            }
        }
        let items: Vec<_> = conversation.items().map(|item| item.id).collect();
        assert_eq!(items, shown);
    }
}

#[test]
fn a_message_longer_than_the_limit_keeps_its_end() {
    let mut conversation = Conversation::with_limit(64 << 10);
    let _ = conversation.prompt(&["Write".into()]);
    let (mut all, mut redrawn) = (String::new(), 0);
    for number in 0..50_000 {
        let text = format!("{number} ü ");
        all.push_str(&text);
        let changed = changes(conversation.apply(&said(&text)));
        redrawn += usize::from(matches!(changed[..], [.., Change::Changed(_)]));
        assert!(conversation.bytes() <= 64 << 10);
    }
    let item = conversation.items().next().unwrap();
    assert_eq!(conversation.items().len(), 1, "the prompt was older");
    let text = item.as_message().unwrap().text();
    assert!(all.ends_with(&*text) && text.len() > 20_000);
    assert_eq!(item.omitted, all.len() - text.len());
    assert!((5..100).contains(&redrawn), "{redrawn}");
}

#[test]
fn blocks_and_content_that_are_too_large_are_left_out() {
    let mut conversation = Conversation::with_limit(10_000);
    let image = json!({"sessionUpdate": "agent_message_chunk", "messageId": "m",
        "content": {"type": "image", "mimeType": "image/png", "data": "A".repeat(20_000)}});
    let _ = conversation.apply(&update(&image));
    let item = conversation.items().next().unwrap();
    assert!(item.as_message().unwrap().content.is_empty() && item.omitted > 20_000);
    let call =
        ToolCall::new("1", "Read").with_raw_input(acp_sdk::Json::new(&"x".repeat(20_000)).unwrap());
    let _ = conversation.apply(&call.into());
    let item = conversation.items().last().unwrap();
    assert!(item.omitted > 20_000);
    assert_eq!(item.as_tool_call(), Some(&ToolCall::new("1", "Read")));
    let titled = ToolCallUpdate::new("1").with_title("x".repeat(20_000));
    let removed = changes(conversation.apply(&titled.into()));
    assert!(matches!(removed[..], [Change::Removed(_)]), "{removed:?}");
    assert_eq!(conversation.items().len(), 0);
    assert_eq!(conversation.bytes(), 0);
}

#[test]
fn settings_count_too() {
    let mut conversation = Conversation::with_limit(10_000);
    let commands = |bytes: usize| {
        let command = AvailableCommand::new("go", "x".repeat(bytes));
        SessionUpdate::from(AvailableCommandsUpdate::new(vec![command]))
    };
    let _ = conversation.apply(&said("short"));
    let changed = changes(conversation.apply(&commands(9_900)));
    assert!(matches!(
        changed[..],
        [Change::Removed(_), Change::Commands]
    ));
    assert_eq!(conversation.settings().commands.len(), 1);
    let _ = conversation.apply(&commands(20_000));
    assert_eq!(conversation.settings().commands.len(), 0);
    assert!(conversation.omitted().bytes > 20_000);
    assert_eq!(conversation.bytes(), 0);
    for limit in [0, 1, 300] {
        let mut conversation = Conversation::with_limit(limit);
        let _ = conversation.prompt(&["Hi".into()]);
        for update in [said("text"), commands(1), ToolCall::new("1", "Call").into()] {
            let _ = conversation.apply(&update);
            assert!(conversation.bytes() <= limit);
        }
    }
}

#[test]
fn a_million_chunks_are_joined_in_linear_time() {
    // Copying the text once for each of these chunks would take hours.
    let begun = Instant::now();
    for limit in [Conversation::DEFAULT_LIMIT, 1 << 20] {
        let mut conversation = Conversation::with_limit(limit);
        let chunks = ["a", "b"].map(|id| chunk(Role::Agent, Some(id), "two words "));
        for number in 0..1_000_000 {
            let _ = conversation.apply(&chunks[number / 7 % 2]);
        }
        let bytes: usize = conversation
            .items()
            .map(|item| item.as_message().unwrap().text().len())
            .sum();
        assert!(bytes == 10_000_000 || bytes > 200_000, "{bytes}");
    }
    assert!(begun.elapsed() < Duration::from_secs(60));
}
