//! A store that fails, one that keeps less than all events, and one that outlives the server.

use std::sync::Arc;

use acp_reference_agent::Reference;
use acp_sdk::Json;
use acp_sdk::v1::*;
use acp_server::store::{MemoryStore, SessionRecord, Store, StoreErrorKind};
use acp_server::{
    Handler, HandlerResult, Limits, Link, Opening, Received, Server, Session, Settings, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use serde_json::{Value, json};

use crate::counting::Counting;
use crate::editor::{Desk, Editor, connect_to, event_ids, everything, others_run};

type Faulty = Arc<FaultyStore<MemoryStore>>;

fn faulty() -> Faulty {
    Arc::new(FaultyStore::new(MemoryStore::new()))
}

/// The next `count` calls fail, as on a full disk.
fn fail(store: &Faulty, operation: Operation, count: usize) {
    for _ in 0..count {
        let fault = Fault::Fail(StoreErrorKind::Full);
        store.inject(operation, 1, When::Before, fault);
    }
}

fn server(store: impl Store) -> Server {
    Server::builder(Reference).store(store).build()
}

/// Sends five texts, and gives the commit task a turn after each.
struct Steps;

impl Handler for Steps {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        for step in 0..5 {
            turn.send_text(format!("step {step}")).await?;
            for _ in 0..10 {
                tokio::task::yield_now().await;
            }
        }
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn a_store_that_fails_is_named_and_nothing_goes_past_it() {
    let store = faulty();
    let server = Server::builder(Steps).store(store.clone()).build();
    let desk = Desk::of(&server).await;
    for commit in [1, 2, 4] {
        // The first event of the turn cannot be stored; or it can, and what follows cannot.
        let fault = Fault::Fail(StoreErrorKind::Full);
        store.inject(Operation::Commit, commit, When::Before, fault);
        let error = desk.prompt("go").await.unwrap_err();
        assert!(error.to_string().contains("injected failure"), "{error}");
    }
    let seen = event_ids(&desk.editor.take());
    // The first step of the second turn, three of the third.
    assert_eq!(seen.len(), 4, "{seen:?}");
    // Nothing but what is stored was sent.
    desk.load().await.unwrap();
    let stored = event_ids(&desk.editor.take());
    assert!(
        seen.iter().all(|id| stored.contains(id)),
        "{seen:?} {stored:?}"
    );
    desk.prompt("go").await.unwrap();
    assert_eq!(desk.editor.take().len(), 5);
    // The numbers of what was lost are used again: there is no hole.
    let session = desk.session.clone();
    let page = store.inner().read(&session, 0, usize::MAX).await.unwrap();
    let last = page.batches.last().unwrap().last();
    let count: usize = page.batches.iter().map(|batch| batch.len()).sum();
    assert_eq!(last, count as u64);
}

/// Waits for something, but not for ever.
async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let time = std::time::Duration::from_secs(10);
    tokio::time::timeout(time, future).await.expect(what)
}

#[tokio::test]
async fn nobody_is_told_numbers_that_can_still_be_lost() {
    let store = faulty();
    let server = Server::builder(Steps).store(store.clone()).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let gate = Gate::new();
    store.inject(
        Operation::Commit,
        1,
        When::Before,
        Fault::Hold(gate.clone()),
    );
    let fault = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 2, When::Before, fault);
    let turn = desk.start("go");
    gate.reached().await;
    others_run().await;
    let record = store.find(&desk.session).await.unwrap().unwrap();
    let params = Json::new(&json!({ "sessionId": desk.session })).unwrap();
    let state = desk
        .agent
        .ext_request("_acp-sdk/session/state", Some(&params));
    let state: Value = state.await.unwrap().parse().unwrap();
    assert_eq!(state["lastEventId"], record.last_event, "{state}");
    assert_eq!(session.last_event(), record.last_event);
    let mut events = session.subscribe(session.last_event());
    gate.open();
    let error = soon("the end of the turn", turn).await.unwrap();
    error.unwrap_err();
    soon("a prompt", desk.prompt("go")).await.unwrap();
    // What was committed follows, and nothing is missing.
    let last = store.find(&desk.session).await.unwrap().unwrap();
    for number in record.last_event + 1..=last.last_event {
        let received = soon("an event", events.next()).await.unwrap();
        let Received::Event(event) = received else {
            panic!("expected event {number}, got {received:?}");
        };
        assert_eq!(event.number, number);
    }
}

