//! Prompts in OpenOxide's form.

use super::*;

const PROMPT: &str = "/openoxide/prompt";
const STREAM: &str = "Accept: application/json, text/event-stream";

fn said(session: &str, text: &str) -> Value {
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "type": "prompt", "session_id": session, "content": content })
}

/// A site with the route, and a session.
async fn started() -> (Site, Created) {
    started_with(Server::new(Reference)).await
}

async fn started_with(server: Server) -> (Site, Created) {
    let mut settings = EndpointSettings::default();
    settings.openoxide = true;
    let site = Site::with(server, &settings).await;
    let created = site.create().await;
    (site, created)
}

impl Site {
    async fn events(&self, session: &str, text: &str) -> Stream {
        let body = said(session, text).to_string();
        let head = self.head("POST", PROMPT, Some(&self.master), &[STREAM]);
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        Stream::open(self.listener.connect().await, &request).await
    }
}

#[tokio::test]
async fn a_prompt_is_answered_with_the_events_of_its_turn() {
    let (site, Created { id, .. }) = started().await;
    let stream = site.events(&id, "plan").await;
    assert_eq!(stream.status, 200);
    assert!(stream.head.contains("content-type: text/event-stream"));
    let frames = stream.rest().await;
    assert_eq!(names(&frames), ["plan", "response"]);
    assert_eq!(frames[0].data["type"], "plan");
    assert_eq!(frames[0].data["steps"][0]["content"], "Read");
    let expected = json!({
        "session_id": id, "text": "", "stop_reason": "end_turn", "event_id": frames[1].id,
    });
    assert_eq!(frames[1].data, expected);
    let frames = site.events(&id, "hello").await.rest().await;
    assert_eq!(
        frames[0].data,
        json!({ "type": "text_delta", "text": "hello" })
    );
    assert_eq!(names(&frames), ["text_delta", "response"]);
    let frames = site.events(&id, "tool").await.rest().await;
    assert!(names(&frames).contains(&"diff"), "{frames:?}");
    let frames = site.events(&id, "fail").await.rest().await;
    assert_eq!(names(&frames), ["error"]);
    let reason = frames[0].data["error"].as_str().unwrap();
    assert!(reason.contains("failure"), "{reason}");
}

#[tokio::test]
async fn without_streaming_a_prompt_is_answered_with_all_text() {
    let (site, Created { id, .. }) = started().await;
    let answer = site.post(PROMPT, said(&id, "hello")).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let response = answer.json();
    assert_eq!(response["text"], "hello");
    assert_eq!(response["stop_reason"], "end_turn");
    let state = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(response["event_id"], state["event_count"]);
    refused(
        &site.post(PROMPT, said(&id, "fail")).await,
        500,
        "turn_failed",
    );
    // A prompt with its key runs once.
    let body = said(&id, "ping").to_string();
    let key = ["Idempotency-Key: a"];
    let master = Some(site.master.as_str());
    let answers = [
        site.request("POST", PROMPT, master, &key, &body)
            .await
            .json(),
        site.request("POST", PROMPT, master, &key, &body)
            .await
            .json(),
    ];
    assert_eq!(answers[0], answers[1]);
    assert_eq!(answers[0]["stop_reason"], "end_turn");
}

