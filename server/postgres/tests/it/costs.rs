//! What operations cost, and many of them at once.

use std::sync::Arc;
use std::time::Duration;

use acp_server::store::{SessionRecord, Store as _, StoreErrorKind};

use acp_sdk::v1::{ContentBlock, StopReason};
use acp_server::{Handler, HandlerResult, Server, Turn};
use tokio::task::JoinSet;

use crate::server::{self, options};
use crate::{append, events, last_event};

#[tokio::test]
async fn a_commit_is_one_statement() {
    let Some(server) = server::shared() else {
        return;
    };
    let store = server.store().await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    let before = store.statements();
    append(&store, &lease, 1).await.unwrap();
    let mut commit = events(2, 3);
    commit.change.running_turn = Some(Some(2));
    commit.change.updated_at = Some("2031-01-01T00:00:00.000Z".to_owned());
    commit.trim_before = Some(2);
    store.commit(&lease, commit).await.unwrap();
    assert_eq!(store.statements() - before, 2, "two commits");
}

#[tokio::test]
async fn a_lease_is_one_statement() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (store, other) = (server.open(&options).await, server.open(&options).await);
    let id = "s".into();
    let lease = store.create(&SessionRecord::new("s", "/work")).await;
    let before = (store.statements(), other.statements());
    other.acquire(&id).await.unwrap_err();
    store.release(&lease.unwrap()).await.unwrap();
    other.acquire(&id).await.unwrap();
    let after = (store.statements(), other.statements());
    assert_eq!((after.0 - before.0, after.1 - before.1), (1, 2));
}

/// Repeats what it is told, in pieces.
struct Echo;

impl Handler for Echo {
    type State = ();

    async fn prompt(&self, (): &mut (), turn: Turn) -> HandlerResult<StopReason> {
        for word in turn.prompt_text().split_whitespace() {
            turn.send_text(word).await?;
        }
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test]
async fn a_short_turn_takes_three_statements_at_most() {
    let Some(server) = server::shared() else {
        return;
    };
    let store = Arc::new(server.store().await);
    let agent = Server::builder(Echo).store(store.clone()).build();
    let session = agent.create_session("/work").await.unwrap();
    for round in 0..5 {
        let before = store.statements();
        let prompt = session
            .prompt([ContentBlock::from("one two three")])
            .unwrap();
        assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::EndTurn);
        let statements = store.statements() - before;
        assert!(statements <= 3, "{statements} statements in turn {round}");
    }
    // One that is accepted before its end begins at once, and needs no more.
    for round in 0..5 {
        let before = store.statements();
        let prompt = session.prompt_kept([ContentBlock::from("one two three")]);
        let prompt = prompt.await.unwrap();
        assert_eq!(prompt.stop_reason().await.unwrap(), StopReason::EndTurn);
        let statements = store.statements() - before;
        assert!(statements <= 3, "{statements} statements in turn {round}");
    }
    agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_sessions_commit_at_once() {
    let Some(server) = server::shared() else {
        return;
    };
    let store = Arc::new(server.open(&options().pool_size(8)).await);
    let mut writers = JoinSet::new();
    for number in 0..64 {
        let store = store.clone();
        writers.spawn(async move {
            let id = format!("s{number}");
            let lease = store.create(&SessionRecord::new(id.clone(), "/")).await;
            let lease = lease.unwrap();
            for first in 1..=20 {
                append(&store, &lease, first).await.unwrap();
            }
            assert_eq!(last_event(&store, &id).await, 20);
        });
    }
    while let Some(writer) = writers.join_next().await {
        writer.unwrap();
    }
}

/// No queue without an end: an operation that gets no connection fails.
#[tokio::test]
async fn waiting_for_a_connection_has_an_end() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options()
        .pool_size(1)
        .queue_timeout(Duration::from_millis(100));
    let store = server.open(&options).await;
    store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    let mut client = server.client().await;
    let schema = server::schema_of(&options);
    let lock = client.transaction().await.unwrap();
    let sql = format!("LOCK TABLE {schema}.acp_sessions IN ACCESS EXCLUSIVE MODE");
    lock.batch_execute(&sql).await.unwrap();
    let id = "s".into();
    let (first, second) = (store.find(&id), store.find(&id));
    let second = async {
        let error = second.await.unwrap_err();
        lock.commit().await.unwrap();
        error
    };
    let (first, error) = tokio::join!(first, second);
    assert!(first.unwrap().is_some());
    assert_eq!(error.kind(), StoreErrorKind::Unavailable);
    assert!(error.to_string().contains("pool_size"), "{error}");
}
