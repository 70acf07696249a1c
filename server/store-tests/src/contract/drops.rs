//! Futures that are dropped before they complete.

use std::pin::pin;
use std::task::{Context, Waker};

use acp_sdk::v1::SessionId;
use acp_server::store::{SessionRecord, Store, StoreErrorKind, StoreFuture};

use super::{Session, Shared, events, read_all, with};

const ROUNDS: u64 = 100;

/// Polls a future up to `polls` times, with other tasks in between, then drops it.
async fn abandon<T>(future: StoreFuture<'_, T>, polls: u64) {
    let mut future = pin!(future);
    for _ in 0..polls {
        let mut context = Context::from_waker(Waker::noop());
        if future.as_mut().poll(&mut context).is_ready() {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// Returns whether a session exists once everything before has settled.
///
/// A lease makes the ones before invalid, so nothing of theirs can be written any more.
async fn settled(store: &dyn Store, id: &SessionId) -> bool {
    match store.acquire(id).await {
        Ok(_) => true,
        Err(error) if error.kind() == StoreErrorKind::NotFound => false,
        Err(error) => panic!("acquire {id}: {error}"),
    }
}

pub(super) async fn a_dropped_commit_is_whole_or_nothing(store: Shared) {
    let mut session = Session::create(&store, "s").await;
    let mut last = 0;
    for round in 0..ROUNDS {
        let commit = with(events(last + 1, 5), |commit| {
            commit.change.title = Some(Some(format!("{round}")))
        });
        let before = session.record().await;
        abandon(store.commit(&session.lease, commit), round % 4).await;
        let acquired = store.acquire(&session.id).await;
        let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
        session.lease = lease;
        if record.last_event == last {
            assert_eq!(record, before, "a change without its events");
        } else {
            assert_eq!(record.last_event, last + 5, "a part of a batch");
            assert_eq!(
                record.title,
                Some(format!("{round}")),
                "events without the change"
            );
        }
        last = record.last_event;
        // The next commit follows whatever there is.
        assert!(session.append(last + 1, 1).await.is_ok());
        last += 1;
    }
    session.expect_events(last).await;
}

pub(super) async fn a_dropped_creation_is_whole_or_nothing(store: Shared) {
    for round in 0..ROUNDS {
        let mut record = SessionRecord::new(format!("s{round}"), "/work");
        record.name = Some(format!("name {round}"));
        abandon(store.create(&record), round % 4).await;
        if settled(&*store, &record.id).await {
            let found = store.find(&record.id).await;
            assert_eq!(found.ok().flatten(), Some(record), "a part of a session");
        } else {
            // Neither the id nor the name is taken.
            Session::create_as(&store, &record).await;
        }
    }
}

pub(super) async fn a_dropped_fork_is_whole_or_nothing(store: Shared) {
    let source = Session::create(&store, "source").await;
    assert!(source.append(1, 40).await.is_ok());
    assert!(source.append(41, 40).await.is_ok());
    for round in 0..ROUNDS {
        let target = SessionRecord::new(format!("fork {round}"), "/work");
        let fork = store.fork(&source.id, Some(60), &target);
        abandon(fork, round % 4).await;
        if settled(&*store, &target.id).await {
            let texts = read_all(&*store, &target.id, 1_000).await;
            assert_eq!(texts.len(), 60, "a part of a fork");
        }
    }
    source.expect_events(80).await;
}

pub(super) async fn a_dropped_deletion_is_whole_or_nothing(store: Shared) {
    for round in 0..ROUNDS {
        let session = Session::create(&store, &format!("s{round}")).await;
        assert!(session.append(1, 10).await.is_ok());
        abandon(store.delete(&session.id), round % 4).await;
        if settled(&*store, &session.id).await {
            session.expect_events(10).await;
        }
    }
}
