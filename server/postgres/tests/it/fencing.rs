//! A node that cannot renew its leases.

use std::time::Duration;

use acp_server::store::{SessionRecord, Store as _, StoreErrorKind};
use acp_server_postgres::PostgresOptions;
use tokio::time::timeout;

use crate::proxy::{Fault, Proxy};
use crate::server::{self, schema_of};
use crate::{append, last_event};

/// Times that a test waits for.
fn short() -> PostgresOptions {
    server::options()
        .heartbeat(Duration::from_millis(100))
        .fence(Duration::from_millis(2_000))
        .takeover(Duration::from_millis(3_000))
}

#[tokio::test]
async fn a_node_that_is_cut_off_gives_its_sessions_up_and_comes_back_as_another() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = short();
    let proxy = Proxy::start(server.socket()).await;
    let first = options.open(&proxy.url()).await.unwrap();
    let second = server.open(&options).await;
    let lease = first
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    append(&first, &lease, 1).await.unwrap();
    let key = own_key(&second, false).await;

    proxy.close();
    // It knows before anybody can take the session over.
    let lost = timeout(Duration::from_secs(30), first.leases_lost()).await;
    lost.expect("the leases were not lost");
    let refused = append(&first, &lease, 2).await.unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::LeaseLost, "{refused}");
    let refused = first
        .create(&SessionRecord::new("t", "/work"))
        .await
        .unwrap_err();
    assert_eq!(refused.kind(), StoreErrorKind::Unavailable, "{refused}");

    let taken = timeout(Duration::from_secs(30), async {
        loop {
            match second.acquire(&"s".into()).await {
                Ok(acquired) => return acquired,
                Err(error) => assert_eq!(error.kind(), StoreErrorKind::InUse, "{error}"),
            }
        }
    });
    let (record, taken) = taken.await.expect("no takeover");
    assert_eq!(record.last_event, 1);
    append(&second, &taken, 2).await.unwrap();

    let numbers = first.node_statistics().await.unwrap().unwrap();
    assert_eq!(numbers.leases_lost, 1);
    assert_eq!(numbers.nodes, None, "the database does not answer");
    proxy.open();
    let back = timeout(Duration::from_secs(30), async {
        while first
            .create(&SessionRecord::new("t", "/work"))
            .await
            .is_err()
        {
            tokio::task::yield_now().await;
        }
    });
    back.await.expect("it does not come back");
    assert!(
        own_key(&second, false).await > key,
        "the old key is used again"
    );
    let late = append(&first, &lease, 2).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "{late}");
    assert_eq!(last_event(&second, "s").await, 2);
    // One event, one completion.
    let again = timeout(Duration::from_millis(10), first.leases_lost()).await;
    assert!(again.is_err(), "lost twice");
}

/// Nobody took the session, and the old lease is not valid again all the same.
#[tokio::test]
async fn an_old_lease_stays_lost() {
    let Some(server) = server::shared() else {
        return;
    };
    let proxy = Proxy::start(server.socket()).await;
    let store = short().open(&proxy.url()).await.unwrap();
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    proxy.close();
    let lost = timeout(Duration::from_secs(30), store.leases_lost()).await;
    lost.expect("the leases were not lost");
    proxy.open();
    let acquired = timeout(Duration::from_secs(30), async {
        loop {
            if let Ok(acquired) = store.acquire(&"s".into()).await {
                return acquired;
            }
            tokio::task::yield_now().await;
        }
    });
    let (_, new) = acquired.await.expect("no new lease");
    let late = append(&store, &lease, 1).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "{late}");
    append(&store, &new, 1).await.unwrap();
}

/// The clocks of a suspended machine stand still: the database says that the node has expired.
#[tokio::test]
async fn a_node_that_expired_in_the_database_loses_its_leases() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = server::options().heartbeat(Duration::from_millis(100));
    let store = server.open(&options).await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    let client = server.client().await;
    let schema = schema_of(&options);
    let sql = format!("UPDATE {schema}.acp_nodes SET expires = clock_timestamp() - interval '1 s'");
    client.batch_execute(&sql).await.unwrap();
    let lost = timeout(Duration::from_secs(30), store.leases_lost()).await;
    lost.expect("the leases were not lost");
    let late = append(&store, &lease, 1).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "{late}");
}

/// A process that hung has run no timer: the first commit finds that its lease is lost.
#[tokio::test]
async fn a_commit_after_a_pause_of_the_process_is_refused() {
    let Some(server) = server::shared() else {
        return;
    };
    let store = server.open(&short()).await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    append(&store, &lease, 1).await.unwrap();
    // One thread: nothing else runs while it sleeps, as after SIGSTOP.
    std::thread::sleep(Duration::from_millis(2_100));
    let statements = store.statements();
    let late = append(&store, &lease, 2).await.unwrap_err();
    assert_eq!(late.kind(), StoreErrorKind::LeaseLost, "{late}");
    assert_eq!(store.statements(), statements, "it asked the database");
    let lost = timeout(Duration::from_secs(30), store.leases_lost()).await;
    lost.expect("the leases were not lost");
}

/// Much time on a busy machine, and many renewals before the lease would end.
fn frequent() -> PostgresOptions {
    server::options()
        .heartbeat(Duration::from_millis(50))
        .fence(Duration::from_millis(1_800))
        .takeover(Duration::from_millis(2_200))
}

/// Waits until all nodes were renewed when their first heartbeat was not valid any more.
async fn beyond_the_takeover(server: &server::Server, schema: &str) {
    let client = server.client().await;
    let sql = format!(
        "SELECT bool_and(heartbeat > started_at + interval '2500 ms') FROM {schema}.acp_nodes"
    );
    let renewed = async {
        while !client.query_one(&sql, &[]).await.unwrap().get::<_, bool>(0) {
            tokio::task::yield_now().await;
        }
    };
    let renewed = timeout(Duration::from_secs(60), renewed).await;
    renewed.expect("no heartbeats");
}

/// A session that is in doubt for long is no reason to lose the others.
#[tokio::test]
async fn heartbeats_do_not_wait_for_a_session_in_doubt() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = frequent();
    let proxy = Proxy::start(server.socket()).await;
    let store = options.open(&proxy.url()).await.unwrap();
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    let other = store
        .create(&SessionRecord::new("t", "/work"))
        .await
        .unwrap();
    // Nothing can be settled: the row is locked.
    let mut client = server.client().await;
    let lock = client.transaction().await.unwrap();
    let sql = format!(
        "SELECT 1 FROM {}.acp_sessions WHERE id = 's' FOR UPDATE",
        schema_of(&options)
    );
    lock.batch_execute(&sql).await.unwrap();
    proxy.inject("WITH moved", Fault::CutRequest);
    append(&store, &lease, 1).await.unwrap_err();
    beyond_the_takeover(server, &schema_of(&options)).await;
    append(&store, &other, 1).await.unwrap();
    lock.commit().await.unwrap();
    append(&store, &lease, 1).await.unwrap();
}

#[tokio::test]
async fn heartbeats_keep_leases_valid() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = frequent();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    let lease = first
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    beyond_the_takeover(server, &schema_of(&options)).await;
    let error = second.acquire(&"s".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::InUse, "{error}");
    append(&first, &lease, 1).await.unwrap();
    assert!(first.heartbeat_age() < Duration::from_millis(1_800));
}

/// Returns the key of the instance that is asked, or of the other one.
async fn own_key(store: &acp_server_postgres::PostgresStore, own: bool) -> i64 {
    let nodes = store.nodes().await.unwrap();
    let node = nodes.iter().find(|node| node.is_this_instance == own);
    node.unwrap().key
}
