//! Answers that come at the end of a turn, or are the stream of its events, and requests that are sent
//! again.

use std::sync::Arc;

use acp_server::store::{MemoryStore, StoreErrorKind};
use acp_store_tests::faults::{Fault, FaultyStore, Operation, When};

use super::*;

const STREAM: &str = "Accept: text/event-stream";

impl Site {
    async fn send(&self, path: &str, headers: &[&str], body: &Value) -> Answer {
        let body = body.to_string();
        self.request("POST", path, Some(&self.master), headers, &body)
            .await
    }

    /// Sends a prompt and returns the stream that answers it.
    async fn ask(&self, path: &str, body: &Value) -> Stream {
        let body = body.to_string();
        let head = self.head("POST", path, Some(&self.master), &[STREAM]);
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        Stream::open(self.listener.connect().await, &request).await
    }
}

/// A server that has lost its lease has not done what it was asked.
#[tokio::test]
async fn a_turn_that_could_not_be_committed_may_be_asked_for_again() {
    let store = Arc::new(FaultyStore::new(MemoryStore::new()));
    let server = Server::builder(Reference).store(store.clone()).build();
    let site = Site::with(server.clone(), &EndpointSettings::default()).await;
    let session = server.create_session("/w").await.unwrap();
    let fault = Fault::Fail(StoreErrorKind::LeaseLost);
    store.inject_next(Operation::Commit, usize::MAX, When::Before, fault);
    let path = format!("/sessions/{}/turns?wait=60", session.id());
    let answer = site.send(&path, &[], &json!({ "prompt": "hello" })).await;
    assert_eq!(answer.status, 503, "{answer:?}");
    assert_eq!(answer.json()["error"], "turn_lost", "{answer:?}");
    assert!(answer.header("retry-after").is_some());
}

#[tokio::test]
async fn one_request_creates_a_session_and_returns_what_its_turn_did() {
    let site = Site::start().await;
    let new = json!({
        "prompt": "tool", "cwd": "/w", "model": "large", "mode": "code", "options": { "verbose": "on" },
    });
    let answer = site.send("/sessions?wait=60", &[], &new).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let ended = answer.json();
    let id = ended["session_id"].as_str().unwrap().to_owned();
    let place = format!("/sessions/{id}");
    assert_eq!(answer.header("location"), Some(place.as_str()));
    assert_eq!(ended["status"], "completed");
    assert_eq!(ended["stop_reason"], "end_turn");
    assert_eq!(ended["success"], true);
    assert!(ended["run_id"].as_str().unwrap().starts_with(&id));
    assert_eq!(
        (&ended["prompt"], &ended["model"]),
        (&json!("tool"), &json!("large"))
    );
    let settings = site
        .server
        .open_session(&id.as_str().into())
        .unwrap()
        .settings();
    assert_eq!(
        (settings.mode(), settings.is_on("verbose")),
        (Some("code"), Some(true))
    );
    let calls = ended["calls"].as_array().unwrap();
    assert_eq!(ended["tool_calls"], calls.len());
    assert_eq!(calls[0]["status"], "completed");
    assert!(!calls[0]["title"].as_str().unwrap().is_empty(), "{calls:?}");
    let state = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(ended["last_event"], state["event_count"]);
    // The same turn is in the list, with the same members.
    let run = site.get("/runs").await.json()["runs"][0].clone();
    for (name, value) in run.as_object().unwrap() {
        assert_eq!(ended[name], *value, "{name}");
    }

    let path = format!("/sessions/{id}/turns");
    let usage = json!({ "prompt": "usage" });
    let answer = site.send(&path, &["Prefer: wait=60"], &usage).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.header("preference-applied"), Some("wait=60"));
    assert_eq!(answer.json()["cost_usd"], 0.01);
    let path = format!("/session/{id}/message?wait=60");
    let answer = site.send(&path, &[], &json!({ "text": "hello" })).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let ended = answer.json();
    assert_eq!(ended["output"], "hello");
    assert_eq!(ended["output_omitted_bytes"], 0);
    assert_eq!(ended["calls"], json!([]));
    let answer = site.send(&path, &[], &json!({ "text": "fail" })).await;
    let ended = answer.json();
    assert_eq!((answer.status, &ended["status"]), (200, &json!("failed")));
    assert!(
        ended["error"].as_str().unwrap().contains("failure"),
        "{ended}"
    );
}

#[tokio::test]
async fn a_turn_that_takes_longer_goes_on() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let path = format!("/sessions/{id}/turns");
    let asking = json!({ "prompt": "permission" });
    let answer = site.send(&format!("{path}?wait=0"), &[], &asking).await;
    assert_eq!(answer.status, 202, "{answer:?}");
    assert_eq!(answer.json()["status"], "running");
    let stream = site.stream(&format!("/sessions/{id}/events"), None).await;
    site.post(&format!("/sessions/{id}/cancel"), "").await;
    let frames = stream.rest().await;
    assert!(names(&frames).contains(&"cancelled"), "{frames:?}");
    let bad = site.send(&format!("{path}?wait=soon"), &[], &asking).await;
    refused(&bad, 400, "invalid_query");
}

