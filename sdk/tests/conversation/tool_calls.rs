//! Tool calls from announcements and updates.

use acp_sdk::v1::{Content, ToolCall, ToolCallContent, ToolCallStatus, ToolCallUpdate, ToolKind};

use super::*;

fn call(conversation: &Conversation, id: &str) -> ToolCall {
    conversation
        .tool_call(&id.into())
        .expect("no such call")
        .1
        .clone()
}

fn content(text: &str) -> ToolCallContent {
    ToolCallContent::Content(Content::new(ContentBlock::from(text)))
}

#[test]
fn updates_are_merged() {
    let announced = ToolCall::new("1", "Read")
        .with_kind(ToolKind::Read)
        .with_content(vec![content("old")]);
    let running = ToolCallUpdate::new("1").with_status(ToolCallStatus::InProgress);
    let done = ToolCallUpdate::new("1")
        .with_status(ToolCallStatus::Completed)
        .with_content(vec![content("new")]);
    let mut conversation = Conversation::new();
    let added = conversation.apply(&announced.into());
    let id = conversation.items().next().unwrap().id;
    assert_eq!(changes(added), [Change::Added(id)]);
    for update in [running, done] {
        let changed = conversation.apply(&update.into());
        assert_eq!(changes(changed), [Change::Changed(id)]);
    }
    let expected = ToolCall::new("1", "Read")
        .with_kind(ToolKind::Read)
        .with_status(ToolCallStatus::Completed)
        .with_content(vec![content("new")]);
    assert_eq!(call(&conversation, "1"), expected);
    // The size is that of a call announced like this.
    let announced = fold(&[expected.into()]);
    assert_eq!(conversation.bytes(), announced.bytes());
}

#[test]
fn an_update_of_an_unknown_call_creates_it() {
    let done = ToolCallUpdate::new("1").with_status(ToolCallStatus::Completed);
    let mut conversation = fold(&[done.into()]);
    assert_eq!(words(&conversation), ["call "]);
    // What follows does not undo it.
    let announced = ToolCall::new("1", "Read")
        .with_kind(ToolKind::Read)
        .with_status(ToolCallStatus::Pending);
    let _ = conversation.apply(&announced.clone().into());
    let expected = announced.with_status(ToolCallStatus::Completed);
    assert_eq!(call(&conversation, "1"), expected);
    assert_eq!(conversation.items().len(), 1);
}

#[test]
fn a_call_that_is_announced_again_begins_anew() {
    let done = ToolCallUpdate::new("1").with_status(ToolCallStatus::Failed);
    let announced = || SessionUpdate::from(ToolCall::new("1", "Read"));
    let mut conversation = fold(&[announced(), done.into(), announced()]);
    assert_eq!(call(&conversation, "1"), ToolCall::new("1", "Read"));
    assert_eq!(conversation.items().len(), 1);
    // In another turn it is another call.
    let _ = conversation.end_turn(None);
    let _ = conversation.prompt(&["Again".into()]);
    let _ = conversation.apply(&announced());
    let renamed = ToolCallUpdate::new("1").with_title("Write");
    let _ = conversation.apply(&renamed.into());
    let expected = ["call Read", "failed", "user Again", "call Write"];
    assert_eq!(words(&conversation), expected);
    // When the first is removed for the limit, the id is still that of the second.
    let mut conversation = Conversation::with_limit(4_000);
    let first = ToolCall::new("1", "x".repeat(1_000));
    let _ = conversation.apply(&first.into());
    let _ = conversation.end_turn(None);
    let _ = conversation.apply(&announced());
    while conversation.omitted().items == 0 {
        let _ = conversation.apply(&chunk(Role::Agent, None, &"x".repeat(100)));
    }
    assert_eq!(call(&conversation, "1").title, "Read");
}

#[test]
fn late_updates_reach_a_call_of_an_earlier_turn() {
    let mut conversation = fold(&[ToolCall::new("1", "Build").into()]);
    let _ = conversation.end_turn(Some(StopReason::EndTurn));
    let done = ToolCallUpdate::new("1").with_status(ToolCallStatus::Completed);
    let changed = conversation.apply(&done.into());
    let id = conversation.items().next().unwrap().id;
    assert_eq!(changes(changed), [Change::Changed(id)]);
}

#[test]
fn chunks_of_content_of_version_2_are_appended() {
    let next = |content: Value| {
        update(
            &json!({"sessionUpdate": "tool_call_content_chunk", "toolCallId": "1",
            "content": content}),
        )
    };
    let text = |text: &str| json!({"type": "content", "content": {"type": "text", "text": text}});
    let diff = json!({"type": "diff", "changes": [{"operation": "add", "path": "/a"}]});
    let mut conversation = fold(&[ToolCall::new("1", "Run").into()]);
    let appended = conversation.apply(&next(text("a")));
    let id = conversation.items().next().unwrap().id;
    assert_eq!(changes(appended), [Change::Appended(id)]);
    let _ = conversation.apply(&next(diff.clone()));
    let contents = call(&conversation, "1").content;
    assert_eq!(contents[0], content("a"));
    // Its form is not that of version 1, and nothing is lost.
    assert_eq!(serde_json::to_value(&contents[1]).unwrap(), diff);
    assert_eq!(words(&fold(&[next(text("a"))])), ["call "]);
}
