//! Streams of events: cursors, ends, readers.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{ContentChunk, SessionUpdate};
use acp_server::Received;
use acp_server::store::MemoryStore;

use super::*;

/// A session with two turns, and the numbers of its events.
async fn two_turns(site: &Site) -> (String, Vec<Frame>) {
    let id = site.create().await.id;
    site.talk(&id, "tool").await;
    let frames = site.talk(&id, "think").await;
    (id, frames)
}

#[tokio::test]
async fn a_stream_begins_after_the_cursor() {
    let site = Site::start().await;
    let (id, frames) = two_turns(&site).await;
    let last = *ids(&frames).last().unwrap();
    assert_eq!(ids(&frames), (1..=last).collect::<Vec<_>>());
    assert_eq!(frames.last().unwrap().event, "end");
    assert_eq!(
        frames.last().unwrap().id,
        None,
        "the end does not move the cursor"
    );
    let path = format!("/sessions/{id}/events");
    for cursor in ["0", "-1", "", "seven", "7.1"] {
        let again = site.stream(&path, Some(cursor)).await.rest().await;
        assert_eq!(again, frames, "{cursor:?}");
    }
    for cursor in 1..last {
        let rest = site
            .stream(&path, Some(&cursor.to_string()))
            .await
            .rest()
            .await;
        assert_eq!(rest, frames[cursor as usize..], "after {cursor}");
    }
}

#[tokio::test]
async fn a_stream_from_now_has_later_events_only() {
    let site = Site::start().await;
    let (id, frames) = two_turns(&site).await;
    let last = *ids(&frames).last().unwrap();
    let path = format!("/sessions/{id}/events");
    let stream = site.stream(&format!("{path}?from=live"), None).await;
    site.post(&format!("/session/{id}/message"), json!({ "text": "ping" }))
        .await;
    let frames = stream.rest().await;
    assert_eq!(ids(&frames), [last + 1, last + 2, last + 3]);
    assert_eq!(
        names(&frames),
        ["turn_start", "user_message", "agent_result", "end"]
    );
    // A reader that comes back goes on where it was, whatever its address says.
    let resumed = site.stream(&format!("{path}?from=live"), Some("1")).await;
    assert_eq!(ids(&resumed.rest().await)[0], 2);
    let start = site.stream(&format!("{path}?from=start"), None).await;
    assert_eq!(ids(&start.rest().await)[0], 1);
    refused(
        &site.get(&format!("{path}?from=then")).await,
        400,
        "invalid_query",
    );
}

#[tokio::test]
async fn a_stream_after_the_last_event_of_an_idle_session_ends() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let path = format!("/sessions/{id}/events");
    for (text, success) in [("ping", true), ("fail", false)] {
        let frames = site.talk(&id, text).await;
        let session = site.server.open_session(&id.as_str().into()).unwrap();
        // An event between turns is no end, and does not hide the one before.
        let outside = ContentChunk::new("between turns");
        session
            .send(SessionUpdate::AgentMessageChunk(outside))
            .await
            .unwrap();
        let mut events = session.subscribe(*ids(&frames).last().unwrap());
        let Received::Event(event) = events.next().await.unwrap() else {
            panic!("no event");
        };
        let last = event.number;
        assert_eq!(session.last_event(), last);
        for cursor in [last, last - 1, 999_999] {
            let stream = site.stream(&path, Some(&cursor.to_string())).await;
            // Signs of life come in any case.
            let rest = timeout(PATIENCE, stream.rest()).await.expect("an end");
            assert_eq!(rest.last().unwrap().event, "end", "{rest:?}");
            assert_eq!(rest.last().unwrap().data["success"], success);
            assert_eq!(rest.len() as u64, 1 + last.saturating_sub(cursor));
        }
    }
}

