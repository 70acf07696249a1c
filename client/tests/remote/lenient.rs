//! Servers that differ from the proposal or from each other.

use acp_client::remote::RemoteError;
use serde_json::json;

use crate::fake::{Server, message, request, result, send, update, within};

#[tokio::test]
async fn a_session_is_loaded_where_its_stream_is_refused_before() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/load", Some("s1"))).await;
    // Before the POST, as the official servers require.
    let get = server.next("GET s1").await;
    assert!(server.is_idle().await);
    get.respond("404 Not Found", "", "").await;
    // This server does not know the session in the header either.
    let post = server.next("POST session/load").await;
    assert_eq!(post.header("acp-session-id"), Some("s1"));
    post.respond("404 Not Found", "", "").await;
    let post = server.next("POST session/load").await;
    assert_eq!(post.header("acp-session-id"), None);
    post.accept().await;
    connection.event(&result(1, json!({}))).await;
    // The replay follows the answer, and is no news.
    let mut session = server.next("GET s1").await.stream().await;
    session.event(&update("s1", "replayed")).await;
    assert_eq!(message(&mut receiver).await, update("s1", "replayed"));
    assert_eq!(message(&mut receiver).await, result(1, json!({})));
}

#[tokio::test]
async fn a_session_without_a_stream_is_loaded_all_the_same() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/load", Some("s1"))).await;
    let get = server.next("GET s1").await;
    get.respond("404 Not Found", "", "").await;
    server.next("POST session/load").await.accept().await;
    connection.event(&result(1, json!({}))).await;
    let get = server.next("GET s1").await;
    get.respond("404 Not Found", "", "").await;
    assert_eq!(message(&mut receiver).await, result(1, json!({})));
}

#[tokio::test]
async fn the_answer_to_load_may_come_on_either_stream() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    for (id, on_session) in [(1, true), (2, false)] {
        let name = format!("s{id}");
        send(&sender, &request(id, "session/load", Some(&name))).await;
        let mut session = server.next("GET").await.stream().await;
        server.next("POST session/load").await.accept().await;
        session.event(&update(&name, "replayed")).await;
        match on_session {
            true => session.event(&result(id, json!({}))).await,
            false => connection.event(&result(id, json!({}))).await,
        }
        assert_eq!(message(&mut receiver).await, update(&name, "replayed"));
        assert_eq!(message(&mut receiver).await, result(id, json!({})));
    }
}

#[tokio::test]
async fn a_server_that_can_is_asked_whether_the_replay_has_ended() {
    let mut server = Server::start().await;
    server.initialized["agentCapabilities"] =
        json!({"_meta": {"acp-sdk": {"session": {"state": true}}}});
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/load", Some("s1"))).await;
    let mut session = server.next("GET s1").await.stream().await;
    server.next("POST session/load").await.accept().await;
    connection.event(&result(1, json!({}))).await;
    let probe = server.next("POST _acp-sdk/session/state").await;
    assert_eq!(probe.header("acp-session-id"), Some("s1"));
    let id = probe.json()["id"].clone();
    probe.accept().await;
    session.event(&update("s1", "replayed")).await;
    assert_eq!(message(&mut receiver).await, update("s1", "replayed"));
    session
        .event(&json!({"jsonrpc": "2.0", "id": id, "result": {}}))
        .await;
    assert_eq!(message(&mut receiver).await, result(1, json!({})));
}

#[tokio::test]
async fn a_server_without_session_streams_is_read_all_the_same() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/new", None)).await;
    // The response is in the body of the POST's response.
    let answer = result(1, json!({"sessionId": "s1"}));
    let post = server.next("POST session/new").await;
    post.respond("200 OK", "", &answer.to_string()).await;
    assert_eq!(message(&mut receiver).await, answer);
    server
        .next("GET s1")
        .await
        .respond("405 Method Not Allowed", "", "")
        .await;
    for id in 2..4 {
        send(&sender, &request(id, "session/prompt", Some("s1"))).await;
        server.next("POST session/prompt").await.accept().await;
        connection.event(&update("s1", "hello")).await;
        connection.event(&result(id, json!({}))).await;
        assert_eq!(message(&mut receiver).await, update("s1", "hello"));
        assert_eq!(message(&mut receiver).await, result(id, json!({})));
    }
    assert!(server.is_idle().await, "the stream is not asked for again");
}

#[tokio::test]
async fn any_form_of_events_is_read() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (_sender, mut receiver, mut connection) = server.connect(agent).await;
    let text = "{\"a\":\"ü🦀\"}";
    let forms = [
        format!("data: {text}\n\n"),
        format!(":\n\n: comment\n\ndata:{text}\n\n"),
        format!("event: message\r\nid: 1\r\ndata: {text}\r\n\r\n"),
        "data: {\"a\":\ndata: \"ü🦀\"}\n\n".to_owned(),
        format!("retry: 1\n\ndata:\n\nid: 2\n\ndata: {text}\n\n"),
    ];
    for form in &forms {
        // Chunks also end inside of characters.
        for piece in form.as_bytes().chunks(3) {
            connection.write(piece).await;
        }
        assert_eq!(
            message(&mut receiver).await,
            json!({"a": "ü🦀"}),
            "{form:?}"
        );
    }
}

#[tokio::test]
async fn an_endless_event_ends_the_connection() {
    let mut server = Server::start().await;
    let agent = server.agent().max_message_bytes(10_000);
    let (_sender, mut receiver, mut connection) = server.connect(agent).await;
    connection.write("data: ").await;
    connection.write("x".repeat(20_000)).await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Protocol { .. }), "{error}");
}

#[tokio::test]
async fn the_end_of_a_session_without_a_stream_may_be_answered_on_its_stream() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    for (id, on_session) in [(1, true), (2, false)] {
        let name = format!("s{id}");
        send(&sender, &request(id, "session/delete", Some(&name))).await;
        let get = server.next(&format!("GET {name}")).await;
        let mut session = get.stream().await;
        server.next("POST session/delete").await.accept().await;
        let error = json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32002, "message": "?"}});
        match on_session {
            true => session.event(&error).await,
            false => connection.event(&error).await,
        }
        assert_eq!(message(&mut receiver).await, error);
        within(session.closed()).await;
    }
    // A server that rejects the stream may also reject the request.
    send(&sender, &request(3, "session/close", Some("s3"))).await;
    server
        .next("GET s3")
        .await
        .respond("404 Not Found", "", "")
        .await;
    let post = server.next("POST session/close").await;
    post.respond("404 Not Found", "", "").await;
    within(receiver.receive()).await.unwrap().unwrap();
    assert!(server.is_idle().await, "no stream is left to open again");
}

#[tokio::test]
async fn a_server_with_event_ids_needs_no_stream_for_the_end_of_a_session() {
    let mut server = Server::start().await;
    server.initialized["agentCapabilities"] = json!({"_meta": {"acp-sdk": {"eventId": true}}});
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/delete", Some("s1"))).await;
    server.next("POST session/delete").await.accept().await;
    connection.event(&result(1, json!({}))).await;
    assert_eq!(message(&mut receiver).await, result(1, json!({})));
    assert!(server.is_idle().await);
}
