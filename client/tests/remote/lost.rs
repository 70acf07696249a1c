//! Streams that are lost while the connection continues.

use std::time::Duration;

use acp_client::remote::RemoteError;
use acp_client::{Client, ConnectionState, Reconnect};
use acp_sdk::v1::StopReason;
use serde_json::{Value, json};

use crate::fake::{Server, Stream, message, request, result, send, update, within};

#[tokio::test]
async fn a_stream_goes_on_after_the_last_event_that_came() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (_sender, mut receiver, mut connection) = server.connect(agent).await;
    connection.event_with("7.1", &json!({"a": 1})).await;
    // An incomplete event is not delivered.
    connection.write("id: 8\ndata: {\"a\"").await;
    assert_eq!(message(&mut receiver).await, json!({"a": 1}));
    drop(connection);
    let get = server.next("GET connection").await;
    assert_eq!(get.header("last-event-id"), Some("7.1"));
    // The first attempt fails.
    get.respond("502 Bad Gateway", "", "").await;
    let get = server.next("GET connection").await;
    assert_eq!(get.header("last-event-id"), Some("7.1"));
    get.cut();
    let mut connection = server.next("GET connection").await.stream().await;
    connection.event_with("8", &json!({"a": 2})).await;
    assert_eq!(message(&mut receiver).await, json!({"a": 2}));
}

#[tokio::test]
async fn a_stream_without_ids_is_opened_without_a_cursor() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/new", None)).await;
    server.next("POST session/new").await.accept().await;
    connection
        .event(&result(1, json!({"sessionId": "s1"})))
        .await;
    message(&mut receiver).await;
    for text in ["one", "two", "three"] {
        let get = server.next("GET s1").await;
        assert_eq!(get.header("last-event-id"), None);
        let mut session = get.stream().await;
        session.event(&update("s1", text)).await;
        assert_eq!(message(&mut receiver).await, update("s1", text));
    }
}

#[tokio::test]
async fn what_a_first_reader_has_not_got_is_asked_for_where_events_are_numbered() {
    let mut server = Server::start().await;
    server.initialized["agentCapabilities"] = json!({"_meta": {"acp-sdk": {"eventId": true}}});
    let agent = server.agent();
    let (sender, mut receiver, connection) = server.connect(agent).await;
    // The request may have been sent.
    drop(connection);
    let get = server.next("GET connection").await;
    assert_eq!(get.header("last-event-id"), Some("0"));
    let mut connection = get.stream().await;
    send(&sender, &request(1, "session/new", None)).await;
    server.next("POST session/new").await.accept().await;
    connection
        .event_with("0.1", &result(1, json!({"sessionId": "s1"})))
        .await;
    message(&mut receiver).await;
    let get = server.next("GET s1").await;
    assert_eq!(get.header("last-event-id"), None);
    get.cut();
    assert_eq!(
        server.next("GET s1").await.header("last-event-id"),
        Some("0")
    );
    // Events before a resumed session are not wanted.
    send(&sender, &request(2, "session/resume", Some("s2"))).await;
    server.next("GET s2").await.cut();
    assert_eq!(server.next("GET s2").await.header("last-event-id"), None);
}

#[tokio::test]
async fn a_silent_stream_is_lost_only_if_it_was_not_silent_before() {
    let mut server = Server::start().await;
    let idle = Duration::from_millis(50);
    let agent = server.agent().idle_timeout(idle);
    let (_sender, mut receiver, mut connection) = server.connect(agent).await;
    assert!(server.is_idle().await, "no sign of life was seen so far");
    connection.write(": keep-alive\n\n").await;
    let mut second = server.next("GET connection").await.stream().await;
    second.event(&json!({"a": 1})).await;
    assert_eq!(message(&mut receiver).await, json!({"a": 1}));
}

#[tokio::test]
async fn reconnecting_comes_to_an_end() {
    let mut server = Server::start().await;
    let limit = Duration::from_millis(300);
    let agent = server.agent().reconnect(
        Reconnect::default()
            .with_limit(limit)
            .with_waits(Duration::from_millis(20), Duration::from_millis(20)),
    );
    let (_sender, mut receiver, connection) = server.connect(agent).await;
    drop(connection);
    let refusing = async {
        loop {
            server.next("GET connection").await.cut();
        }
    };
    let error = tokio::select! {
        received = within(receiver.receive()) => received.unwrap_err(),
        () = refusing => unreachable!("it goes on"),
    };
    assert!(
        matches!(error, RemoteError::ReconnectTimeout { .. }),
        "{error}"
    );
}

#[tokio::test]
async fn a_stream_that_was_open_for_long_without_an_event_is_opened_again() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (_sender, mut receiver, mut connection) = server.connect(agent).await;
    for _ in 0..3 {
        drop(connection);
        connection = server.next("GET connection").await.stream().await;
        // The client reads the headers before its clock is advanced.
        assert!(server.is_idle().await);
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(30)).await;
        tokio::time::resume();
    }
    connection.event(&json!({"a": 1})).await;
    assert_eq!(message(&mut receiver).await, json!({"a": 1}));
}

#[tokio::test]
async fn without_reconnecting_the_first_loss_is_the_end() {
    let mut server = Server::start().await;
    let agent = server.agent().reconnect(None);
    let (_sender, mut receiver, connection) = server.connect(agent).await;
    drop(connection);
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Lost { .. }), "{error}");
    assert!(server.is_idle().await);
}

