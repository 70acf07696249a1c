//! Stores that fail for a while, lose what they did, or give a session to somebody else.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::*;
use acp_server::event::Event;
use acp_server::internal::session::last_appended;
use acp_server::store::{MemoryStore, Store, StoreErrorKind};
use acp_server::{
    Handler, HandlerResult, Limits, Phase, Policies, Received, Server, Session, Turn,
};
use acp_store_tests::faults::{Fault, FaultyStore, Gate, Operation, When};
use tokio::sync::Notify;
use tokio::time::{Instant, timeout};

use crate::editor::{Desk, event_ids};

pub type Faulty = Arc<FaultyStore<Arc<MemoryStore>>>;

pub fn faulty() -> Faulty {
    Arc::new(FaultyStore::new(Arc::default()))
}

pub fn unavailable() -> Fault {
    Fault::Fail(StoreErrorKind::Unavailable)
}

/// Waits for something, but not for ever.
pub async fn soon<T>(what: &str, future: impl Future<Output = T>) -> T {
    let time = Duration::from_secs(200);
    timeout(time, future).await.expect(what)
}

/// Returns the events of a session as kinds, with what its store has for it.
pub async fn stored(store: &Faulty, session: &SessionId) -> Vec<String> {
    let page = store.inner().read(session, 0, usize::MAX).await.unwrap();
    let batches = page.batches.iter();
    let texts: Vec<_> = batches
        .flat_map(|batch| {
            batch
                .after(0)
                .map(|(number, text)| (number, text.to_owned()))
        })
        .collect();
    for (at, (number, _)) in texts.iter().enumerate() {
        assert_eq!(*number, at as u64 + 1, "numbers have no holes");
    }
    texts.into_iter().map(|(_, text)| text).collect()
}

/// Waits until everything that was appended is committed.
async fn committed(session: &Session) {
    let mut events = session.subscribe(0);
    loop {
        if let Received::Event(Event { number, .. }) = events.next().await.unwrap()
            && number == last_appended(session)
        {
            return;
        }
    }
}

/// Does what its prompt says.
#[derive(Clone)]
pub struct Busy {
    store: Faulty,
    go_on: Arc<Notify>,
    end: Gate,
}

impl Busy {
    pub fn new(store: &Faulty) -> Self {
        Self {
            store: store.clone(),
            go_on: Arc::default(),
            end: Gate::new(),
        }
    }
}

impl Handler for Busy {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        match turn.prompt_text().as_str() {
            // Five texts, with a turn for the commit task after each.
            "steps" => {
                for step in 0..5 {
                    turn.send_text(format!("step {step}")).await?;
                    tokio::task::yield_now().await;
                }
            }
            // A question that the store refuses.
            "ask" => {
                let call = turn.tool_call("Run", ToolKind::Execute).await?;
                committed(turn.session()).await;
                let full = Fault::Fail(StoreErrorKind::Full);
                self.store.inject(Operation::Commit, 1, When::Before, full);
                turn.ask_permission(&call).await?;
            }
            // A question that is committed.
            "answered" => {
                let call = turn.tool_call("Run", ToolKind::Execute).await?;
                turn.ask_permission(&call).await?;
                tokio::task::yield_now().await;
                call.complete("").await?;
            }
            // The commit of its end waits.
            "hold" => {
                committed(turn.session()).await;
                let hold = Fault::Hold(self.end.clone());
                self.store.inject(Operation::Commit, 1, When::Before, hold);
            }
            // The store refuses its end.
            "lose" => {
                committed(turn.session()).await;
                let full = Fault::Fail(StoreErrorKind::Full);
                self.store.inject(Operation::Commit, 1, When::Before, full);
            }
            // More than may be uncommitted.
            "flood" => {
                for _ in 0..300 {
                    turn.send_text("x".repeat(1 << 10)).await?;
                }
            }
            // A text once it is notified, and then nothing.
            "wait" => {
                self.go_on.notified().await;
                turn.send_text("too late").await?;
                std::future::pending::<()>().await;
            }
            _ => {}
        }
        Ok(StopReason::EndTurn)
    }
}

