//! Sessions that go on at another node.

use std::sync::Arc;

use acp_sdk::v1::StopReason;

use crate::shared::{Node, SharedStore};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_goes_on_where_its_client_is_when_its_node_dies() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    session
        .prompt("before")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let there = second.client().await;
    let other = there
        .load_session(session.id().clone(), "/work")
        .await
        .unwrap();
    other
        .prompt("between")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();

    first.kill().await;
    let outcome = other
        .prompt("after")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.text.contains("after"), "{}", outcome.text);
    let (_, read) = second
        .rest("GET", &format!("/sessions/{}", session.id()), "")
        .await;
    for said in ["before", "between", "after"] {
        assert!(read.contains(said), "{said}: {read}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_turn_whose_node_dies_is_interrupted_for_the_client_of_another() {
    let shared = Arc::<SharedStore>::default();
    let (mut first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    session
        .prompt("before")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let there = second.client().await;
    let other = there
        .load_session(session.id().clone(), "/work")
        .await
        .unwrap();
    let mut slow = other.prompt("slow").await.unwrap();
    assert!(slow.next().await.is_some());

    first.kill().await;
    // It ends; whether as cancelled or with an error is the server's word for an interrupted turn.
    let ended = slow.finish().await;
    assert!(
        !matches!(&ended, Ok(outcome) if outcome.stop_reason == StopReason::EndTurn),
        "{ended:?}"
    );
    let outcome = other
        .prompt("after")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.text.contains("after"), "{}", outcome.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_ends_gives_its_sessions_away() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    session
        .prompt("before")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    let there = second.client().await;
    let other = there
        .load_session(session.id().clone(), "/work")
        .await
        .unwrap();
    first.stop().await;
    let outcome = other
        .prompt("after")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.text.contains("after"), "{}", outcome.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_without_leases_ends_its_turns_and_its_connections() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let agent = first.agent().reconnect(None);
    let here = acp_client::Client::builder()
        .connect_remote(agent)
        .await
        .unwrap();
    let session = here.new_session("/work").await.unwrap();
    let mut slow = session.prompt("slow").await.unwrap();
    assert!(slow.next().await.is_some());
    first.lose_leases();
    slow.finish().await.unwrap_err();

    let there = second.client().await;
    let other = there
        .load_session(session.id().clone(), "/work")
        .await
        .unwrap();
    let outcome = other
        .prompt("after")
        .await
        .unwrap()
        .outcome()
        .await
        .unwrap();
    assert!(outcome.text.contains("after"), "{}", outcome.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_to_a_node_that_hangs_is_answered_when_its_leases_have_ended() {
    let shared = Arc::<SharedStore>::default();
    let (first, second) = (Node::start(&shared).await, Node::start(&shared).await);
    let (_, created) = first.rest("POST", "/session", "{}").await;
    let created: serde_json::Value = serde_json::from_str(&created).unwrap();
    let id = created["session_id"].as_str().unwrap().to_owned();
    let turns = format!("/sessions/{id}/turns?wait=60");
    // The node has the request, and its answer comes when the turn has ended.
    let slow = r#"{"prompt":"slow"}"#;
    let asked = second.rest("POST", &turns, slow);
    let hung = async {
        let running = |events: &str| events.contains("turn_started");
        shared.events_when(&id.as_str().into(), running).await;
        first.hang();
    };
    let ((status, answer), ()) = tokio::join!(asked, hung);
    assert_eq!(status, 503, "{answer}");
    assert!(answer.contains("session_moved"), "{answer}");
    // The next attempt finds the session here.
    let (status, answer) = second.rest("POST", &turns, r#"{"prompt":"hello"}"#).await;
    assert_eq!(status, 200, "{answer}");
    assert!(answer.contains("hello"), "{answer}");
}
