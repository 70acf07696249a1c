//! What clients and log have after commits that failed, last long, or are read while they do.

use acp_sdk::v1::*;
use acp_server::store::StoreErrorKind;
use acp_server::{Limits, Link, Server};
use acp_store_tests::faults::{Fault, Gate, Operation, When};

use crate::editor::{Desk, Editor, Permission, event_ids, everything};
use crate::hiccups::{Busy, faulty, soon, stored, unavailable};

fn count(events: &[String], what: &str) -> usize {
    events.iter().filter(|text| text.contains(what)).count()
}

#[tokio::test(start_paused = true)]
async fn a_turn_whose_start_is_lost_has_no_end_in_the_log() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    let full = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 1, When::Before, full);
    let error = desk.prompt("steps").await.unwrap_err().to_string();
    assert!(error.contains("injected failure"), "{error}");
    assert_eq!(stored(&store, &desk.session).await, [""; 0]);
    desk.prompt("steps").await.unwrap();
    assert_eq!(stored(&store, &desk.session).await.len(), 8);
}

#[tokio::test(start_paused = true)]
async fn an_end_that_is_lost_is_added_before_the_next_turn() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    // All but the first commit, which has the start.
    for commit in 2..20 {
        let full = Fault::Fail(StoreErrorKind::Full);
        store.inject(Operation::Commit, commit, When::Before, full);
    }
    desk.prompt("steps").await.unwrap_err();
    let events = stored(&store, &desk.session).await;
    assert_eq!(count(&events, "turn_started"), 1, "{events:?}");
    assert_eq!(count(&events, "turn_ended"), 0, "{events:?}");
    store.heal();
    desk.prompt("steps").await.unwrap();
    let events = stored(&store, &desk.session).await;
    assert_eq!(count(&events, "turn_started"), 2, "{events:?}");
    assert_eq!(count(&events, "turn_ended"), 2, "{events:?}");
    let ends = events.iter().position(|text| text.contains("turn_ended"));
    let end = &events[ends.unwrap()];
    assert!(
        end.contains("the store has lost the end of the turn"),
        "{end}"
    );
}

/// The question is in the log, and a failed commit takes its answer back.
#[tokio::test(start_paused = true)]
async fn what_a_failed_commit_leaves_open_ends_with_its_turn() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let editor = Editor {
        permission: Permission::Never,
        ..Editor::default()
    };
    let desk = Desk::at(server.connection(Link::Stdio), editor, everything()).await;
    let turn = desk.start("answered");
    desk.editor.until("session/request_permission").await;
    let full = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 1, When::Before, full);
    let session = server.session(&desk.session).await.unwrap();
    let question = session.pending_permissions().remove(0).question;
    let chosen = SelectedPermissionOutcome::new("allow");
    let outcome = RequestPermissionOutcome::Selected(chosen);
    session.answer_permission(question, outcome).unwrap();
    let error = soon("the end of the turn", turn).await.unwrap();
    let error = error.unwrap_err().to_string();
    assert!(error.contains("injected failure"), "{error}");
    let events = stored(&store, &desk.session).await;
    assert_eq!(count(&events, "permission_answered"), 1, "{events:?}");
    assert_eq!(count(&events, r#""status":"failed""#), 1, "{events:?}");
}

/// What is not committed yet happens after the client has joined.
#[tokio::test(start_paused = true)]
async fn a_client_that_resumes_is_sent_what_is_being_committed() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    let other = Desk::of(&server).await;
    let gate = Gate::new();
    let held = Fault::Hold(gate.clone());
    store.inject(Operation::Commit, 1, When::Before, held);
    let turn = desk.start("steps");
    soon("the commit", gate.reached()).await;
    let request = ResumeSessionRequest::new(desk.session.clone(), "/w");
    let resumed = soon("resuming", other.agent.resume_session(request)).await;
    resumed.unwrap();
    assert_eq!(event_ids(&other.editor.take()), [0; 0]);
    gate.open();
    soon("the end of the turn", turn).await.unwrap().unwrap();
    other.editor.until("agent_message_chunk step 4").await;
    assert_eq!(event_ids(&other.editor.take()), [2, 3, 4, 5, 6, 7]);
}

#[tokio::test(start_paused = true)]
async fn a_load_whose_session_is_deleted_meanwhile_fails() {
    let store = faulty();
    let mut limits = Limits::default();
    limits.log.memory_events = 1;
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.limits(limits).build();
    let desk = Desk::of(&server).await;
    desk.prompt("steps").await.unwrap();
    desk.prompt("").await.unwrap();
    let gate = Gate::new();
    let held = Fault::Hold(gate.clone());
    store.inject(Operation::Read, 1, When::Before, held);
    let deleted = async {
        soon("the replay", gate.reached()).await;
        server.delete_session(&desk.session).await
    };
    let (loaded, deleted) = tokio::join!(desk.load(), deleted);
    assert!(deleted.unwrap());
    let error = loaded.unwrap_err().to_string();
    assert!(error.contains("is closed"), "{error}");
}

/// The first attempt has happened, and the second one fails for good: the next commit must not take
/// those events for its own, although it has as many.
#[tokio::test(start_paused = true)]
async fn a_commit_that_happened_and_failed_is_not_taken_for_the_next_one() {
    let store = faulty();
    let server = Server::builder(Busy::new(&store)).store(store.clone());
    let server = server.build();
    let desk = Desk::of(&server).await;
    let full = Fault::Fail(StoreErrorKind::Full);
    store.inject(Operation::Commit, 1, When::After, unavailable());
    store.inject(Operation::Commit, 2, When::Before, full);
    store.inject(Operation::Commit, 3, When::Before, unavailable());
    desk.prompt("one").await.unwrap_err();
    let error = desk.prompt("two").await.unwrap_err().to_string();
    assert!(error.contains("has happened after all"), "{error}");
    let events = stored(&store, &desk.session).await;
    assert_eq!((count(&events, "one"), count(&events, "two")), (1, 0));
}
