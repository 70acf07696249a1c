//! The contract of a store, and what the runtime makes of one that forgets or fails.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use acp_sdk::Json;
use acp_sdk::v1::{
    ClientCapabilities, CloseSessionRequest, NewSessionRequest, ResumeSessionRequest, SessionId,
    StopReason,
};
use acp_server::store::{Event, MemoryStore, SessionRecord, Store, StoreFuture};
use acp_server::{Handler, Reference, Runtime, Session, Settings, Turn};
use serde_json::json;

use crate::editor::{Desk, Editor, everything};

fn update(number: u64) -> Json {
    Json::from(json!({ "sessionUpdate": "plan", "number": number }))
}

async fn create(store: &dyn Store, id: &str, cwd: &str) -> u64 {
    store.create(&SessionRecord::new(id, cwd)).await.unwrap()
}

/// What every store must do. The session ids must be free.
async fn keeps_the_contract(store: &dyn Store) {
    let (a, b) = (SessionId::from("a"), SessionId::from("b"));
    let first = create(store, "a", "/x").await;
    assert!(create(store, "b", "/y").await > first);
    assert!(store.create(&SessionRecord::new("a", "/x")).await.is_err());

    // Events are numbered from 1 in each session.
    for number in 1..=3 {
        assert_eq!(store.append(&a, &update(number)).await, Ok(number));
    }
    assert_eq!(store.append(&b, &update(1)).await, Ok(1));
    assert_eq!((store.last(&a).await, store.last(&b).await), (Ok(3), Ok(1)));

    // Replay is strictly after a number, in order.
    let events = store.replay(&a, 1).await.unwrap();
    assert_eq!(events, [Event::new(2, update(2)), Event::new(3, update(3))]);
    for end in [3, 4, u64::MAX] {
        assert_eq!(store.replay(&a, end).await, Ok(vec![]));
    }

    // What is saved is found, and the number stays.
    let mut record = store.find(&a).await.unwrap().unwrap();
    assert_eq!((record.number, record.title.as_deref()), (first, None));
    record.title = Some("A".to_owned());
    let mut without_number = record.clone();
    without_number.number = 0;
    store.save(&without_number).await.unwrap();
    assert_eq!(store.find(&a).await, Ok(Some(record)));

    // The youngest comes first.
    let ids = async |cwd, before, limit| -> Vec<String> {
        let listed = store.list(cwd, before, limit).await.unwrap();
        listed
            .into_iter()
            .map(|record| record.id.to_string())
            .collect()
    };
    assert_eq!(ids(None, None, 9).await, ["b", "a"]);
    assert_eq!(ids(None, None, 1).await, ["b"]);
    assert_eq!(ids(Some("/x"), None, 9).await, ["a"]);
    assert_eq!(ids(None, Some(first + 1), 9).await, ["a"]);
    assert!(ids(None, Some(first), 9).await.is_empty());

    // What is deleted is gone, and its number is not given again.
    assert_eq!(store.delete(&b).await, Ok(true));
    assert_eq!(store.delete(&b).await, Ok(false));
    assert_eq!(store.find(&b).await, Ok(None));
    assert!(store.append(&b, &update(2)).await.is_err());
    assert!(store.replay(&b, 0).await.is_err() && store.last(&b).await.is_err());
    store.save(&SessionRecord::new("b", "/y")).await.unwrap();
    assert_eq!(store.find(&b).await, Ok(None));
    assert!(create(store, "c", "/z").await > first + 1);
}

