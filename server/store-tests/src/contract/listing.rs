//! Lists of sessions.

use std::collections::HashSet;

use acp_sdk::v1::SessionId;
use acp_server::store::{ListQuery, RecordChange, SessionRecord};

use super::{Session, Shared, listed, with};

pub(super) async fn sessions_are_listed_by_activity(store: Shared) {
    for (id, second) in [("b", 3), ("a", 3), ("c", 3), ("e", 1), ("d", 5)] {
        Session::create_as(&store, &record(id, second)).await;
    }
    let all = query(99);
    assert_eq!(listed(&*store, &all).await, ["d", "a", "b", "c", "e"]);
    assert_eq!(listed(&*store, &query(2)).await, ["d", "a"]);
    assert!(listed(&*store, &query(0)).await.is_empty(), "limit 0");
    for (at, expected) in ["abce", "bce", "ce", "e", ""].into_iter().enumerate() {
        let records = store.list(&all).await;
        let records = records.unwrap_or_else(|error| panic!("list: {error}"));
        let after = &records[at];
        let page = with(all.clone(), |query| {
            query.after = Some((after.updated_at.clone(), after.id.clone()))
        });
        assert_eq!(
            listed(&*store, &page).await.concat(),
            expected,
            "after {}",
            after.id
        );
    }

    // Activity moves a session, other changes do not.
    let acquired = store.acquire(&SessionId::from("e")).await;
    let (record, lease) = acquired.unwrap_or_else(|error| panic!("acquire: {error}"));
    let session = Session {
        store: store.clone(),
        id: record.id,
        lease,
    };
    let title = with(RecordChange::default(), |change| {
        change.title = Some(Some("title".to_owned()))
    });
    assert!(session.change(title).await.is_ok());
    assert!(session.append(1, 1).await.is_ok());
    assert_eq!(listed(&*store, &all).await, ["d", "a", "b", "c", "e"]);
    assert!(session.change(activity(4)).await.is_ok());
    assert_eq!(listed(&*store, &all).await, ["d", "e", "a", "b", "c"]);
    assert!(matches!(
        store.delete(&SessionId::from("a")).await,
        Ok(true)
    ));
    assert_eq!(listed(&*store, &all).await, ["d", "e", "b", "c"]);
}

pub(super) async fn lists_are_filtered(store: Shared) {
    for number in 0..20 {
        let mut record = record(&format!("{number:02}"), number);
        record.cwd = ["/a", "/a/", "/A", "/"][number % 4].to_owned();
        record.name = (number % 5 == 0).then(|| format!("name {number}"));
        Session::create_as(&store, &record).await;
    }
    let in_a = with(query(3), |query| query.cwd = Some("/a".to_owned()));
    assert_eq!(listed(&*store, &in_a).await, ["16", "12", "08"]);
    let more = with(in_a, |query| {
        query.after = Some((time(8), SessionId::from("08")))
    });
    assert_eq!(listed(&*store, &more).await, ["04", "00"]);
    let elsewhere = with(query(9), |query| query.cwd = Some("/b".to_owned()));
    assert!(listed(&*store, &elsewhere).await.is_empty());

    let named = |name: &str, cwd: Option<&str>| {
        with(query(9), |query| {
            query.name = Some(name.to_owned());
            query.cwd = cwd.map(str::to_owned);
        })
    };
    assert_eq!(listed(&*store, &named("name 5", None)).await, ["05"]);
    assert_eq!(listed(&*store, &named("name 5", Some("/a/"))).await, ["05"]);
    assert!(
        listed(&*store, &named("name 5", Some("/a")))
            .await
            .is_empty()
    );
    assert!(listed(&*store, &named("name", None)).await.is_empty());
    let past = with(named("name 5", None), |query| {
        query.after = Some((time(5), SessionId::from("05")))
    });
    assert!(
        listed(&*store, &past).await.is_empty(),
        "the named one is on the page before"
    );
}

