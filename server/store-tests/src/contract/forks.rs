//! Copies of sessions.

use std::sync::Arc;

use acp_server::store::{SessionRecord, StoreErrorKind};

use super::{Session, Shared, events, expect_error, page, text};

async fn fork(source: &Session, up_to: Option<u64>, id: &str) -> Session {
    let target = SessionRecord::new(id, "/fork");
    let lease = source.store.fork(&source.id, up_to, &target).await;
    Session {
        store: source.store.clone(),
        id: target.id,
        lease: lease.unwrap_or_else(|error| panic!("fork to {id}: {error}")),
    }
}

pub(super) async fn a_fork_has_the_events_up_to_its_number(store: Shared) {
    let source = Session::create(&store, "source").await;
    for (first, count) in [(1, 1), (2, 9), (11, 300), (311, 1)] {
        assert!(source.append(first, count).await.is_ok());
    }
    // Reading and forking need no lease.
    assert!(store.release(&source.lease).await.is_ok());
    let cases = [
        (None, 311),
        (Some(311), 311),
        (Some(312), 311),
        (Some(u64::MAX), 311),
        (Some(310), 310),
        (Some(11), 11),
        (Some(10), 10),
        (Some(5), 5),
        (Some(1), 1),
        (Some(0), 0),
    ];
    for (number, (up_to, last)) in cases.into_iter().enumerate() {
        let fork = fork(&source, up_to, &format!("fork {number}")).await;
        fork.expect_events(last).await;
        let record = fork.record().await;
        assert_eq!(
            record.forked_from,
            Some((source.id.clone(), last)),
            "up to {up_to:?}"
        );
        assert_eq!(record.cwd, "/fork");
        assert!(fork.append(last + 1, 3).await.is_ok(), "append to a fork");
        fork.expect_events(last + 3).await;
    }
    source.expect_events(311).await;
}

pub(super) async fn events_keep_their_times(store: Shared) {
    const TIMES: [Option<u64>; 4] = [None, Some(1_700_000_000_125), Some(1_700_000_000_126), None];
    let source = Session::create(&store, "source").await;
    for (first, time) in (1..).step_by(2).zip(TIMES) {
        let mut commit = events(first, 2);
        let batch = commit.events.take().map(Arc::unwrap_or_clone);
        commit.events = batch.map(|batch| Arc::new(batch.with_time(time)));
        assert!(source.commit(commit).await.is_ok());
    }
    // The fork ends in the middle of a batch.
    let fork = fork(&source, Some(5), "fork").await;
    for (session, last) in [(&source, 8), (&fork, 5)] {
        for (number, time) in (1..=last).zip(TIMES.iter().flat_map(|time| [time, time])) {
            for max_bytes in [1, usize::MAX] {
                let page = page(&*store, &session.id, number - 1, max_bytes).await;
                let mut batches = page.batches.iter();
                let batch = batches.find(|batch| batch.get(number).is_some());
                let found = batch.map(|batch| batch.time(number));
                assert_eq!(found, Some(*time), "event {number} of {}", session.id);
            }
        }
    }
}

pub(super) async fn source_and_fork_are_independent(store: Shared) {
    let source = Session::create(&store, "source").await;
    assert!(source.append(1, 20).await.is_ok());
    let first = fork(&source, Some(15), "first").await;
    let second = fork(&first, Some(12), "second").await;
    assert!(
        source.append(21, 2).await.is_ok(),
        "a fork took the source's lease"
    );
    assert!(first.append(16, 1).await.is_ok());
    expect_error(
        second.append(16, 1).await,
        StoreErrorKind::Conflict,
        "not its next",
    );
    assert!(matches!(store.delete(&first.id).await, Ok(true)));
    second.expect_events(12).await;
    source.expect_events(22).await;
    assert!(matches!(store.delete(&source.id).await, Ok(true)));
    assert_eq!(second.all(10).await, (1..=12).map(text).collect::<Vec<_>>());
    assert!(second.append(13, 1).await.is_ok());
    second.expect_events(13).await;
}

pub(super) async fn a_fork_is_refused_as_a_creation(store: Shared) {
    let mut record = SessionRecord::new("source", "/work");
    record.name = Some("name".to_owned());
    let source = Session::create_as(&store, &record).await;
    assert!(source.append(1, 3).await.is_ok());
    let same = store.fork(&source.id, None, &record).await;
    expect_error(same, StoreErrorKind::Conflict, "fork to its own id");
    record.id = "fork".into();
    let named = store.fork(&source.id, None, &record).await;
    expect_error(
        named,
        StoreErrorKind::Conflict,
        "fork with a name that is taken",
    );
    assert!(matches!(store.find(&record.id).await, Ok(None)));
    let missing = SessionRecord::new("missing", "/work");
    let none = store
        .fork(&missing.id, None, &SessionRecord::new("f", "/"))
        .await;
    expect_error(none, StoreErrorKind::NotFound, "fork of a missing session");
    assert!(source.append(4, 1).await.is_ok());
    source.expect_events(4).await;
}
