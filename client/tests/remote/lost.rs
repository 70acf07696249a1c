//! Streams that are lost while the connection continues.

use std::time::Duration;

use acp_client::Reconnect;
use acp_client::remote::RemoteError;
use serde_json::json;

use crate::fake::{Server, message, request, result, send, update, within};

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
