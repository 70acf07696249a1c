//! What a server removes from its store: sessions without activity, old events, too many of both.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use acp_reference_agent::Reference;
use acp_sdk::v1::*;
use acp_server::event::Batch;
use acp_server::store::{
    Commit, ListQuery, MemoryStore, RecordChange, SessionRecord, Store, StoreErrorKind,
};
use acp_server::{Handler, HandlerResult, Limits, Link, Retention, Server, Turn};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};

use crate::editor::{Desk, Editor, soon, text};

const DAY: Duration = Duration::from_secs(86_400);

type Faulty = Arc<FaultyStore<MemoryStore>>;

fn faulty() -> Faulty {
    Arc::new(FaultyStore::new(MemoryStore::new()))
}

fn server(store: impl Store, retention: Retention) -> Server {
    server_of(Reference, store, retention)
}

fn server_of(handler: impl Handler, store: impl Store, retention: Retention) -> Server {
    let mut limits = Limits::default();
    limits.retention = retention;
    Server::builder(handler).store(store).limits(limits).build()
}

fn keep(age: Duration) -> Retention {
    let mut retention = Retention::default();
    retention.keep = Some(age);
    retention
}

/// Adds a session that nobody uses, with an activity in 2001 of this rank.
async fn add(store: &dyn Store, id: &str, rank: u32) {
    let mut record = SessionRecord::new(id, "/w");
    record.created_at = "2001-01-01T00:00:00.000Z".to_owned();
    record.updated_at = format!("2001-01-01T00:00:{rank:02}.000Z");
    let lease = store.create(&record).await.unwrap();
    store.release(&lease).await.unwrap();
}

/// Appends events of a time to a session that nobody uses.
async fn append(store: &dyn Store, id: &str, count: u64, bytes: usize, age: Option<Duration>) {
    let (record, lease) = store.acquire_unused(&id.into()).await.unwrap();
    let mut batch = Batch::new(record.last_event + 1);
    for _ in 0..count {
        batch.push(&format!("\"{}\"", "x".repeat(bytes)));
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    let time = age.map(|age| u64::try_from((now - age).as_millis()).unwrap());
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(batch.with_time(time)));
    store.commit(&lease, commit).await.unwrap();
    store.release(&lease).await.unwrap();
}

async fn ids(store: &dyn Store) -> Vec<String> {
    let mut query = ListQuery::default();
    (query.oldest_first, query.limit) = (true, 999);
    let records = store.list(&query).await.unwrap().into_iter();
    records.map(|record| record.id.to_string()).collect()
}

/// Waits until the server has inspected its store once more. The clock is paused.
async fn inspected() {
    tokio::time::sleep(Retention::default().interval + Duration::from_secs(1)).await;
}

/// Notes which sessions are deleted.
#[derive(Clone, Default)]
struct Deleted(Arc<Mutex<Vec<String>>>);

impl Handler for Deleted {
    type State = ();

    async fn prompt(&self, (): &mut (), _: Turn) -> HandlerResult<StopReason> {
        Ok(StopReason::EndTurn)
    }

    async fn deleted(&self, session: &SessionRecord) {
        self.0.lock().unwrap().push(session.id.to_string());
    }
}

#[tokio::test(start_paused = true)]
async fn the_handler_learns_what_retention_deletes() {
    let store = Arc::new(MemoryStore::new());
    add(&*store, "old", 1).await;
    let deleted = Deleted::default();
    let _server = server_of(deleted.clone(), store.clone(), keep(DAY));
    inspected().await;
    assert_eq!(*deleted.0.lock().unwrap(), ["old"]);
}

#[tokio::test(start_paused = true)]
async fn sessions_without_activity_are_deleted_unless_they_are_used() {
    let store = Arc::new(MemoryStore::new());
    for number in 0..250 {
        add(&*store, &format!("old {number}"), number % 60).await;
    }
    for id in ["open", "held"] {
        add(&*store, id, 1).await;
    }
    let recent = SessionRecord::new("recent", "/w");
    let lease = store.create(&recent).await.unwrap();
    store.release(&lease).await.unwrap();
    let (_, held) = store.acquire(&"held".into()).await.unwrap();
    let server = server(store.clone(), keep(DAY));
    let open = server.session(&"open".into()).await.unwrap();
    inspected().await;
    assert_eq!(ids(&*store).await, ["open", "held", "recent"]);
    assert_eq!(server.statistics().retention_deleted, 250);

    // The lease of the other user is still valid.
    store.commit(&held, Commit::default()).await.unwrap();
    store.release(&held).await.unwrap();
    // A turn is activity.
    open.prompt(text("ping"))
        .unwrap()
        .stop_reason()
        .await
        .unwrap();
    server.shutdown().await;
    drop(server);
    let server = self::server(store.clone(), keep(DAY));
    inspected().await;
    assert_eq!(ids(&*store).await, ["recent", "open"]);
    assert_eq!(server.statistics().retention_failed, 0);
}

