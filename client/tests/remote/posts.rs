//! Posted messages: their order, and the handling of rejections.

use acp_client::remote::{Received, RemoteError, Token, connect_raw};
use serde_json::json;

use crate::fake::{Server, initialize, message, request, result, send, update, within};

#[tokio::test]
async fn a_connection_names_itself_and_keeps_cookies() {
    let mut server = Server::start().await;
    let agent = server.agent().token(Token::new("s3cret").unwrap());
    let agent = agent.header("X-Tenant", "blue").unwrap();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/new", None)).await;
    let post = server.next("POST session/new").await;
    for (name, value) in [
        ("acp-connection-id", "c1"),
        ("authorization", "Bearer s3cret"),
        ("x-tenant", "blue"),
        ("cookie", "node=7"),
        ("content-type", "application/json"),
    ] {
        assert_eq!(post.header(name), Some(value), "{name}");
    }
    assert_eq!(post.header("acp-session-id"), None);
    post.accept().await;
    // The response opens the session, so its stream is opened.
    connection
        .event(&result(1, json!({"sessionId": "s1"})))
        .await;
    assert_eq!(message(&mut receiver).await["result"]["sessionId"], "s1");
    let get = server.next("GET s1").await;
    assert_eq!(get.header("accept"), Some("text/event-stream"));
    assert_eq!(get.header("acp-connection-id"), Some("c1"));
    let mut session = get.stream().await;
    session.event(&update("s1", "hello")).await;
    assert_eq!(message(&mut receiver).await, update("s1", "hello"));
    drop(sender);
    let delete = server.next("DELETE").await;
    assert_eq!(delete.header("acp-connection-id"), Some("c1"));
    delete.accept().await;
    drop((session, connection));
    assert_eq!(within(receiver.receive()).await, Ok(None));
    within(receiver.closed()).await;
    // The streams that the server has ended are not opened again.
    assert!(server.received().is_none());
}

#[tokio::test]
async fn the_stream_of_the_connection_is_opened_before_the_first_message() {
    let mut server = Server::start().await;
    let (sender, mut receiver) = connect_raw(&server.agent()).await.unwrap();
    send(&sender, &initialize()).await;
    let post = server.next("POST initialize").await;
    let answer = result(0, server.initialized.clone());
    let headers = "Acp-Connection-Id: c1\r\n";
    post.respond("200 OK", headers, &answer.to_string()).await;
    assert_eq!(message(&mut receiver).await, answer);
    send(&sender, &request(1, "session/new", None)).await;
    let get = server.next("GET connection").await;
    assert!(server.is_idle().await, "the message waits for the stream");
    let _stream = get.stream().await;
    server.next("POST session/new").await.accept().await;
}

#[tokio::test]
async fn posts_are_sent_in_order_and_answers_beside_them() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    send(&sender, &request(1, "first", None)).await;
    send(&sender, &request(2, "second", None)).await;
    let first = server.next("POST first").await;
    assert!(server.is_idle().await, "the second one waits for the first");
    // The server waits for a response before it accepts the first message.
    let ask = json!({"jsonrpc": "2.0", "id": "q", "method": "ask", "params": {"sessionId": "s1"}});
    connection.event(&ask).await;
    assert_eq!(message(&mut receiver).await, ask);
    send(&sender, &json!({"jsonrpc": "2.0", "id": "q", "result": {}})).await;
    server
        .next("GET s1")
        .await
        .respond("405 Method Not Allowed", "", "")
        .await;
    let answer = server.next("POST answer").await;
    assert_eq!(answer.header("acp-session-id"), Some("s1"));
    answer.accept().await;
    first.accept().await;
    server.next("POST second").await.accept().await;
}

#[tokio::test]
async fn a_refusal_concerns_its_request_only() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    let body = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#;
    for (id, body) in [(1, "plain words"), (2, body)] {
        send(&sender, &request(id, "odd", None)).await;
        let post = server.next("POST odd").await;
        post.respond("400 Bad Request", "", body).await;
        let Ok(Some(Received::Refused(refused))) = within(receiver.receive()).await else {
            panic!("expected a refusal");
        };
        assert_eq!(refused.request, Some(id.to_string()));
        assert_eq!(refused.error.status(), Some(400));
        assert_eq!(refused.body.is_some(), body.starts_with('{'));
        assert!(!refused.is_uncertain);
    }
    // A server without capacity receives the request again.
    send(&sender, &request(3, "later", None)).await;
    let busy = server.next("POST later").await;
    busy.respond("503 Service Unavailable", "Retry-After: 0\r\n", "")
        .await;
    server.next("POST later").await.accept().await;
    connection.event(&result(3, json!({}))).await;
    assert_eq!(message(&mut receiver).await, result(3, json!({})));
}

