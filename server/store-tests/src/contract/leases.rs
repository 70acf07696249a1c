//! Who may write.

use acp_server::store::{Lease, SessionRecord, StoreErrorKind};

use super::{Session, Shared, expect_error};

pub(super) async fn each_lease_has_a_higher_token(store: Shared) {
    let session = Session::create(&store, "s").await;
    let mut token = session.lease.token;
    for round in 0..10 {
        if round % 2 == 0 {
            let lease = Lease::new(session.id.clone(), token);
            assert!(store.release(&lease).await.is_ok());
        }
        let acquired = store.acquire(&session.id).await;
        let (_, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
        assert_eq!(lease.session, session.id);
        assert!(lease.token > token, "token {} after {token}", lease.token);
        token = lease.token;
    }
}

pub(super) async fn only_the_latest_lease_writes(store: Shared) {
    let mut session = Session::create(&store, "s").await;
    assert!(session.append(1, 2).await.is_ok());
    let old = session.lease.clone();
    let acquired = store.acquire(&session.id).await;
    let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
    assert_eq!(record.last_event, 2, "last event as acquired");
    expect_error(
        session.append(3, 1).await,
        StoreErrorKind::LeaseLost,
        "old token",
    );
    session.lease = Lease::new(session.id.clone(), u64::MAX);
    expect_error(
        session.append(3, 1).await,
        StoreErrorKind::LeaseLost,
        "token to come",
    );
    session.expect_events(2).await;
    // Releasing what is not valid has no effect.
    assert!(store.release(&old).await.is_ok());
    assert!(store.release(&session.lease).await.is_ok());
    session.lease = lease;
    assert!(session.append(3, 1).await.is_ok(), "the latest token");
    session.expect_events(3).await;
}

pub(super) async fn a_released_lease_does_not_write(store: Shared) {
    let mut session = Session::create(&store, "s").await;
    assert!(store.release(&session.lease).await.is_ok());
    expect_error(
        session.append(1, 1).await,
        StoreErrorKind::LeaseLost,
        "released",
    );
    assert!(store.release(&session.lease).await.is_ok(), "release again");
    session.expect_events(0).await;
    let acquired = store.acquire(&session.id).await;
    session.lease = acquired
        .unwrap_or_else(|error| panic!("acquire: {error}"))
        .1;
    assert!(session.append(1, 1).await.is_ok());
}

pub(super) async fn a_deleted_session_has_no_lease(store: Shared) {
    let session = Session::create(&store, "s").await;
    assert!(matches!(store.delete(&session.id).await, Ok(true)));
    expect_error(
        session.append(1, 1).await,
        StoreErrorKind::LeaseLost,
        "deleted",
    );
    assert!(store.release(&session.lease).await.is_ok());
    // The lease is not one for the next session of this id either.
    let lease = store.create(&SessionRecord::new("s", "/work")).await;
    let lease = lease.unwrap_or_else(|error| panic!("create again: {error}"));
    assert!(
        lease.token > session.lease.token,
        "token of the new session"
    );
    expect_error(
        session.append(1, 1).await,
        StoreErrorKind::LeaseLost,
        "old lease",
    );
    session.expect_events(0).await;
}

pub(super) async fn an_unused_session_is_one_without_a_lease(store: Shared) {
    let mut session = Session::create(&store, "s").await;
    let in_use = async || {
        let acquired = store.acquire_unused(&session.id).await;
        expect_error(acquired, StoreErrorKind::InUse, "acquire a used session");
    };
    in_use().await;
    assert!(session.append(1, 1).await.is_ok(), "a lease was taken");
    let missing = store.acquire_unused(&"missing".into()).await;
    expect_error(
        missing,
        StoreErrorKind::NotFound,
        "acquire a missing session",
    );

    assert!(store.release(&session.lease).await.is_ok());
    let acquired = store.acquire_unused(&session.id).await;
    let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
    assert!(lease.token > session.lease.token, "token");
    assert_eq!(record, session.record().await, "record as acquired");
    let again = store.acquire_unused(&session.id).await;
    expect_error(again, StoreErrorKind::InUse, "acquire a session twice");
    session.lease = lease;
    assert!(session.append(2, 1).await.is_ok());
}