#[tokio::test]
async fn a_connection_that_the_server_has_forgotten_is_lost() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (_sender, mut receiver, connection) = server.connect(agent).await;
    drop(connection);
    let get = server.next("GET connection").await;
    get.respond("404 Not Found", "", "").await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Lost { .. }), "{error}");
}

/// Answers `initialize` of a client, and returns the stream of the connection.
async fn initialized(server: &mut Server, connection: &str) -> Stream {
    let post = server.next("POST initialize").await;
    let session = json!({"resume": true, "promptResult": true});
    let hello = json!({"protocolVersion": 1,
        "agentCapabilities": {"_meta": {"acp-sdk": {"eventId": true, "session": session}}}});
    let answer = json!({"jsonrpc": "2.0", "id": post.json()["id"], "result": hello});
    let headers = format!("Acp-Connection-Id: {connection}\r\n");
    post.respond("200 OK", &headers, &answer.to_string()).await;
    server.next("GET connection").await.stream().await
}

/// Accepts a request, and sends its result on a stream.
async fn answer(server: &mut Server, method: &str, stream: &mut Stream, value: Value) -> Value {
    let post = server.next(&format!("POST {method}")).await;
    let request = post.json();
    post.accept().await;
    let result = json!({"jsonrpc": "2.0", "id": request["id"], "result": value});
    stream.event(&result).await;
    request
}

/// The request for the result of a prompt can be lost like the prompt. Both are lost while the
/// streams stay open, so that nothing else shows the loss.
async fn a_prompt_is_answered_although_it_and_its_query_are_lost() {
    let mut server = Server::start().await;
    let client = tokio::spawn(Client::builder().connect_remote(server.agent()));
    let mut connection = initialized(&mut server, "c1").await;
    let client = within(client).await.unwrap().unwrap();
    let created = json!({"sessionId": "s1"});
    let (session, _) = within(async {
        tokio::join!(
            client.new_session(std::env::temp_dir()),
            answer(&mut server, "session/new", &mut connection, created)
        )
    })
    .await;
    let session = session.unwrap();
    let _session_stream = server.next("GET s1").await.stream().await;

    let turn = session.prompt("hello").await.unwrap();
    let prompt = server.next("POST session/prompt").await;
    let name = prompt.json()["params"]["_meta"]["acp-sdk"]["promptId"].clone();
    prompt.cut();
    server
        .next("POST _acp-sdk/session/prompt_result")
        .await
        .cut();

    let mut connection = initialized(&mut server, "c2").await;
    let mut events = server.next("GET s1").await.stream().await;
    answer(
        &mut server,
        "_acp-sdk/session/resume",
        &mut events,
        json!({}),
    )
    .await;
    let result = json!({"stopReason": "end_turn"});
    let method = "_acp-sdk/session/prompt_result";
    let query = answer(&mut server, method, &mut connection, result).await;
    assert_eq!(query["params"]["promptId"], name);
    let outcome = within(turn.outcome()).await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::EndTurn);
    // The first connection ends without a word, because that would end its turns.
    let mut requests = Vec::new();
    while let Some(request) = server.received() {
        requests.push(request.line);
    }
    assert!(
        !requests.iter().any(|line| line.starts_with("DELETE")),
        "{requests:?}"
    );
}

#[tokio::test]
async fn a_lost_query_is_repeated() {
    a_prompt_is_answered_although_it_and_its_query_are_lost().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_lost_query_is_repeated_on_four_threads() {
    a_prompt_is_answered_although_it_and_its_query_are_lost().await;
}

/// The server does not answer while its connection may still exist.
async fn an_unreachable_server_shows_at_once() {
    let mut server = Server::start().await;
    let client = tokio::spawn(Client::builder().connect_remote(server.agent()));
    let mut connection = initialized(&mut server, "c1").await;
    let client = within(client).await.unwrap().unwrap();
    let mut state = client.connection_state();
    let is_lost = |state: &ConnectionState| matches!(state, ConnectionState::Lost { .. });
    let is_open = |state: &ConnectionState| *state == ConnectionState::Open;
    assert!(is_open(&state.borrow()));
    // A stream that ends and is opened again is no loss.
    drop(connection);
    connection = server.next("GET connection").await.stream().await;
    assert!(server.is_idle().await && !state.has_changed().unwrap());
    drop(connection);
    server.next("GET connection").await.cut();
    within(state.wait_for(is_lost)).await.unwrap();
    connection = server.next("GET connection").await.stream().await;
    within(state.wait_for(is_open)).await.unwrap();
    // A POST shows it, too, and any sign of life of a stream ends it.
    let caller = client.clone();
    let call = tokio::spawn(async move { caller.authenticate("x").await });
    server.next("POST authenticate").await.cut();
    within(state.wait_for(is_lost)).await.unwrap();
    connection.write(": keep-alive\n\n").await;
    within(state.wait_for(is_open)).await.unwrap();
    within(call).await.unwrap().unwrap_err();
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_shows_at_once() {
    an_unreachable_server_shows_at_once().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_server_that_cannot_be_reached_shows_at_once_on_four_threads() {
    an_unreachable_server_shows_at_once().await;
}