pub(super) async fn pages_neither_miss_nor_repeat_a_session(store: Shared) {
    const SESSIONS: usize = 1_200;
    let mut sessions = Vec::new();
    for number in 0..SESSIONS {
        // Three share each time.
        let record = record(&format!("{number:04}"), number / 3);
        sessions.push(Session::create_as(&store, &record).await);
    }
    let (mut seen, mut page, mut changed) = (Vec::new(), query(100), HashSet::new());
    loop {
        let records = store.list(&page).await;
        let records = records.unwrap_or_else(|error| panic!("list: {error}"));
        let Some(last) = records.last() else { break };
        page.after = Some((last.updated_at.clone(), last.id.clone()));
        seen.extend(records.iter().map(|record| record.id.to_string()));
        // Sessions of this page and of later ones become active, are deleted and created.
        let round = seen.len();
        for session in [
            &sessions[SESSIONS - round],
            &sessions[(SESSIONS - round) / 2],
        ] {
            assert!(session.change(activity(9_000 + round)).await.is_ok());
            changed.insert(session.id.to_string());
        }
        let deleted = &sessions[(SESSIONS - round) / 3 + 1];
        assert!(store.delete(&deleted.id).await.is_ok());
        changed.insert(deleted.id.to_string());
        let id = format!("new {round}");
        Session::create_as(&store, &record(&id, 8_000)).await;
        changed.insert(id);
    }
    let distinct: HashSet<_> = seen.iter().collect();
    assert_eq!(distinct.len(), seen.len(), "sessions listed twice");
    let mut expected: Vec<_> = (0..SESSIONS).collect();
    expected.sort_by_key(|number| (std::cmp::Reverse(number / 3), *number));
    let expected = expected.iter().map(|number| format!("{number:04}"));
    let expected: Vec<_> = expected.filter(|id| !changed.contains(id)).collect();
    seen.retain(|id| !changed.contains(id));
    assert_eq!(seen, expected, "sessions that nobody changed");
}

fn query(limit: usize) -> ListQuery {
    with(ListQuery::default(), |query| query.limit = limit)
}

fn time(second: usize) -> String {
    format!("2030-01-01T00:00:{second:05}.000Z")
}

fn record(id: &str, second: usize) -> SessionRecord {
    let mut record = SessionRecord::new(id, "/work");
    record.updated_at = time(second);
    record
}

fn activity(second: usize) -> RecordChange {
    with(RecordChange::default(), |change| {
        change.updated_at = Some(time(second))
    })
}

pub(super) async fn the_opposite_order_has_the_same_sessions(store: Shared) {
    for number in 0..30 {
        let mut record = record(&format!("{number:02}"), number / 3);
        record.cwd = ["/a", "/b"][number % 2].to_owned();
        record.name = (number == 7).then(|| "seven".to_owned());
        Session::create_as(&store, &record).await;
    }
    for cwd in [None, Some("/a".to_owned())] {
        let all = with(query(99), |query| query.cwd = cwd);
        let mut expected = listed(&*store, &all).await;
        expected.reverse();
        let mut page = with(all, |query| {
            query.oldest_first = true;
            query.limit = 4;
        });
        let mut seen = Vec::new();
        loop {
            let records = store.list(&page).await;
            let records = records.unwrap_or_else(|error| panic!("list: {error}"));
            let Some(last) = records.last() else { break };
            page.after = Some((last.updated_at.clone(), last.id.clone()));
            seen.extend(records.iter().map(|record| record.id.to_string()));
        }
        assert_eq!(seen, expected, "the oldest first");
    }
    let mut named = with(query(9), |query| {
        query.name = Some("seven".to_owned());
        query.oldest_first = true;
    });
    assert_eq!(listed(&*store, &named).await, ["07"]);
    named.after = Some((time(3), SessionId::from("09")));
    assert!(
        listed(&*store, &named).await.is_empty(),
        "on the page before"
    );
    named.after = Some((time(2), SessionId::from("08")));
    assert_eq!(listed(&*store, &named).await, ["07"]);
}
