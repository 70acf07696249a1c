//! Prompts that outlive their process: accepted, in the store, and run once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::event::{EventBody, TurnEvent};
use acp_server::store::{MemoryStore, Store, StoreErrorKind};
use acp_server::{
    AgentInfo, Error, Handler, HandlerResult, Input, Policies, PromptHandle, Received,
    SecondPrompt, Server, Session, Steered, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use tokio::sync::Semaphore;

use crate::editor::soon;

type Faulty = Arc<FaultyStore<MemoryStore>>;

/// Notes the texts of its prompts, in any process. Its turns "hold" go on when a test lets them.
#[derive(Clone)]
struct Noting {
    said: Arc<Mutex<Vec<String>>>,
    begun: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

impl Noting {
    fn new() -> Self {
        Self {
            said: Arc::default(),
            begun: Arc::new(Semaphore::new(0)),
            go_on: Arc::new(Semaphore::new(0)),
        }
    }

    fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }

    fn server(&self, store: &Faulty) -> Server {
        Server::builder(self.clone()).store(store.clone()).build()
    }
}

impl Handler for Noting {
    type State = ();

    fn info(&self) -> AgentInfo {
        AgentInfo::new("noting", "1").steering()
    }

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        let text = turn.prompt_text();
        self.said.lock().unwrap().push(text.clone());
        if text == "hold" {
            self.begun.add_permits(1);
            tokio::select! {
                () = turn.cancelled() => {}
                go_on = self.go_on.acquire() => go_on.unwrap().forget(),
            }
        }
        Ok(StopReason::EndTurn)
    }
}

fn store() -> Faulty {
    Arc::new(FaultyStore::new(MemoryStore::new()))
}

/// Runs a process that is killed at the end of `life`: all its tasks stop where they are.
fn process<T>(life: impl AsyncFnOnce() -> T) -> T {
    process_on(1, life)
}

fn process_on<T>(threads: usize, life: impl AsyncFnOnce() -> T) -> T {
    let mut runtime = match threads {
        1 => tokio::runtime::Builder::new_current_thread(),
        _ => tokio::runtime::Builder::new_multi_thread(),
    };
    let runtime = runtime.worker_threads(threads).enable_all();
    let runtime = runtime.build().unwrap();
    let lived = runtime.block_on(async { soon("the life of a process", life()).await });
    // Waits for tasks at their next await, so that nothing of this process goes on.
    drop(runtime);
    lived
}

fn text(text: &str) -> Vec<ContentBlock> {
    vec![text.into()]
}

async fn named(session: &Session, name: &str, said: &str) -> acp_server::Result<PromptHandle> {
    session.recall_names().await.unwrap();
    let kept = session.try_prompt_kept(Some(name), text(said), None).await;
    kept.unwrap_or_else(|refusal| panic!("{}", refusal.reason()))
}

/// Begins a session whose turn holds.
async fn holding(handler: &Noting, server: &Server) -> Session {
    let session = server.create_session("/w").await.unwrap();
    session.prompt(text("hold")).unwrap();
    handler.begun.acquire().await.unwrap().forget();
    session
}

/// Waits until a session has nothing to do.
async fn idle(session: &Session) {
    while session.phase() != acp_server::Phase::Idle {
        tokio::task::yield_now().await;
    }
}

/// Opens a session in another process, lets it do what is left, and returns what was said in all.
fn afterwards(handler: &Noting, store: &Faulty, id: &SessionId) -> Vec<String> {
    process(async || {
        let server = handler.server(store);
        handler.go_on.add_permits(9);
        let session = server.session(id).await.unwrap();
        idle(&session).await;
        assert!(store.inner().prompts(id).await.unwrap().is_empty());
        numbers_have_no_holes(&session).await;
        server.shutdown().await;
    });
    handler.said()
}