async fn a_refused_question_ends_with_the_error() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    for _ in 0..2 {
        let error = soon("the end of the turn", desk.prompt("ask")).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("injected failure"), "{error}");
        let session = server.session(&desk.session).await.unwrap();
        assert_eq!(session.pending_permissions(), [], "nothing is asked");
    }
    desk.prompt("steps").await.unwrap();
    // Neither the question nor its end is an event.
    let events = stored(&store, &desk.session).await.concat();
    assert!(!events.contains("permission"), "{events}");
    let told = desk.editor.told();
    assert!(
        !told.contains(&"session/request_permission".to_owned()),
        "{told:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_question_that_the_store_refuses_ends_with_its_error() {
    a_refused_question_ends_with_the_error().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_that_the_store_refuses_ends_with_its_error_on_two_threads() {
    a_refused_question_ends_with_the_error().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_unavailable_for_a_while_costs_no_output() {
    for when in [When::Before, When::After] {
        let store = faulty();
        let server = Server::builder(Busy::new(&store)).store(store.clone());
        let server = server.build();
        let desk = Desk::of(&server).await;
        for times in [1, 2, 7] {
            store.inject_next(Operation::Commit, times, when, unavailable());
            let turn = soon("the end of the turn", desk.prompt("steps")).await;
            assert_eq!(turn.unwrap(), StopReason::EndTurn, "{times} times {when:?}");
            let log = desk.editor.take();
            assert_eq!(event_ids(&log).len(), 5, "{times} times {when:?}: {log:?}");
        }
        // Each event once: start, the words of the user, five texts, end.
        assert_eq!(stored(&store, &desk.session).await.len(), 3 * 8);
        let record = store.inner().find(&desk.session).await.unwrap().unwrap();
        assert_eq!(record.running_turn, None);
    }
}

#[tokio::test(start_paused = true)]
async fn a_commit_fails_once_its_time_is_over() {
    for (seconds, calls) in [(60, 20..50), (0, 1..5)] {
        let store = faulty();
        let mut limits = Limits::default();
        if seconds == 0 {
            limits.log.commit_timeout = Duration::ZERO;
        }
        let server = Server::builder(Busy::new(&store)).store(store.clone());
        let server = server.limits(limits).build();
        let desk = Desk::of(&server).await;
        let before = store.calls().len();
        store.inject_next(Operation::Commit, usize::MAX, When::Before, unavailable());
        let begun = Instant::now();
        let error = soon("the end of the turn", desk.prompt("steps")).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains("injected failure"), "{error}");
        // The turn's events are given up, and then its end.
        let time = begun.elapsed().as_secs();
        assert!((seconds..=2 * seconds + 1).contains(&time), "{time} s");
        let made = store.calls().split_off(before);
        let made = made.iter().filter(|call| **call == Operation::Commit);
        let made = made.count();
        assert!(
            (calls.start..2 * calls.end).contains(&made),
            "{made} commits"
        );
        store.heal();
        desk.prompt("steps").await.unwrap();
        stored(&store, &desk.session).await;
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_sends_waits_while_the_store_is_unavailable() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    store.inject_next(Operation::Commit, usize::MAX, When::Before, unavailable());
    let turn = desk.start("flood");
    // Half of the time that the store has.
    tokio::time::sleep(Duration::from_secs(30)).await;
    let last = last_appended(&session);
    assert!((10..100).contains(&last), "{last} events");
    store.heal();
    let ended = soon("the end of the turn", turn).await.unwrap();
    assert_eq!(ended.unwrap(), StopReason::EndTurn);
    assert_eq!(stored(&store, &desk.session).await.len(), 303);
}

#[tokio::test(start_paused = true)]
async fn closing_does_not_wait_for_a_store_that_is_unavailable() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    store.inject_next(Operation::Commit, usize::MAX, When::Before, unavailable());
    let turn = desk.start("flood");
    tokio::time::sleep(Duration::from_secs(1)).await;
    let begun = Instant::now();
    soon("the server to end", server.shutdown()).await;
    // The limit `close_timeout`, for what is being committed and for the end of the turn.
    let time = begun.elapsed();
    assert!(time < Duration::from_secs(12), "{time:?}");
    soon("the end of the turn", turn).await.unwrap().unwrap();
    assert!(store.calls().contains(&Operation::Release));
}

/// Whoever sees that a session is idle finds the end of its last turn among the events that the store has.
async fn a_session_runs_until_the_end_of_its_turn_is_committed() {
    let store = faulty();
    let handler = Busy::new(&store);
    let server = Server::builder(handler.clone()).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let turn = desk.start("hold");
    soon("the commit of the end", handler.end.reached()).await;
    assert!(session.last_event() < last_appended(&session));
    assert_eq!(session.phase(), Phase::Running);
    handler.end.open();
    soon("the end of the turn", turn).await.unwrap().unwrap();
    assert_eq!(session.phase(), Phase::Idle);
    assert_eq!(session.last_event(), last_appended(&session));
    // An end that the store refuses is none, and nothing runs.
    soon("the end of the turn", desk.prompt("lose"))
        .await
        .unwrap_err();
    assert_eq!(session.phase(), Phase::Idle);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_idle_when_the_end_of_its_turn_is_committed() {
    a_session_runs_until_the_end_of_its_turn_is_committed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_idle_when_the_end_of_its_turn_is_committed_on_two_threads() {
    a_session_runs_until_the_end_of_its_turn_is_committed().await;
}

/// The commit happens, nobody learns of it, and its turn fails: its numbers are taken.
#[tokio::test(start_paused = true)]
async fn numbers_that_the_store_has_are_not_used_again() {
    let store = faulty();
    let mut limits = Limits::default();
    limits.log.commit_timeout = Duration::ZERO;
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.limits(limits).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    store.inject(Operation::Commit, 1, When::After, unavailable());
    store.inject_next(Operation::Find, usize::MAX, When::Before, unavailable());
    desk.prompt("steps").await.unwrap_err();
    let lost = stored(&store, &desk.session).await.len();
    assert!(lost > 0);
    assert_eq!(session.last_event(), 0);
    store.heal();
    // The store is asked, and the session is closed, for its log is another one.
    let error = desk.prompt("steps").await.unwrap_err().to_string();
    assert!(error.contains("load the session again"), "{error}");
    soon("the session to be closed", session.closed()).await;
    assert!(server.open_sessions().is_empty());
    assert_eq!(stored(&store, &desk.session).await.len(), lost);
    desk.load().await.unwrap();
    desk.prompt("steps").await.unwrap();
    let events = stored(&store, &desk.session).await;
    assert_eq!(
        events.iter().filter(|text| text.contains("step 4")).count(),
        1
    );
}

async fn a_lost_lease_closes_the_session() {
    let store = faulty();
    let handler = Busy::new(&store);
    let mut policies = Policies::default();
    policies.cancel_deadline = Duration::from_millis(10);
    let server = Server::builder(handler.clone()).store(store.clone());
    let server = server.policies(policies).build();
    let desk = Desk::of(&server).await;
    let session = server.session(&desk.session).await.unwrap();
    let running = desk.start("wait");
    committed(&session).await;
    let queued = session.prompt(vec!["steps".into()]).unwrap();
    // Another server with the same store, which gives it the lease.
    let other = Server::builder(handler.clone()).store(store.inner().clone());
    let other = other.build();
    let moved = other.session(&desk.session).await.unwrap();
    handler.go_on.notify_one();
    let error = soon("the end of the turn", running).await.unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("lease"), "{error}");
    let error = soon("the end of the queue", queued.stop_reason()).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("lease"), "{error}");
    soon("the session to be closed", session.closed()).await;
    assert!(server.open_sessions().is_empty());
    assert!(
        !store.calls().contains(&Operation::Release),
        "it is another one's"
    );
    assert!(session.prompt(vec!["steps".into()]).is_err());
    // The other one still has it.
    let prompt = moved.prompt(vec!["steps".into()]).unwrap();
    assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::EndTurn);
    // As of any closed session, clients must load it again.
    desk.prompt("steps").await.unwrap_err();
    desk.load().await.unwrap();
    assert_eq!(desk.prompt("steps").await.unwrap(), StopReason::EndTurn);
}

