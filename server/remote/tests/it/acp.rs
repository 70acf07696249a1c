//! `/acp` over HTTP and server-sent events.

use acp_reference_agent::Reference;
use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_server::{Limits, Server};
use acp_server_remote::{BodyBudget, EndpointSettings, Tokens};
use serde_json::json;

use crate::http::{Client, Host, Open, request, said};
use crate::websocket::Socket;

async fn host() -> Host {
    Host::start(Server::new(Reference), &EndpointSettings::default()).await
}

/// Reads events up to the answer to a request; returns the ids and what was said.
async fn until_answer(stream: &mut Open, request: u64) -> Vec<(String, String)> {
    let mut events = Vec::new();
    loop {
        let event = stream.event().await.unwrap();
        if event.data["id"] == request && event.data["method"].is_null() {
            events.push((
                event.id,
                format!("answer {}", event.data["result"]["stopReason"]),
            ));
            return events;
        }
        events.push((event.id.clone(), said(&event).to_owned()));
    }
}

#[tokio::test]
async fn a_turn_over_two_streams() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    assert_eq!(connection.header("content-type"), Some("text/event-stream"));
    assert_eq!(connection.header("acp-connection-id"), Some(&*client.id));
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    assert_eq!(stream.header("acp-session-id"), Some(&*session));
    let prompt = client.prompt(&session, "hello").await;
    let events = until_answer(&mut stream, prompt).await;
    let expected = [("3", "hello"), ("3.1", "answer \"end_turn\"")];
    let expected = expected.map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(events.last(), expected.last(), "{events:?}");
    assert!(events.contains(&expected[0]), "{events:?}");
}

#[tokio::test]
async fn a_session_whose_stream_opens_late_misses_nothing() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let prompt = client.prompt(&session, "stream 3000").await;
    let handle = host.server.session(&session.as_str().into()).await.unwrap();
    let mut events = handle.subscribe(0);
    // The turn ends although nobody reads.
    while handle.phase() != acp_server::Phase::Idle || handle.last_event() < 3000 {
        events.next().await.unwrap();
    }
    let mut stream = client.stream(Some(&session), None).await;
    let events = until_answer(&mut stream, prompt).await;
    let numbers: Vec<u64> = events
        .iter()
        .filter_map(|(id, _)| id.parse().ok())
        .collect();
    assert!(numbers.is_sorted_by(|before, after| before < after));
    let text: String = events.iter().map(|(_, text)| text.as_str()).collect();
    assert!(text.ends_with("answer \"end_turn\""));
    assert_eq!(numbers.len(), 3000);
}

#[tokio::test]
async fn a_lost_stream_continues_after_its_cursor() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    let prompt = client.prompt(&session, "stream 2000").await;
    let mut seen = Vec::new();
    let mut cursor = None;
    // Lost after ever more events, which the server may have sent long ago.
    for length in 1.. {
        let mut ended = false;
        for _ in 0..length * 7 {
            let event = stream.event().await.unwrap();
            cursor = Some(event.id.clone());
            ended = event.data["id"] == prompt;
            seen.push(event.id);
            if ended {
                break;
            }
        }
        if ended {
            break;
        }
        drop(stream);
        stream = client.stream(Some(&session), cursor.as_deref()).await;
    }
    assert_eq!(seen.len(), 2001, "{seen:?}");
    let numbers: Vec<u64> = seen.iter().filter_map(|id| id.parse().ok()).collect();
    assert!(numbers.is_sorted_by(|before, after| before < after));
    // The answer alone is sent again.
    let mut stream = client
        .stream(Some(&session), Some(&numbers[1999].to_string()))
        .await;
    let again = stream.event().await.unwrap();
    assert_eq!(
        (Some(&again.id), &again.data["id"]),
        (seen.last(), &json!(prompt))
    );
}

