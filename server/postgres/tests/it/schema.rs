//! The versions of the tables.

use acp_server::store::{SessionRecord, Store as _, StoreErrorKind};
use acp_server_postgres::STEPS;
use tokio::task::JoinSet;

use crate::server::{self, options, schema_of};
use crate::{append, last_event};

#[tokio::test]
async fn older_tables_are_brought_up_to_date_and_newer_ones_refused() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let store = server.open(&options).await;
    let lease = store
        .create(&SessionRecord::new("s", "/work"))
        .await
        .unwrap();
    append(&store, &lease, 1).await.unwrap();
    store.close().await.unwrap();

    let steps = [STEPS, &["ALTER TABLE @acp_sessions ADD COLUMN later text"]].concat();
    let later = options.clone().steps(steps.leak());
    let newer = server.open(&later).await;
    assert_eq!(last_event(&newer, "s").await, 1);
    let (_, lease) = newer.acquire(&"s".into()).await.unwrap();
    append(&newer, &lease, 2).await.unwrap();
    let schema = schema_of(&options);
    let client = server.client().await;
    let sql = format!("SELECT later FROM {schema}.acp_sessions");
    assert_eq!(client.query(&sql, &[]).await.unwrap().len(), 1);
    // Each step runs once.
    assert_eq!(last_event(&server.open(&later).await, "s").await, 2);

    let error = options.open(&server.url()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    let (version, known) = (STEPS.len() + 1, STEPS.len());
    let expected = format!("version {version}, newer than version {known}");
    assert!(error.to_string().contains(&expected), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_nodes_create_the_tables_at_once() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let mut opened = JoinSet::new();
    for _ in 0..8 {
        let (options, url) = (options.clone(), server.url());
        opened.spawn(async move { options.open(&url).await });
    }
    while let Some(store) = opened.join_next().await {
        store.unwrap().unwrap();
    }
}

#[tokio::test]
async fn other_encodings_are_refused() {
    let Some(server) = server::shared() else {
        return;
    };
    let client = server.client().await;
    let create = "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0";
    client.batch_execute(create).await.unwrap();
    let url = server.url().replace("postgres", "latin");
    let url = url.replace("acp-latin", "acp-postgres");
    let error = options().open(&url).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("LATIN1"), "{error}");
}

#[tokio::test]
async fn missing_tables_are_named() {
    let Some(server) = server::shared() else {
        return;
    };
    let options = options();
    let store = server.open(&options).await;
    let schema = schema_of(&options);
    let client = server.client().await;
    let drop = format!("DROP SCHEMA {schema} CASCADE");
    client.batch_execute(&drop).await.unwrap();
    let error = store.find(&"s".into()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Corrupt);
    assert!(error.to_string().contains("acp_sessions"), "{error}");
}

/// PostgreSQL has no text with the character NUL.
#[tokio::test]
async fn nul_is_no_fault_of_the_store() {
    let Some(server) = server::shared() else {
        return;
    };
    let store = server.store().await;
    let id = "a\0b".into();
    assert_eq!(store.find(&id).await.unwrap(), None);
    assert!(!store.delete(&id).await.unwrap());
    let error = store.acquire(&id).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::NotFound, "{error}");
    let error = store
        .create(&SessionRecord::new("a\0b", "/"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full, "{error}");
    let mut record = SessionRecord::new("s", "/");
    record.title = Some("a\0b".to_owned());
    record.additional_directories = vec!["/a\0b".to_owned()];
    store.create(&record).await.unwrap();
    let found = store.find(&"s".into()).await.unwrap().unwrap();
    assert_eq!(found.title.as_deref(), Some("a\u{fffd}b"));
    assert_eq!(found.additional_directories, record.additional_directories);
}
