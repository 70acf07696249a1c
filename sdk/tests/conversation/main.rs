//! What a conversation makes of updates.

mod limit;
mod messages;
mod properties;
mod recording;
mod tool_calls;

use acp_sdk::conversation::{Change, Changes, Conversation, Item, ItemKind, Role};
use acp_sdk::v1::{
    ContentBlock, ContentChunk, CurrentModeUpdate, Plan, PlanEntry, PlanEntryPriority,
    PlanEntryStatus, SessionInfoUpdate, SessionMode, SessionModeState, SessionUpdate, StopReason,
    UsageUpdate,
};
use serde_json::{Value, json};

fn chunk(role: Role, id: Option<&str>, text: &str) -> SessionUpdate {
    let mut chunk = ContentChunk::new(ContentBlock::from(text));
    chunk.message_id = id.map(Into::into);
    match role {
        Role::User => SessionUpdate::UserMessageChunk(chunk),
        Role::Agent => SessionUpdate::AgentMessageChunk(chunk),
        _ => SessionUpdate::AgentThoughtChunk(chunk),
    }
}

fn said(text: &str) -> SessionUpdate {
    chunk(Role::Agent, None, text)
}

fn update(json: &Value) -> SessionUpdate {
    acp_sdk::json::from_str(&json.to_string()).expect("an update")
}

fn fold(updates: &[SessionUpdate]) -> Conversation {
    let mut conversation = Conversation::new();
    for update in updates {
        let _ = conversation.apply(update);
    }
    conversation
}

/// An item in a word: its kind and its text.
fn word(item: &Item) -> String {
    match &item.kind {
        ItemKind::Message(message) => {
            let role = match message.role {
                Role::User => "user",
                Role::Agent => "agent",
                _ => "thought",
            };
            format!("{role} {}", message.text())
        }
        ItemKind::ToolCall(call) => format!("call {}", call.title),
        ItemKind::TurnEnd { stop_reason } => match stop_reason {
            Some(reason) => format!("end {reason}"),
            None => "failed".to_owned(),
        },
        ItemKind::Missed { count } => format!("missed {count:?}"),
        ItemKind::Other(update) => match &**update {
            SessionUpdate::Unknown(unknown) => format!("other {}", unknown.tag()),
            _ => "other".to_owned(),
        },
        _ => "?".to_owned(),
    }
}

fn words(conversation: &Conversation) -> Vec<String> {
    conversation.items().map(word).collect()
}

fn changes(changes: Changes) -> Vec<Change> {
    changes.into_iter().collect()
}

#[test]
fn prompts_and_ends_of_turns_stand_in_order() {
    let mut conversation = Conversation::new();
    let mut ids = Vec::new();
    ids.extend(conversation.prompt(&["Hi".into()]));
    ids.extend(conversation.apply(&said("Hello.")));
    ids.extend(conversation.end_turn(Some(StopReason::EndTurn)));
    ids.extend(conversation.apply(&said("By the way")));
    ids.extend(conversation.prompt(&["Go".into()]));
    ids.extend(conversation.end_turn(None));
    ids.extend(conversation.missed(Some(3)));
    let expected = [
        "user Hi",
        "agent Hello.",
        "end end_turn",
        "agent By the way",
        "user Go",
        "failed",
        "missed Some(3)",
    ];
    assert_eq!(words(&conversation), expected);
    let added: Vec<_> = conversation
        .items()
        .map(|item| Change::Added(item.id))
        .collect();
    assert_eq!(ids, added);
}

#[test]
fn a_replay_and_what_follows_are_kept_apart() {
    let mut conversation = Conversation::new();
    let replay = [chunk(Role::User, None, "Hi"), said("Hello.")];
    for update in &replay {
        let _ = conversation.apply(update);
    }
    conversation.end_history();
    let _ = conversation.apply(&said("Live."));
    assert_eq!(
        words(&conversation),
        ["user Hi", "agent Hello.", "agent Live."]
    );
    let last = conversation.items().last().unwrap().id;
    assert_eq!(changes(conversation.restart()), [Change::Removed(last)]);
    assert_eq!(conversation.items().len(), 0);
    for update in &replay {
        for change in conversation.apply(update) {
            assert!(change.item().unwrap() > last, "an id was used again");
        }
    }
    assert_eq!(words(&conversation), ["user Hi", "agent Hello."]);
}

