//! Connections over HTTP whose requests reach any node.

use std::sync::Arc;

use acp_client::Client;
use acp_sdk::v1::{SessionId, StopReason};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::balancer::Balancer;
use crate::shared::{MASTER, Node, SECRET, SharedStore, agent, client, say};

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/list","params":{}}"#;

async fn over_http(address: &str) -> Client {
    client(agent(&format!("http://{address}/acp"))).await
}

fn load(session: &SessionId) -> String {
    let params = json!({ "sessionId": session, "cwd": "/work", "mcpServers": [] });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "session/load", "params": params }).to_string()
}

/// Opens a connection; returns its id.
async fn open(node: &Node) -> String {
    let answer = node.acp("POST", "", INITIALIZE).await;
    assert_eq!(answer.status(), 200);
    let id = answer.headers()["acp-connection-id"].to_str().unwrap();
    id.to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_requests_of_a_connection_alternate_between_nodes() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let balancer = Balancer::start(&[&first, &second]).await;
    let here = first.client().await;
    let owned = here.new_session("/work").await.unwrap();
    assert!(say(&owned, "before").await.contains("before"));

    let any = over_http(&balancer.address).await;
    let session = any.new_session("/work").await.unwrap();
    assert!(say(&session, "permission").await.contains("Permission: "));
    let other = any.load_session(owned.id().clone(), "/work").await.unwrap();
    for text in ["one", "two", "three"] {
        assert!(say(&session, text).await.contains(text));
        assert!(say(&other, text).await.contains(text));
    }
    assert!(say(&owned, "after").await.contains("after"));
    let slow = other.prompt("slow").await.unwrap();
    slow.cancel();
    let outcome = slow.outcome().await.unwrap();
    assert_eq!(outcome.stop_reason, StopReason::Cancelled);
    assert!(balancer.requests() > 12, "{}", balancer.requests());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_node_is_used_over_http() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let owned = here.new_session("/work").await.unwrap();
    assert!(say(&owned, "stream 2000").await.len() > 1_000);

    let there = over_http(second.address()).await;
    let other = there
        .load_session(owned.id().clone(), "/work")
        .await
        .unwrap();
    assert!(say(&other, "permission").await.contains("Permission: "));
    // More than a stream holds for a reader.
    let here = say(&owned, "stream 5000").await;
    let there = say(&other, "stream 5000").await;
    assert_eq!(here, there);
    other.close().await.unwrap();
    assert!(say(&owned, "after").await.contains("after"));
}

