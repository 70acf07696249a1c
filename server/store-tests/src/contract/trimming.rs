//! Removing the oldest events of a session.

use acp_server::store::{SessionRecord, StoreErrorKind};

use super::{Commit, Session, Shared, events, expect_error, page, text, with};

fn trim(before: u64) -> Commit {
    with(Commit::default(), |commit| {
        commit.trim_before = Some(before)
    })
}

/// Checks that a session has the events from `oldest` to `last`, in pages of every size.
async fn expect_kept(session: &Session, oldest: u64, last: u64) {
    let record = session.record().await;
    let numbers = (record.oldest_event, record.last_event);
    assert_eq!(numbers, (oldest, last), "oldest and last event");
    for max_bytes in [0, 500, usize::MAX] {
        let (mut after, mut next) = (0, oldest);
        while next <= last {
            let page = page(&*session.store, &session.id, after, max_bytes).await;
            assert_eq!((page.oldest, page.last), (oldest, last), "after {after}");
            let read = page.batches.iter().flat_map(|batch| batch.after(after));
            for (number, read) in read {
                assert_eq!(number, next, "number of the next event after {after}");
                assert_eq!(read, text(number), "event {number}");
                next += 1;
            }
            assert!(next > after + 1, "a page without a further event");
            after = next - 1;
        }
        let page = page(&*session.store, &session.id, last, max_bytes).await;
        assert!(page.batches.is_empty(), "{:?}", page.batches);
        assert_eq!(
            (page.oldest, page.last),
            (oldest, last),
            "of the final page"
        );
    }
}

pub(super) async fn removed_events_are_gone(store: Shared) {
    let session = Session::create(&store, "s").await;
    let mut last = 0;
    for count in [1, 5, 300, 1, 1, 40] {
        assert!(session.append(last + 1, count).await.is_ok());
        last += count;
    }
    assert!(session.commit(trim(0)).await.is_ok());
    session.expect_events(last).await;
    // The ends and the middle of batches. What is removed already stays so.
    let mut oldest = 1;
    for before in [1, 2, 3, 4, 7, 5, 1, 8, 200, 306, 307, 308, 348] {
        assert!(session.commit(trim(before)).await.is_ok());
        oldest = oldest.max(before);
        expect_kept(&session, oldest, last).await;
    }
    let updated_at = session.record().await.updated_at;
    assert!(session.append(last + 1, 30).await.is_ok());
    expect_kept(&session, oldest, last + 30).await;
    assert_eq!(session.record().await.updated_at, updated_at, "activity");
}

pub(super) async fn all_events_can_be_removed(store: Shared) {
    let mut session = Session::create(&store, "s").await;
    assert!(session.commit(trim(9)).await.is_ok());
    expect_kept(&session, 1, 0).await;
    let mut last = 0;
    for before in [11, u64::MAX] {
        assert!(session.append(last + 1, 10).await.is_ok());
        last += 10;
        assert!(session.commit(trim(before.max(last + 1))).await.is_ok());
        expect_kept(&session, last + 1, last).await;
        // The numbers go on, for the next holder of the lease, too.
        assert!(store.release(&session.lease).await.is_ok());
        let acquired = store.acquire(&session.id).await;
        let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
        assert_eq!((record.oldest_event, record.last_event), (last + 1, last));
        session.lease = lease;
        let again = session.append(1, 1).await;
        expect_error(
            again,
            StoreErrorKind::Conflict,
            "a number of a removed event",
        );
    }
    assert!(session.append(last + 1, 3).await.is_ok());
    expect_kept(&session, last + 1, last + 3).await;
    let fork = SessionRecord::new("fork", "/work");
    let lease = store.fork(&session.id, Some(last), &fork).await;
    let fork = Session {
        store: store.clone(),
        id: fork.id,
        lease: lease.unwrap_or_else(|error| panic!("fork: {error}")),
    };
    expect_kept(&fork, last + 1, last).await;
    assert!(matches!(store.delete(&session.id).await, Ok(true)));
    // Nothing of it is left for the next session of this id.
    let session = Session::create(&store, "s").await;
    session.expect_events(0).await;
}

pub(super) async fn events_are_removed_with_their_commit_or_not(store: Shared) {
    let session = Session::create(&store, "s").await;
    for round in 0..20 {
        let commit = with(events(round * 7 + 1, 7), |commit| {
            commit.change.title = Some(Some(format!("{round}")));
            commit.trim_before = Some((round * 7 + 8_u64).saturating_sub(25));
        });
        assert!(session.commit(commit).await.is_ok());
        let last = round * 7 + 7;
        expect_kept(&session, (last + 1).saturating_sub(25).max(1), last).await;
    }
    let before = session.record().await;
    let mut refused = events(9, 1);
    refused.trim_before = Some(141);
    let result = session.commit(refused).await;
    expect_error(result, StoreErrorKind::Conflict, "not the next event");
    let mut other = session.lease.clone();
    other.token += 1;
    let result = store.commit(&other, trim(141)).await;
    expect_error(result, StoreErrorKind::LeaseLost, "token to come");
    assert_eq!(session.record().await, before, "after refused commits");
    // A batch of which nothing is kept.
    let mut gone = events(141, 4);
    gone.trim_before = Some(145);
    assert!(session.commit(gone).await.is_ok());
    expect_kept(&session, 145, 144).await;
}

pub(super) async fn a_fork_lacks_the_events_that_its_source_lacks(store: Shared) {
    let source = Session::create(&store, "source").await;
    for first in [1, 11, 21] {
        assert!(source.append(first, 10).await.is_ok());
    }
    assert!(source.commit(trim(15)).await.is_ok());
    let cases = [
        (None, 30),
        (Some(25), 25),
        (Some(15), 15),
        (Some(14), 14),
        (Some(3), 3),
    ];
    for (up_to, last) in cases {
        let target = SessionRecord::new(format!("fork {last}"), "/work");
        let lease = store.fork(&source.id, up_to, &target).await;
        let fork = Session {
            store: store.clone(),
            id: target.id,
            lease: lease.unwrap_or_else(|error| panic!("fork: {error}")),
        };
        let oldest = 15.min(last + 1);
        expect_kept(&fork, oldest, last).await;
        assert!(fork.append(last + 1, 5).await.is_ok());
        expect_kept(&fork, oldest, last + 5).await;
        assert!(fork.commit(trim(last + 3)).await.is_ok());
        expect_kept(&fork, last + 3, last + 5).await;
    }
    assert!(source.commit(trim(31)).await.is_ok());
    expect_kept(&source, 31, 30).await;
}