/// Checks the numbers, and that each turn has one end before the next one begins.
async fn numbers_have_no_holes(session: &Session) {
    let (mut history, mut last, mut open) = (session.history(), 0, false);
    while let Some(received) = history.next().await.unwrap() {
        let Received::Event(event) = received else {
            panic!("{received:?}");
        };
        assert_eq!(event.number, last + 1);
        last = event.number;
        match event.body {
            EventBody::Turn(TurnEvent::TurnStarted { .. }) => {
                assert!(!std::mem::replace(&mut open, true), "event {last}");
            }
            EventBody::Turn(TurnEvent::TurnEnded { .. }) => {
                assert!(std::mem::replace(&mut open, false), "event {last}");
            }
            _ => {}
        }
    }
    assert!(!open, "a turn without an end");
}

#[test]
fn what_waits_when_its_process_is_killed_runs_in_the_next_one() {
    let (handler, store) = (Noting::new(), store());
    let (id, messages) = process(async || {
        let server = handler.server(&store);
        let session = holding(&handler, &server).await;
        let mut messages = Vec::new();
        for said in ["one", "two", "three"] {
            let prompt = session.prompt_kept(text(said)).await.unwrap();
            messages.push(prompt.message_id().clone());
        }
        // Without a promise.
        session.prompt(text("lost")).unwrap();
        (session.id().clone(), messages)
    });
    assert_eq!(handler.said(), ["hold"]);
    let ran = process(async || {
        let server = handler.server(&store);
        let session = server.session(&id).await.unwrap();
        // Behind those that were accepted before.
        let last = session.prompt_kept(text("four")).await.unwrap();
        assert_eq!(last.stop_reason().await.unwrap(), StopReason::EndTurn);
        let mut history = session.history();
        let mut ran = Vec::new();
        while let Some(received) = history.next().await.unwrap() {
            if let Received::Event(event) = received
                && let EventBody::Update(SessionUpdate::UserMessageChunk(chunk)) = event.body
            {
                ran.extend(chunk.message_id);
            }
        }
        numbers_have_no_holes(&session).await;
        ran
    });
    let expected = ["hold", "one", "two", "three", "four"];
    assert_eq!(handler.said(), expected);
    assert_eq!(ran[1..4], messages[..], "the ids that were promised");
    assert_eq!(afterwards(&handler, &store, &id), expected, "once");
}

/// Nobody asks for the session: the server finds it in the file. On several threads, too.
#[cfg(feature = "sqlite")]
#[test]
fn a_server_that_is_started_again_runs_what_waits_in_its_file() {
    use acp_server::store::SqliteStore;

    for threads in [1, 4] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sessions.db");
        let handler = Noting::new();
        let mut limits = acp_server::Limits::default();
        limits.adoption.interval = Duration::from_millis(1);
        let server = || {
            let store = SqliteStore::open(&path).unwrap();
            let server = Server::builder(handler.clone()).store(store);
            server.limits(limits.clone()).build()
        };
        process_on(threads, async || {
            let server = server();
            let session = holding(&handler, &server).await;
            for said in ["one", "two"] {
                session.prompt_kept(text(said)).await.unwrap();
            }
        });
        process_on(threads, async || {
            let server = server();
            while handler.said().len() < 3 {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            assert_eq!(server.statistics().adopted, 1);
            server.shutdown().await;
        });
        assert_eq!(handler.said(), ["hold", "one", "two"]);
    }
}

/// A turn that begins at once needs nothing besides its start.
#[test]
fn a_prompt_that_begins_at_once_is_accepted_with_the_start_of_its_turn() {
    let (handler, store) = (Noting::new(), store());
    process(async || {
        let server = handler.server(&store);
        let session = server.create_session("/w").await.unwrap();
        let commits = |before: usize| {
            let calls = store.calls();
            let commits = calls[before..].iter();
            commits.filter(|call| **call == Operation::Commit).count()
        };
        let before = store.calls().len();
        let prompt = session.prompt(text("hello")).unwrap();
        prompt.stop_reason().await.unwrap();
        let ordinary = commits(before);
        let before = store.calls().len();
        let prompt = session.prompt_kept(text("hello")).await.unwrap();
        assert!(prompt.turn().is_some());
        prompt.stop_reason().await.unwrap();
        assert_eq!(commits(before), ordinary);
        // One that goes on is accepted before its end.
        let prompt = session.prompt_kept(text("hold")).await.unwrap();
        let turn = prompt.turn().unwrap();
        let page = store.inner().read(session.id(), turn.0 - 1, 1).await;
        assert!(page.unwrap().last >= turn.0);
        assert!(
            store
                .inner()
                .prompts(session.id())
                .await
                .unwrap()
                .is_empty()
        );
    });
}

