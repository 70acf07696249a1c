//! Clients that join or follow a session while its store fails or takes time.

use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_server::{Limits, Server};
use acp_store_tests::faults::{Fault, Gate, Operation, When};
use serde_json::{Value, json};

use crate::editor::{Desk, event_ids, others_run};
use crate::hiccups::{Busy, Faulty, faulty, soon, unavailable};
use crate::raw::Raw;

fn server(store: &Faulty, limits: Limits) -> Server {
    let server = Server::builder(Busy::new(store)).store(store.clone());
    server.limits(limits).build()
}

/// The same, which keeps one event in memory, so that replays read the store.
fn forgetful(store: &Faulty) -> Server {
    let mut limits = Limits::default();
    limits.log.memory_events = 1;
    server(store, limits)
}

/// A client that is initialized.
async fn client(server: &Server) -> Raw {
    let mut client = Raw::attach(server);
    let params = json!({ "protocolVersion": 1 });
    client.call(0, "initialize", params).await;
    client
}

/// Reads up to the answer of a request, and returns the numbers of the updates before it.
async fn answer(client: &mut Raw, id: u32) -> (Value, Vec<u64>) {
    let mut before = Vec::new();
    loop {
        let message = client.next().await;
        if message["id"] == id {
            return (message, before);
        }
        before.extend(message["params"]["_meta"]["acp-sdk"]["eventId"].as_u64());
    }
}

/// A replay that a failed commit has shortened ends there, although later events have the numbers.
#[tokio::test(start_paused = true)]
async fn what_is_committed_after_a_failure_follows_the_answer_of_a_join() {
    let store = faulty();
    let mut limits = Limits::default();
    limits.log.commit_timeout = Duration::from_millis(10);
    let server = server(&store, limits);
    let desk = Desk::of(&server).await;
    let mut other = client(&server).await;
    store.inject_next(Operation::Commit, 2, When::Before, unavailable());
    // The second turn ends before anything else runs.
    let (lost, kept) = (desk.start("steps"), desk.start(""));
    tokio::time::sleep(Duration::from_millis(5)).await;
    let params = json!({ "sessionId": desk.session, "sinceEventId": 0 });
    let method = "_acp-sdk/session/resume";
    other
        .send(json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }))
        .await;
    let (answer, before) = soon("the answer", answer(&mut other, 1)).await;
    lost.await.unwrap().unwrap_err();
    kept.await.unwrap().unwrap();
    let last = answer["result"]["lastEventId"].as_u64().unwrap();
    assert!(
        before.iter().all(|number| *number <= last),
        "{before:?} were sent before {answer}"
    );
    let next = soon("the prompt", other.next()).await;
    assert_eq!(next["params"]["_meta"]["acp-sdk"]["eventId"], 2);
}

/// What could not be read is sent once the store is there again, whether or not anything happens.
#[tokio::test(start_paused = true)]
async fn a_slow_client_goes_on_when_the_store_can_be_read_again() {
    let store = faulty();
    let server = forgetful(&store);
    let mut slow = Raw::attach(&server);
    let session = slow.open_session().await;
    let id = SessionId::from(session.as_str().unwrap());
    let opened = server.session(&id).await.unwrap();
    // More than its pipe and its output buffer hold.
    store.inject_next(Operation::Read, 5, When::Before, unavailable());
    let flood = opened.prompt(vec!["flood".into()]).unwrap();
    flood.stop_reason().await.unwrap();
    // No commit follows.
    let last = opened.last_event() - 1;
    let updates = async {
        let mut number = 0;
        while number < last {
            let update = slow.next().await;
            let next = update["params"]["_meta"]["acp-sdk"]["eventId"].as_u64();
            assert_eq!(next, Some(number.max(1) + 1));
            number = next.unwrap();
        }
    };
    soon("the rest", updates).await;
    let reads = store.calls();
    let reads = reads.iter().filter(|call| **call == Operation::Read);
    assert!(reads.count() > 5, "the client was not slow");
}

