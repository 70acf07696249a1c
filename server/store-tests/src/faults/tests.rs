//! The store that fails on demand.

use std::sync::Arc;
use std::time::Duration;

use acp_server::store::{MemoryStore, SessionRecord, Store, StoreErrorKind};
use tokio::time::{Instant, timeout};

use super::{Fault, FaultyStore, Gate, Operation, When};
use crate::contract;

async fn exists(store: &FaultyStore<MemoryStore>, id: &str) -> bool {
    store.inner().find(&id.into()).await.unwrap().is_some()
}

#[tokio::test]
async fn without_faults_it_is_the_store_inside() {
    contract::check(async || FaultyStore::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn the_nth_call_fails_before_or_after_its_effect() {
    let store = FaultyStore::new(MemoryStore::new());
    let fail = Fault::Fail(StoreErrorKind::Unavailable);
    store.inject(Operation::Create, 2, When::Before, fail.clone());
    store.inject(Operation::Create, 3, When::After, fail.clone());
    store.inject(None, 6, When::Before, fail);
    let create = async |id: &str| {
        let created = store.create(&SessionRecord::new(id, "/")).await;
        created.err().map(|error| error.kind())
    };
    assert_eq!(create("1").await, None);
    assert!(store.find(&"1".into()).await.unwrap().is_some());
    assert_eq!(create("2").await, Some(StoreErrorKind::Unavailable));
    assert!(!exists(&store, "2").await);
    assert_eq!(create("3").await, Some(StoreErrorKind::Unavailable));
    assert!(exists(&store, "3").await);
    assert_eq!(create("4").await, None);
    assert!(store.delete(&"4".into()).await.is_err());
    assert!(store.delete(&"4".into()).await.unwrap());
    let calls = [
        Operation::Create,
        Operation::Find,
        Operation::Create,
        Operation::Create,
        Operation::Create,
        Operation::Delete,
        Operation::Delete,
    ];
    assert_eq!(store.calls(), calls);
}

#[tokio::test(start_paused = true)]
async fn calls_hang_are_late_or_wait_for_a_gate() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let minute = Duration::from_secs(60);
    store.inject(None, 1, When::Before, Fault::Hang);
    let record = SessionRecord::new("1", "/");
    assert!(timeout(minute, store.create(&record)).await.is_err());
    assert!(!exists(&store, "1").await);
    store.inject(None, 1, When::After, Fault::Hang);
    assert!(timeout(minute, store.create(&record)).await.is_err());
    assert!(exists(&store, "1").await);

    let start = Instant::now();
    store.inject(None, 1, When::Before, Fault::Delay(minute));
    store.create(&SessionRecord::new("2", "/")).await.unwrap();
    assert_eq!(start.elapsed(), minute);

    let gate = Gate::new();
    store.inject(None, 1, When::Before, Fault::Hold(gate.clone()));
    let held = tokio::spawn({
        let store = store.clone();
        async move { store.create(&SessionRecord::new("3", "/")).await }
    });
    gate.reached().await;
    assert!(!exists(&store, "3").await);
    gate.open();
    held.await.unwrap().unwrap();
    assert!(exists(&store, "3").await);
}

#[tokio::test(start_paused = true)]
async fn leases_are_lost_once_for_each_time_they_are_said_to_be() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let second = Duration::from_secs(1);
    let is_lost = async || timeout(second, store.leases_lost()).await.is_ok();
    assert!(!is_lost().await);
    store.lose_leases();
    assert!(is_lost().await, "an event before the call");
    assert!(!is_lost().await, "one event, two calls");
    assert_eq!(store.owner(&"1".into()).await.unwrap(), None);
    assert_eq!(store.calls(), [Operation::Owner]);
}