#[test]
fn a_key_finds_the_prompt_that_waits_in_the_next_process() {
    let (handler, store) = (Noting::new(), store());
    let (id, message) = process(async || {
        let server = handler.server(&store);
        let session = holding(&handler, &server).await;
        let prompt = named(&session, "key", "one").await.unwrap();
        let again = named(&session, "key", "one").await.unwrap();
        assert!(again.is_repeated());
        (session.id().clone(), prompt.message_id().clone())
    });
    process(async || {
        let server = handler.server(&store);
        let session = server.session(&id).await.unwrap();
        let again = named(&session, "key", "one").await.unwrap();
        assert!(again.is_repeated());
        assert_eq!(*again.message_id(), message);
        assert_eq!(again.stop_reason().await.unwrap(), StopReason::EndTurn);
    });
    process(async || {
        let server = handler.server(&store);
        let session = server.session(&id).await.unwrap();
        let again = named(&session, "key", "one").await.unwrap();
        assert!(again.has_ended());
        assert_eq!(*again.message_id(), message);
    });
    assert_eq!(afterwards(&handler, &store, &id), ["hold", "one"]);
}

#[test]
fn what_was_cancelled_or_replaced_while_it_waited_never_runs() {
    let (handler, store) = (Noting::new(), store());
    let id = process(async || {
        let server = handler.server(&store);
        let session = holding(&handler, &server).await;
        let prompt = session.prompt_kept(text("cancelled")).await.unwrap();
        prompt.cancel();
        session.prompt_kept(text("replaced")).await.unwrap();
        let mut policies = Policies::default();
        policies.second_prompt = SecondPrompt::Replace;
        policies.cancel_deadline = Duration::from_secs(3600);
        session.set_policies(policies);
        session.prompt_kept(text("last")).await.unwrap();
        session.cancellations_stored().await.unwrap();
        session.id().clone()
    });
    assert_eq!(afterwards(&handler, &store, &id), ["hold", "last"]);
}

#[test]
fn a_shutdown_keeps_what_waits_and_a_closed_session_drops_it() {
    let (handler, store) = (Noting::new(), store());
    let (kept, closed, deleted) = process(async || {
        let server = handler.server(&store);
        let mut ids = Vec::new();
        for said in ["kept", "closed", "deleted"] {
            let session = holding(&handler, &server).await;
            session.prompt_kept(text(said)).await.unwrap();
            ids.push(session.id().clone());
        }
        server.close_session(&ids[1]).await.unwrap();
        server.delete_session(&ids[2]).await.unwrap();
        let fork = server.fork_session(&ids[0]).await.unwrap();
        idle(&fork).await;
        server.shutdown().await;
        let [kept, closed, deleted] = ids.try_into().unwrap();
        (kept, closed, deleted)
    });
    assert!(!handler.said().contains(&"kept".to_owned()), "in a fork");
    afterwards(&handler, &store, &closed);
    afterwards(&handler, &store, &kept);
    assert_eq!(handler.said()[3..], ["kept"]);
    process(async || {
        assert!(store.inner().prompts(&deleted).await.unwrap().is_empty());
    });
}

/// Between the end of a process and the next one that opens the session.
#[test]
fn what_waits_in_a_session_that_is_not_open_is_cancelled_or_closed() {
    for close in [false, true] {
        let (handler, store) = (Noting::new(), store());
        let id = process(async || {
            let server = handler.server(&store);
            let session = holding(&handler, &server).await;
            session.prompt_kept(text("one")).await.unwrap();
            session.id().clone()
        });
        process(async || {
            let server = handler.server(&store);
            match close {
                true => server.close_session(&id).await.unwrap(),
                false => server.cancel_unopened(&id).await.unwrap(),
            }
            assert!(server.open_session(&id).is_none());
        });
        assert_eq!(afterwards(&handler, &store, &id), ["hold"], "{close}");
    }
}