#[tokio::test]
async fn nothing_waits_for_events_that_a_failure_removed() {
    let store = faulty();
    let server = Server::builder(Steps).store(store.clone()).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let gate = Gate::new();
    let hold = Fault::Hold(gate.clone());
    store.inject(Operation::Commit, 1, When::Before, hold);
    let fault = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 2, When::Before, fault);
    let turn = desk.start("go");
    gate.reached().await;
    // The handler goes on, and all that it sends after its first step is in the second commit.
    others_run().await;
    let (other, editor) = second(&server).await;
    let load = LoadSessionRequest::new(desk.session.clone(), "/w", vec![]);
    let loading = tokio::spawn(async move { other.load_session(load).await });
    let (third, third_editor) = second(&server).await;
    let resume = ResumeSessionRequest::new(desk.session.clone(), "/w");
    let resuming = tokio::spawn(async move { third.resume_session(resume).await });
    let mut history = session.history();
    others_run().await;
    gate.open();
    let error = soon("the end of the turn", turn).await.unwrap();
    let error = error.unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    soon("loading", loading).await.unwrap().unwrap();
    soon("resuming", resuming).await.unwrap().unwrap();
    let reading = async { while history.next().await.unwrap().is_some() {} };
    soon("the end of the history", reading).await;
    // All see the next turn whole, although its events have the numbers of those that are lost.
    for editor in [&editor, &third_editor, &desk.editor] {
        editor.take();
    }
    soon("a prompt", desk.prompt("go")).await.unwrap();
    let mine = event_ids(&desk.editor.take());
    assert_eq!(mine.len(), 5);
    for editor in [&editor, &third_editor] {
        editor.until("agent_message_chunk step 4").await;
        let theirs = event_ids(&editor.take());
        assert_eq!(theirs[theirs.len() - 5..], mine);
        assert_eq!(theirs.len(), 6, "the words of the user, too");
    }
}

/// A second client of the same server, without a session.
async fn second(server: &Server) -> (AgentHandle, Editor) {
    let editor = Editor::default();
    let agent = connect_to(server.connection(Link::Remote), &editor);
    let hello = InitializeRequest::new(ProtocolVersion::V1);
    let hello = hello.with_client_capabilities(everything());
    agent.initialize(hello).await.unwrap();
    (agent, editor)
}

#[tokio::test]
async fn a_client_is_notified_of_events_that_are_no_longer_kept() {
    for offered in [everything(), ClientCapabilities::new()] {
        for (oldest, memory) in [(100, 1), (203, 1), (100, 1_024), (203, 1_024)] {
            let mut limits = Limits::default();
            (limits.log.memory_events, limits.log.page_bytes) = (memory, 1_000);
            // The last event is that of the end of the second turn.
            limits.log.max_events = Some(207 - oldest);
            let server = Server::builder(Reference).limits(limits);
            let agent = server.build().connection(Link::Stdio);
            let notices = offered != ClientCapabilities::new();
            let desk = Desk::at(agent, Editor::default(), offered.clone()).await;
            // Events 1 and 2 are the start and the words of the user; 203 is the end.
            desk.prompt("stream 200").await.unwrap();
            desk.prompt("ping").await.unwrap();
            desk.editor.take();
            desk.load().await.unwrap();
            let log = desk.editor.take();
            let update = &log[0]["params"]["update"];
            let expected = format!(
                "The events up to number {} of this session are no longer kept.",
                oldest - 1
            );
            if notices {
                assert_eq!(update["title"], expected);
            } else {
                assert_eq!(update["content"]["text"], format!("({expected})"));
            }
            // Resuming says it as well.
            let id = &desk.session;
            for (since, truncated) in [(0, true), (oldest - 2, true), (oldest - 1, false)] {
                let params = Json::from(json!({ "sessionId": id, "sinceEventId": since }));
                let resume = desk
                    .agent
                    .ext_request("_acp-sdk/session/resume", Some(&params));
                let answer: Value = serde_json::from_str(resume.await.unwrap().get()).unwrap();
                assert_eq!(answer["truncated"], truncated, "since {since}: {answer}");
            }
            let ids = event_ids(&log);
            let rest: Vec<u64> = (oldest..=202).chain([205]).collect();
            assert_eq!(ids[1..], rest, "oldest {oldest}");
        }
    }
}

