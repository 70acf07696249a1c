//! Stores of earlier versions: nothing of them is lost when they are migrated.
//!
//! A new version of the tables needs a file here, or a test fails. It has the sessions and events of
//! the others, and what its version adds.

use std::path::Path;

use acp_server::store::{ListQuery, SessionRecord, SqliteStore, Store};
use rusqlite::Connection;
use serde_json::json;
use tempfile::TempDir;

/// What each version has written.
pub(crate) const STORES: [&str; 7] = [
    include_str!("version-1.sql"),
    include_str!("version-2.sql"),
    include_str!("version-3.sql"),
    include_str!("version-4.sql"),
    include_str!("version-5.sql"),
    include_str!("version-6.sql"),
    include_str!("version-7.sql"),
];

/// The version whose records have the handler's data.
const DATA: usize = 2;

/// The version whose batches have a time.
const TIMES: usize = 3;

/// The version whose sessions can have lost their oldest events, and the oldest event of the copy there.
const OLDEST: usize = 4;
const OLDEST_EVENT: usize = 6;

/// The version that keeps what was derived from the events of a session.
const DERIVED: usize = 6;

/// The version that keeps prompts which wait.
const PROMPTS: usize = 7;

/// Makes the store that a version has written.
pub(crate) fn write(path: &Path, version: usize) {
    let connection = Connection::open(path).unwrap();
    connection.execute_batch(STORES[version - 1]).unwrap();
    connection
        .pragma_update(None, "journal_mode", "WAL")
        .unwrap();
}

fn closed(version: usize) -> SessionRecord {
    let mut record = SessionRecord::new("sess_1", "/work");
    record.name = Some("first".to_owned());
    record.additional_directories = vec!["/more".to_owned()];
    record.title = Some("It's a title".to_owned());
    record.created_at = "2026-11-22T10:00:00.000Z".to_owned();
    record.updated_at = "2026-11-22T10:00:02.000Z".to_owned();
    let settings = json!({ "mode": { "value": "careful" } });
    record.settings = serde_json::from_value(settings).unwrap();
    record.last_event = 8;
    if version >= DATA {
        record.data = Some(serde_json::from_str(r#"{"n":1.50}"#).unwrap());
    }
    record
}

fn oldest_of_copy(version: usize) -> usize {
    if version >= OLDEST { OLDEST_EVENT } else { 1 }
}

fn records(version: usize) -> [SessionRecord; 3] {
    let closed = closed(version);
    let mut copy = closed.clone();
    copy.id = "sess_2".into();
    copy.name = None;
    copy.created_at = "2026-11-22T10:00:03.000Z".to_owned();
    copy.updated_at = copy.created_at.clone();
    copy.forked_from = Some(("sess_1".into(), 8));
    copy.oldest_event = oldest_of_copy(version) as u64;
    let mut running = SessionRecord::new("sess_3", "/other");
    running.created_at = "2026-11-22T10:00:04.000Z".to_owned();
    running.updated_at = "2026-11-22T10:00:05.000Z".to_owned();
    running.running_turn = Some(1);
    running.last_event = 2;
    [running, copy, closed]
}

/// The events of the closed session and of its copy, with the times of the first.
const EVENTS: [(&str, u64); 8] = [
    (r#"{"event":"turn_started","turn":1}"#, 1_795_600_801_000),
    (
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"permission"},"messageId":"message-1"}"#,
        1_795_600_801_000,
    ),
    (
        r#"{"sessionUpdate":"tool_call","toolCallId":"call-1-1","title":"Run a command","kind":"execute","status":"pending"}"#,
        1_795_600_801_000,
    ),
    (
        r#"{"event":"permission_asked","question":4,"request":{"sessionId":"sess_1","toolCall":{"toolCallId":"call-1-1","kind":"execute","title":"Run a command"},"options":[{"optionId":"allow","name":"Allow","kind":"allow_once"},{"optionId":"reject","name":"Reject","kind":"reject_once"}]}}"#,
        1_795_600_801_000,
    ),
    (
        r#"{"event":"permission_answered","question":4,"outcome":{"outcome":"selected","optionId":"allow"}}"#,
        1_795_600_801_500,
    ),
    (
        r#"{"sessionUpdate":"tool_call_update","toolCallId":"call-1-1","status":"completed"}"#,
        1_795_600_802_000,
    ),
    (
        r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"It's \"allowed\"\nü"},"messageId":"message-1-2"}"#,
        1_795_600_802_000,
    ),
    (
        r#"{"event":"turn_ended","turn":1,"stopReason":"end_turn"}"#,
        1_795_600_802_000,
    ),
];

async fn events(store: &SqliteStore, session: &str) -> Vec<(String, Option<u64>)> {
    let page = store.read(&session.into(), 0, 1 << 20).await.unwrap();
    let batches = page.batches.iter();
    let events = batches.flat_map(|batch| {
        let events = batch.after(0);
        events.map(|(number, text)| (text.to_owned(), batch.time(number)))
    });
    events.collect()
}

#[test]
fn each_version_has_a_store_of_its_own() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("new.db");
    drop(SqliteStore::open(&path).unwrap());
    let latest = SqliteStore::check(&path).unwrap().version;
    assert_eq!(
        usize::try_from(latest),
        Ok(STORES.len()),
        "add version-{latest}.sql, made with the tables of that version"
    );
}

#[tokio::test]
async fn migrating_keeps_all_sessions_and_events() {
    for version in 1..=STORES.len() {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join("old.db");
        write(&path, version);
        assert_eq!(SqliteStore::check(&path).unwrap().version as usize, version);
        let store = SqliteStore::open(&path).unwrap();

        let mut query = ListQuery::default();
        query.limit = 10;
        let listed = store.list(&query).await.unwrap();
        assert_eq!(listed, records(version), "of version {version}");
        let expected = |time: u64| (version >= TIMES).then_some(time);
        let own = EVENTS.map(|(text, time)| (text.to_owned(), expected(time)));
        assert_eq!(events(&store, "sess_1").await, own, "of version {version}");
        let copied = EVENTS.map(|(text, _)| (text.to_owned(), expected(1_795_600_802_000)));
        let kept = &copied[oldest_of_copy(version) - 1..];
        assert_eq!(events(&store, "sess_2").await, kept);
        assert_eq!(events(&store, "sess_3").await.len(), 2);

        let derived = store.derived(&["sess_1".into(), "sess_2".into()]).await;
        let text = (version >= DERIVED).then(|| r#"[1,"ü"]"#.to_owned());
        assert_eq!(derived.unwrap(), [text, None], "of version {version}");

        let prompts = store.prompts(&"sess_3".into()).await.unwrap();
        let numbers: Vec<_> = prompts.iter().map(|prompt| prompt.number).collect();
        let kept: &[u64] = if version >= PROMPTS { &[4] } else { &[] };
        assert_eq!(numbers, kept, "of version {version}");

        // Its process has ended, and its lease with it.
        let (record, lease) = store.acquire(&"sess_3".into()).await.unwrap();
        assert_eq!(record.running_turn, Some(1));
        store.release(&lease).await.unwrap();
        drop(store);
        let found = SqliteStore::check(&path).unwrap();
        assert_eq!(usize::try_from(found.version), Ok(STORES.len()));
        let removed = oldest_of_copy(version) as u64 - 1;
        assert_eq!((found.sessions, found.events), (3, 18 - removed));
        assert_eq!((found.open, found.abandoned), (0, 0));
        assert_eq!(found.prompts, kept.len() as u64);
        assert_eq!(found.problems, Vec::<String>::new());
    }
}
