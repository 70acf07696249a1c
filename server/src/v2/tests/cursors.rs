//! A client that resumes anywhere is sent the same as one that began at the start.

use acp_sdk::v1;
use serde_json::json;

use super::V1;
use crate::event::{Event, EventBody, TurnEvent, TurnId};
use crate::v2::updates::{EncoderState, update};

fn texts(events: &[Event]) -> Vec<Option<String>> {
    let mut state = EncoderState::default();
    let mut text = |event| {
        let update = update(event, &mut state)?;
        Some(serde_json::to_string(&update).unwrap())
    };
    events.iter().map(&mut text).collect()
}

/// Returns a log: turns with chunks of all voices, with and without ids, among other updates.
fn log() -> Vec<Event> {
    let kinds = [
        "user_message_chunk",
        "agent_message_chunk",
        "agent_thought_chunk",
    ];
    let ids = [json!("a"), json!("a"), json!("b"), json!(null), json!("a")];
    let chunks = kinds.iter().flat_map(|kind| {
        ids.iter().map(move |id| {
            let content = json!({"type": "text", "text": "a"});
            let chunk = json!({"sessionUpdate": kind, "content": content, "messageId": id});
            serde_json::from_value::<v1::SessionUpdate>(chunk).unwrap()
        })
    });
    let others = V1.values("SessionUpdate").into_iter().step_by(4);
    // Three chunks between any two other updates.
    let mut chunks = chunks.cycle();
    let updates = others.flat_map(|other| {
        let next = [chunks.next(), chunks.next(), chunks.next(), Some(other)];
        next.into_iter().flatten()
    });
    let event = |(number, update): (u64, v1::SessionUpdate)| {
        let turn = TurnId(number);
        let body = match number % 50 {
            1 => EventBody::Turn(TurnEvent::TurnStarted { turn }),
            _ => EventBody::Update(update),
        };
        Event { number, body }
    };
    (1..).zip(updates).map(event).collect()
}

#[test]
fn every_cursor_gives_the_same_updates() {
    let events = log();
    assert!(events.len() > 300, "{}", events.len());
    let whole = texts(&events);
    for cursor in 0..events.len() {
        let rest = texts(&events[cursor..]);
        assert_eq!(rest, whole[cursor..], "after event {cursor}");
    }
}
