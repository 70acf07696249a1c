//! The contract of stores.

use acp_server_postgres::{PostgresOptions, PostgresStore};
use acp_store_tests::contract::{check, check_instances, check_reopened};

use crate::server::{self, options};

#[tokio::test]
async fn the_contract_holds_on_one_thread() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    check(async || server.emptied(&options).await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds_on_several_threads() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    check(async || server.emptied(&options).await).await;
}

#[tokio::test]
async fn the_store_outlives_its_process() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    check_reopened(async || server.open(&options).await).await;
}

#[tokio::test]
async fn two_instances_share_a_store() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let (first, second) = (server.open(&options).await, server.open(&options).await);
    check_instances(first, second).await;
}

#[tokio::test]
async fn invalid_options_are_refused() {
    let wrong = PostgresOptions::new().fence(std::time::Duration::from_secs(31));
    let url = "postgres://acp:secret@127.0.0.1:1/acp";
    let error = wrong.open(url).await.unwrap_err().to_string();
    assert!(error.contains("heartbeat < fence < takeover"), "{error}");
    let wrong = PostgresOptions::new().schema("a\"b");
    let error = wrong.open(url).await.unwrap_err().to_string();
    assert!(error.contains("schema"), "{error}");
    let error = PostgresStore::open(url).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
    assert!(error.to_string().contains("127.0.0.1:1/acp"), "{error}");
    let url = "postgres://a:secret@b/c?x=y";
    let error = PostgresStore::open(url).await.unwrap_err();
    assert!(!error.to_string().contains("secret"), "{error}");
}

/// Three connections of the database, each of which is another one's after a transaction.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_contract_holds_behind_a_pooler_in_transaction_mode() {
    let Some(server) = server::shared() else {
        return;
    };
    let Some(url) = server.pooler() else {
        return;
    };
    let options = options();
    let schema = server::schema_of(&options);
    check(async || {
        server.emptied(&options).await.close().await.unwrap();
        options.open(&url).await.unwrap()
    })
    .await;
    server.emptied(&options).await.close().await.unwrap();
    let (first, second) = (options.open(&url).await, options.open(&url).await);
    check_instances(first.unwrap(), second.unwrap()).await;
    let pooled = "SELECT count(*) FROM pg_stat_activity
         WHERE application_name = 'acp-server' AND query LIKE '%' || $1 || '\".%'";
    let row = server.client().await.query_one(pooled, &[&schema]).await;
    let count: i64 = row.unwrap().get(0);
    assert!((1..=3).contains(&count), "{count} connections");
}
