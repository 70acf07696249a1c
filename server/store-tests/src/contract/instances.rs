//! Rules for stores that outlive a process or that several processes share.

use std::sync::Arc;

use acp_server::store::{Commit, ListQuery, SessionRecord, Store, StoreErrorKind, StoredPrompt};

use super::{Session, Shared, events, expect_error, listed, with};

/// Tests a store that outlives the process: `open` returns the same store each time, which is
/// empty at first, and is called after the one before was dropped.
///
/// # Panics
///
/// Panics if the store breaks a rule.
pub async fn check_reopened<S: Store>(open: impl AsyncFn() -> S) {
    let store: Shared = Arc::new(open().await);
    let mut record = SessionRecord::new("s", "/work");
    record.name = Some("name".to_owned());
    let session = Session::create_as(&store, &record).await;
    let commit = with(events(1, 500), |commit| {
        commit.change.title = Some(Some("title".to_owned()))
    });
    assert!(session.commit(commit).await.is_ok());
    let waiting = StoredPrompt::new(7, r#""hello""#);
    let commit = with(Commit::default(), |commit| {
        commit.prompts.add.push(waiting.clone());
    });
    assert!(session.commit(commit).await.is_ok());
    let before = session.record().await;
    let (id, old) = (session.id.clone(), session.lease.clone());
    drop(session);
    drop(store);

    let store: Shared = Arc::new(open().await);
    let abandoned = store.abandoned(9).await;
    assert_eq!(
        abandoned.ok(),
        Some(Some(vec![id.clone()])),
        "a session in which a prompt waits, and that nobody has"
    );
    // The lease that was not given back ended with its owner.
    let acquired = store.acquire(&id).await;
    let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
    assert_eq!(record, before, "record after reopening");
    let kept = store.prompts(&id).await;
    assert_eq!(kept.ok(), Some(vec![waiting]), "prompts after reopening");
    let abandoned = store.abandoned(9).await;
    assert_eq!(abandoned.ok(), Some(Some(vec![])), "it is leased");
    assert!(
        lease.token > old.token,
        "token {} after {}",
        lease.token,
        old.token
    );
    let session = Session { store, id, lease };
    session.expect_events(500).await;
    let late = session.store.commit(&old, events(501, 1)).await;
    expect_error(late, StoreErrorKind::LeaseLost, "a lease from before");
    assert!(session.append(501, 1).await.is_ok());
    session.expect_events(501).await;
}

/// Tests two instances of one store, as two processes have them. The store must be empty.
///
/// # Panics
///
/// Panics if the store breaks a rule.
pub async fn check_instances<A: Store, B: Store>(first: A, second: B) {
    let (first, second): (Shared, Shared) = (Arc::new(first), Arc::new(second));
    let session = Session::create(&first, "s").await;
    expect_error(
        second.acquire(&session.id).await,
        StoreErrorKind::InUse,
        "acquire",
    );
    expect_error(
        second.acquire_unused(&session.id).await,
        StoreErrorKind::InUse,
        "acquire unused",
    );
    expect_error(
        second.delete(&session.id).await,
        StoreErrorKind::InUse,
        "delete",
    );
    let same = second.create(&SessionRecord::new("s", "/work")).await;
    expect_error(same, StoreErrorKind::Conflict, "create");

    // The second reads while the first writes.
    let mut last = 0;
    for _ in 0..50 {
        assert!(session.append(last + 1, 3).await.is_ok());
        last += 3;
        let texts = super::read_all(&*second, &session.id, 1_000).await;
        assert_eq!(
            texts.len() as u64,
            last,
            "events that the other instance sees"
        );
    }
    let other = Session::create(&second, "other").await;
    // Neither has been left.
    let waits = with(Commit::default(), |commit| {
        commit.prompts.add.push(StoredPrompt::new(1, "1"));
    });
    assert!(session.commit(waits).await.is_ok());
    for store in [&first, &second] {
        let abandoned = store.abandoned(9).await;
        assert_eq!(abandoned.ok(), Some(Some(vec![])), "abandoned");
    }
    let both = with(ListQuery::default(), |query| query.limit = 9);
    for store in [&first, &second] {
        assert_eq!(listed(&**store, &both).await.len(), 2, "sessions listed");
    }

    // Forking needs no lease.
    let lease = second
        .fork(&session.id, Some(7), &SessionRecord::new("fork", "/"))
        .await;
    let lease = lease.unwrap_or_else(|error| panic!("fork: {error}"));
    expect_error(
        first.acquire(&lease.session).await,
        StoreErrorKind::InUse,
        "acquire a fork",
    );

    // Both write, each to its own session.
    for number in 1..=100 {
        let (a, b) = tokio::join!(session.append(last + number, 1), other.append(number, 1));
        assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
    }
    last += 100;
    session.expect_events(last).await;
    other.expect_events(100).await;

    // A released session moves.
    assert!(first.release(&session.lease).await.is_ok());
    for store in [&first, &second] {
        let abandoned = store.abandoned(9).await;
        let expected = Some(Some(vec![session.id.clone()]));
        assert_eq!(abandoned.ok(), expected, "a released session with a prompt");
    }
    let acquired = second.acquire(&session.id).await;
    let (_, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
    assert!(lease.token > session.lease.token, "token");
    expect_error(
        session.append(last + 1, 1).await,
        StoreErrorKind::LeaseLost,
        "released",
    );
    assert!(first.release(&session.lease).await.is_ok());
    let moved = Session {
        store: second,
        id: session.id.clone(),
        lease,
    };
    assert!(moved.append(last + 1, 1).await.is_ok());
    expect_error(
        first.acquire(&session.id).await,
        StoreErrorKind::InUse,
        "acquire back",
    );

    // The leases of an instance end with it.
    let id = other.id.clone();
    drop((moved, other));
    let acquired = first.acquire(&id).await;
    acquired.unwrap_or_else(|error| panic!("acquire of an instance that is gone: {error}"));
    assert!(
        matches!(first.delete(&session.id).await, Ok(true)),
        "delete"
    );
}