/// Its cursor would name the last of them, and those before would never be sent.
#[tokio::test(start_paused = true)]
async fn a_client_whose_load_was_cancelled_is_sent_no_later_events() {
    let store = faulty();
    let server = forgetful(&store);
    let desk = Desk::of(&server).await;
    desk.prompt("steps").await.unwrap();
    let (commit, read) = (Gate::new(), Gate::new());
    let held = |gate: &Gate| Fault::Hold(gate.clone());
    store.inject(Operation::Commit, 1, When::Before, held(&commit));
    store.inject(Operation::Read, 1, When::Before, held(&read));
    let turn = desk.start("steps");
    soon("the commit", commit.reached()).await;
    let mut other = client(&server).await;
    let params = json!({ "sessionId": desk.session, "cwd": "/w", "mcpServers": [] });
    let load = json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params });
    other.send(load).await;
    soon("the replay", read.reached()).await;
    // Nobody is detached while the session is closed, which waits for its last commit.
    let deleted = async { server.delete_session(&desk.session).await };
    let cancelled = async {
        others_run().await;
        let params = json!({ "requestId": 1 });
        let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params });
        other.send(cancel).await;
        others_run().await;
        read.open();
        others_run().await;
        commit.open();
        soon("the answer", answer(&mut other, 1)).await
    };
    let (deleted, (answer, before)) = tokio::join!(deleted, cancelled);
    assert!(deleted.unwrap());
    let _ = turn.await.unwrap();
    assert_eq!(before, [0; 0], "before {answer}");
    assert_eq!(answer["error"]["code"], -32800);
}

/// A request that fails is followed by no replay: another one begins it again.
#[tokio::test(start_paused = true)]
async fn a_load_that_fails_replays_nothing_afterwards() {
    let store = faulty();
    let server = forgetful(&store);
    let desk = Desk::of(&server).await;
    desk.prompt("steps").await.unwrap();
    desk.prompt("").await.unwrap();
    desk.editor.take();
    store.inject(Operation::Read, 1, When::Before, unavailable());
    desk.load().await.unwrap_err();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(event_ids(&desk.editor.take()), [0; 0]);
    desk.load().await.unwrap();
    assert_eq!(event_ids(&desk.editor.take()), [2, 3, 4, 5, 6, 7, 10]);
}

#[tokio::test(start_paused = true)]
async fn a_client_is_not_attached_by_a_resume_that_fails() {
    let store = faulty();
    let server = server(&store, Limits::default());
    let desk = Desk::of(&server).await;
    let mut other = client(&server).await;
    // The only request to the store, for the session is open.
    store.inject(Operation::Find, 1, When::Before, unavailable());
    let params = json!({ "sessionId": desk.session, "sinceEventId": 0 });
    let (answer, _) = other.call(1, "_acp-sdk/session/resume", params).await;
    assert!(answer["error"].is_object(), "{answer}");
    let params = json!({ "sessionId": desk.session });
    let (state, _) = other.call(2, "_acp-sdk/session/state", params).await;
    assert!(state["error"].is_object(), "{state}");
}

/// The replay would have contained them.
#[tokio::test(start_paused = true)]
async fn a_client_is_not_sent_its_own_words_after_a_load_that_failed() {
    let store = faulty();
    let server = forgetful(&store);
    let desk = Desk::of(&server).await;
    desk.prompt("").await.unwrap();
    desk.prompt("").await.unwrap();
    let commit = Gate::new();
    let held = Fault::Hold(commit.clone());
    store.inject(Operation::Commit, 1, When::Before, held);
    let turn = desk.start("steps");
    soon("the commit", commit.reached()).await;
    store.inject(Operation::Read, 1, When::Before, unavailable());
    desk.load().await.unwrap_err();
    commit.open();
    turn.await.unwrap().unwrap();
    // Event 8 has the words.
    assert_eq!(event_ids(&desk.editor.take()), [9, 10, 11, 12, 13]);
}
