//! Appending and reading.

use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::StoreErrorKind;
use tokio::task::JoinSet;

use super::{Commit, Session, Shared, batch, events, expect_error, page, text, with};

pub(super) async fn batches_come_back(store: Shared) {
    let session = Session::create(&store, "s").await;
    let mut last = 0;
    for count in [1, 2, 300, 1, 1, 1, 40, 1_000, 1] {
        assert!(session.append(last + 1, count).await.is_ok());
        last += count;
        assert_eq!(session.record().await.last_event, last);
    }
    session.expect_events(last).await;
    for max_bytes in [0, 1, 1_000, 20_000, usize::MAX] {
        let expected: Vec<_> = (1..=last).map(text).collect();
        assert_eq!(
            session.all(max_bytes).await,
            expected,
            "pages of {max_bytes}"
        );
    }
    // From every number on, also in the middle of a batch.
    for after in 0..last {
        let page = page(&*store, &session.id, after, 1).await;
        let next = page.batches.first().and_then(|batch| batch.get(after + 1));
        assert_eq!(next, Some(&*text(after + 1)), "after {after}");
        assert_eq!(page.last, last);
    }
    for after in [last, last + 1, u64::MAX] {
        let page = page(&*store, &session.id, after, usize::MAX).await;
        assert!(page.batches.is_empty(), "{:?} after {after}", page.batches);
        assert_eq!(page.last, last);
    }
}

pub(super) async fn events_follow_each_other(store: Shared) {
    let session = Session::create(&store, "s").await;
    for first in [0, 2, u64::MAX - 9] {
        let result = session.append(first, 1).await;
        expect_error(result, StoreErrorKind::Conflict, "not the first");
    }
    assert!(session.append(1, 3).await.is_ok());
    for first in [1, 3, 5] {
        let result = session.append(first, 3).await;
        expect_error(result, StoreErrorKind::Conflict, "not the next");
    }
    session.expect_events(3).await;
    // A batch without events has no number that could be wrong.
    let empty = with(Commit::default(), |commit| {
        commit.events = Some(Arc::new(Batch::new(77)))
    });
    assert!(session.commit(empty).await.is_ok());
    assert!(session.append(4, 1).await.is_ok());
    session.expect_events(4).await;
}

pub(super) async fn a_refused_commit_changes_nothing(store: Shared) {
    let session = Session::create(&store, "s").await;
    assert!(session.append(1, 1).await.is_ok());
    let before = session.record().await;
    let commit = with(events(9, 1), |commit| {
        commit.change.title = Some(Some("title".to_owned()));
        commit.change.updated_at = Some("2031-01-01T00:00:00.000Z".to_owned());
    });
    expect_error(
        session.commit(commit).await,
        StoreErrorKind::Conflict,
        "commit",
    );
    assert_eq!(
        session.record().await,
        before,
        "record after a refused commit"
    );
    session.expect_events(1).await;
}

/// What the server does after a commit of which it does not know whether it happened.
pub(super) async fn a_commit_is_repeated_without_harm(store: Shared) {
    let session = Session::create(&store, "s").await;
    let commit = with(events(1, 3), |commit| {
        commit.change.title = Some(Some("title".to_owned()));
        commit.sync = true;
    });
    assert!(session.commit(commit.clone()).await.is_ok());
    let after = session.record().await;
    assert_eq!(after.last_event, 3, "last event, by which it is known");
    expect_error(
        session.commit(commit.clone()).await,
        StoreErrorKind::Conflict,
        "the same events again",
    );
    let rest = with(commit, |commit| commit.events = None);
    assert!(session.commit(rest).await.is_ok(), "the rest again");
    assert!(session.commit(Commit::default()).await.is_ok(), "nothing");
    assert_eq!(session.record().await, after, "record after repetitions");
    session.expect_events(3).await;
}

pub(super) async fn pages_have_about_the_size_asked_for(store: Shared) {
    let session = Session::create(&store, "s").await;
    let (mut last, mut total) = (0, 0);
    while total < 1 << 20 {
        let count = last % 60 + 1;
        let commit = events(last + 1, count);
        total += commit.events.as_ref().map_or(0, |batch| batch.bytes());
        assert!(session.commit(commit).await.is_ok());
        last += count;
    }
    let max_bytes = 100_000;
    let (mut after, mut pages) = (0, 0);
    while after < last {
        let page = page(&*store, &session.id, after, max_bytes).await;
        let bytes: usize = page.batches.iter().map(|batch| batch.bytes()).sum();
        assert!(
            bytes <= max_bytes + Batch::MAX_BYTES,
            "page of {bytes} bytes"
        );
        for batch in &page.batches {
            // Joined or not: a batch is what is sent at once.
            assert!(batch.bytes() <= Batch::MAX_BYTES, "{batch:?}");
        }
        after = page.batches.last().map_or(u64::MAX, |batch| batch.last());
        assert!(
            bytes >= max_bytes / 4 || after == last,
            "page of {bytes} bytes"
        );
        pages += 1;
    }
    assert!(
        pages >= total / (max_bytes + Batch::MAX_BYTES),
        "{pages} pages"
    );
    session.expect_events(last).await;
}

pub(super) async fn large_events_are_read_one_by_one(store: Shared) {
    let session = Session::create(&store, "s").await;
    let large = |number| format!("\"{number}{}\"", "x".repeat(1 << 20));
    for number in 1..=4 {
        let commit = with(Commit::default(), |commit| {
            commit.events = Some(batch(number, [large(number)]))
        });
        assert!(session.commit(commit).await.is_ok());
    }
    for after in 0..4 {
        let page = page(&*store, &session.id, after, 1_000).await;
        assert_eq!(
            page.batches.len(),
            1,
            "events of 1 MiB in a page of 1,000 bytes"
        );
        assert_eq!(
            page.batches[0].len(),
            1,
            "events of 1 MiB in a page of 1,000 bytes"
        );
    }
    let texts = session.all(3 << 20).await;
    assert!(
        texts == (1..=4).map(large).collect::<Vec<_>>(),
        "large events"
    );
}

pub(super) async fn sessions_commit_at_the_same_time(store: Shared) {
    const SESSIONS: u64 = 50;
    let mut tasks = JoinSet::new();
    for number in 0..SESSIONS {
        let store = store.clone();
        tasks.spawn(async move {
            let session = Session::create(&store, &format!("s{number}")).await;
            let mut last = 0;
            for round in 0..20 {
                let count = (number + round) % 7 + 1;
                let commit = with(events(last + 1, count), |commit| commit.sync = round == 19);
                let result = session.commit(commit).await;
                result.unwrap_or_else(|error| panic!("commit: {error}"));
                last += count;
                assert_eq!(session.record().await.last_event, last, "after a commit");
            }
            session.expect_events(last).await;
        });
    }
    while let Some(result) = tasks.join_next().await {
        result.unwrap_or_else(|error| panic!("session: {error}"));
    }
}
