//! Creating, finding, changing and deleting sessions.

use std::collections::BTreeMap;

use acp_sdk::Json;
use acp_sdk::v1::{SessionConfigOptionValue, SessionId};
use acp_server::store::{RecordChange, SessionRecord, StoreErrorKind};

use super::{Commit, Session, Shared, events, expect_error, text, with};

pub(super) async fn sessions_are_found_as_created(store: Shared) {
    let missing = SessionId::from("missing");
    assert!(matches!(store.find(&missing).await, Ok(None)), "find");
    expect_error(
        store.acquire(&missing).await,
        StoreErrorKind::NotFound,
        "acquire",
    );
    expect_error(
        store.read(&missing, 0, 1).await,
        StoreErrorKind::NotFound,
        "read",
    );

    let mut record = SessionRecord::new("ü\"'%", "/a b\\c");
    record.name = Some("na'me".to_owned());
    record.additional_directories = vec!["/x".to_owned(), "/y\nz".to_owned()];
    record.title = Some("tïtle\t".to_owned());
    record.settings = settings(&[("model", r#"{"value":"large"}"#)]);
    record.data = Some(json(r#"{"n":1.50,"ü":[null]}"#));
    record.running_turn = Some(3);
    // Not given by the caller.
    record.last_event = 17;
    let session = Session::create_as(&store, &record).await;
    record.last_event = 0;
    assert_eq!(session.record().await, record, "record as found");
    session.expect_events(0).await;
    let acquired = store.acquire(&session.id).await;
    assert_eq!(
        acquired.map(|(record, _)| record).ok(),
        Some(record),
        "record as acquired"
    );
}

pub(super) async fn ids_and_names_are_unique(store: Shared) {
    let named = |id: &str, name: &str| {
        let mut record = SessionRecord::new(id, "/work");
        record.name = Some(name.to_owned());
        record
    };
    let first = Session::create_as(&store, &named("1", "one")).await;
    expect_error(
        store.create(&named("1", "other")).await,
        StoreErrorKind::Conflict,
        "id",
    );
    expect_error(
        store.create(&named("2", "one")).await,
        StoreErrorKind::Conflict,
        "name",
    );
    assert!(matches!(store.find(&SessionId::from("2")).await, Ok(None)));
    assert!(
        first.append(1, 1).await.is_ok(),
        "a refused creation took the lease"
    );

    let second = Session::create_as(&store, &named("2", "two")).await;
    let taken = with(RecordChange::default(), |change| {
        change.name = Some(Some("one".to_owned()));
        change.title = Some(Some("not kept".to_owned()));
    });
    let commit = with(events(1, 3), |commit| commit.change = taken.clone());
    expect_error(
        second.commit(commit).await,
        StoreErrorKind::Conflict,
        "rename",
    );
    assert_eq!(second.record().await.title, None, "a refused change");
    second.expect_events(0).await;

    // A name is free once its session has another one, or none.
    let none = with(RecordChange::default(), |change| change.name = Some(None));
    assert!(first.change(none).await.is_ok());
    assert!(second.change(taken.clone()).await.is_ok(), "a free name");
    assert!(second.change(taken).await.is_ok(), "its own name");
    let third = Session::create_as(&store, &named("3", "two")).await;
    assert!(matches!(store.delete(&second.id).await, Ok(true)));
    let change = with(RecordChange::default(), |change| {
        change.name = Some(Some("one".to_owned()))
    });
    assert!(
        third.change(change).await.is_ok(),
        "the name of a deleted session"
    );
}

pub(super) async fn changes_are_kept(store: Shared) {
    let session = Session::create(&store, "s").await;
    let mut expected = session.record().await;
    let changes = [
        with(RecordChange::default(), |change| {
            change.title = Some(Some("title".to_owned()))
        }),
        with(RecordChange::default(), |change| {
            change.additional_directories = Some(vec!["/more".to_owned()]);
            change.settings = Some(settings(&[
                ("flag", r#"{"type":"boolean","value":true}"#),
                (
                    "later",
                    r#"{"type":"of_tomorrow","value":[1.50,{"a":null}]}"#,
                ),
            ]));
        }),
        with(RecordChange::default(), |change| {
            change.name = Some(Some("name".to_owned()));
            change.data = Some(Some(json("[1e2]")));
            change.running_turn = Some(Some(7));
            change.updated_at = Some("2031-01-01T00:00:00.000Z".to_owned());
        }),
        with(RecordChange::default(), |change| {
            change.name = Some(None);
            change.data = Some(None);
            change.running_turn = Some(None);
            change.title = Some(None);
            change.additional_directories = Some(Vec::new());
            change.settings = Some(BTreeMap::new());
        }),
    ];
    for (number, change) in (1..).zip(changes) {
        let commit = with(events(number, 1), |commit| {
            commit.change = change.clone();
            commit.sync = number % 2 == 0;
        });
        assert!(session.commit(commit).await.is_ok(), "change {number}");
        change.apply(&mut expected);
        expected.last_event = number;
        assert_eq!(session.record().await, expected, "after change {number}");
    }
    // Nothing to write is a commit too.
    let nothing = with(Commit::default(), |commit| commit.sync = true);
    assert!(session.commit(nothing).await.is_ok());
    assert_eq!(session.record().await, expected, "after an empty commit");
}

pub(super) async fn what_is_derived_is_the_latest_or_nothing(store: Shared) {
    let session = Session::create(&store, "s").await;
    let ids = ["s", "missing"].map(SessionId::from);
    let derived = || store.derived(&ids);
    assert_eq!(derived().await.ok(), Some(vec![None, None]), "derived");
    for kept in ["first \u{fc}\n", "second"] {
        let texts = ids.iter().map(|id| (id.clone(), kept.to_owned()));
        assert!(store.keep_derived(texts.collect()).await.is_ok(), "keep");
        let derived = derived().await.ok().unwrap_or_default();
        assert_eq!((derived.len(), derived.get(1)), (2, Some(&None)), "derived");
        // A store need not keep it.
        if let Some(Some(text)) = derived.first() {
            assert_eq!(text, kept, "derived");
        }
    }
    assert!(store.delete(&session.id).await.is_ok(), "delete");
    Session::create(&store, "s").await;
    assert_eq!(derived().await.ok(), Some(vec![None, None]), "derived");
}

pub(super) async fn a_deleted_session_is_gone(store: Shared) {
    let session = Session::create(&store, "s").await;
    let other = Session::create(&store, "other").await;
    assert!(session.append(1, 50).await.is_ok());
    assert!(other.append(1, 5).await.is_ok());
    assert!(
        matches!(store.delete(&session.id).await, Ok(true)),
        "delete"
    );
    assert!(
        matches!(store.delete(&session.id).await, Ok(false)),
        "delete again"
    );
    assert!(matches!(store.find(&session.id).await, Ok(None)), "find");
    expect_error(
        store.read(&session.id, 0, 1).await,
        StoreErrorKind::NotFound,
        "read",
    );
    expect_error(
        store.acquire(&session.id).await,
        StoreErrorKind::NotFound,
        "acquire",
    );
    let fork = store
        .fork(&session.id, None, &SessionRecord::new("f", "/"))
        .await;
    expect_error(fork, StoreErrorKind::NotFound, "fork");

    let again = Session::create(&store, "s").await;
    again.expect_events(0).await;
    assert!(
        again.append(1, 2).await.is_ok(),
        "append to the new session"
    );
    again.expect_events(2).await;
    other.expect_events(5).await;
}

fn json(text: &str) -> Json {
    match serde_json::from_str(text) {
        Ok(json) => json,
        Err(error) => panic!("{text}: {error}"),
    }
}

fn settings(values: &[(&str, &str)]) -> BTreeMap<String, SessionConfigOptionValue> {
    let value = |text| match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => panic!("{text}: {error}"),
    };
    let values = values.iter();
    values
        .map(|(id, text)| ((*id).to_owned(), value(text)))
        .collect()
}

pub(super) async fn usage_counts_what_is_kept(store: Shared) {
    let usage = async || {
        let usage = store.usage().await;
        usage.unwrap_or_else(|error| panic!("usage: {error}"))
    };
    let empty = usage().await;
    assert_eq!((empty.sessions, empty.events), (0, 0), "of an empty store");
    let session = Session::create(&store, "s").await;
    let other = Session::create(&store, "other").await;
    assert!(other.append(1, 7).await.is_ok());
    for first in (1..=9_901).step_by(100) {
        assert!(session.append(first, 100).await.is_ok());
    }
    let full = usage().await;
    assert_eq!((full.sessions, full.events), (2, 10_007));
    let bytes: usize = (1..=10_000).map(|number| text(number).len()).sum();
    let bytes = bytes as u64;
    assert!(
        full.used_bytes > empty.used_bytes + bytes,
        "{full:?}, events of {bytes} bytes"
    );

    let trim = with(Commit::default(), |commit| commit.trim_before = Some(9_901));
    assert!(session.commit(trim).await.is_ok());
    let trimmed = usage().await;
    assert_eq!((trimmed.sessions, trimmed.events), (2, 107));
    let freed = full.used_bytes.saturating_sub(trimmed.used_bytes);
    assert!(freed > bytes / 2, "{trimmed:?} after {full:?}");
    assert!(matches!(store.delete(&other.id).await, Ok(true)));
    let deleted = usage().await;
    assert_eq!((deleted.sessions, deleted.events), (1, 100));
    assert!(deleted.used_bytes <= trimmed.used_bytes, "{deleted:?}");
}