#[tokio::test]
async fn a_request_without_a_response_is_not_sent_twice() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, _connection) = server.connect(agent).await;
    send(&sender, &request(1, "session/prompt", None)).await;
    server.next("POST session/prompt").await.cut();
    match within(receiver.receive()).await {
        Ok(Some(Received::Refused(refused))) => assert!(refused.is_uncertain),
        other => panic!("expected a refusal, got {other:?}"),
    }
    // A cancellation may be repeated.
    let cancel = json!({"jsonrpc": "2.0", "method": "session/cancel", "params": {}});
    send(&sender, &cancel).await;
    server.next("POST session/cancel").await.cut();
    server.next("POST session/cancel").await.accept().await;
    assert!(server.is_idle().await);
}

#[tokio::test]
async fn what_cannot_go_on_ends_the_connection() {
    for status in ["401 Unauthorized", "403 Forbidden", "410 Gone"] {
        let mut server = Server::start().await;
        let agent = server.agent();
        let (sender, mut receiver, _connection) = server.connect(agent).await;
        send(&sender, &request(1, "any", None)).await;
        server
            .next("POST any")
            .await
            .respond(status, "", "no")
            .await;
        let error = within(receiver.receive()).await.unwrap_err();
        assert!(
            status.starts_with(&error.status().unwrap().to_string()),
            "{error}"
        );
        assert!(!error.is_temporary());
        assert!(sender.send("{}".into()).await.is_err());
    }
    // Unlike the others, this connection can be opened again.
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, _connection) = server.connect(agent).await;
    send(&sender, &request(1, "any", None)).await;
    server
        .next("POST any")
        .await
        .respond("404 Not Found", "", "")
        .await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

/// A prompt and the stream of its session are answered 404; the stream of the connection is open.
macro_rules! not_found {
    ($server:ident, $receiver:ident, $connection:ident, $body:expr) => {
        let mut $server = Server::start().await;
        let agent = $server.agent();
        let (sender, mut $receiver, mut $connection) = $server.connect(agent).await;
        // A round trip, so that the stream is known to be open.
        $connection.event(&json!({"a": 1})).await;
        message(&mut $receiver).await;
        send(&sender, &request(1, "session/prompt", Some("s1"))).await;
        let get = $server.next("GET s1").await;
        get.respond("404 Not Found", "", "").await;
        let post = $server.next("POST session/prompt").await;
        post.respond("404 Not Found", "", $body).await;
    };
}

#[tokio::test]
async fn a_session_that_is_gone_does_not_take_the_connection_with_it() {
    not_found!(server, receiver, connection, "no such session");
    match within(receiver.receive()).await {
        Ok(Some(Received::Refused(refused))) => assert_eq!(refused.error.status(), Some(404)),
        other => panic!("expected a refusal, got {other:?}"),
    }
    connection.event(&json!({"a": 2})).await;
    assert_eq!(message(&mut receiver).await, json!({"a": 2}));
}

/// Behind a load balancer the stream of a connection whose node is gone may end later than a request fails.
#[tokio::test]
async fn a_connection_that_the_server_calls_unknown_is_lost_although_its_stream_is_open() {
    let mut server = Server::start().await;
    let agent = server.agent();
    let (sender, mut receiver, mut connection) = server.connect(agent).await;
    connection.event(&json!({"a": 1})).await;
    message(&mut receiver).await;
    send(&sender, &request(1, "session/prompt", Some("s1"))).await;
    let get = server.next("GET s1").await;
    get.respond("404 Not Found", "", "").await;
    let post = server.next("POST session/prompt").await;
    let unknown = r#"{"error":"unknown_connection","message":"it has ended"}"#;
    post.respond("404 Not Found", "", unknown).await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(error.is_temporary(), "{error}");
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let mut server = Server::start().await;
    let (sender, mut receiver) = acp_client::remote::connect_raw(&server.agent())
        .await
        .unwrap();
    send(&sender, &crate::fake::initialize()).await;
    let elsewhere = format!("Location: {}x\r\n", server.url());
    let post = server.next("POST initialize").await;
    post.respond("307 Temporary Redirect", &elsewhere, "").await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert_eq!(error.status(), Some(307));
    assert!(server.is_idle().await);
}

#[tokio::test]
async fn a_server_without_connections_is_no_endpoint() {
    let mut server = Server::start().await;
    let (sender, mut receiver) = acp_client::remote::connect_raw(&server.agent())
        .await
        .unwrap();
    send(&sender, &crate::fake::initialize()).await;
    let answer = result(0, json!({"protocolVersion": 1})).to_string();
    server
        .next("POST initialize")
        .await
        .respond("200 OK", "", &answer)
        .await;
    let error = within(receiver.receive()).await.unwrap_err();
    assert!(matches!(error, RemoteError::Protocol { .. }), "{error}");
}
