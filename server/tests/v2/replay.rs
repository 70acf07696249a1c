//! What a client that resumes is sent.

use crate::clients::{Answers, ClientV2, Entry};
use crate::handler::server;

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
async fn a_replay_repeats_the_conversation_and_ends_with_the_state() {
    let (server, session, mut seen) = session().await;
    let client = ClientV2::connect(&server, Answers::Yes).await;
    let response = client.replay(&session).await;
    let mut replayed = client.view.entries();
    let state = replayed.pop().unwrap();
    assert_eq!(state.body["state"], "idle");
    assert_eq!(state.number, None);
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