/// Two streams have no order between them, so what ends a session is answered where its updates are.
#[tokio::test]
async fn the_answers_at_the_end_of_a_session_follow_its_updates() {
    for method in ["session/close", "session/delete"] {
        let host = host().await;
        let client = Client::connect(&host).await;
        let mut connection = client.stream(None, None).await;
        let session = client.new_session(&mut connection).await;
        let mut stream = client.stream(Some(&session), None).await;
        let prompt = client.prompt(&session, "slow").await;
        let first = stream.event().await.unwrap();
        assert_eq!(said(&first), "tick 1\n", "{method}");
        let last = client.send(method, json!({ "sessionId": session })).await;
        let mut answers = Vec::new();
        while answers.len() < 2 {
            let event = stream.event().await.unwrap();
            answers.extend(event.data["id"].as_u64());
        }
        answers.sort_unstable();
        assert_eq!(answers, [prompt, last], "{method}");
        // What is asked after that has no stream of its own: the client may be closing it.
        let late = client.prompt(&session, "late").await;
        assert_eq!(connection.event().await.unwrap().data["id"], late);
    }
}

/// A client may end the reader of a session, and then the session.
#[tokio::test]
async fn answers_that_nobody_has_read_are_sent_when_their_stream_has_no_reader() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let stream = client.stream(Some(&session), None).await;
    drop(stream);
    let answered = client.prompt(&session, "ping").await;
    let handle = host.server.session(&session.as_str().into()).await.unwrap();
    let mut events = handle.subscribe(0);
    while handle.phase() != acp_server::Phase::Idle || handle.last_event() < 3 {
        events.next().await.unwrap();
    }
    let cancelled = client.prompt(&session, "slow").await;
    let close = client
        .send("session/close", json!({ "sessionId": session }))
        .await;
    for request in [answered, cancelled, close] {
        assert_eq!(connection.event().await.unwrap().data["id"], request);
    }
}

/// Nothing on the way accepts less than the session does.
#[tokio::test]
async fn a_prompt_may_be_as_large_as_the_limit_of_prompts() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    let largest = Limits::default().prompt_bytes;
    let text = |bytes: usize| format!("ping {}", "x".repeat(bytes - "ping ".len()));
    let prompt = client.prompt(&session, &text(largest)).await;
    let events = until_answer(&mut stream, prompt).await;
    assert_eq!(events.last().unwrap().1, "answer \"end_turn\"");
    let prompt = client.prompt(&session, &text(largest + 1)).await;
    let events = until_answer(&mut stream, prompt).await;
    assert_eq!(events.last().unwrap().1, "answer null");
}

#[tokio::test]
async fn an_open_permission_is_asked_again_on_a_new_stream() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    let prompt = client.prompt(&session, "permission").await;
    let asked = loop {
        let event = stream.event().await.unwrap();
        if event.data["method"] == "session/request_permission" {
            break event;
        }
    };
    drop(stream);
    let mut stream = client.stream(Some(&session), None).await;
    let again = stream.event().await.unwrap();
    assert_eq!(again.data, asked.data);
    let option = &asked.data["params"]["options"][0]["optionId"];
    let outcome = json!({ "outcome": "selected", "optionId": option });
    let answer =
        json!({ "jsonrpc": "2.0", "id": asked.data["id"], "result": { "outcome": outcome } });
    client.send_raw(&answer.to_string(), None).await;
    let events = until_answer(&mut stream, prompt).await;
    assert_eq!(events.last().unwrap().1, "answer \"end_turn\"");
}

