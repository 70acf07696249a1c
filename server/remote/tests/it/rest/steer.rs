//! Input for the running turn.

use super::*;

impl Site {
    /// Begins a turn and waits for its first text; returns a stream of its events.
    async fn begin(&self, id: &str, prompt: &str) -> Stream {
        let path = format!("/sessions/{id}/turns");
        let begun = self.post(&path, json!({ "prompt": prompt })).await;
        assert_eq!(begun.status, 202);
        let after = begun.json()["last_event_id"].as_u64().unwrap();
        let path = format!("/sessions/{id}/events");
        let mut stream = self.stream(&path, Some(&after.to_string())).await;
        while stream.next().await.unwrap().event != "text_delta" {}
        stream
    }
}

#[tokio::test]
async fn a_turn_takes_input_and_its_events_show_it() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let mut stream = site.begin(&id, "steer 2").await;
    let path = format!("/sessions/{id}/steer");
    let key = ["Idempotency-Key: k"];
    let body = r#"{ "prompt": "left" }"#;
    let answer = site
        .request("POST", &path, Some(&site.master), &key, body)
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let first = answer.json();
    assert_eq!(first["outcome"], "injected");
    let again = site
        .request("POST", &path, Some(&site.master), &key, body)
        .await;
    assert_eq!((again.status, again.json()), (200, first.clone()));
    let user = stream.next().await.unwrap();
    assert_eq!(user.event, "user_message");
    assert_eq!(user.id, first["event_id"].as_u64());
    assert!(user.data.to_string().contains("left"), "{}", user.data);
    let answer = site.post(&path, json!({ "prompt": "right" })).await;
    assert_eq!(answer.json()["outcome"], "injected");
    let names = ["text_delta", "user_message", "text_delta", "agent_result"];
    for name in names {
        assert_eq!(stream.next().await.unwrap().event, name);
    }
    // The run has its prompt alone.
    let runs = site.get("/runs").await.json();
    assert_eq!(runs["runs"][0]["prompt"], "steer 2");

    refused(
        &site.post(&path, json!({ "prompt": "x" })).await,
        409,
        "no_turn",
    );
    let queued = site.post(&path, json!({ "prompt": "x", "otherwise": "queue" }));
    let queued = queued.await;
    assert_eq!(
        (queued.status, &queued.json()["outcome"]),
        (202, &json!("queued"))
    );
    refused(&site.post(&path, json!({})).await, 400, "missing_prompt");
    let wrong = json!({ "prompt": "x", "otherwise": "wait" });
    refused(&site.post(&path, wrong).await, 400, "invalid_field");
}