#[tokio::test]
async fn memory_keeps_the_contract() {
    keeps_the_contract(&MemoryStore::new()).await;
    keeps_the_contract(&Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn memory_hands_out_a_long_session_in_pages() {
    let store = MemoryStore::new();
    create(&store, "a", "/x").await;
    let session = SessionId::from("a");
    let big = Json::from(json!("x".repeat(100_000)));
    for _ in 0..10 {
        store.append(&session, &big).await.unwrap();
    }
    let (mut after, mut pages) = (0, 0);
    loop {
        let page = store.replay(&session, after).await.unwrap();
        let Some(last) = page.last() else { break };
        assert_eq!(page[0].number, after + 1);
        after = last.number;
        pages += 1;
    }
    assert_eq!((after, pages), (10, 4));
}

#[tokio::test]
async fn memory_forgets_the_oldest_events_of_a_session_that_is_too_large() {
    let store = MemoryStore::new().session_bytes(1_000);
    create(&store, "a", "/x").await;
    let session = SessionId::from("a");
    for number in 1..=1_000 {
        assert_eq!(store.append(&session, &update(number)).await, Ok(number));
    }
    let events = store.replay(&session, 0).await.unwrap();
    assert!((5..50).contains(&events.len()), "{}", events.len());
    assert_eq!(events.last().unwrap(), &Event::new(1_000, update(1_000)));
    assert_eq!(events[0].number, 1_001 - events.len() as u64);
    // One that is too large by itself is not kept, and counts.
    let large = Json::from(json!("x".repeat(2_000)));
    assert_eq!(store.append(&session, &large).await, Ok(1_001));
    assert_eq!(store.replay(&session, 0).await, Ok(vec![]));
    assert_eq!(store.last(&session).await, Ok(1_001));
}

#[tokio::test]
async fn memory_is_bounded_over_all_sessions() {
    let store = MemoryStore::new().total_bytes(10_000).max_sessions(11);
    let big = Json::from(json!("x".repeat(900)));
    let mut kept = 0;
    for session in 0..11 {
        let id = format!("s{session}");
        create(&store, &id, "/x").await;
        for _ in 0..=session {
            store.append(&id.as_str().into(), &big).await.unwrap();
        }
    }
    for session in 0..11 {
        let id = SessionId::from(format!("s{session}"));
        let events = store.replay(&id, 0).await.unwrap();
        assert_eq!(store.last(&id).await, Ok(session + 1));
        kept += events.len();
    }
    assert!((5..=10).contains(&kept), "{kept}");
    // The small ones are left alone.
    assert_eq!(store.replay(&"s0".into(), 0).await.unwrap().len(), 1);
    let full = store.create(&SessionRecord::new("s11", "/x")).await;
    assert!(full.unwrap_err().contains("11"));
    store.delete(&"s3".into()).await.unwrap();
    store
        .create(&SessionRecord::new("s11", "/x"))
        .await
        .unwrap();
}

#[tokio::test]
async fn memory_that_a_deleted_session_took_is_free() {
    let store = MemoryStore::new().total_bytes(1_500);
    let big = Json::from(json!("x".repeat(900)));
    for round in 0..5 {
        create(&store, "s", "/x").await;
        store.append(&"s".into(), &big).await.unwrap();
        let events = store.replay(&"s".into(), 0).await.unwrap();
        assert_eq!(events.len(), 1, "round {round}");
        assert_eq!(store.delete(&"s".into()).await, Ok(true));
    }
}

async fn forgetful(offered: ClientCapabilities, bytes: usize) -> Desk {
    let store = MemoryStore::new().session_bytes(bytes);
    let runtime = Runtime::new(Reference).store(store);
    Desk::at(runtime, Editor::default(), offered).await
}

#[tokio::test]
async fn a_client_is_told_that_something_is_missing() {
    let forgotten = "The beginning of this conversation is no longer kept.";
    for bytes in [10_000, 10] {
        let desk = forgetful(everything(), bytes).await;
        desk.prompt("stream 200").await.unwrap();
        desk.editor.take();
        desk.load().await.unwrap();
        let told = desk.editor.take();
        assert_eq!(told[0]["params"]["update"]["title"], forgotten);
        assert_eq!(told.len() > 1, bytes > 10);

        let desk = forgetful(ClientCapabilities::new(), bytes).await;
        desk.prompt("stream 200").await.unwrap();
        desk.editor.take();
        desk.load().await.unwrap();
        let told = desk.editor.told();
        assert_eq!(told[0], format!("agent_message_chunk ({forgotten})"));
    }
}

/// Works until the disk is full.
struct Full(MemoryStore);

impl Store for Full {
    fn create<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, u64> {
        match session.cwd.as_str() {
            "/full" => Box::pin(async { Err("no space left".to_owned()) }),
            _ => self.0.create(session),
        }
    }
    fn save<'a>(&'a self, session: &'a SessionRecord) -> StoreFuture<'a, ()> {
        match session.cwd.as_str() {
            "/frozen" => Box::pin(async { Err("no space left".to_owned()) }),
            _ => self.0.save(session),
        }
    }
    fn find<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, Option<SessionRecord>> {
        self.0.find(session)
    }
    fn list<'a>(
        &'a self,
        cwd: Option<&'a str>,
        before: Option<u64>,
        limit: usize,
    ) -> StoreFuture<'a, Vec<SessionRecord>> {
        self.0.list(cwd, before, limit)
    }
    fn delete<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, bool> {
        self.0.delete(session)
    }
    fn append<'a>(&'a self, session: &'a SessionId, update: &'a Json) -> StoreFuture<'a, u64> {
        Box::pin(async move {
            match self.0.last(session).await? {
                10.. => Err("no space left".to_owned()),
                _ => self.0.append(session, update).await,
            }
        })
    }
    fn replay<'a>(&'a self, session: &'a SessionId, after: u64) -> StoreFuture<'a, Vec<Event>> {
        self.0.replay(session, after)
    }
    fn last<'a>(&'a self, session: &'a SessionId) -> StoreFuture<'a, u64> {
        self.0.last(session)
    }
}