#[tokio::test]
async fn a_session_outlives_the_server_with_a_store_that_does() {
    let store = Arc::new(MemoryStore::new());
    let old_server = server(store.clone());
    let old = Desk::of(&old_server).await;
    old.prompt("tool").await.unwrap();
    old.prompt("title Ours").await.unwrap();
    let request = SetSessionModeRequest::new(old.session.clone(), "code");
    old.agent.set_session_mode(request).await.unwrap();
    let call = |log: Vec<Value>| log[0]["params"]["update"]["toolCallId"].clone();
    let first = call(old.editor.take());
    old_server.shutdown().await;

    let mut new = Desk::of(&server(store.clone())).await;
    assert_ne!(old.session, new.session, "ids of two servers");
    new.session = old.session.clone();
    let loaded = new.load().await.unwrap();
    assert_eq!(loaded.modes.unwrap().current_mode_id.as_str(), "code");
    new.editor.take();
    new.prompt("tool").await.unwrap();
    assert_ne!(call(new.editor.take()), first, "an id is not given twice");
}

#[tokio::test]
async fn a_server_that_has_ended_takes_no_session_from_the_next_one() {
    let store = Arc::new(MemoryStore::new());
    let old_server = server(store.clone());
    let id = Desk::of(&old_server).await.session;
    old_server.shutdown().await;

    let new_server = server(store.clone());
    let session = new_server.session(&id).await.unwrap();
    let late = old_server.session(&id).await.unwrap_err().to_string();
    assert!(late.contains("the server is shutting down"), "{late}");
    let stop = session
        .prompt(vec!["x".into()])
        .unwrap()
        .stop_reason()
        .await;
    assert_eq!(stop.unwrap(), StopReason::EndTurn);
}

#[tokio::test]
async fn only_turns_count_as_activity() {
    let long_ago = "2001-02-03T04:05:06.000Z";
    let store = Arc::new(MemoryStore::new());
    let mut record = SessionRecord::new("old", "/w");
    record.updated_at = long_ago.to_owned();
    let lease = store.create(&record).await.unwrap();
    store.release(&lease).await.unwrap();
    let mut desk = Desk::of(&server(store.clone())).await;
    desk.session = "old".into();
    let updated = async || store.find(&desk.session).await.unwrap().unwrap().updated_at;
    desk.load().await.unwrap();
    assert_eq!(updated().await, long_ago);
    desk.prompt("ping").await.unwrap();
    assert!(updated().await.as_str() > long_ago);
}

#[tokio::test]
async fn a_session_that_cannot_be_stored_is_closed_again() {
    let counting = Counting::default();
    let store = faulty();
    let mut limits = Limits::default();
    limits.sessions = 2;
    let server = Server::builder(counting.clone()).limits(limits);
    let server = server.store(store.clone()).build();
    let desk = Desk::of(&server).await;
    let count = || counting.open();
    assert_eq!(count(), 1);
    let new = || desk.agent.new_session(NewSessionRequest::new("/w", vec![]));
    fail(&store, Operation::Create, 1);
    let error = new().await.unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert_eq!(count(), 1);

    let closed = new().await.unwrap().session_id;
    let close = CloseSessionRequest::new(closed.clone());
    desk.agent.close_session(close).await.unwrap();
    fail(&store, Operation::Acquire, 1);
    let resume = ResumeSessionRequest::new(closed.clone(), "/w");
    let error = desk.agent.resume_session(resume.clone()).await.unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert_eq!(count(), 1);
    desk.agent.resume_session(resume).await.unwrap();
    assert_eq!(count(), 2);

    // One that takes the place of another one has closed that one's handler.
    fail(&store, Operation::Create, 1);
    let error = new().await.unwrap_err();
    assert!(error.to_string().contains("injected failure"), "{error}");
    assert_eq!(count(), 2);
    new().await.unwrap();
    assert_eq!(count(), 2);
    let list = ListSessionsRequest::new();
    let listed = desk.agent.list_sessions(list).await.unwrap().sessions;
    assert_eq!(listed.len(), 3);
}

/// Changes its mode, an option and the title, each when its prompt says so.
struct Changing;

impl Handler for Changing {
    type State = ();

