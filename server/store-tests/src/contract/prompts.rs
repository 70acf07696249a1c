//! Prompts that wait for their turns.

use acp_sdk::v1::SessionId;
use acp_server::store::{Commit, Lease, SessionRecord, StoreErrorKind, StoredPrompt};

use super::{Session, Shared, events, expect_error, with};

/// Returns the prompts that a session has.
async fn prompts(store: &Shared, session: &SessionId) -> Vec<StoredPrompt> {
    let found = store.prompts(session).await;
    found.unwrap_or_else(|error| panic!("prompts of {session}: {error}"))
}

fn prompt(number: u64) -> StoredPrompt {
    StoredPrompt::new(number, format!(r#"{{"text":"ü'{number}\u0000"}}"#))
}

fn change(commit: Commit, add: &[u64], remove: &[u64]) -> Commit {
    with(commit, |commit| {
        commit.prompts.add = add.iter().copied().map(prompt).collect();
        commit.prompts.remove = remove.to_vec();
    })
}

fn changed(add: &[u64], remove: &[u64]) -> Commit {
    change(Commit::default(), add, remove)
}

async fn expect(session: &Session, numbers: &[u64]) {
    let expected: Vec<_> = numbers.iter().copied().map(prompt).collect();
    let found = prompts(&session.store, &session.id).await;
    assert_eq!(found, expected, "prompts of {}", session.id);
}

pub(super) async fn prompts_wait_until_they_are_removed(store: Shared) {
    let session = Session::create(&store, "s").await;
    let other = Session::create(&store, "other").await;
    expect(&session, &[]).await;
    // In the order of their numbers, not of their commits.
    assert!(session.commit(changed(&[2], &[])).await.is_ok());
    assert!(session.commit(changed(&[1, 10, 9], &[])).await.is_ok());
    assert!(other.commit(changed(&[1], &[])).await.is_ok());
    expect(&session, &[1, 2, 9, 10]).await;
    // With the events of a turn.
    let begun = change(events(1, 2), &[11], &[1, 9]);
    assert!(session.commit(begun).await.is_ok());
    expect(&session, &[2, 10, 11]).await;
    expect(&other, &[1]).await;
    session.expect_events(2).await;
    assert!(
        prompts(&store, &SessionId::from("missing"))
            .await
            .is_empty()
    );
}

pub(super) async fn changes_of_prompts_are_repeated_without_harm(store: Shared) {
    let session = Session::create(&store, "s").await;
    for _ in 0..2 {
        assert!(session.commit(changed(&[1, 2], &[])).await.is_ok());
    }
    let used = store.usage().await.map(|usage| usage.used_bytes).ok();
    assert!(session.commit(changed(&[2], &[])).await.is_ok());
    let again = store.usage().await.map(|usage| usage.used_bytes).ok();
    assert_eq!(used, again, "bytes");
    for _ in 0..2 {
        assert!(session.commit(changed(&[], &[1, 7])).await.is_ok());
    }
    expect(&session, &[2]).await;
}

pub(super) async fn a_refused_commit_changes_no_prompt(store: Shared) {
    let session = Session::create(&store, "s").await;
    assert!(session.commit(changed(&[1], &[])).await.is_ok());
    let gap = change(events(5, 1), &[2], &[1]);
    expect_error(session.commit(gap).await, StoreErrorKind::Conflict, "a gap");
    expect(&session, &[1]).await;
    let released = store.release(&session.lease).await;
    assert!(released.is_ok());
    let late = session.commit(changed(&[2], &[1])).await;
    expect_error(late, StoreErrorKind::LeaseLost, "without a lease");
    expect(&session, &[1]).await;
    let acquired = store.acquire(&session.id).await;
    assert!(acquired.is_ok());
    expect(&session, &[1]).await;
}

pub(super) async fn neither_forks_nor_later_sessions_have_the_prompts(store: Shared) {
    let session = Session::create(&store, "s").await;
    let commit = change(events(1, 3), &[1], &[]);
    assert!(session.commit(commit).await.is_ok());
    let fork = SessionRecord::new("fork", "/work");
    let forked = store.fork(&session.id, None, &fork).await;
    let lease: Lease = forked.unwrap_or_else(|error| panic!("fork: {error}"));
    assert!(prompts(&store, &lease.session).await.is_empty());
    expect(&session, &[1]).await;
    assert!(matches!(store.delete(&session.id).await, Ok(true)));
    let again = Session::create(&store, "s").await;
    expect(&again, &[]).await;
    // Its own have the same numbers.
    assert!(again.commit(changed(&[1], &[])).await.is_ok());
    expect(&again, &[1]).await;
}
