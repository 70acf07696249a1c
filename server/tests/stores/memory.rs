//! The contract and the limits of the store in memory.

use std::sync::Arc;
use std::time::Instant;

use acp_sdk::v1::SessionId;
use acp_server::event::Batch;
use acp_server::store::{
    Commit, ListQuery, MemoryStore, RecordChange, SessionRecord, Store, StoreErrorKind,
};
use acp_store_tests::contract;

fn events(first: u64, texts: &[&str]) -> Commit {
    let lines = texts.iter().map(|text| format!("{text}\n")).collect();
    let mut commit = Commit::default();
    commit.events = Some(Arc::new(Batch::from_lines(first, lines).unwrap()));
    commit
}

#[tokio::test]
async fn the_contract_holds() {
    contract::check(async || MemoryStore::new()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_contract_holds_on_several_threads() {
    contract::check(async || Arc::new(MemoryStore::new())).await;
}

#[tokio::test]
async fn batches_are_kept_without_a_copy() {
    let store = MemoryStore::new();
    let lease = store.create(&SessionRecord::new("a", "/")).await.unwrap();
    let commit = events(1, &["1", "2"]);
    let batch = commit.events.clone().unwrap();
    store.commit(&lease, commit).await.unwrap();
    let fork = SessionRecord::new("b", "/");
    store.fork(&lease.session, None, &fork).await.unwrap();
    for session in [&lease.session, &fork.id] {
        let page = store.read(session, 0, 1).await.unwrap();
        assert!(Arc::ptr_eq(&page.batches[0], &batch));
    }
}

#[tokio::test]
async fn a_full_store_refuses_and_goes_on_when_there_is_room() {
    let store = MemoryStore::new().max_bytes(1_000).max_sessions(2);
    let a = store.create(&SessionRecord::new("a", "/")).await.unwrap();
    let b = store.create(&SessionRecord::new("b", "/")).await.unwrap();
    let third = store
        .create(&SessionRecord::new("c", "/"))
        .await
        .unwrap_err();
    assert_eq!(third.kind(), StoreErrorKind::Full);
    assert!(third.to_string().contains("max_sessions"), "{third}");
    let target = SessionRecord::new("c", "/");
    let fork = store.fork(&a.session, None, &target);
    assert_eq!(fork.await.unwrap_err().kind(), StoreErrorKind::Full);

    let text = "1".repeat(500);
    store.commit(&a, events(1, &[&text])).await.unwrap();
    let mut commit = events(1, &[&text]);
    commit.change.title = Some(Some("t".to_owned()));
    let error = store.commit(&b, commit.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert!(error.to_string().contains("max_bytes"), "{error}");
    let record = store.find(&b.session).await.unwrap().unwrap();
    assert_eq!((record.last_event, record.title), (0, None));
    store.commit(&b, events(1, &["1"])).await.unwrap();

    assert!(store.delete(&a.session).await.unwrap());
    store.delete(&b.session).await.unwrap();
    let b = store.create(&SessionRecord::new("b", "/")).await.unwrap();
    store.commit(&b, commit).await.unwrap();
}

#[tokio::test]
async fn a_full_store_takes_events_for_which_others_are_removed() {
    let store = MemoryStore::new().max_bytes(1_000);
    let lease = store.create(&SessionRecord::new("a", "/")).await.unwrap();
    let text = "1".repeat(300);
    for number in 1..=3 {
        store
            .commit(&lease, events(number, &[&text]))
            .await
            .unwrap();
    }
    let mut next = events(4, &[&text]);
    next.trim_before = Some(1);
    let error = store.commit(&lease, next.clone()).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
    next.trim_before = Some(2);
    store.commit(&lease, next).await.unwrap();
    let mut all = Commit::default();
    all.trim_before = Some(u64::MAX);
    store.commit(&lease, all).await.unwrap();
    for number in 5..=7 {
        store
            .commit(&lease, events(number, &[&text]))
            .await
            .unwrap();
    }
}

#[tokio::test]
async fn a_large_record_is_refused() {
    let store = MemoryStore::new().max_record_bytes(100);
    let lease = store.create(&SessionRecord::new("a", "/")).await.unwrap();
    let mut commit = events(1, &["1"]);
    commit.change.title = Some(Some("t".repeat(100)));
    let error = store.commit(&lease, commit).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
    assert!(error.to_string().contains("max_record_bytes"), "{error}");
    assert_eq!(
        store
            .find(&lease.session)
            .await
            .unwrap()
            .unwrap()
            .last_event,
        0
    );
    let large = SessionRecord::new("b", "/".repeat(101));
    let error = store.create(&large).await.unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Full);
}

#[tokio::test]
async fn many_sessions_are_listed_without_sorting_them() {
    const SESSIONS: u32 = 100_000;
    let store = MemoryStore::new();
    for number in 0..SESSIONS {
        let mut record = SessionRecord::new(format!("{number}"), format!("/{}", number % 2));
        record.updated_at = format!("{number:08}");
        store.create(&record).await.unwrap();
    }
    let mut query = ListQuery::default();
    query.limit = 50;
    query.cwd = Some("/0".to_owned());
    let lists = Instant::now();
    for _ in 0..100 {
        let page = store.list(&query).await.unwrap();
        assert_eq!(page.len(), 50);
        let last = page.last().unwrap();
        query.after = Some((last.updated_at.clone(), last.id.clone()));
    }
    // 100 pages cost less than a look at every session of the store: with its index a page is
    // 50 look-ups.
    let lists = lists.elapsed();
    let one_by_one = Instant::now();
    for number in 0..SESSIONS {
        let found = store.find(&SessionId::from(format!("{number}"))).await;
        assert!(found.unwrap().is_some());
    }
    let one_by_one = one_by_one.elapsed();
    assert!(
        lists < one_by_one,
        "100 pages {lists:?}, all sessions {one_by_one:?}"
    );

    let lease = store.acquire(&SessionId::from("0")).await.unwrap().1;
    let mut commit = Commit::default();
    commit.change = RecordChange::default();
    commit.change.updated_at = Some("99999999".to_owned());
    store.commit(&lease, commit).await.unwrap();
    query.after = None;
    assert_eq!(store.list(&query).await.unwrap()[0].id, lease.session);
}
