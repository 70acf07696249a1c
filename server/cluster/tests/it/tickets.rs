//! Tickets and tokens of sessions at other nodes than the one that has issued them.

use std::sync::Arc;
use std::time::Duration;

use acp_client::remote::RemoteAgent;
use futures_util::StreamExt as _;
use serde_json::Value;

use crate::shared::{Node, SharedStore, client, say};

async fn ticket(node: &Node) -> String {
    let (status, issued) = node.rest("POST", "/ticket", "{}").await;
    assert_eq!(status, 201, "{issued}");
    let issued: Value = serde_json::from_str(&issued).unwrap();
    issued["ticket"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_opens_a_websocket_at_another_node_once() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let ticket = ticket(&first).await;
    let path = format!("/sessions?ticket={ticket}");
    let url = format!("ws://{}/acp?ticket={ticket}", second.address());
    let there = client(RemoteAgent::new(url).unwrap().reconnect(None)).await;
    let session = there.new_session("/work").await.unwrap();
    assert!(say(&session, "hello").await.contains("hello"));

    let again = second.rest_by(None, "GET", &path, "").await;
    assert_eq!(again.0, 401, "{again:?}");
    let elsewhere = first.rest_by(None, "GET", &path, "").await;
    assert_eq!(elsewhere.0, 200, "once at each node: {elsewhere:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_ticket_that_was_changed_or_is_of_other_nodes_is_refused() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let foreign = Node::with(&shared, "a-secret-of-others", |_| {}).await;
    let ticket = ticket(&first).await;
    let mut changed = ticket.clone();
    let other = if &changed[20..21] == "A" { "B" } else { "A" };
    changed.replace_range(20..21, other);
    for (node, ticket) in [(&second, &changed), (&foreign, &ticket)] {
        let path = format!("/sessions?ticket={ticket}");
        assert_eq!(node.rest_by(None, "GET", &path, "").await.0, 401);
        let as_token = node.rest_by(Some(ticket), "GET", "/sessions", "").await;
        assert_eq!(as_token.0, 401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_token_is_valid_at_another_node_until_the_session_has_a_later_one() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let (_, created) = first.rest("POST", "/session", "{}").await;
    let created: Value = serde_json::from_str(&created).unwrap();
    let id = created["session_id"].as_str().unwrap();
    let token = created["session_token"].as_str().unwrap();
    let path = format!("/sessions/{id}");
    for node in [&first, &second] {
        let (status, read) = node.rest_by(Some(token), "GET", &path, "").await;
        assert_eq!(status, 200, "{read}");
        let other = node
            .rest_by(Some(token), "GET", "/sessions/other", "")
            .await;
        assert_eq!(other.0, 401);
    }
    let events = second.events(token, id).await;
    assert_eq!(events.status(), 200);
    let mut events = events.bytes_stream();
    // The node of the session does it, whoever is asked.
    let rotate = format!("/session/{id}/rotate-token");
    let (status, rotated) = second.rest("POST", &rotate, "").await;
    assert_eq!(status, 200, "{rotated}");
    let rotated: Value = serde_json::from_str(&rotated).unwrap();
    let later = rotated["session_token"].as_str().unwrap();
    let ended = async { while events.next().await.is_some() {} };
    let ended = tokio::time::timeout(Duration::from_secs(60), ended);
    ended
        .await
        .expect("the stream that the earlier token opened ends");
    for node in [&first, &second] {
        let earlier = node.rest_by(Some(token), "GET", &path, "").await;
        assert_eq!(earlier.0, 401, "{earlier:?}");
        let (status, read) = node.rest_by(Some(later), "GET", &path, "").await;
        assert_eq!(status, 200, "{read}");
    }
}