/// What nobody reads waits at the session's node, not here.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_of_another_node_waits_for_its_reader() {
    let shared = Arc::<SharedStore>::default();
    let first = Node::start(&shared).await;
    let second = Node::with(&shared, SECRET, |settings| {
        settings.stream_bytes = 4 << 10;
        // A connection for which more waits ends.
        settings.waiting_bytes = 64 << 10;
    })
    .await;
    let here = first.client().await;
    let owned = here.new_session("/work").await.unwrap();
    for _ in 0..5 {
        say(&owned, "stream 2000").await;
    }
    let id = open(&second).await;
    let posted = second.acp("POST", &id, &load(owned.id())).await;
    assert_eq!(posted.status(), 202);
    let mut events = second.acp("GET", &id, "").await.bytes_stream();
    let mut read = 0;
    loop {
        let more = events.next().await.expect("the connection goes on");
        let more = more.unwrap();
        read += more.len();
        // The answer is in the last chunk, which may begin anywhere.
        if more.ends_with(b"\n\n") && String::from_utf8_lossy(&more).contains(r#""result":"#) {
            break;
        }
    }
    assert!(read > 1 << 20, "{read}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_over_http_goes_on_when_the_node_of_its_session_dies_in_a_turn() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let owned = here.new_session("/work").await.unwrap();
    assert!(say(&owned, "before").await.contains("before"));
    let there = over_http(second.address()).await;
    let other = there
        .load_session(owned.id().clone(), "/work")
        .await
        .unwrap();
    let mut slow = other.prompt("slow").await.unwrap();
    assert!(slow.next().await.is_some());

    first.kill().await;
    let ended = slow.finish().await;
    assert!(
        !matches!(&ended, Ok(outcome) if outcome.stop_reason == StopReason::EndTurn),
        "{ended:?}"
    );
    assert!(say(&other, "after").await.contains("after"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_goes_on_when_the_node_of_its_connection_dies() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    // The first request opens the connection at the first node.
    let balancer = Balancer::start(&[&first, &second]).await;
    let any = over_http(&balancer.address).await;
    let session = any.new_session("/work").await.unwrap();
    assert!(say(&session, "before").await.contains("before"));
    first.kill().await;
    assert!(say(&session, "after").await.contains("after"));
    let (_, read) = second
        .rest("GET", &format!("/sessions/{}", session.id()), "")
        .await;
    for said in ["before", "after"] {
        assert!(read.contains(said), "{said}: {read}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_read_and_ended_at_another_node() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let id = open(&first).await;
    let events = second.acp("GET", &id, "").await;
    assert_eq!(events.status(), 200);
    assert_eq!(events.headers()["content-type"], "text/event-stream");
    let mut events = events.bytes_stream();
    assert_eq!(second.acp("POST", &id, LIST).await.status(), 202);
    let mut read = String::new();
    while !read.contains("sessions") {
        let more = events.next().await.unwrap().unwrap();
        read.push_str(&String::from_utf8_lossy(&more));
    }
    assert_eq!(second.acp("DELETE", &id, "").await.status(), 202);
    // What is left of the stream is a sign of life, at most.
    while let Some(more) = events.next().await {
        more.unwrap();
    }
    for node in [&first, &second] {
        for (method, body) in [("POST", LIST), ("GET", ""), ("DELETE", "")] {
            let ended = node.acp(method, &id, body).await;
            assert_eq!(ended.status(), 404, "{method}");
        }
    }
}

/// The log that follows the cursor is at the other node.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cursor_in_a_session_of_another_node_ends_the_connection() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let owned = here.new_session("/work").await.unwrap();
    say(&owned, "before").await;
    let id = open(&second).await;
    let stream = |cursor: Option<&str>| {
        let request = second.request("GET", "/acp").bearer_auth(MASTER);
        let request = request.header("acp-connection-id", &id);
        let request = request.header("acp-session-id", owned.id().as_str());
        let request = cursor.map_or(request.try_clone(), |cursor| {
            Some(request.header("last-event-id", cursor))
        });
        request.unwrap().send()
    };
    let mut events = stream(None).await.unwrap().bytes_stream();
    let posted = second.acp("POST", &id, &load(owned.id())).await;
    assert_eq!(posted.status(), 202);
    let mut read = String::new();
    while !read.contains("before") {
        let more = events.next().await.unwrap().unwrap();
        read.push_str(&String::from_utf8_lossy(&more));
    }
    assert_eq!(stream(Some("0")).await.unwrap().status(), 404);
    assert_eq!(second.acp("POST", &id, LIST).await.status(), 404);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_does_not_say_in_whose_name_a_node_asks() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let id = open(&first).await;
    let (_, created) = first.rest("POST", "/session", "{}").await;
    let created: serde_json::Value = serde_json::from_str(&created).unwrap();
    let token = created["session_token"].as_str().unwrap();
    let master = STANDARD.encode(r#"{"access":"full","owner":"master","issued":null}"#);
    let request = second.request("POST", "/acp").bearer_auth(token);
    let request = request.header("acp-connection-id", &id).body(LIST);
    let forged = request.header("acp-node-caller", master).send();
    assert_eq!(forged.await.unwrap().status(), 404, "of other rights");
    assert_eq!(second.acp("POST", &id, LIST).await.status(), 202);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_is_unknown_where_its_node_is_gone_or_its_id_is_not_of_these_nodes() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let foreign = Node::with(&shared, "a-secret-of-others", |_| {}).await;
    let id = open(&first).await;
    let mut changed = id.clone();
    let other = if &changed[20..21] == "A" { "B" } else { "A" };
    changed.replace_range(20..21, other);
    assert_eq!(second.acp("POST", &id, LIST).await.status(), 202);
    assert_eq!(second.acp("POST", &changed, LIST).await.status(), 404);
    assert_eq!(foreign.acp("POST", &id, LIST).await.status(), 404);
    // As a connection that never was.
    let unknown = second
        .acp("POST", "conn_0", LIST)
        .await
        .text()
        .await
        .unwrap();
    first.kill().await;
    for (method, body) in [("POST", LIST), ("GET", ""), ("DELETE", "")] {
        let gone = second.acp(method, &id, body).await;
        assert_eq!(gone.status(), 404, "{method}");
        assert_eq!(gone.text().await.unwrap(), unknown, "{method}");
    }
}