#[tokio::test]
async fn the_route_has_the_checks_of_the_others() {
    let (site, Created { id, token }) = started().await;
    let body = said(&id, "ping").to_string();
    for (token, status) in [(None, 401), (Some(&site.reader), 403), (Some(&token), 403)] {
        let token = token.map(String::as_str);
        let answer = site.request("POST", PROMPT, token, &[], &body).await;
        assert_eq!(answer.status, status, "{answer:?}");
    }
    for (body, status, error) in [
        (said("none", "ping"), 404, "session_not_found"),
        (
            json!({ "session_id": id, "content": [] }),
            400,
            "invalid_field",
        ),
        (json!({ "session_id": id }), 400, "invalid_field"),
        (json!([]), 400, "expected_json_object"),
    ] {
        refused(&site.post(PROMPT, body).await, status, error);
    }
    let other = Site::start().await;
    refused(
        &other.post(PROMPT, said(&id, "ping")).await,
        404,
        "not_found",
    );
    let mut settings = EndpointSettings::default();
    (settings.openoxide, settings.message_bytes) = (true, 1_000);
    settings.event_streams = 0;
    let small = Site::with(Server::new(Reference), &settings).await;
    let long = said(&id, &"x".repeat(1_000));
    assert_eq!(small.post(PROMPT, long).await.status, 413);
    refused(
        &small.post(PROMPT, said(&id, "ping")).await,
        503,
        "too_many_streams",
    );
}

#[tokio::test]
async fn a_permission_of_the_turn_is_rejected() {
    let (site, Created { id, .. }) = started().await;
    let frames = site.events(&id, "permission").await.rest().await;
    let last = frames.last().unwrap();
    assert_eq!(last.event, "response", "{frames:?}");
    let result = frames.iter().find(|frame| frame.event == "tool_result");
    assert_eq!(result.unwrap().data["success"], false);
    let answer = site.post(PROMPT, said(&id, "permission")).await;
    assert_eq!(answer.json()["stop_reason"], last.data["stop_reason"]);
}

#[tokio::test]
async fn hanging_up_cancels_the_prompt_alone() {
    let mut limits = Limits::default();
    limits.queued_prompts = 1;
    let server = Server::builder(Reference).limits(limits).build();
    let (site, Created { id, .. }) = started_with(server).await;
    let mut running = site.events(&id, "slow").await;
    running.until("text_delta").await;
    // One that waits goes without the running one, and leaves its place.
    let waiting = site.events(&id, "hello").await;
    let message = format!("/session/{id}/message");
    let other = json!({ "text": "ping" });
    assert_eq!(site.post(&message, &other).await.status, 503);
    drop(waiting);
    let accepted = async { while site.post(&message, &other).await.status != 202 {} };
    timeout(PATIENCE, accepted).await.unwrap();
    running.until("text_delta").await;
    drop(running);
    let frames = site.frames(&id).await;
    let ends = frames.iter().filter(|frame| frame.event == "cancelled");
    assert_eq!(ends.count(), 1, "{frames:?}");
    let messages = frames.iter().filter(|frame| frame.event == "user_message");
    let messages: Vec<_> = messages
        .map(|frame| frame.data["metadata"]["content"]["text"].clone())
        .collect();
    assert_eq!(messages, ["slow", "ping"]);
}

#[tokio::test]
async fn hanging_up_before_the_response_cancels_the_prompt() {
    let (site, Created { id, .. }) = started().await;
    let mut events = site.stream(&format!("/session/{id}/events"), None).await;
    let body = said(&id, "slow").to_string();
    let head = site.head("POST", PROMPT, Some(&site.master), &[]);
    let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
    let mut socket = site.listener.connect().await;
    socket.write_all(request.as_bytes()).await.unwrap();
    events.until("user_message").await;
    drop(socket);
    let result = events.until("result").await;
    assert_eq!(result.data["stop_reason"], "cancelled", "{result:?}");
}

#[tokio::test]
async fn a_client_that_reads_late_is_sent_all_events() {
    const CHUNKS: usize = 5_000;
    let (site, Created { id, .. }) = started().await;
    let mut stream = site.events(&id, &format!("stream {CHUNKS}")).await;
    stream.until("text_delta").await;
    // Up to the end of the turn.
    let frames = site.frames(&id).await;
    assert_eq!(frames.last().unwrap().event, "end");
    let frames = stream.rest().await;
    assert_eq!(frames.len(), CHUNKS);
    assert_eq!(frames.last().unwrap().event, "response");
}
