//! Tests what is shown of events.

use acp_sdk::v1::{
    Content, Plan, PlanEntry, PlanEntryPriority, PlanEntryStatus, ToolCall, ToolCallContent,
    ToolCallStatus,
};

use super::*;

fn shown(updates: Vec<SessionUpdate>) -> String {
    let mut view = View::new(Paint { colours: false });
    let mut shown = String::new();
    for update in updates {
        let event = SessionEvent::live(Event::Update(update), Some(1));
        shown += &view.event(&event, 80);
    }
    shown + &view.end(80)
}

fn said(text: &str) -> SessionUpdate {
    SessionUpdate::AgentMessageChunk(ContentChunk::new(ContentBlock::from(text)))
}

fn thought(text: &str) -> SessionUpdate {
    SessionUpdate::AgentThoughtChunk(ContentChunk::new(ContentBlock::from(text)))
}

#[test]
fn different_things_are_kept_apart() {
    let done = ToolCall::new("1", "Read").with_status(ToolCallStatus::Completed);
    let other = done
        .clone()
        .with_content(vec![ToolCallContent::Content(Content::new(
            ContentBlock::from("x"),
        ))]);
    let mut other = other;
    other.tool_call_id = "2".into();
    let text = shown(vec![
        thought("h"),
        thought("m"),
        said("a **b"),
        said("** c"),
        SessionUpdate::ToolCall(done),
        SessionUpdate::ToolCall(other),
        said("d"),
    ]);
    let expected = "hm\n\na b c\n\n✓ Read 0.0 s\n✓ Read 0.0 s\n  x\n\nd\n\n";
    assert_eq!(text, expected);
}

#[test]
fn a_split_escape_sequence_shows_nothing() {
    let text = shown(vec![
        said("a\u{1b}[3"),
        said("1mb"),
        thought("c\u{1b}]0;t"),
        thought("d\u{7}e"),
    ]);
    assert_eq!(text, "ab\n\nce\n\n");
}

#[test]
fn a_long_line_is_shown_in_parts() {
    let mut view = View::new(Paint { colours: false });
    let (mut shown, piece) = (String::new(), "word ".repeat(200));
    for _ in 0..1 << 10 {
        let event = SessionEvent::live(Event::Update(said(&piece)), Some(1));
        shown += &view.event(&event, 80);
        assert!(view.preview(80, 5).len() <= 5);
    }
    shown += &view.end(80);
    assert_eq!(shown.matches("word").count(), 200 << 10);
    assert!(shown.lines().all(|line| line.len() <= 80));
}

#[test]
fn a_plan_is_shown_once_as_it_is_in_the_end() {
    let plan = |status| {
        let entry = PlanEntry::new("Te\u{1b}[2Jst", PlanEntryPriority::Low, status);
        SessionUpdate::Plan(Plan::new(vec![entry]))
    };
    let text = shown(vec![
        plan(PlanEntryStatus::InProgress),
        plan(PlanEntryStatus::Completed),
    ]);
    assert_eq!(text, "Plan\n  ✓ Test\n\n");
}

/// The session is shared: another client's turn runs first, and a timer has something to say.
#[test]
fn output_of_other_prompts_is_told_apart() {
    let mut view = View::new(Paint { colours: false });
    let mut shown = String::new();
    let event = |event, turn, prompt_id: Option<&str>| {
        let mut event = SessionEvent::live(event, turn);
        event.prompt_id = prompt_id.map(Into::into);
        event
    };
    let started = Event::TurnStarted { prompt: Vec::new() };
    let ended = Event::TurnEnded { stop_reason: None };
    for event in [
        event(Event::Update(said("Before.")), None, None),
        event(started, Some(1), None),
        event(Event::Update(said("Theirs.")), None, Some("turn-1")),
        event(Event::Update(said("Mine, ")), Some(1), Some("mine")),
        event(Event::Update(said("mine.")), Some(1), Some("mine")),
        event(Event::Update(said("Ding.")), None, None),
        event(ended, Some(1), None),
        event(Event::Update(said(" Dong.")), None, None),
    ] {
        shown += &view.event(&event, 80);
    }
    shown += &view.end(80);
    let lines: Vec<_> = shown.lines().filter(|line| !line.is_empty()).collect();
    let expected = [
        "Before.",
        "  another prompt of this session:",
        "Theirs.",
        "  your prompt:",
        "Mine, mine.",
        "  outside of your prompt:",
        "Ding. Dong.",
    ];
    assert_eq!(lines, expected);
}

/// Lines for standard error arrive at any time.
#[test]
fn a_line_beside_the_conversation_does_not_end_its_code() {
    let mut view = View::new(Paint { colours: false });
    let mut shown = String::new();
    let mut say = |view: &mut View, text| {
        shown += &view.event(&SessionEvent::live(Event::Update(said(text)), Some(1)), 80);
    };
    say(&mut view, "```\none\ntwo\n");
    let aside = view.aside("agent: *a*\u{1b}[2J");
    say(&mut view, "*three*\n```\nText.");
    shown += &view.end(80);
    assert_eq!(aside, "agent: *a*\n");
    assert_eq!(shown, "    one\n    two\n    *three*\nText.\n\n");
}
