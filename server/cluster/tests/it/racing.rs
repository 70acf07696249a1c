//! Two nodes that are asked for a session at the moment when nobody has it.

use std::sync::Arc;

use acp_client::{Client, Session};
use acp_sdk::v1::SessionId;

use crate::shared::{Node, SharedStore};

/// Starts a node with a session and two other nodes.
async fn nodes(shared: &Arc<SharedStore>) -> (SessionId, [Node; 3]) {
    let nodes = [
        Node::start(shared).await,
        Node::start(shared).await,
        Node::start(shared).await,
    ];
    let here = nodes[0].client().await;
    let session = here.new_session("/work").await.unwrap();
    say(&session, "before").await;
    (session.id().clone(), nodes)
}

async fn say(session: &Session, text: &str) {
    let turn = session.prompt(text).await.unwrap();
    let outcome = turn.outcome().await.unwrap();
    assert!(outcome.text.contains(text), "{}", outcome.text);
}

async fn load(client: &Client, session: &SessionId) -> Session {
    client.load_session(session.clone(), "/work").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_nodes_that_open_a_session_at_once_share_it() {
    let shared = Arc::<SharedStore>::default();
    let (session, [mut first, second, third]) = nodes(&shared).await;
    let (a, b) = (second.client().await, third.client().await);
    first.kill().await;
    shared.race();
    let (a, b) = tokio::join!(load(&a, &session), load(&b, &session));
    tokio::join!(say(&a, "one"), say(&b, "two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_of_two_nodes_go_on_at_once_when_the_node_of_their_session_dies() {
    let shared = Arc::<SharedStore>::default();
    let (session, [mut first, second, third]) = nodes(&shared).await;
    // They must not need to connect again.
    let [a, b] = [&second, &third].map(|node| {
        let agent = node.agent().reconnect(None);
        Client::builder().connect_remote(agent)
    });
    let (a, b) = (a.await.unwrap(), b.await.unwrap());
    let (a, b) = (load(&a, &session).await, load(&b, &session).await);
    shared.race();
    first.kill().await;
    tokio::join!(say(&a, "one"), say(&b, "two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rest_of_two_nodes_opens_a_session_at_once() {
    let shared = Arc::<SharedStore>::default();
    let (session, [mut first, second, third]) = nodes(&shared).await;
    first.kill().await;
    shared.race();
    let path = format!("/sessions/{session}/turns");
    let turn = r#"{"prompt":"hello","wait":true}"#;
    let (a, b) = tokio::join!(
        second.rest("POST", &path, turn),
        third.rest("POST", &path, turn)
    );
    for (status, body) in [a, b] {
        assert!((200..300).contains(&status), "{status} {body}");
    }
}
