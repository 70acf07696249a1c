//! Turns of a dead node, of whose sessions nobody asks.

use std::sync::Arc;
use std::time::Duration;

use acp_server::Limits;
use tokio::time::timeout;

use crate::shared::{Node, SharedStore};

fn often() -> Limits {
    let mut limits = Limits::default();
    limits.adoption.per_second = 1_000;
    limits.adoption.interval = Duration::from_millis(20);
    limits
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_turn_of_a_dead_node_ends_although_nobody_asks() {
    let shared = Arc::<SharedStore>::default();
    let mut first = Node::start(&shared).await;
    // All three may open it: the lease decides.
    let mut others = Vec::new();
    for _ in 0..3 {
        others.push(Node::start_with(&shared, often()).await);
    }
    let here = first.client().await;
    let session = here.new_session("/work").await.unwrap();
    let mut slow = session.prompt("slow").await.unwrap();
    assert!(slow.next().await.is_some());
    let idle = here.new_session("/work").await.unwrap();
    first.kill().await;

    let limit = Duration::from_secs(60);
    let ended = |events: &str| events.contains("turn_ended");
    let events = timeout(limit, shared.events_when(session.id(), ended)).await;
    let events = events.expect("the turn did not end");
    assert!(events.contains("ended during the turn"), "{events}");
    // A session without a turn is nobody's.
    assert!(!shared.is_owned(idle.id()));
    // The others have left it alone.
    let client = others[0].client().await;
    let other = client.load_session(session.id().clone(), "/work").await;
    let turn = other.unwrap().prompt("after").await.unwrap();
    assert!(turn.outcome().await.unwrap().text.contains("after"));
    let events = shared.events_when(session.id(), |_| true).await;
    assert_eq!(events.matches("turn_ended").count(), 2, "{events}");
}
