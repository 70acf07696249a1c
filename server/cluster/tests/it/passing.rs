//! A client at a node that does not have its session.

use std::sync::Arc;

use acp_sdk::v1::StopReason;

use crate::shared::{Node, SharedStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_is_used_from_two_nodes_alike() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let (here, there) = (first.client().await, second.client().await);
    let session = here.new_session("/work").await.unwrap();
    let outcome = session.prompt("hello from here").await.unwrap();
    assert_eq!(
        outcome.outcome().await.unwrap().stop_reason,
        StopReason::EndTurn
    );

    // The history, a turn with a question, and what the other client sees of it.
    let other = there
        .load_session(session.id().clone(), "/work")
        .await
        .unwrap();
    let outcome = other
        .prompt("permission")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.text.contains("Permission: "), "{}", outcome.text);
    let mut live = session.conversation();
    while !format!("{:?}", live.conversation()).contains("Permission: ") {
        live.next().await.unwrap();
    }

    // Both ask at once: each has its own turn, in some order.
    let (a, b) = tokio::join!(session.prompt("one"), other.prompt("two"));
    let (a, b) = tokio::join!(a.unwrap().outcome(), b.unwrap().outcome());
    assert!(a.unwrap().text.contains("one"));
    assert!(b.unwrap().text.contains("two"));

    // A turn that waits is cancelled from the other node.
    let slow = other.prompt("slow").await.unwrap();
    slow.cancel();
    assert_eq!(
        slow.outcome().await.unwrap().stop_reason,
        StopReason::Cancelled
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_answers_alike_at_every_node() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let (status, created) = first.rest("POST", "/session", "{}").await;
    assert_eq!(status, 201, "{created}");
    let created: serde_json::Value = serde_json::from_str(&created).unwrap();
    let id = created["id"]
        .as_str()
        .or(created["session_id"].as_str())
        .unwrap();
    let turn = r#"{"prompt":"hello","wait":true}"#;
    let (status, answer) = second
        .rest("POST", &format!("/sessions/{id}/turns"), turn)
        .await;
    assert!((200..300).contains(&status), "{status} {answer}");
    for node in [&first, &second] {
        let (status, read) = node.rest("GET", &format!("/sessions/{id}"), "").await;
        assert_eq!(status, 200);
        assert!(read.contains("hello"), "{read}");
    }
    let (status, _) = second.rest("GET", "/sessions/missing", "").await;
    assert_eq!(status, 404);
}
