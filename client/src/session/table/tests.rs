//! The table of sessions: early updates, limits, and the sessions of the agent itself.

use acp_sdk::v1::{ContentBlock, ContentChunk, SessionUpdate};
use serde_json::json;

use super::super::{Event, Events, Origin, announced_child};
use super::*;

fn put(sessions: &Sessions, id: &SessionId, word: &str) {
    let chunk = ContentChunk::new(ContentBlock::from(word));
    let update = SessionUpdate::AgentMessageChunk(chunk);
    let waiting = sessions
        .inbox(id)
        .push_update(update, Origin::default())
        .waiting;
    assert!(
        waiting.is_none(),
        "there is always room for what nobody reads"
    );
}

fn words(events: &mut Events) -> Vec<String> {
    let mut words = Vec::new();
    while let Some(event) = events.next_ready() {
        if let Event::Update(SessionUpdate::AgentMessageChunk(chunk)) = event.event
            && let ContentBlock::Text(text) = chunk.content
        {
            words.push(text.text);
        }
    }
    words
}

#[test]
fn what_comes_early_is_kept_for_the_session() {
    let sessions = Sessions::new();
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    put(&sessions, &a, "one");
    put(&sessions, &b, "other");
    put(&sessions, &a, "two");
    let mut events = Events::new(sessions.claim(&a).unwrap());
    assert_eq!(words(&mut events), ["one", "two"]);
    put(&sessions, &a, "three");
    assert_eq!(words(&mut events), ["three"]);
    assert!(sessions.claim(&a).is_none());
    sessions.release(&a);
    assert!(sessions.claim(&a).is_some());
}

#[test]
fn sessions_that_nobody_knows_are_bounded() {
    let sessions = Sessions::new();
    for number in 0..1000 {
        let id = SessionId::from(format!("{number}"));
        put(&sessions, &id, "early");
    }
    assert_eq!(sessions.lock().unclaimed.len(), UNCLAIMED);
    let mut latest = Events::new(sessions.claim(&"999".into()).unwrap());
    assert_eq!(words(&mut latest).len(), 1);
    let mut oldest = Events::new(sessions.claim(&"0".into()).unwrap());
    assert_eq!(words(&mut oldest).len(), 0);
}

/// The history of an attempt to load the session that came too late is not shown beside that of
/// the next attempt.
#[test]
fn what_came_too_late_is_dropped_before_a_session_is_loaded_again() {
    let sessions = Sessions::new();
    let id = SessionId::from("a");
    put(&sessions, &id, "late");
    put(&sessions, &"b".into(), "other");
    sessions.forget_early(&id);
    let mut events = Events::new(sessions.claim(&id).unwrap());
    put(&sessions, &id, "again");
    assert_eq!(words(&mut events), ["again"]);
    let mut other = Events::new(sessions.claim(&"b".into()).unwrap());
    assert_eq!(words(&mut other), ["other"]);
}

#[test]
fn a_session_of_the_agent_belongs_to_its_parent() {
    let sessions = Sessions::new();
    let child = SessionId::from("child");
    let named = |parent: &str| Meta::new().with("_vendor", &json!({"parentSessionId": parent}));
    let owner = |meta: Option<Meta>| sessions.owner(&child, meta.as_ref());
    assert_eq!(owner(None), None);
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let of_a = sessions.claim(&a).unwrap();
    assert_eq!(sessions.owner(&a, None), Some(a.clone()));
    assert_eq!(owner(None), Some(a.clone()));
    let _of_b = sessions.claim(&b).unwrap();
    assert_eq!(owner(None), None);
    assert_eq!(owner(Some(named("b"))), Some(b.clone()));
    let direct = Meta::new().with("parentSessionId", &json!("b"));
    assert_eq!(owner(Some(direct)), Some(b.clone()));
    assert_eq!(owner(Some(named("other"))), None);
    let turn = of_a.begin(&[], None).unwrap();
    assert_eq!(owner(Some(named("other"))), Some(a.clone()));
    assert_eq!(owner(Some(named("b"))), Some(b.clone()));
    of_a.end_turn(&turn, None);
    assert_eq!(owner(None), None);
    sessions.lock().tree.adopt(&child, &b);
    assert_eq!(owner(None), Some(b.clone()));
    let grandchild = SessionId::from("grandchild");
    sessions.lock().tree.adopt(&grandchild, &child);
    assert_eq!(sessions.owner(&grandchild, None), Some(b.clone()));
    sessions.lock().tree.adopt(&child, &grandchild);
    assert_eq!(owner(None), Some(b.clone()), "no parents in a circle");
    sessions.lock().tree.adopt(&child, &"other".into());
    assert_eq!(owner(None), Some(b.clone()), "no parent that is nobody's");
    sessions.release(&b);
    for id in [&b, &child, &grandchild] {
        assert_eq!(
            sessions.owner(id, None),
            None,
            "{id}: not that of the other session"
        );
    }
    let child = SessionId::from("late");
    let owner = |meta: Option<Meta>| sessions.owner(&child, meta.as_ref());
    let directories = Directories::open("/", &[]);
    let _creating = sessions.creating(&directories);
    assert_eq!(owner(None), Some(child.clone()));
}

#[test]
fn children_are_bounded_for_each_parent() {
    let sessions = Sessions::new();
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let _claimed = [sessions.claim(&a), sessions.claim(&b)];
    let announce = |child: &str, parent: &SessionId| {
        let update = json!({"sessionUpdate": "subagent_update", "sessionId": child,
            "title": format!("{}\n{}", child, "x".repeat(1000))});
        let update: SessionUpdate = serde_json::from_value(update).unwrap();
        sessions.announce(announced_child(&update).unwrap(), parent);
    };
    announce("of b", &b);
    let known = sessions.inbox(&"of b".into());
    for number in 0..1000 {
        announce(&format!("{number}"), &a);
        sessions.inbox(&format!("{number}").as_str().into());
    }
    let of_a = sessions.children(&a);
    assert_eq!(of_a.len(), 64);
    assert_eq!(of_a[0].session.as_str(), "936");
    assert_eq!(sessions.children(&b).len(), 1, "those of another stay");
    assert!(Arc::ptr_eq(&known, &sessions.inbox(&"of b".into())));
    assert!(sessions.lock().unclaimed.is_empty());
    let title = of_a[0].title.as_deref().unwrap();
    assert!(
        title.starts_with("936 x") && title.chars().count() == 201,
        "{title}"
    );
    sessions.release(&a);
    assert!(sessions.children(&a).is_empty());
    assert_eq!(sessions.child(&"936".into()), None);
}

#[test]
fn readers_have_an_end() {
    use std::task::{Context, Poll, Waker};
    let sessions = Sessions::new();
    let id = SessionId::from("a");
    let mut events = Events::new(sessions.claim(&id).unwrap());
    let mut other = Events::new(sessions.claim(&"b".into()).unwrap());
    put(&sessions, &id, "last");
    sessions.release(&id);
    assert_eq!(words(&mut events), ["last"]);
    let next = |events: &mut Events| {
        let next = std::pin::pin!(events.next());
        next.poll(&mut Context::from_waker(Waker::noop()))
    };
    assert!(matches!(next(&mut events), Poll::Ready(None)));
    assert!(next(&mut other).is_pending());
    sessions.end();
    assert!(matches!(next(&mut other), Poll::Ready(None)));
    let mut late = Events::new(sessions.claim(&"c".into()).unwrap());
    assert!(matches!(next(&mut late), Poll::Ready(None)));
}