/// Killed while the store has not answered: the prompt was not accepted, and may be in the store or not.
#[test]
fn a_prompt_whose_commit_is_cut_off_runs_once_or_never() {
    for (when, expected) in [
        (When::Before, vec!["hold"]),
        (When::After, vec!["hold", "one"]),
    ] {
        let (handler, store) = (Noting::new(), store());
        let id = process(async || {
            let server = handler.server(&store);
            let session = holding(&handler, &server).await;
            session.cancellations_stored().await.unwrap();
            let gate = Gate::new();
            store.inject(Operation::Commit, 1, when, Fault::Hold(gate.clone()));
            let accepted = session.prompt_kept(text("one"));
            tokio::select! {
                _ = accepted => panic!("accepted without the store"),
                () = gate.reached() => {}
            }
            session.id().clone()
        });
        assert_eq!(afterwards(&handler, &store, &id), expected, "{when:?}");
    }
}

/// Killed while the start of the turn of a prompt that has waited is committed: the handler does not have
/// it yet.
#[test]
fn a_start_that_is_cut_off_happens_once() {
    for (when, expected) in [
        // It has not begun: it waits on.
        (When::Before, vec!["hold", "one"]),
        // It has: its turn is interrupted.
        (When::After, vec!["hold"]),
    ] {
        let (handler, store) = (Noting::new(), store());
        let id = process(async || {
            let server = handler.server(&store);
            let session = holding(&handler, &server).await;
            session.prompt_kept(text("one")).await.unwrap();
            let gate = Gate::new();
            // The first one is the end of the turn before.
            store.inject(Operation::Commit, 2, when, Fault::Hold(gate.clone()));
            handler.go_on.add_permits(1);
            gate.reached().await;
            session.id().clone()
        });
        assert_eq!(handler.said(), ["hold"], "{when:?}");
        assert_eq!(afterwards(&handler, &store, &id), expected, "{when:?}");
    }
}

#[test]
fn a_prompt_that_the_store_refuses_is_not_accepted_and_does_not_run() {
    let (handler, store) = (Noting::new(), store());
    let id = process(async || {
        let server = handler.server(&store);
        let session = holding(&handler, &server).await;
        session.cancellations_stored().await.unwrap();
        let full = Fault::Fail(StoreErrorKind::Full);
        store.inject(Operation::Commit, 1, When::Before, full.clone());
        let refused = named(&session, "key", "one").await;
        assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
        // Its key is free.
        let again = named(&session, "key", "one").await.unwrap();
        assert!(!again.is_repeated());
        session.cancel();
        idle(&session).await;
        // The same for one that begins at once.
        store.inject(Operation::Commit, 1, When::Before, full);
        let refused = session.prompt_kept(text("hold")).await;
        assert!(matches!(refused, Err(Error::Store(_))), "{refused:?}");
        session.cancel();
        session.id().clone()
    });
    assert_eq!(afterwards(&handler, &store, &id), ["hold", "hold"]);
}

#[test]
fn input_that_was_queued_runs_in_the_next_process() {
    let (handler, store) = (Noting::new(), store());
    let id = process(async || {
        let server = handler.server(&store);
        let session = holding(&handler, &server).await;
        let other = session.clone();
        // No turn takes it, and another prompt holds the next one up.
        session.prompt_kept(text("hold")).await.unwrap();
        let input = Input::from("one").named("key").or_queue();
        let steered = tokio::spawn(async move { other.steer(input).await });
        tokio::task::yield_now().await;
        handler.go_on.add_permits(1);
        assert_eq!(steered.await.unwrap().unwrap(), Steered::Queued);
        session.id().clone()
    });
    let said = afterwards(&handler, &store, &id);
    assert_eq!(said.last().map(String::as_str), Some("one"), "{said:?}");
    assert_eq!(said.iter().filter(|said| *said == "one").count(), 1);
}