#[test]
fn the_latest_plan_usage_and_settings_count() {
    let plan = |word: &str| {
        let entry = PlanEntry::new(word, PlanEntryPriority::Low, PlanEntryStatus::Pending);
        Plan::new(vec![entry])
    };
    let mut conversation = Conversation::new();
    let modes = ["ask", "code"].map(|id| SessionMode::new(id, id));
    let modes = SessionModeState::new("ask", modes.to_vec());
    let opened = conversation.opened(Some(modes), Some(Vec::new()));
    assert_eq!(changes(opened), [Change::Modes, Change::ConfigOptions]);
    let commands = json!({"sessionUpdate": "available_commands_update",
        "availableCommands": [{"name": "go", "description": "Goes"}]});
    for (update, expected) in [
        (SessionUpdate::Plan(plan("old")), Change::Plan),
        (SessionUpdate::Plan(plan("new")), Change::Plan),
        (UsageUpdate::new(1_u64, 9_u64).into(), Change::Usage),
        (CurrentModeUpdate::new("code").into(), Change::Modes),
        (update(&commands), Change::Commands),
        (
            SessionInfoUpdate::new().with_title("T".to_owned()).into(),
            Change::Info,
        ),
    ] {
        assert_eq!(changes(conversation.apply(&update)), [expected]);
        let again = conversation.apply(&update);
        assert!(again.is_empty(), "the same is drawn already: {again:?}");
    }
    assert_eq!(conversation.plan(), Some(&plan("new")));
    assert_eq!(conversation.usage().map(|usage| usage.used), Some(1));
    let settings = conversation.settings();
    let modes = settings.modes.as_ref().unwrap();
    assert_eq!(
        (modes.current_mode_id.as_str(), modes.available_modes.len()),
        ("code", 2)
    );
    assert_eq!(settings.commands.len(), 1);
    assert_eq!(settings.title.as_deref(), Some("T"));
    assert_eq!(conversation.items().len(), 0, "none of them is an item");
    // A mode of an agent whose modes are not known.
    let mode = fold(&[CurrentModeUpdate::new("code").into()]);
    let modes = mode.settings().modes.as_ref().unwrap();
    assert_eq!(modes.current_mode_id.as_str(), "code");
}

#[test]
fn updates_of_unknown_kind_are_kept_unchanged() {
    let raw = json!({"sessionUpdate": "_x/progress", "n": 1, "deep": {"a": [1, 2.50]}});
    let conversation = fold(&[said("a"), update(&raw), said("b")]);
    assert_eq!(words(&conversation), ["agent ab", "other _x/progress"]);
    let other = conversation.items().last().unwrap();
    let ItemKind::Other(other) = &other.kind else {
        panic!("{other:?}")
    };
    assert_eq!(serde_json::to_value(other).unwrap(), raw);
}

#[cfg(feature = "v2")]
#[test]
fn updates_of_version_2_give_the_same() {
    use acp_sdk::v1::ToolCallStatus;

    let mut conversation = Conversation::new();
    let text = |text: &str| json!({"type": "text", "text": text});
    for update in [
        json!({"sessionUpdate": "user_message", "messageId": "u", "content": [text("Hi")]}),
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "a", "content": text("Hel")}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "title": "Read"}),
        json!({"sessionUpdate": "agent_message_chunk", "messageId": "a", "content": text("lo")}),
        json!({"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}),
        json!({"sessionUpdate": "agent_message", "messageId": "a", "content": [text("Hello!")]}),
        json!({"sessionUpdate": "usage_update", "used": 5, "size": 9}),
    ] {
        let update = acp_sdk::json::from_str(&update.to_string()).unwrap();
        assert!(!conversation.apply_v2(update).is_empty());
    }
    let expected = ["user Hi", "agent Hello!", "call Read"];
    assert_eq!(words(&conversation), expected);
    let (_, call) = conversation.tool_call(&"1".into()).unwrap();
    assert_eq!(call.status, Some(ToolCallStatus::Completed));
    assert_eq!(conversation.usage().map(|usage| usage.used), Some(5));
}
