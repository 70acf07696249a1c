//! What a client that resumes is sent.

use std::sync::Arc;

use acp_sdk::v2;
use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_server::{Limits, Server};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};

use crate::clients::{Answers, ClientV2, Entry};
use crate::handler::{Words, server};

/// Returns a server with a session that has had some turns, and what its client was sent.
async fn session() -> (acp_server::Server, String, Vec<Entry>) {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    let mut seen = Vec::new();
    for text in ["hello", "all", "raw", "fail"] {
        client.turn(&session, text).await;
        seen.append(&mut client.view.entries());
        client.view.clear();
    }
    (server, session, seen)
}

#[tokio::test]
async fn a_replay_repeats_the_conversation_and_ends_with_its_marker_and_the_state() {
    let (server, session, mut seen) = session().await;
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let response = client.replay(&session).await;
    let mut replayed = client.view.entries();
    let state = replayed.pop().unwrap();
    assert_eq!(state.body["state"], "idle");
    assert_eq!(state.number, None);
    let marker = replayed.pop().unwrap();
    assert_eq!(
        marker.body,
        serde_json::json!({ "sessionUpdate": "replay_complete" })
    );
    assert_eq!(marker.number, None);
    // The response has the options.
    assert!(!response.config_options.is_empty());
    assert!(!response.available_commands.is_empty());
    let kept = |entry: &Entry| {
        let kind = entry.body["sessionUpdate"].as_str().unwrap();
        kind != "state_update" && kind != "config_option_update"
    };
    seen.retain(kept);
    assert!(seen.len() > 10);
    assert_eq!(replayed, seen);
}

#[tokio::test]
async fn without_a_replay_only_the_state_is_sent() {
    let (server, session, _) = session().await;
    let client = ClientV2::connect(&server, Answers::Yes).await;
    client.resume(&session).await;
    assert_eq!(client.view.kinds(), ["idle"]);
    client.turn(&session, "hello").await;
}

/// Each request has its own marker, whatever was replayed.
#[tokio::test]
async fn an_empty_replay_has_its_marker_and_so_has_the_next() {
    let server = server();
    let first = ClientV2::connect(&server, Answers::Yes).await;
    let session = first.new_session().await;
    let client = ClientV2::connect(&server, Answers::Yes).await;
    for _ in 0..2 {
        client.replay(&session).await;
        assert_eq!(client.view.kinds(), ["replay_complete", "idle"]);
        client.view.clear();
    }
    client.continue_after(&session, 0).await;
    assert_eq!(client.view.kinds(), [""; 0]);
}

/// Whoever counts on the marker would take the rest of the history for lost otherwise.
#[tokio::test]
async fn a_replay_that_cannot_be_read_has_no_marker() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let mut limits = Limits::default();
    limits.log.memory_events = 1;
    let server = Server::builder(Words).store(store.clone()).limits(limits);
    let server = server.build();
    let first = ClientV2::connect(&server, Answers::Yes).await;
    let session = first.new_session().await;
    for text in ["all", "hello"] {
        first.turn(&session, text).await;
        first.view.clear();
    }
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let fault = Fault::Fail(StoreErrorKind::Unavailable);
    store.inject(Operation::Read, 1, When::Before, fault);
    let request = v2::ResumeSessionRequest::new(session.as_str(), "/w")
        .with_replay_from(v2::ReplayFrom::Start(v2::ReplayFromStart::new()));
    client.agent.resume_session(request).await.unwrap_err();
    assert_eq!(client.view.kinds(), [""; 0]);
    client.replay(&session).await;
    let kinds = client.view.kinds();
    assert!(kinds.len() > 5, "{kinds:?}");
    assert!(kinds.ends_with(&["replay_complete".to_owned(), "idle".to_owned()]));
}

/// What happens during a replay follows the marker, in order and once.
#[tokio::test]
async fn live_updates_follow_the_marker() {
    let server = server();
    let first = ClientV2::connect(&server, Answers::Yes).await;
    let session = first.new_session().await;
    first.prompt(&session, "linger").await.unwrap();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    first.cancel(&session).await;
    client.replay(&session).await;
    client
        .view
        .wait_for(|body| body["stopReason"] == "cancelled")
        .await;
    let entries = client.view.entries();
    let is_marker = |entry: &Entry| entry.body["sessionUpdate"] == "replay_complete";
    let marker = entries.iter().position(is_marker).unwrap();
    assert_eq!(
        entries.iter().filter(|entry| is_marker(entry)).count(),
        1,
        "{entries:?}"
    );
    assert!(entries[marker + 1].body["state"].is_string());
    let numbers: Vec<_> = entries.iter().filter_map(|entry| entry.number).collect();
    assert!(
        numbers.is_sorted_by(|before, after| before < after),
        "{numbers:?}"
    );
    assert!(numbers.len() > 2_000, "{}", numbers.len());
}

#[tokio::test]
async fn any_cursor_gives_what_followed_it() {
    let (server, session, seen) = session().await;
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let last = seen.last().unwrap().number.unwrap();
    for cursor in 0..=last {
        client.view.clear();
        let answer = client.continue_after(&session, cursor).await;
        let mut rest = seen.clone();
        rest.retain(|entry| entry.number > Some(cursor));
        assert_eq!(client.view.entries(), rest, "after {cursor}");
        assert_eq!(answer["replayed"], rest.len());
        assert_eq!(answer["lastEventId"], last);
    }
}

#[tokio::test]
async fn chunks_without_ids_are_one_message() {
    let server = server();
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let session = client.new_session().await;
    client.turn(&session, "raw").await;
    let chunks = client.view.of_kind("agent_message_chunk");
    assert_eq!(chunks.len(), 2);
    assert!(chunks[0]["messageId"].is_string());
    assert_eq!(chunks[0]["messageId"], chunks[1]["messageId"]);
    client.view.clear();
    client.turn(&session, "raw").await;
    let later = &client.view.of_kind("agent_message_chunk")[0];
    assert_ne!(later["messageId"], chunks[0]["messageId"]);
}