#[tokio::test]
async fn the_answer_can_be_the_events_of_the_turn() {
    let site = Site::start().await;
    let new = json!({ "prompt": "think", "cwd": "/w" });
    let frames = site.ask("/sessions", &new).await.rest().await;
    let expected = [
        "turn_start",
        "user_message",
        "thought_delta",
        "text_delta",
        "agent_result",
        "end",
    ];
    assert_eq!(names(&frames), expected);
    let id = frames[5].data["session_id"].as_str().unwrap().to_owned();
    // Behind a turn that is running, and before one that waits.
    let message = format!("/session/{id}/message");
    site.post(&message, json!({ "text": "permission" })).await;
    let mut stream = site.ask(&message, &json!({ "text": "ping" })).await;
    assert_eq!(stream.status, 200);
    assert!(stream.piece().await.unwrap().starts_with("retry:"));
    site.post(&message, json!({ "text": "permission" })).await;
    let mut all = site.stream(&format!("/session/{id}/events"), None).await;
    let asked = all.until("permission_request").await;
    let answer = json!({
        "session_id": id, "permission_id": asked.data["permission_id"], "approved": true,
    });
    assert_eq!(site.post("/tool/approve", answer).await.status, 200);
    let frames = stream.rest().await;
    assert_eq!(names(&frames), ["loop_event", "user_message", "result"]);
    assert_eq!(frames[0].data["type"], "turn_start");
    assert_eq!(frames[1].data["text"], "ping");
}

#[tokio::test]
async fn a_prompt_that_is_cancelled_in_the_queue_has_no_turn() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let message = format!("/session/{id}/message");
    site.post(&message, json!({ "text": "permission" })).await;
    let path = format!("{message}?wait=60");
    let body = json!({ "text": "ping" });
    let waiting = site.send(&path, &["Idempotency-Key: a"], &body);
    let mut stream = site.ask(&message, &body).await;
    let cancelling = async {
        // In the queue, whichever of the two comes first.
        let session = site.server.open_session(&id.as_str().into()).unwrap();
        session.prompt_once("a", vec!["ping".into()]).await.unwrap();
        site.post(&format!("/session/{id}/cancel"), "").await;
    };
    let (answer, ()) = tokio::join!(waiting, cancelling);
    refused(&answer, 409, "no_turn");
    assert!(answer.body.contains("cancelled"), "{answer:?}");
    let said = stream.next().await.unwrap();
    assert_eq!((said.event.as_str(), said.id), ("error", None));
    let error = said.data["error"].as_str().unwrap();
    assert!(error.contains("cancelled"), "{said:?}");
    assert_eq!(stream.next().await, None);
}

#[tokio::test]
async fn a_request_that_is_sent_again_does_its_work_once() {
    let store = Arc::new(MemoryStore::new());
    let serve = || {
        let server = Server::builder(Reference).store(store.clone());
        server.build()
    };
    let site = Site::with(serve(), &EndpointSettings::default()).await;
    let new = json!({ "prompt": "tool", "cwd": "/w" });
    let key = ["Idempotency-Key: 7f1c"];
    let send = || site.send("/sessions?wait=60", &key, &new);
    let (first, second) = tokio::join!(send(), send());
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(first.json(), second.json());
    let id = first.json()["session_id"].as_str().unwrap().to_owned();
    let turn = json!({ "prompt": "think" });
    let path = format!("/sessions/{id}/turns?wait=60");
    let said = site
        .send(&path, &["Idempotency-Key: 1"], &turn)
        .await
        .json();
    site.server.shutdown().await;

    let site = Site::with(serve(), &EndpointSettings::default()).await;
    let again = site.send("/sessions?wait=60", &key, &new).await;
    assert_eq!((again.status, again.json()), (201, first.json()));
    let again = site.send(&path, &["Idempotency-Key: 1"], &turn).await;
    assert_eq!((again.status, again.json()), (200, said));
    let different = json!({ "prompt": "another" });
    let refusal = site.send(&path, &["Idempotency-Key: 1"], &different).await;
    refused(&refusal, 422, "idempotency_key_reused");
    // Its events can be had again, too.
    let sessions = site.get("/sessions").await.json();
    assert_eq!(sessions["sessions"].as_array().unwrap().len(), 1);
    assert_eq!(sessions["sessions"][0]["turns"], 2);
    let again = site.send("/sessions", &key, &new).await;
    assert_eq!(again.status, 201);
    assert_eq!(again.json()["status"], "ended");
    let other = site
        .send("/sessions?wait=60", &["Idempotency-Key: 8"], &new)
        .await;
    assert_ne!(other.json()["session_id"], id.as_str());
    let long = format!("Idempotency-Key: {}", "x".repeat(200));
    let refusal = site.send(&path, &[&long], &turn).await;
    refused(&refusal, 400, "invalid_idempotency_key");
}

#[tokio::test]
async fn only_so_many_wait_and_what_is_refused_is_not_begun() {
    let mut settings = EndpointSettings::default();
    settings.event_streams = 1;
    let site = Site::with(Server::new(Reference), &settings).await;
    let id = site.create().await.id;
    let mut stream = site.stream(&format!("/session/{id}/events"), None).await;
    assert!(stream.piece().await.is_some());
    let path = format!("/session/{id}/message?wait=60");
    let answer = site.send(&path, &[], &json!({ "text": "ping" })).await;
    refused(&answer, 503, "too_many_streams");
    let state = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(state["event_count"], 0);
}