#[tokio::test(start_paused = true)]
async fn a_session_whose_lease_is_lost_is_closed() {
    a_lost_lease_closes_the_session().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_lease_is_lost_is_closed_on_two_threads() {
    a_lost_lease_closes_the_session().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_panics_fails_the_commit() {
    for commit in 1..=3 {
        for when in [When::Before, When::After] {
            let store = faulty();
            let server = Server::builder(Busy::new(&store)).store(store.clone());
            let server = server.build();
            let desk = Desk::of(&server).await;
            store.inject(Operation::Commit, commit, when, Fault::Panic);
            let begun = Instant::now();
            let error = soon("the end of the turn", desk.prompt("steps")).await;
            let error = error.unwrap_err().to_string();
            assert!(error.contains("injected panic of Commit"), "{error}");
            assert!(begun.elapsed() < Duration::from_secs(1), "not repeated");
            let next = soon("the next turn", desk.prompt("steps")).await;
            match when {
                When::Before => drop(next.unwrap()),
                // The commit has happened after all.
                When::After => {
                    let error = next.unwrap_err().to_string();
                    assert!(
                        error.contains("; load") || error.contains(": load"),
                        "{error}"
                    );
                    soon("loading", desk.load()).await.unwrap();
                    soon("the next turn", desk.prompt("steps")).await.unwrap();
                }
            }
            stored(&store, &desk.session).await;
        }
    }
}

/// A store that panics while it is asked whether a commit has happened.
#[tokio::test(start_paused = true)]
async fn a_store_that_panics_when_it_is_asked_fails_the_commit() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    store.inject(Operation::Commit, 1, When::Before, unavailable());
    store.inject(Operation::Find, 1, When::Before, Fault::Panic);
    let error = soon("the end of the turn", desk.prompt("steps")).await;
    let error = error.unwrap_err().to_string();
    assert!(error.contains("injected panic of Find"), "{error}");
    soon("the next turn", desk.prompt("steps")).await.unwrap();
    stored(&store, &desk.session).await;
}