    async fn open(&self, (): &mut (), _: &Opening) -> HandlerResult<Settings> {
        let modes = vec![
            SessionMode::new("ask", "Ask"),
            SessionMode::new("code", "Code"),
        ];
        let flag = SessionConfigOption::new("web", "Web", SessionConfigBoolean::new(false));
        Ok(Settings::new()
            .modes(SessionModeState::new("ask", modes))
            .option(flag)
            .commands(vec![AvailableCommand::new("old", "Is there")]))
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.set_mode("code").await?;
        // The commit task has a turn.
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        turn.set_boolean_option("web", true).await?;
        turn.set_title("New").await?;
        turn.set_commands(vec![AvailableCommand::new("new", "Is not there")])
            .await?;
        Ok(StopReason::EndTurn)
    }
}

fn set(session: &Session) -> (Option<String>, Option<bool>, Option<String>) {
    let settings = session.settings();
    let mode = settings.mode().map(str::to_owned);
    (mode, settings.is_on("web"), session.title())
}

#[tokio::test]
async fn changes_that_the_store_refuses_are_undone() {
    let store = faulty();
    let server = Server::builder(Changing).store(store.clone()).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let before = (Some("ask".into()), Some(false), None);
    // By the client: it is not told that the mode has changed.
    fail(&store, Operation::Commit, 1);
    let mode = SetSessionModeRequest::new(&desk.session, "code");
    let error = desk.agent.set_session_mode(mode.clone()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("injected failure"), "{error}");
    assert_eq!(set(&session), before);
    // By the agent: what is in the first commit stays, what is in the second one is undone.
    let gate = Gate::new();
    let hold = Fault::Hold(gate.clone());
    store.inject(Operation::Commit, 1, When::Before, hold);
    let full = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 2, When::Before, full);
    let turn = desk.start("go");
    soon("the first commit", gate.reached()).await;
    let changed = (Some("code".into()), Some(true), Some("New".into()));
    let changes = async {
        while set(&session) != changed {
            tokio::task::yield_now().await;
        }
    };
    soon("the changes", changes).await;
    gate.open();
    let ended = soon("the end of the turn", turn).await;
    ended.unwrap().unwrap_err();
    assert_eq!(set(&session), (Some("code".into()), Some(false), None));
    let loaded = desk.load().await.unwrap();
    assert_eq!(loaded.modes.unwrap().current_mode_id.as_str(), "code");
    desk.editor.until("available_commands_update").await;
    let commands = json!(desk.editor.take()).to_string();
    assert!(commands.contains("Is there") && !commands.contains("Is not there"));
    let record = store.inner().find(&desk.session).await.unwrap().unwrap();
    let record = json!(record.settings);
    assert_eq!(record["mode"]["value"], "code", "{record}");
}

/// Notes that it was closed.
#[derive(Clone)]
struct Closing(Arc<tokio::sync::Semaphore>);

impl Handler for Closing {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        turn.cancelled().await;
        Ok(StopReason::EndTurn)
    }

    async fn close(&self, (): (), _: &Session) {
        self.0.add_permits(1);
    }
}

#[tokio::test]
async fn a_server_that_is_dropped_closes_its_sessions() {
    let store = faulty();
    let handler = Closing(Arc::new(tokio::sync::Semaphore::new(0)));
    let server = Server::builder(handler.clone())
        .store(store.clone())
        .build();
    let id = server.create_session("/w").await.unwrap().id().clone();
    let session = server.session(&id).await.unwrap();
    let turn = session.prompt(vec!["go".into()]).unwrap();
    drop(server);
    let ended = soon("the end of the turn", turn.stop_reason()).await;
    assert_eq!(ended.unwrap(), StopReason::Cancelled);
    let closed = soon("the handler to be closed", handler.0.acquire()).await;
    closed.unwrap().forget();
    let released = async {
        while !store.calls().contains(&Operation::Release) {
            tokio::task::yield_now().await;
        }
    };
    soon("the lease to be given back", released).await;
    assert!(session.prompt(vec!["go".into()]).is_err());
}

/// Two stores are as two processes: each has its own lock.
#[cfg(feature = "sqlite")]
#[tokio::test]
async fn the_lease_of_a_server_that_is_dropped_is_free() {
    use acp_server::store::SqliteStore;

    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sessions.db");
    let kept: Arc<dyn Store> = Arc::new(SqliteStore::open(&path).unwrap());
    let first = Server::builder(Reference).store(kept.clone()).build();
    let id = first.create_session("/w").await.unwrap().id().clone();
    let second = server(SqliteStore::open(&path).unwrap());
    second.session(&id).await.unwrap_err();
    drop(first);
    let opened = async {
        while second.session(&id).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    soon("the lease to be free", opened).await;
    drop(kept);
}
