//! The commands `acp-server sessions`.

use std::sync::Arc;

use acp_server::event::Batch;
use acp_server::store::{Commit, MemoryStore, SessionRecord, Store};
use acp_server_cli::sessions::{self, Format, Listed, SessionsError};
use serde_json::Value;

const EVENTS: &str = r#"{"event":"turn_started","turn":1}
{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello\u001b[2J,"}}
{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":" agent"}}
{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Two\nlines\n"},"_meta":{"n":1.50}}
{"sessionUpdate":"tool_call","toolCallId":"c1","title":"Read a\nfile"}
{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}
{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}
{"sessionUpdate":"agent_message_chunk","content":{"type":"image","data":"","mimeType":"image/png"}}
{"event":"turn_ended","turn":1,"stopReason":"end_turn"}
{"event":"of_tomorrow","a":1}
"#;

const TEXT: &str = "[1] turn started

User (2):
Hello, agent

Agent (4):
Two
lines
[5] tool call c1: Read a file
[7] tool call c1 completed

Agent (8):
[image, image/png]
[9] turn ended: end_turn
[10] {\"event\":\"of_tomorrow\",\"a\":1}
";

async fn store() -> MemoryStore {
    let store = MemoryStore::new();
    for (id, second) in [("a", 1), ("b", 2), ("c", 3)] {
        let mut record = SessionRecord::new(id, format!("/{id}"));
        record.updated_at = format!("2030-01-01T00:00:0{second}.000Z");
        record.name = (id == "b").then(|| "bee".to_owned());
        record.title = Some(format!("title of {id}\u{7}"));
        let lease = store.create(&record).await.unwrap();
        if id == "b" {
            let mut commit = Commit::default();
            commit.events = Batch::from_lines(1, EVENTS.to_owned()).map(Arc::new);
            store.commit(&lease, commit).await.unwrap();
        }
    }
    store
}

fn text(output: Vec<u8>) -> String {
    String::from_utf8(output).unwrap()
}

fn values(output: Vec<u8>) -> Vec<Value> {
    let text = text(output);
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn sessions_are_listed_and_shown() {
    let store = store().await;
    let mut output = Vec::new();
    sessions::list(&store, Listed::default(), Format::Json, &mut output)
        .await
        .unwrap();
    let listed = values(output);
    let ids: Vec<_> = listed.iter().map(|value| &value["sessionId"]).collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert_eq!(listed[1]["name"], "bee");
    assert_eq!(listed[1]["lastEventId"], 10);
    assert_eq!(listed[0]["title"], "title of c\u{7}");

    let mut output = Vec::new();
    let listed = Listed {
        cwd: Some("/b".to_owned()),
        ..Listed::default()
    };
    sessions::list(&store, listed, Format::Text, &mut output)
        .await
        .unwrap();
    let listed = text(output);
    let lines: Vec<_> = listed.lines().collect();
    assert_eq!(lines.len(), 2, "{listed}");
    assert!(lines[1].starts_with("b "), "{listed}");
    assert!(
        lines[1].ends_with("      10  [bee] title of b, /b"),
        "{listed}"
    );

    let mut output = Vec::new();
    sessions::show(&store, "bee", Format::Json, &mut output)
        .await
        .unwrap();
    assert_eq!(values(output)[0]["sessionId"], "b");
    let mut output = Vec::new();
    sessions::show(&store, "b", Format::Text, &mut output)
        .await
        .unwrap();
    let shown = text(output);
    assert!(shown.contains("events:      10\n"), "{shown}");
    assert!(!shown.contains('\u{7}'), "{shown}");
}

#[tokio::test]
async fn events_are_exported_unchanged_or_as_text() {
    let store = store().await;
    let mut output = Vec::new();
    sessions::export(&store, "b", Format::Json, &mut output)
        .await
        .unwrap();
    let expected: String = (1..)
        .zip(EVENTS.lines())
        .map(|(number, event)| format!("{{\"eventId\":{number},\"event\":{event}}}\n"))
        .collect();
    assert_eq!(text(output), expected);
    let mut output = Vec::new();
    sessions::export(&store, "bee", Format::Text, &mut output)
        .await
        .unwrap();
    assert_eq!(text(output), TEXT);
}

#[tokio::test]
async fn exported_events_have_their_times() {
    let store = MemoryStore::new();
    let record = SessionRecord::new("s", "/");
    let lease = store.create(&record).await.unwrap();
    let lines = [
        r#"{"event":"turn_started","turn":1}"#,
        r#"{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"Hello"}}"#,
        r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"Read"}"#,
        r#"{"event":"turn_ended","turn":1,"stopReason":"end_turn"}"#,
    ];
    for (number, line) in (1..).zip(lines) {
        let batch = Batch::from_lines(number, format!("{line}\n")).unwrap();
        let mut commit = Commit::default();
        let time = 1_735_689_599_000 + number * 250;
        commit.events = Some(Arc::new(batch.with_time(Some(time))));
        store.commit(&lease, commit).await.unwrap();
    }
    let mut output = Vec::new();
    sessions::export(&store, "s", Format::Json, &mut output)
        .await
        .unwrap();
    let line = lines[0];
    let json = format!(r#"{{"eventId":1,"time":"2024-12-31T23:59:59.250Z","event":{line}}}"#);
    assert!(text(output).starts_with(&json));
    let mut output = Vec::new();
    sessions::export(&store, "s", Format::Text, &mut output)
        .await
        .unwrap();
    let expected = "[1] turn started, 2024-12-31T23:59:59.250Z

User (2), 2024-12-31T23:59:59.500Z:
Hello
[3] tool call c: Read, 2024-12-31T23:59:59.750Z
[4] turn ended: end_turn (0.750 s), 2025-01-01T00:00:00.000Z
";
    assert_eq!(text(output), expected);
}

#[tokio::test]
async fn a_fork_is_made_and_deleted() {
    let store = store().await;
    let mut output = Vec::new();
    sessions::fork(&store, "bee", Some(4), &mut output)
        .await
        .unwrap();
    let id = text(output);
    let id = id.trim_end();
    let record = store.find(&id.into()).await.unwrap().unwrap();
    assert_eq!((record.last_event, &*record.cwd), (4, "/b"));
    assert_eq!(record.forked_from, Some(("b".into(), 4)));
    assert_eq!(record.name, None);
    assert!(id.len() > 20, "{id} could be guessed");

    let error = sessions::fork(&store, "b", Some(11), &mut Vec::new()).await;
    let error = error.unwrap_err().to_string();
    assert_eq!(error, "session b has no event 11; its last is 10");
    let mut output = Vec::new();
    sessions::delete(&store, id, &mut output).await.unwrap();
    assert_eq!(text(output), format!("deleted session {id}\n"));
    assert!(store.find(&id.into()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_session_that_is_missing_is_named() {
    let store = MemoryStore::new();
    let mut out = Vec::new();
    for result in [
        sessions::show(&store, "x", Format::Text, &mut out).await,
        sessions::export(&store, "x", Format::Json, &mut out).await,
        sessions::fork(&store, "x", None, &mut out).await,
        sessions::delete(&store, "x", &mut out).await,
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(&error, SessionsError::NotFound(id) if id == "x"),
            "{error}"
        );
        assert!(error.to_string().contains("sessions list"), "{error}");
    }
    sessions::list(&store, Listed::default(), Format::Text, &mut out)
        .await
        .unwrap();
    assert!(out.is_empty());
}

#[tokio::test]
async fn a_session_that_is_open_elsewhere_is_not_deleted() {
    use acp_server::store::{SqliteStore, StoreErrorKind};
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().join("sessions.db");
    let open = SqliteStore::open(&path).unwrap();
    open.create(&SessionRecord::new("s", "/")).await.unwrap();
    let store = SqliteStore::open(&path).unwrap();
    let error = sessions::delete(&store, "s", &mut Vec::new())
        .await
        .unwrap_err();
    let SessionsError::Store(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.kind(), StoreErrorKind::InUse);
    // Forking needs nothing of the other process, and leaves the copy free.
    let mut output = Vec::new();
    sessions::fork(&store, "s", None, &mut output)
        .await
        .unwrap();
    let fork = text(output).trim_end().into();
    open.acquire(&fork).await.unwrap();
}

#[tokio::test]
async fn events_that_were_removed_are_named() {
    let store = store().await;
    let (_, lease) = store.acquire(&"b".into()).await.unwrap();
    let mut trim = Commit::default();
    trim.trim_before = Some(8);
    store.commit(&lease, trim).await.unwrap();
    let mut output = Vec::new();
    let shown = sessions::show(&store, "b", Format::Text, &mut output);
    shown.await.unwrap();
    let shown = text(output);
    assert!(
        shown.contains("events:      10\nremoved:     events 1 to 7\n"),
        "{shown}"
    );
    let mut output = Vec::new();
    let shown = sessions::show(&store, "b", Format::Json, &mut output);
    shown.await.unwrap();
    let shown = values(output).remove(0);
    assert_eq!(
        (&shown["oldestEventId"], &shown["truncated"]),
        (&8.into(), &true.into())
    );

    let mut output = Vec::new();
    let exported = sessions::export(&store, "b", Format::Text, &mut output);
    exported.await.unwrap();
    let exported = text(output);
    let rest = &TEXT[TEXT.find("\nAgent (8)").unwrap()..];
    assert_eq!(exported, format!("[events 1 to 7 were removed]\n{rest}"));
    let mut output = Vec::new();
    let exported = sessions::export(&store, "b", Format::Json, &mut output);
    exported.await.unwrap();
    let lines = values(output);
    assert_eq!(
        (&lines[0]["truncated"], &lines[0]["oldestEventId"]),
        (&true.into(), &8.into())
    );
    let ids: Vec<_> = lines
        .iter()
        .filter_map(|line| line["eventId"].as_u64())
        .collect();
    assert_eq!(ids, [8, 9, 10]);
}
