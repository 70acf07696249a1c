//! Messages from chunks, and as a whole.

use acp_sdk::v1::{ImageContent, ToolCall};

use super::*;

#[test]
fn chunks_without_ids_are_joined_until_something_is_added() {
    let call = || SessionUpdate::from(ToolCall::new("1", "Read"));
    let thought = |text| chunk(Role::Thought, None, text);
    let user = |text| chunk(Role::User, None, text);
    for (updates, expected) in [
        (vec![said("a"), said("b\n")], vec!["agent ab\n"]),
        (
            vec![said("a"), call(), said("b")],
            vec!["agent a", "call Read", "agent b"],
        ),
        // Only a new call separates.
        (
            vec![call(), said("a"), call(), said("b")],
            vec!["call Read", "agent ab"],
        ),
        (
            vec![thought("a"), said("b"), thought("c"), said("d")],
            vec!["thought a", "agent b", "thought c", "agent d"],
        ),
        (
            vec![user("a"), user("b"), said("c"), user("d")],
            vec!["user ab", "agent c", "user d"],
        ),
    ] {
        assert_eq!(words(&fold(&updates)), expected);
    }
}

#[test]
fn chunks_with_ids_find_their_message() {
    let said_in = |id, text| chunk(Role::Agent, Some(id), text);
    for (updates, expected) in [
        (vec![said_in("1", "a"), said_in("1", "b")], vec!["agent ab"]),
        (
            vec![said_in("1", "a"), said_in("2", "b"), said_in("1", "c")],
            vec!["agent ac", "agent b"],
        ),
        // A chunk without an id continues the previous chunk.
        (
            vec![
                said_in("1", "a"),
                said_in("2", "b"),
                said_in("1", "c"),
                said("d"),
            ],
            vec!["agent acd", "agent b"],
        ),
        (
            vec![
                said_in("1", "a"),
                SessionUpdate::from(ToolCall::new("1", "Read")),
                said_in("1", "b"),
            ],
            vec!["agent ab", "call Read"],
        ),
        // The author is part of the identity.
        (
            vec![
                chunk(Role::Thought, Some("1"), "t"),
                said_in("1", "a"),
                chunk(Role::Thought, Some("1"), "u"),
                said_in("1", "b"),
            ],
            vec!["thought tu", "agent ab"],
        ),
        (
            vec![said("a"), said_in("2", "b"), said("c"), said_in("3", "d")],
            vec!["agent abc", "agent d"],
        ),
    ] {
        assert_eq!(words(&fold(&updates)), expected);
    }
}

#[test]
fn changes_name_the_item() {
    let mut conversation = Conversation::new();
    let mut ids = Vec::new();
    for (id, text) in [("1", "a"), ("2", "b"), ("1", "c"), ("1", "d")] {
        ids.extend(conversation.apply(&chunk(Role::Agent, Some(id), text)));
    }
    let items: Vec<_> = conversation.items().map(|item| item.id).collect();
    let expected = [
        Change::Added(items[0]),
        Change::Added(items[1]),
        Change::Appended(items[0]),
        Change::Appended(items[0]),
    ];
    assert_eq!(ids, expected);
}

#[test]
fn content_other_than_text_stands_between_texts() {
    let image = ContentBlock::from(ImageContent::new("image/png", "AA=="));
    let annotated: ContentBlock =
        acp_sdk::json::from_str(r#"{"type":"text","text":"x","annotations":{}}"#).unwrap();
    let blocks = ["a", "b"].map(ContentBlock::from);
    let [a, b] = blocks.clone();
    let mut conversation = Conversation::new();
    for block in [&a, &b, &image, &a, &annotated, &b, &b] {
        let update = SessionUpdate::AgentMessageChunk(ContentChunk::new(block.clone()));
        let _ = conversation.apply(&update);
    }
    let message = conversation.items().next().unwrap().as_message().unwrap();
    let expected = ["ab".into(), image, a, annotated, "bb".into()];
    assert_eq!(message.content, expected);
    assert_eq!(message.text(), "abaxbb");
    assert_eq!(message.clone().into_text(), "abaxbb");
}

#[test]
fn a_prompt_that_the_agent_repeats_is_not_added_again() {
    let user = |id, text| chunk(Role::User, id, text);
    for (repetition, expected) in [
        (
            vec![user(None, "Do "), user(None, "it")],
            vec!["user Do it"],
        ),
        (
            vec![user(Some("u"), "Do it"), user(Some("u"), " now")],
            vec!["user Do it now"],
        ),
        // Another message is no repetition, and a second repetition is another message.
        (
            vec![user(None, "Do that")],
            vec!["user Do it", "user Do that"],
        ),
        (
            vec![user(Some("u"), "Do it"), user(Some("v"), "Do it")],
            vec!["user Do it", "user Do it"],
        ),
    ] {
        let mut conversation = Conversation::new();
        let _ = conversation.prompt(&["Do ".into(), "it".into()]);
        for update in &repetition {
            let _ = conversation.apply(update);
        }
        assert_eq!(words(&conversation), expected);
    }
    // The id of the repetition is that of the prompt.
    let mut conversation = Conversation::new();
    let _ = conversation.prompt(&["Do it".into()]);
    assert!(conversation.apply(&user(Some("u"), "Do it")).is_empty());
    let prompt = conversation.items().next().unwrap().as_message().unwrap();
    assert_eq!(prompt.message_id, Some("u".into()));
    let _ = conversation.prompt(&["Do it".into()]);
    let _ = conversation.end_turn(Some(StopReason::EndTurn));
    let _ = conversation.apply(&user(None, "Do it"));
    assert_eq!(conversation.items().len(), 4, "it is a new one");
}

#[test]
fn a_whole_message_of_version_2_replaces_its_chunks() {
    let whole = |kind: &str, id: &str, content: Value| {
        update(&json!({"sessionUpdate": kind, "messageId": id, "content": content}))
    };
    let text = |text: &str| json!({"type": "text", "text": text});
    let mut conversation = Conversation::new();
    let _ = conversation.prompt(&["Hi".into()]);
    let repeated = whole("user_message", "u", json!([text("H"), text("i")]));
    assert!(conversation.apply(&repeated).is_empty());
    let _ = conversation.apply(&chunk(Role::Agent, Some("a"), "Helo"));
    let _ = conversation.apply(&chunk(Role::Agent, Some("b"), "Rest"));
    let changed = conversation.apply(&whole(
        "agent_message",
        "a",
        json!([text("Hel"), text("lo")]),
    ));
    let item = conversation.items().nth(1).unwrap().id;
    assert_eq!(changes(changed), [Change::Changed(item)]);
    let _ = conversation.apply(&chunk(Role::Agent, Some("a"), "!"));
    let _ = conversation.apply(&whole("agent_thought", "t", json!([text("Hm")])));
    let expected = ["user Hi", "agent Hello!", "agent Rest", "thought Hm"];
    assert_eq!(words(&conversation), expected);
    let bytes = conversation.bytes();
    let _ = conversation.apply(&whole("agent_message", "a", Value::Null));
    assert_eq!(words(&conversation)[1], "agent ");
    assert!(conversation.bytes() < bytes);
    // Without content only its metadata changes.
    let meta = json!({"sessionUpdate": "agent_message", "messageId": "b", "_meta": {}});
    assert!(conversation.apply(&update(&meta)).is_empty());
    // What cannot be read is kept as it is.
    let _ = conversation.apply(&whole("agent_message", "b", json!("odd")));
    assert_eq!(words(&conversation)[4], "other agent_message");
}