#[tokio::test]
async fn a_load_replays_on_the_session_stream_and_answers_on_that_of_the_connection() {
    let host = host().await;
    let first = Client::connect(&host).await;
    let mut connection = first.stream(None, None).await;
    let session = first.new_session(&mut connection).await;
    let mut stream = first.stream(Some(&session), None).await;
    let prompt = first.prompt(&session, "hello").await;
    until_answer(&mut stream, prompt).await;

    let place = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    // As the official TypeScript and Rust clients do: both streams first.
    let second = Client::connect(&host).await;
    let mut connection = second.stream(None, None).await;
    let mut stream = second.stream(Some(&session), None).await;
    let load = second.send("session/load", place.clone()).await;
    let texts = [
        said(&stream.event().await.unwrap()).to_owned(),
        said(&stream.event().await.unwrap()).to_owned(),
    ];
    assert_eq!(texts, ["hello", "hello"]);
    assert_eq!(connection.event().await.unwrap().data["id"], load);

    // As the official Python client does: no header, and no stream before the answer.
    let third = Client::connect(&host).await;
    let mut connection = third.stream(None, None).await;
    third
        .send_raw(&request(7, "session/load", place), None)
        .await;
    let mut texts = Vec::new();
    loop {
        let event = connection.event().await.unwrap();
        if event.data["id"] == 7 {
            break;
        }
        texts.push(said(&event).to_owned());
    }
    assert_eq!(texts, ["hello", "hello"]);
}

#[tokio::test]
async fn the_end_of_a_connection_ends_no_turn() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    client.prompt(&session, "permission").await;
    while stream.event().await.unwrap().data["method"] != "session/request_permission" {}
    let headers = [("acp-connection-id", client.id.as_str())];
    assert_eq!(host.request("DELETE", &headers, "").await.status, 202);
    assert_eq!(host.request("DELETE", &headers, "").await.status, 404);
    // The request is given up; the turn is not.
    assert_eq!(stream.event().await.unwrap().data["error"]["code"], -32800);
    assert_eq!(
        (stream.event().await, connection.event().await),
        (None, None)
    );
    let handle = host.server.session(&session.as_str().into()).await.unwrap();
    assert_eq!(handle.phase(), acp_server::Phase::Running);

    // Another client answers the question.
    let client = Client::connect(&host).await;
    let mut stream = client.stream(Some(&session), None).await;
    let place = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    client.send("session/resume", place).await;
    let asked = stream.event().await.unwrap().data;
    assert_eq!(asked["method"], "session/request_permission");
    let outcome = json!({ "outcome": "cancelled" });
    let answer = json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "outcome": outcome } });
    client.send_raw(&answer.to_string(), Some(&session)).await;
    let mut events = handle.subscribe(0);
    while handle.phase() != acp_server::Phase::Idle {
        events.next().await.unwrap();
    }
}