#[tokio::test]
async fn a_store_that_fails_is_named_and_nothing_goes_past_it() {
    let runtime = Runtime::new(Reference).store(Full(MemoryStore::new()));
    let desk = Desk::at(runtime, Editor::default(), everything()).await;
    for _ in 0..2 {
        let error = desk.prompt("stream 20").await.unwrap_err();
        assert!(error.to_string().contains("no space left"), "{error}");
        assert!(error.to_string().contains(desk.session.as_str()), "{error}");
    }
    assert_eq!(desk.editor.take().len(), 9);
    desk.load().await.unwrap();
    assert_eq!(desk.editor.take().len(), 10);
}

#[tokio::test]
async fn a_session_outlives_the_process_with_a_store_that_does() {
    let store = Arc::new(MemoryStore::new());
    let start = || {
        let runtime = Runtime::new(Reference).store(store.clone());
        Desk::at(runtime, Editor::default(), everything())
    };
    let mut old = start().await;
    old.prompt("tool").await.unwrap();
    old.prompt("title Ours").await.unwrap();
    let request = acp_sdk::v1::SetSessionModeRequest::new(old.session.clone(), "code");
    old.agent.set_session_mode(request).await.unwrap();
    let call = |log: Vec<serde_json::Value>| log[0]["params"]["update"]["toolCallId"].clone();
    let first = call(old.editor.take());

    let mut new = start().await;
    assert_ne!(old.session, new.session, "ids of two processes");
    std::mem::swap(&mut old.session, &mut new.session);
    let loaded = new.load().await.unwrap();
    assert_eq!(loaded.modes.unwrap().current_mode_id.as_str(), "code");
    new.editor.take();
    new.prompt("tool").await.unwrap();
    assert_ne!(call(new.editor.take()), first, "an id is not given twice");
}

#[tokio::test]
async fn only_turns_count_as_activity() {
    let long_ago = "2001-02-03T04:05:06Z";
    let store = Arc::new(MemoryStore::new());
    let mut record = SessionRecord::new("old", "/w");
    record.updated_at = long_ago.to_owned();
    store.create(&record).await.unwrap();
    let runtime = Runtime::new(Reference).store(store.clone());
    let mut desk = Desk::at(runtime, Editor::default(), everything()).await;
    desk.session = "old".into();
    let updated = async || store.find(&desk.session).await.unwrap().unwrap().updated_at;
    desk.load().await.unwrap();
    assert_eq!(updated().await, long_ago);
    desk.prompt("ping").await.unwrap();
    assert!(updated().await.as_str() > long_ago);
}

/// Counts the sessions that it has open.
struct Counting(Arc<AtomicI32>);

impl Handler for Counting {
    async fn prompt(&self, _: Turn) -> acp_server::HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn open(&self, _: &Session) -> acp_server::HandlerResult<Settings> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(Settings::new())
    }

    async fn close(&self, _: &Session) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_session_that_cannot_be_stored_is_closed_again() {
    let open = Arc::new(AtomicI32::new(0));
    let runtime = Runtime::new(Counting(open.clone())).store(Full(MemoryStore::new()));
    let desk = Desk::at(runtime, Editor::default(), everything()).await;
    let count = || open.load(Ordering::Relaxed);
    assert_eq!(count(), 1);
    let new = |cwd: &str| desk.agent.new_session(NewSessionRequest::new(cwd, vec![]));
    let error = new("/full").await.unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(count(), 1);
    let frozen = new("/frozen").await.unwrap().session_id;
    let close = CloseSessionRequest::new(frozen.clone());
    desk.agent.close_session(close).await.unwrap();
    let resume = ResumeSessionRequest::new(frozen, "/frozen");
    let error = desk.agent.resume_session(resume).await.unwrap_err();
    assert!(error.to_string().contains("no space left"), "{error}");
    assert_eq!(count(), 1);
}