#[tokio::test]
async fn a_turn_is_read_after_the_number_with_which_it_was_accepted() {
    let site = Site::start().await;
    let id = site.create().await.id;
    // The agent offers its commands in a turn.
    let mut last = *ids(&site.talk(&id, "commands").await).last().unwrap();
    for (path, body) in [
        (format!("/session/{id}/message"), json!({ "text": "ping" })),
        (format!("/sessions/{id}/turns"), json!({ "prompt": "ping" })),
        (
            "/commands/ping/invoke".to_owned(),
            json!({ "session_id": id }),
        ),
    ] {
        let accepted = site.post(&path, body).await;
        assert_eq!(accepted.status, 202, "{accepted:?}");
        let accepted = accepted.json();
        assert_eq!(accepted["last_event_id"], last, "{path}");
        let cursor = accepted["last_event_id"].to_string();
        let path = format!("/sessions/{id}/events");
        let frames = site.stream(&path, Some(&cursor)).await.rest().await;
        assert_eq!(ids(&frames)[0], last + 1);
        let said = &frames[1].data["metadata"]["messageId"];
        assert_eq!(said, &accepted["message_id"]);
        last = *ids(&frames).last().unwrap();
    }
    let created = site
        .post("/sessions", json!({ "prompt": "ping", "cwd": "/" }))
        .await;
    assert_eq!(created.json()["last_event_id"], 0, "{created:?}");
}

#[tokio::test]
async fn an_event_is_the_same_live_and_after_each_cursor() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let path = format!("/session/{id}/events");
    let mut live = site.stream(&path, None).await;
    // Longer than the way back on which the beginning of a turn is looked for at first.
    site.talk(&id, "stream 600").await;
    site.talk(&id, "usage").await;
    let mut frames = Vec::new();
    for _ in 0..2 {
        loop {
            let frame = live.next().await.unwrap();
            let is_result = frame.event == "result";
            frames.push(frame);
            if is_result {
                break;
            }
        }
    }
    let last = frames.len();
    for cursor in [1, 2, 3, 100, 300, 599, 601, 602, 603, 604, 605, 606] {
        let mut again = site.stream(&path, Some(&cursor.to_string())).await;
        for expected in frames.iter().skip(cursor) {
            assert_eq!(
                again.next().await.as_ref(),
                Some(expected),
                "after {cursor} of {last}"
            );
        }
    }
    let result = frames.iter().find(|frame| frame.event == "result").unwrap();
    assert_eq!(result.data["output"].as_str().unwrap().len(), 600 * 60);
    assert_eq!(
        (&result.data["steps"], &result.data["success"]),
        (&json!(1), &json!(true))
    );
    let message = &frames[1].data;
    assert_eq!(message["text"], "stream 600");
    assert_eq!(result.data["message_id"], message["message_id"]);
    let delta = &frames[2];
    assert_eq!(
        (delta.event.as_str(), &delta.data["type"]),
        ("loop_event", &json!("text_delta"))
    );
    assert_eq!(delta.data["message_id"], message["message_id"]);
    assert_eq!(delta.data["turn"], 1);
    let before = std::time::SystemTime::now() - std::time::Duration::from_secs(3_600);
    let before = before.duration_since(std::time::UNIX_EPOCH).unwrap();
    let timestamp = delta.data["timestamp"].as_f64().unwrap();
    assert!(timestamp > before.as_secs_f64(), "{timestamp}");
    assert_eq!(frames.last().unwrap().data["cost"], 0.01);
}