#[tokio::test]
async fn every_refusal_has_its_status_and_says_why() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let id = ("acp-connection-id", client.id.as_str());
    let note = r#"{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"s"}}"#;
    let initialize = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let large = format!("\"{}\"", "x".repeat(MAX_MESSAGE_BYTES));
    let unknown = ("acp-connection-id", "conn_0");
    let other = ("acp-session-id", "t");
    let version = ("acp-protocol-version", "99");
    type Headers<'a> = Vec<(&'a str, &'a str)>;
    let cases: Vec<(Headers<'_>, &str, u16, &str)> = vec![
        (vec![], note, 400, "missing_connection_id"),
        (vec![unknown], note, 404, "unknown_connection"),
        (vec![id, id], note, 400, "bad_header"),
        (vec![id, other], note, 400, "sessions_disagree"),
        (vec![id, version], note, 400, "unsupported_protocol_version"),
        (vec![id], &initialize, 400, "connected_already"),
        (vec![id], &large, 413, "too_large"),
        (vec![id], "[]", 400, "-32600"),
        (vec![id], r#"[{"id":1"#, 400, "-32600"),
        (vec![id], "{", 400, "-32700"),
        (vec![id], "{}", 400, "-32600"),
        (vec![id], r#"{"id":1,"method":7}"#, 400, "-32600"),
        (vec![id], r#"{"id":{},"method":"a"}"#, 400, "-32600"),
        (vec![], r#"{"method":"initialize"}"#, 400, "-32600"),
    ];
    for (headers, body, status, error) in cases {
        let response = host.post(&headers, body).await;
        assert_eq!(response.status, status, "{response:?}");
        assert!(response.body.contains(error), "{response:?}");
    }
    let text = [("content-type", "text/plain"), id];
    assert_eq!(host.request("POST", &text, note).await.status, 415);
    let json = [("content-type", "Application/JSON; charset=\"UTF-8\""), id];
    assert_eq!(host.request("POST", &json, note).await.status, 202);
    assert_eq!(host.request("PUT", &[id], note).await.status, 405);
    let accept = ("accept", "application/json, text/event-stream;q=0");
    assert_eq!(host.request("GET", &[id, accept], "").await.status, 406);
    assert_eq!(host.request("GET", &[], "").await.status, 400);
    assert_eq!(host.request("GET", &[unknown], "").await.status, 404);
    assert_eq!(host.request("DELETE", &[], "").await.status, 400);
    // The connection is as it was.
    let mut connection = client.stream(None, None).await;
    client.new_session(&mut connection).await;
}

#[tokio::test]
async fn a_header_names_the_session_that_the_parameters_leave_out() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    let mut stream = client.stream(Some(&session), None).await;
    let body = request(
        9,
        "session/prompt",
        json!({ "prompt": [{ "type": "text", "text": "hello" }] }),
    );
    client.send_raw(&body, Some(&session)).await;
    until_answer(&mut stream, 9).await;
}

#[tokio::test]
async fn the_error_about_an_unknown_session_has_a_stream() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let prompt = client.prompt("no such session", "hello").await;
    let answer = connection.event().await.unwrap().data;
    assert_eq!(
        (&answer["id"], &answer["error"]["code"]),
        (&json!(prompt), &json!(-32002))
    );
}

#[tokio::test]
async fn a_session_that_is_deleted_already_is_answered_on_the_connection_stream() {
    let host = host().await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    // Its reader is about to go, which the server cannot know.
    let _stream = client.stream(Some(&session), None).await;
    let params = || json!({ "sessionId": session });
    client.send("session/delete", params()).await;
    let again = client.send("session/delete", params()).await;
    while connection.event().await.unwrap().data["id"] != again {}
}

#[tokio::test]
async fn places_are_limited_and_come_back() {
    let mut settings = EndpointSettings::default();
    settings.connections = 1;
    settings.streams = 2;
    let host = Host::start(Server::new(Reference), &settings).await;
    let client = Client::connect(&host).await;
    let initialize = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let refused = host.post(&[], &initialize).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    let id = ("acp-connection-id", client.id.as_str());
    let _streams = [
        client.stream(Some("a"), None).await,
        client.stream(Some("b"), None).await,
    ];
    let third = host
        .request("GET", &[id, ("acp-session-id", "c")], "")
        .await;
    assert_eq!(third.status, 503);
    let mut connection = client.stream(None, None).await;
    assert_eq!(host.request("DELETE", &[id], "").await.status, 202);
    // The end of the stream is that of the connection.
    assert_eq!(connection.event().await, None);
    while host.post(&[], &initialize).await.status != 200 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn unanswered_requests_are_limited() {
    let mut settings = EndpointSettings::default();
    settings.requests = 2;
    let host = Host::start(Server::new(Reference), &settings).await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let session = client.new_session(&mut connection).await;
    client.prompt(&session, "slow").await;
    client.prompt(&session, "slow").await;
    let headers = [("acp-connection-id", client.id.as_str())];
    let list = request(9, "session/list", json!({}));
    let refused = host.post(&headers, &list).await;
    assert_eq!(
        (refused.status, refused.header("retry-after")),
        (503, Some("5"))
    );
    let cancel =
        json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } });
    client.send_raw(&cancel.to_string(), None).await;
    let mut stream = client.stream(Some(&session), None).await;
    while stream.event().await.unwrap().data["result"]["stopReason"] != "cancelled" {}
    assert_eq!(host.post(&headers, &list).await.status, 202);
}

#[tokio::test]
async fn a_body_that_does_not_arrive_is_refused() {
    let mut settings = EndpointSettings::default();
    settings.body_timeout = std::time::Duration::from_millis(50);
    let host = Host::start(Server::new(Reference), &settings).await;
    let head = format!(
        "POST /acp HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: 9\r\n\r\n{{",
        host.address
    );
    assert_eq!(host.raw(&head).await.status, 408);
}

