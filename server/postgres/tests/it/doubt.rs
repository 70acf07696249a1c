//! Commits of which it is not known whether they happened.

use std::time::Duration;

use acp_server::store::{Lease, SessionRecord, Store as _, StoreErrorKind};
use acp_server_postgres::{PostgresOptions, PostgresStore};
use tokio::time::timeout;

use crate::proxy::{Fault, Proxy};
use crate::server::{blocked, schema_of};
use crate::{append, last_event, server};

/// The text of each commit.
const COMMIT: &str = "WITH moved";

struct Broken {
    proxy: Proxy,
    store: PostgresStore,
    lease: Lease,
    options: PostgresOptions,
}

/// Returns a session with one event, whose second commit fails by a fault.
async fn broken(server: &server::Server, options: PostgresOptions, fault: Fault) -> Broken {
    let proxy = Proxy::start(server.socket()).await;
    let store = options.open(&proxy.url()).await.unwrap();
    let lease = store.create(&SessionRecord::new("s", "/work")).await;
    let lease = lease.unwrap();
    append(&store, &lease, 1).await.unwrap();
    proxy.inject(COMMIT, fault);
    let error = append(&store, &lease, 2).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    proxy.met().await;
    Broken {
        proxy,
        store,
        lease,
        options,
    }
}

#[tokio::test]
async fn a_commit_that_did_not_arrive_has_not_happened() {
    let Some(server) = server::shared() else {
        return;
    };
    let broken = broken(server, server::options(), Fault::CutRequest).await;
    let found = broken.store.find(&"s".into()).await.unwrap().unwrap();
    assert_eq!(found.last_event, 1);
    append(&broken.store, &broken.lease, 2).await.unwrap();
    append(&broken.store, &broken.lease, 3).await.unwrap();
    assert_eq!(last_event(&broken.store, "s").await, 3);
}

#[tokio::test]
async fn a_commit_without_an_answer_has_happened() {
    let Some(server) = server::shared() else {
        return;
    };
    let short = server::options().statement_timeout(Duration::from_secs(2));
    for (options, fault) in [
        (server::options(), Fault::CutAnswer),
        (short, Fault::Silence),
    ] {
        let broken = broken(server, options, fault).await;
        let found = broken.store.find(&"s".into()).await.unwrap().unwrap();
        assert_eq!(found.last_event, 2, "{fault:?}");
        let again = append(&broken.store, &broken.lease, 2).await.unwrap_err();
        assert_eq!(again.kind(), StoreErrorKind::Conflict, "{again}");
        append(&broken.store, &broken.lease, 3).await.unwrap();
        assert_eq!(last_event(&broken.store, "s").await, 3);
    }
}

/// The bytes of a commit reach the database after the store said that it has not happened.
#[tokio::test]
async fn a_commit_that_failed_does_not_happen_later() {
    let Some(server) = server::shared() else {
        return;
    };
    let broken = broken(server, server::options(), Fault::Hold).await;
    let found = broken.store.find(&"s".into()).await.unwrap().unwrap();
    assert_eq!(found.last_event, 1);
    broken.proxy.deliver().await;
    assert_eq!(last_event(&broken.store, "s").await, 1, "it happened later");
    append(&broken.store, &broken.lease, 2).await.unwrap();
    assert_eq!(last_event(&broken.store, "s").await, 2);
}

/// An attempt to settle fails as well, and arrives after the one that succeeded.
#[tokio::test]
async fn a_late_attempt_to_settle_changes_nothing() {
    let Some(server) = server::shared() else {
        return;
    };
    let broken = broken(server, server::options(), Fault::CutRequest).await;
    broken.proxy.inject("SET attempt", Fault::Hold);
    let error = broken.store.find(&"s".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Unavailable, "{error}");
    broken.proxy.met().await;
    let found = broken.store.find(&"s".into()).await.unwrap().unwrap();
    assert_eq!(found.last_event, 1);
    broken.proxy.deliver().await;
    append(&broken.store, &broken.lease, 2).await.unwrap();
    assert_eq!(last_event(&broken.store, "s").await, 2);
}

/// The statement of the lost connection still runs: nothing is said before it has ended.
#[tokio::test]
async fn find_waits_for_a_commit_that_is_running() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = server::options();
    let proxy = Proxy::start(server.socket()).await;
    let store = options.open(&proxy.url()).await.unwrap();
    let lease = store.create(&SessionRecord::new("s", "/work")).await;
    let lease = lease.unwrap();
    append(&store, &lease, 1).await.unwrap();

    // The commit waits in the database for this lock, and its connection breaks.
    let mut client = server.client().await;
    let schema = schema_of(&options);
    let lock = client.transaction().await.unwrap();
    let sql = format!("SELECT 1 FROM {schema}.acp_sessions WHERE id = 's' FOR UPDATE");
    lock.batch_execute(&sql).await.unwrap();
    let commit = append(&store, &lease, 2);
    let cut = async {
        blocked(server, &schema).await;
        proxy.cut();
    };
    let (result, ()) = tokio::join!(commit, cut);
    assert_eq!(result.unwrap_err().kind(), StoreErrorKind::Unavailable);

    let id = "s".into();
    let mut find = store.find(&id);
    let early = timeout(Duration::from_millis(100), &mut find).await;
    assert!(early.is_err(), "{early:?} while the commit may happen");
    lock.commit().await.unwrap();
    let found = find.await.unwrap().unwrap();
    assert_eq!(found.last_event, 2);
    append(&store, &lease, 3).await.unwrap();
    assert_eq!(last_event(&store, "s").await, 3);
}

/// The store settles by itself once it reaches the database again.
#[tokio::test]
async fn a_heartbeat_settles_what_nobody_asks_for() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = server::options().heartbeat(Duration::from_millis(100));
    let broken = broken(server, options, Fault::Hold).await;
    let schema = schema_of(&broken.options);
    let client = server.client().await;
    let settled = async {
        let sql = format!("SELECT attempt FROM {schema}.acp_sessions");
        while client.query_one(&sql, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            tokio::task::yield_now().await;
        }
    };
    let settled = timeout(Duration::from_secs(30), settled).await;
    settled.expect("it was not settled");
    broken.proxy.deliver().await;
    assert_eq!(last_event(&broken.store, "s").await, 1, "it happened later");
}