#[tokio::test]
async fn names_and_members_are_those_of_the_two_vocabularies() {
    let site = Site::start().await;
    let id = site.create().await.id;
    for text in ["think", "fail", "plan"] {
        site.talk(&id, text).await;
    }
    let frames = site.frames(&id).await;
    let expected = [
        "turn_start",
        "user_message",
        "thought_delta",
        "text_delta",
        "agent_result",
        "turn_start",
        "user_message",
        "error",
        "turn_start",
        "user_message",
        "plan",
        "agent_result",
        "end",
    ];
    assert_eq!(names(&frames), expected);
    let delta = &frames[3].data;
    assert_eq!(
        (&delta["id"], &delta["type"]),
        (&json!("evt-4"), &json!("text_delta"))
    );
    assert_eq!(delta["metadata"]["content"]["text"], "I have thought.");
    let mut otter = site.stream(&format!("/session/{id}/events"), None).await;
    let error = otter.until("error").await;
    assert_eq!(error.id, Some(8));
    assert!(
        error.data["error"]
            .as_str()
            .unwrap()
            .contains("asked for a failure")
    );
    assert!(error.data["message_id"].is_string() && error.data["exception"].is_string());
    // Over the end of a turn the stream stays open.
    assert_eq!(otter.until("result").await.id, Some(12));
}

#[tokio::test]
async fn two_readers_see_the_same_and_one_that_does_not_read_delays_nobody() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let path = format!("/sessions/{id}/events");
    let slow = site.stream(&path, None).await;
    let (one, two) = (
        site.stream(&path, None).await,
        site.stream(&path, None).await,
    );
    // More than sockets hold, and more than the log keeps in memory.
    site.post(
        &format!("/session/{id}/message"),
        json!({ "text": "stream 5000" }),
    )
    .await;
    let (one, two) = tokio::join!(one.rest(), two.rest());
    assert_eq!(ids(&one), (1..=5003).collect::<Vec<_>>());
    assert_eq!(one, two);
    assert_eq!(slow.rest().await, one, "nothing is dropped");
}

#[tokio::test]
async fn a_stream_has_headers_for_proxies_and_signs_of_life() {
    let mut settings = EndpointSettings::default();
    settings.keep_alive = Duration::from_millis(20);
    let site = Site::with(Server::new(Reference), &settings).await;
    let id = site.create().await.id;
    for kind in ["session", "sessions"] {
        let mut stream = site.stream(&format!("/{kind}/{id}/events"), None).await;
        assert_eq!(stream.status, 200);
        for line in [
            "content-type: text/event-stream",
            "cache-control: no-cache, no-transform",
            "x-accel-buffering: no",
        ] {
            assert!(stream.head.contains(line), "{}", stream.head);
        }
        assert_eq!(stream.piece().await.as_deref(), Some("retry: 3000"));
        for _ in 0..2 {
            assert_eq!(stream.piece().await.as_deref(), Some(": keep-alive"));
        }
    }
}

#[tokio::test]
async fn the_number_of_streams_is_bounded() {
    let mut settings = EndpointSettings::default();
    settings.event_streams = 2;
    let site = Site::with(Server::new(Reference), &settings).await;
    let id = site.create().await.id;
    let path = format!("/session/{id}/events");
    let one = site.stream(&path, None).await;
    let _two = site.stream(&path, None).await;
    refused(&site.get(&path).await, 503, "too_many_streams");
    drop(one);
    // The server notices that the reader is gone when it has something to write.
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        // Refused while too many wait.
        drop(site.server.open_sessions()[0].prompt(vec!["ping".into()]));
        if site.stream(&path, None).await.status == 200 {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline);
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn a_session_that_has_left_memory_is_opened_for_a_reader() {
    let store = Arc::new(MemoryStore::new());
    let server = || Server::builder(Reference).store(store.clone()).build();
    let before = Site::with(server(), &EndpointSettings::default()).await;
    let (id, frames) = two_turns(&before).await;
    before.server.shutdown().await;
    let site = Site::with(server(), &EndpointSettings::default()).await;
    let state = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(state["state"], "stored");
    let whole = site.get(&format!("/sessions/{id}")).await.json();
    assert_eq!(whole["events"].as_array().unwrap().len(), frames.len() - 1);
    assert!(
        site.server.open_sessions().is_empty(),
        "reading opens nothing"
    );
    let mut again = site.stream(&format!("/sessions/{id}/events"), None).await;
    for expected in &frames {
        assert_eq!(again.next().await.as_ref(), Some(expected));
    }
}