/// Nothing of it is read: none of it comes.
#[tokio::test]
async fn a_body_that_is_announced_as_too_large_is_refused_before_it_comes() {
    let settings = EndpointSettings::default();
    let server = Server::new(Reference);
    let routes = acp_server_remote::router(server.clone(), &settings);
    #[cfg(feature = "rpc")]
    let routes = routes.merge(acp_server_remote::rpc(server.clone(), &settings));
    let rest = acp_server_remote::rest(server.clone(), &settings, Tokens::open());
    let host = Host::protecting(server, routes.merge(rest), Tokens::open()).await;
    let mut paths = vec!["/acp", "/session"];
    if cfg!(feature = "rpc") {
        paths.push("/rpc");
    }
    for path in paths {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\n\
             content-length: {}\r\n\r\n",
            host.address,
            settings.message_bytes + 1
        );
        let answer = tokio::time::timeout(crate::raw::PATIENCE, host.raw(&head)).await;
        assert_eq!(
            answer.expect("the server waits for the body").status,
            413,
            "{path}"
        );
    }
}

/// axum's own limit is 2 MB.
#[tokio::test]
async fn a_rest_body_may_be_as_large_as_any_other() {
    let settings = EndpointSettings::default();
    let server = Server::new(Reference);
    let routes = acp_server_remote::rest(server.clone(), &settings, Tokens::open());
    let host = Host::protecting(server, routes, Tokens::open())
        .await
        .at("/session");
    let body = json!({ "padding": "x".repeat(3 << 20) }).to_string();
    assert_eq!(host.post(&[], &body).await.status, 201);
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_refused_for_now() {
    let mut settings = EndpointSettings::default();
    settings.bodies = BodyBudget::new(8);
    let host = Host::start(Server::new(Reference), &settings).await;
    let initialize = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let mut paths = vec!["/acp"];
    if cfg!(feature = "rpc") {
        paths.push("/rpc");
    }
    for path in paths {
        let refused = Host {
            path,
            ..host.clone()
        };
        let refused = refused.post(&[], &initialize).await;
        assert_eq!(refused.status, 503, "{path}");
        assert_eq!(refused.header("retry-after"), Some("5"), "{path}");
        assert_eq!(refused.json()["error"], "too_many_bytes", "{path}");
    }
}

#[tokio::test]
async fn a_connection_that_nobody_uses_ends() {
    let mut settings = EndpointSettings::default();
    settings.grace = std::time::Duration::from_millis(50);
    settings.connections = 1;
    let host = Host::start(Server::new(Reference), &settings).await;
    let client = Client::connect(&host).await;
    // An open stream is use.
    let mut connection = client.stream(None, None).await;
    tokio::time::timeout(settings.grace * 4, connection.event())
        .await
        .unwrap_err();
    client.new_session(&mut connection).await;
    drop(connection);
    let initialize = request(1, "initialize", json!({ "protocolVersion": 1 }));
    let mut tries = tokio::time::interval(settings.grace / 10);
    while host.post(&[], &initialize).await.status == 503 {
        tries.tick().await;
    }
    let id = [("acp-connection-id", client.id.as_str())];
    assert_eq!(host.request("DELETE", &id, "").await.status, 404);
}

#[tokio::test]
async fn the_end_of_the_server_ends_streams_and_web_sockets() {
    let settings = EndpointSettings::default();
    let host = Host::start(Server::new(Reference), &settings).await;
    let client = Client::connect(&host).await;
    let mut connection = client.stream(None, None).await;
    let mut socket = Socket::connect(&host).await;
    settings.stop.cancel();
    assert_eq!(connection.event().await, None);
    assert_eq!(socket.receive().await, None);
    let id = [("acp-connection-id", client.id.as_str())];
    assert_eq!(host.request("DELETE", &id, "").await.status, 404);
}
