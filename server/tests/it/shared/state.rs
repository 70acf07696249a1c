//! The state of a session, and its changes.

use std::time::Duration;

use acp_reference_agent::Reference;
use serde_json::json;

use super::*;

fn with_state() -> ClientCapabilities {
    let mut offered = serde_json::to_value(everything()).unwrap();
    offered["_meta"] = json!({ "acp-sdk": { "sessionState": true } });
    serde_json::from_value(offered).unwrap()
}

fn states(guest: &Guest) -> Vec<Value> {
    let log = guest.editor.log.lock().unwrap();
    let changes = log
        .iter()
        .filter(|entry| entry["method"] == "_acp-sdk/session/state_changed");
    changes.map(|entry| entry["params"].clone()).collect()
}

#[tokio::test]
async fn the_state_of_a_session_is_told_and_notified_to_those_who_want_it() {
    let server = Server::new(Reference);
    let editor = Editor {
        permission: Permission::WhenNotified,
        ..Editor::default()
    };
    let one = Guest::offering(&server, editor, with_state()).await;
    let two = Guest::offering(&server, Editor::default(), with_state()).await;
    let three = Guest::new(&server).await;
    let session = one.create().await;
    two.resume(&session).await.unwrap();
    three.resume(&session).await.unwrap();
    let state = async |guest: &Guest| {
        let params = json!({ "sessionId": session });
        guest.ext("_acp-sdk/session/state", params).await.unwrap()
    };
    let idle = json!({
        "sessionId": session,
        "state": "idle",
        "turn": null,
        "queued": 0,
        "lastEventId": 0,
        "questions": [],
    });
    assert_eq!(state(&two).await, idle);
    let turn = one.start(&session, "permission");
    one.editor.until("session/request_permission").await;
    let next = one.start(&session, "ping");
    // A round trip, so that the agent has read the prompt too.
    state(&one).await;
    let now = state(&two).await;
    let question = &now["questions"][0];
    assert_eq!(
        (&now["state"], &now["turn"], &now["queued"]),
        (&json!("running"), &json!(1), &json!(1))
    );
    assert_eq!(now["lastEventId"], 4);
    assert_eq!(question["eventId"], 4);
    assert_eq!(question["kind"], "permission");
    assert_eq!(question["request"]["toolCall"]["title"], "Run a command");
    one.editor.go_on.notify_one();
    turn.await.unwrap().unwrap();
    next.await.unwrap().unwrap();
    let last = state(&two).await;
    assert_eq!(
        (&last["state"], &last["questions"]),
        (&json!("idle"), &json!([]))
    );
    // The end of the last turn is the last change that both are notified of.
    for guest in [&one, &two] {
        let ended = async {
            while states(guest).last().map(|state| &state["state"]) != Some(&json!("idle"))
                || states(guest).last().map(|state| &state["lastEventId"])
                    != Some(&last["lastEventId"])
            {
                tokio::task::yield_now().await;
            }
        };
        let ended = tokio::time::timeout(Duration::from_secs(10), ended).await;
        let seen = states(guest);
        assert!(ended.is_ok(), "{seen:?}");
        assert_eq!(seen[0]["state"], "running", "{seen:?}");
        assert!(
            seen.iter().any(|state| state["questions"] != json!([])),
            "{seen:?}"
        );
    }
    assert!(states(&three).is_empty());
}

/// A burst of events in one batch: the state is that of now, so it is notified once.
#[tokio::test]
async fn the_same_state_is_not_notified_twice() {
    let server = Server::new(Reference);
    let guest = Guest::offering(&server, Editor::default(), with_state()).await;
    let session = guest.create().await;
    for _ in 0..20 {
        guest.prompt(&session, "ping").await.unwrap();
    }
    guest.prompt(&session, "permission").await.unwrap();
    let seen = states(&guest);
    assert!(!seen.is_empty());
    for pair in seen.windows(2) {
        assert_ne!(pair[0], pair[1], "{seen:?}");
    }
    assert_eq!(seen.last().unwrap()["state"], "idle");
}

/// What happened before a turn's end may be on its way while the turn has already ended.
#[tokio::test]
async fn a_session_is_not_idle_before_its_last_update_was_sent() {
    let server = Server::new(Reference);
    let one = Guest::offering(&server, Editor::default(), with_state()).await;
    let session = one.create().await;
    for round in 0..50 {
        one.prompt(&session, "permission").await.unwrap();
        // In the order of the log, and after the prompt's answer too.
        let ended = async {
            while states(&one)
                .last()
                .is_none_or(|state| state["state"] != "idle")
            {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), ended)
            .await
            .unwrap();
        let log = one.editor.take();
        let idle = log
            .iter()
            .position(|entry| entry["params"]["state"] == "idle");
        let last = log
            .iter()
            .rposition(|entry| entry["method"] == "session/update");
        assert!(idle > last, "round {round}: {log:#?}");
    }
}