#[tokio::test(start_paused = true)]
async fn without_limits_the_store_is_left_alone() {
    let store = faulty();
    add(store.inner(), "old", 1).await;
    let _server = server(store.clone(), Retention::default());
    inspected().await;
    assert_eq!(store.calls(), []);
}

#[test]
fn a_server_that_was_built_outside_of_a_runtime_begins_with_its_first_client() {
    let store = Arc::new(MemoryStore::new());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .unwrap();
    runtime.block_on(add(&*store, "old", 1));
    let server = server(store.clone(), keep(DAY));
    runtime.block_on(async {
        inspected().await;
        assert_eq!(ids(&*store).await, ["old"]);
        drop(server.connection(Link::Remote));
        inspected().await;
        assert!(ids(&*store).await.is_empty());
    });
}

#[tokio::test(start_paused = true)]
async fn the_oldest_sessions_go_while_there_are_too_many() {
    let store = Arc::new(MemoryStore::new());
    for (id, rank) in [("a", 4), ("b", 2), ("c", 3), ("d", 1), ("e", 5)] {
        add(&*store, id, rank).await;
    }
    let mut retention = Retention::default();
    retention.keep_sessions = Some(3);
    let server = server(store.clone(), retention);
    let _open = server.session(&"d".into()).await.unwrap();
    inspected().await;
    // The open one counts, although its activity is the oldest.
    assert_eq!(ids(&*store).await, ["d", "a", "e"]);
    add(&*store, "f", 6).await;
    inspected().await;
    assert_eq!(ids(&*store).await, ["d", "e", "f"]);
}

#[tokio::test(start_paused = true)]
async fn the_oldest_sessions_go_while_the_store_is_too_large() {
    let store = Arc::new(MemoryStore::new());
    for rank in 0..50 {
        let id = format!("{rank:02}");
        add(&*store, &id, rank).await;
        append(&*store, &id, 10, 1_000, None).await;
    }
    let used = async || store.usage().await.unwrap().used_bytes;
    let session = used().await / 50;
    let mut retention = Retention::default();
    retention.keep_bytes = Some(session * 20 + session / 2);
    let server = server(store.clone(), retention);
    inspected().await;
    let kept: Vec<_> = (30..50).map(|rank| format!("{rank:02}")).collect();
    assert_eq!(ids(&*store).await, kept);
    assert_eq!(server.statistics().retention_deleted, 30);
}

#[tokio::test(start_paused = true)]
async fn old_events_are_removed_and_their_sessions_stay() {
    let store = Arc::new(MemoryStore::new());
    let last_of = async |id: &str| {
        let record = store.find(&id.into()).await.unwrap().unwrap();
        (record.oldest_event, record.last_event)
    };
    for id in ["inactive", "unknown", "both", "open", "recent"] {
        add(&*store, id, 1).await;
    }
    append(&*store, "inactive", 3, 1, Some(2 * DAY)).await;
    append(&*store, "unknown", 3, 1, None).await;
    // More than is removed in one step, and events that are not old.
    for _ in 0..4 {
        append(&*store, "both", 10, 60_000, Some(3 * DAY)).await;
    }
    append(&*store, "both", 5, 1, Some(DAY / 2)).await;
    append(&*store, "both", 5, 1, None).await;
    append(&*store, "open", 3, 1, Some(2 * DAY)).await;
    // Its activity is not old, some of its events are.
    append(&*store, "recent", 2, 1, None).await;
    append(&*store, "recent", 3, 1, Some(2 * DAY)).await;
    append(&*store, "recent", 4, 1, None).await;
    let (_, lease) = store.acquire(&"recent".into()).await.unwrap();
    let mut active = Commit::default();
    active.change = RecordChange::default();
    active.change.updated_at = Some(SessionRecord::new("x", "/").updated_at);
    store.commit(&lease, active).await.unwrap();
    store.release(&lease).await.unwrap();

    let mut retention = Retention::default();
    retention.keep_events = Some(DAY);
    let server = server(store.clone(), retention);
    let open = server.session(&"open".into()).await.unwrap();
    inspected().await;
    assert_eq!(last_of("inactive").await, (4, 3));
    assert_eq!(last_of("unknown").await, (4, 3));
    assert_eq!(last_of("both").await, (41, 50));
    assert_eq!(last_of("open").await, (1, 3));
    assert_eq!(last_of("recent").await, (6, 9));
    assert_eq!(server.statistics().retention_deleted, 0);

    // The session goes on where it was.
    let trimmed = server.session(&"inactive".into()).await.unwrap();
    trimmed
        .prompt(text("ping"))
        .unwrap()
        .stop_reason()
        .await
        .unwrap();
    let (oldest, last) = last_of("inactive").await;
    assert!(oldest == 4 && last > 4, "{oldest} {last}");
    drop(open);
}

