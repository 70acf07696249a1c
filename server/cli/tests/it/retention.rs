//! What `acp-server` removes from its store.

use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use acp_server::event::Batch;
use acp_server::store::{Commit, ListQuery, SessionRecord, SqliteStore, Store};

/// Adds a session of 2001 with some events, which nobody uses.
async fn add(store: &SqliteStore, id: &str, second: u32, events: u64) {
    let mut record = SessionRecord::new(id, "/w");
    record.created_at = "2001-01-01T00:00:00.000Z".to_owned();
    record.updated_at = format!("2001-01-01T00:00:{second:02}.000Z");
    let lease = store.create(&record).await.unwrap();
    if events > 0 {
        let mut batch = Batch::new(1);
        for _ in 0..events {
            batch.push("\"event\"");
        }
        let mut commit = Commit::default();
        commit.events = Some(Arc::new(batch));
        store.commit(&lease, commit).await.unwrap();
    }
    store.release(&lease).await.unwrap();
}

async fn ids(store: &SqliteStore) -> Vec<String> {
    let mut query = ListQuery::default();
    (query.oldest_first, query.limit) = (true, 999);
    let records = store.list(&query).await.unwrap().into_iter();
    records.map(|record| record.id.to_string()).collect()
}

#[tokio::test]
async fn the_command_removes_what_is_older() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    let store = SqliteStore::open(&path).unwrap();
    add(&store, "old", 1, 0).await;
    add(&store, "trimmed", 2, 3).await;
    let lease = store
        .create(&SessionRecord::new("recent", "/w"))
        .await
        .unwrap();
    store.release(&lease).await.unwrap();
    let mut agent = Command::new(env!("CARGO_BIN_EXE_acp-server"))
        .args(["--keep-events", "30d", "--keep-sessions", "2", "--store"])
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let removed = async {
        loop {
            let trimmed = store.find(&"trimmed".into()).await.unwrap().unwrap();
            if ids(&store).await == ["trimmed", "recent"] && trimmed.oldest_event == 4 {
                return;
            }
            // Another process does it.
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    let removed = tokio::time::timeout(Duration::from_secs(30), removed).await;
    removed.expect("the command removes nothing");
    drop(agent.stdin.take());
    assert!(agent.wait().unwrap().success());
}