#[tokio::test(start_paused = true)]
async fn a_session_that_was_active_since_it_was_listed_stays() {
    let store = faulty();
    for id in ["a", "b"] {
        add(store.inner(), id, 1).await;
    }
    let gate = Gate::new();
    let hold = Fault::Hold(gate.clone());
    store.inject(Operation::AcquireUnused, 1, When::Before, hold);
    let server = server(store.clone(), keep(DAY));
    gate.reached().await;
    let (_, lease) = store.inner().acquire(&"b".into()).await.unwrap();
    let mut active = Commit::default();
    active.change.updated_at = Some(SessionRecord::new("x", "/").updated_at);
    store.inner().commit(&lease, active).await.unwrap();
    store.inner().release(&lease).await.unwrap();
    gate.open();
    inspected().await;
    assert_eq!(ids(store.inner()).await, ["b"].as_slice());
    assert_eq!(server.statistics().retention_deleted, 1);
    // Its lease was given back.
    store.inner().acquire_unused(&"b".into()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_large_session_is_deleted_in_steps_that_nobody_sees_half() {
    let store = faulty();
    add(store.inner(), "large", 1).await;
    for _ in 0..8 {
        append(store.inner(), "large", 10, 60_000, None).await;
    }
    let gate = Gate::new();
    let hold = Fault::Hold(gate.clone());
    store.inject(Operation::Commit, 2, When::After, hold);
    let server = server(store.clone(), keep(DAY));
    gate.reached().await;
    // Somebody opens it half-way, and gets all of it or nothing.
    let opening = tokio::spawn({
        let server = server.clone();
        async move { server.session(&"large".into()).await }
    });
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(!opening.is_finished());
    gate.open();
    let error = soon("the end of the session", opening).await.unwrap();
    assert!(error.unwrap_err().to_string().contains("large"));
    assert!(ids(store.inner()).await.is_empty());
    let calls = store.calls();
    let steps = calls.iter().filter(|call| **call == Operation::Commit);
    assert!(steps.count() >= 4, "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_counted_and_the_next_inspection_goes_on() {
    for operation in [
        Operation::List,
        Operation::AcquireUnused,
        Operation::Read,
        Operation::Delete,
    ] {
        let store = faulty();
        for id in ["a", "b"] {
            add(store.inner(), id, 1).await;
        }
        let fault = Fault::Fail(StoreErrorKind::Unavailable);
        store.inject(operation, 1, When::Before, fault);
        let server = server(store.clone(), keep(DAY));
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(server.statistics().retention_failed, 1, "{operation:?}");
        assert_eq!(ids(store.inner()).await.len(), 2, "{operation:?}");
        // Nothing stays leased.
        for id in ["a", "b"] {
            let acquired = store.inner().acquire_unused(&id.into()).await;
            store.inner().release(&acquired.unwrap().1).await.unwrap();
        }
        inspected().await;
        assert!(ids(store.inner()).await.is_empty(), "{operation:?}");
        assert_eq!(server.statistics().retention_failed, 1, "{operation:?}");
    }
}

/// Asks, and sends more than is kept while it waits for the answer.
struct Asker;

impl Handler for Asker {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let call = turn.tool_call("Run", ToolKind::Execute).await?;
        let sends = async {
            for number in 0..20 {
                turn.send_text(format!("{number}")).await?;
            }
            Ok::<_, acp_server::Error>(())
        };
        let (decision, sent) = tokio::join!(turn.ask_permission(&call), sends);
        let (_, ()) = (decision?, sent?);
        call.complete("").await?;
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn a_question_whose_event_was_removed_is_still_asked() {
    let mut limits = Limits::default();
    limits.log.max_events = Some(4);
    let server = Server::builder(Asker).limits(limits).build();
    let session = server.create_session("/w").await.unwrap();
    let prompt = session.prompt(text("go")).unwrap();
    while session.last_event() < 24 {
        tokio::task::yield_now().await;
    }
    let agent = server.connection(Link::Remote);
    let mut desk = Desk::at(agent, Editor::default(), ClientCapabilities::new()).await;
    desk.session = session.id().clone();
    desk.load().await.unwrap();
    let stop = soon("the answer", prompt.stop_reason()).await.unwrap();
    assert_eq!(stop, StopReason::EndTurn);
    let told = desk.editor.told();
    assert!(told[0].contains("no longer kept"), "{told:?}");
}
