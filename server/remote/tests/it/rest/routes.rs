//! What each route answers, and how it refuses.

use std::time::Duration;

use acp_sdk::v1::StopReason;
use acp_server::{Limits, Policies, SecondPrompt};

use super::*;

#[tokio::test]
async fn a_session_is_created_listed_described_and_deleted() {
    let site = Site::start().await;
    let answer = site.post("/session", json!({ "working_dir": "/w" })).await;
    assert_eq!(answer.status, 201);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let created = answer.json();
    let id = created["session_id"].as_str().unwrap();
    assert_eq!(created["working_dir"], "/w");
    assert!(created["created_at"].as_f64().unwrap() > 1e9);
    assert!(created["session_token"].as_str().unwrap().len() > 40);
    let agent = &site.server.info().implementation.name;
    assert_eq!(&created["agent"], agent);
    assert_eq!(created.as_object().unwrap().len(), 5);

    // An empty body is an empty object.
    let other = site.post("/session", "").await.json();
    let here = std::env::current_dir().unwrap();
    assert_eq!(other["working_dir"], here.to_str().unwrap());
    let other = other["session_id"].as_str().unwrap().to_owned();

    site.talk(&other, "ping").await;
    let listed = site.get("/session").await.json();
    let listed: Vec<_> = listed["sessions"].as_array().unwrap().clone();
    assert_eq!(listed, [other.as_str(), id]);
    let entries = site.get("/sessions").await.json();
    let entry = &entries["sessions"][0];
    assert_eq!(entry["session_id"], other.as_str());
    assert_eq!(
        (&entry["event_count"], &entry["prompt"]),
        (&json!(3), &json!("ping"))
    );
    assert!(entry["last_touched"].as_f64().unwrap() >= entry["created_at"].as_f64().unwrap());
    let one = site.get("/sessions?limit=1").await.json();
    assert_eq!(one["sessions"].as_array().unwrap().len(), 1);

    let state = site.get(&format!("/session/{other}")).await.json();
    assert_eq!(
        (&state["event_count"], &state["state"]),
        (&json!(3), &json!("idle"))
    );
    assert_eq!(state["session_id"], other.as_str());

    let mut stream = site.stream(&format!("/session/{id}/events"), None).await;
    let answer = site.delete(&format!("/session/{id}")).await;
    assert_eq!((answer.status, answer.body.as_str()), (204, ""));
    assert_eq!(
        stream.next().await,
        None,
        "the stream ends with the session"
    );
    for path in ["/session", "/sessions"] {
        refused(
            &site.delete(&format!("{path}/{id}")).await,
            404,
            "session_not_found",
        );
        refused(
            &site.get(&format!("{path}/{id}")).await,
            404,
            "session_not_found",
        );
    }
    assert_eq!(site.delete(&format!("/sessions/{other}")).await.status, 204);
}

#[tokio::test]
async fn unknown_sessions_routes_and_methods_are_refused_in_json() {
    let site = Site::start().await;
    for (method, path) in [
        ("GET", "/session/none"),
        ("DELETE", "/session/none"),
        ("POST", "/session/none/message"),
        ("GET", "/session/none/events"),
        ("POST", "/session/none/cancel"),
        ("POST", "/session/none/rotate-token"),
        ("GET", "/sessions/none"),
        ("DELETE", "/sessions/none"),
        ("POST", "/sessions/none/turns"),
        ("POST", "/sessions/none/steer"),
        ("POST", "/sessions/none/undo"),
        ("POST", "/sessions/none/redo"),
        ("POST", "/sessions/none/cancel"),
        ("GET", "/sessions/none/events"),
        ("GET", "/sessions/none/transcript"),
        ("POST", "/sessions/none/share"),
        ("GET", "/session/%FF"),
        ("GET", "/commands?session_id=none"),
        ("GET", "/providers?session_id=none"),
    ] {
        let body = r#"{"text":"x","prompt":"x","sink":"stdout"}"#;
        let answer = site
            .request(method, path, Some(&site.master), &[], body)
            .await;
        refused(&answer, 404, "session_not_found");
    }
    let answer = site.get("/nowhere?x=1").await;
    assert_eq!(answer.body, r#"{"error":"not_found","path":"/nowhere"}"#);
    refused(&answer, 404, "not_found");
    for (method, path) in [
        ("PUT", "/session"),
        ("POST", "/runs"),
        ("GET", "/tool/approve"),
    ] {
        let answer = site
            .request(method, path, Some(&site.master), &[], "")
            .await;
        refused(&answer, 405, "method_not_allowed");
        assert!(answer.header("allow").is_some(), "{answer:?}");
    }
}

#[tokio::test]
async fn a_body_must_be_an_object_that_can_be_understood() {
    let site = Site::start().await;
    let id = site.create().await.id;
    let message = format!("/session/{id}/message");
    let share = format!("/sessions/{id}/share");
    for (path, body, error) in [
        ("/session", "{", "invalid_json"),
        ("/session", "\u{0}", "invalid_json"),
        ("/session", "[]", "expected_json_object"),
        ("/session", "null", "expected_json_object"),
        ("/session", r#"{"working_dir":1}"#, "invalid_field"),
        (
            "/session",
            r#"{"working_dir":"relative"}"#,
            "invalid_working_dir",
        ),
        (&message, "{}", "missing_text"),
        (&message, "", "missing_text"),
        (&message, r#"{"text":null}"#, "missing_text"),
        (&message, r#"{"text":["x"]}"#, "invalid_field"),
        ("/sessions", "{}", "missing_prompt"),
        (
            "/sessions",
            r#"{"prompt":"x","cwd":"relative"}"#,
            "invalid_working_dir",
        ),
        (
            "/sessions",
            r#"{"prompt":"x","max_steps":5}"#,
            "unsupported_field",
        ),
        (
            "/sessions",
            r#"{"prompt":"x","allowed_tools":[]}"#,
            "unsupported_field",
        ),
        (
            "/sessions",
            r#"{"prompt":"x","persist":false}"#,
            "unsupported_field",
        ),
        (&share, "{}", "invalid_sink"),
        (&share, r#"{"sink":"fax"}"#, "invalid_sink"),
        (
            &share,
            r#"{"sink":"stdout","format":"pdf"}"#,
            "invalid_format",
        ),
    ] {
        let answer = site.post(path, body).await;
        refused(&answer, 400, error);
    }
    let body = json!({ "prompt": "x", "model": "none" });
    refused(&site.post("/sessions", body).await, 404, "model_not_found");
    for chosen in [
        json!({ "mode": "none" }),
        json!({ "options": { "speed": "1" } }),
    ] {
        refused(
            &site.post("/session", &chosen).await,
            400,
            "invalid_setting",
        );
    }
    for sink in ["file", "http"] {
        let body = json!({ "sink": sink, "url": "http://192.0.2.1/" });
        refused(&site.post(&share, body).await, 403, "sink_disabled");
    }
    let sessions = site.get("/session").await.json();
    assert_eq!(sessions["sessions"], json!([id]), "nothing was created");
}

#[tokio::test]
async fn large_and_slow_bodies_are_refused() {
    let mut settings = EndpointSettings::default();
    settings.message_bytes = 100;
    let site = Site::with(Server::new(Reference), &settings).await;
    refused(
        &site.post("/session", " ".repeat(101)).await,
        413,
        "too_large",
    );
    assert_eq!(site.post("/session", " ".repeat(100)).await.status, 201);
    let mut settings = EndpointSettings::default();
    settings.body_timeout = Duration::from_millis(20);
    let site = Site::with(Server::new(Reference), &settings).await;
    let head = site.head(
        "POST",
        "/session",
        Some(&site.master),
        &["Content-Length: 9"],
    );
    let answer = exchange(site.listener.connect().await, &(head + "\r\n{")).await;
    refused(&answer, 408, "too_slow");
}

#[tokio::test]
async fn prompts_beyond_the_limits_are_refused() {
    let mut limits = Limits::default();
    (limits.queued_prompts, limits.prompt_bytes) = (1, 10);
    let server = Server::builder(Reference).limits(limits).build();
    let site = Site::with(server, &EndpointSettings::default()).await;
    let id = site.create().await.id;
    let path = format!("/session/{id}/message");
    refused(
        &site.post(&path, json!({ "text": "01234567890" })).await,
        413,
        "too_large",
    );
    let mut stream = site.stream(&format!("/session/{id}/events"), None).await;
    for _ in 0..2 {
        assert_eq!(
            site.post(&path, json!({ "text": "slow" })).await.status,
            202
        );
        // The first one runs before the second one waits.
        stream.until("loop_event").await;
    }
    refused(
        &site.post(&path, json!({ "text": "slow" })).await,
        503,
        "too_many_prompts",
    );
    let mut policies = Policies::default();
    policies.second_prompt = SecondPrompt::Refuse;
    site.server.open_sessions()[0].set_policies(policies);
    refused(
        &site.post(&path, json!({ "text": "slow" })).await,
        409,
        "turn_running",
    );
    assert_eq!(
        site.post(&format!("/session/{id}/cancel"), "").await.status,
        204
    );
    assert_eq!(stream.until("result").await.data["cancelled"], true);
}

#[tokio::test]
async fn a_turn_runs_and_another_follows() {
    let site = Site::start().await;
    let body = json!({ "prompt": "hello", "model": "large", "cwd": "/w", "persist": true });
    let answer = site.post("/sessions", body).await;
    assert_eq!(answer.status, 201, "{answer:?}");
    let created = answer.json();
    assert_eq!(created["status"], "running");
    let id = created["session_id"].as_str().unwrap();
    let frames = site.frames(id).await;
    assert_eq!(
        frames.last().unwrap().data,
        json!({ "session_id": id, "success": true })
    );
    let answer = site
        .post(
            &format!("/sessions/{id}/turns"),
            json!({ "prompt": "fail" }),
        )
        .await;
    assert_eq!(
        (answer.status, &answer.json()["status"]),
        (202, &json!("running"))
    );
    let frames = site.frames(id).await;
    assert_eq!(frames.last().unwrap().data["success"], false);
    assert_eq!(
        frames.iter().filter(|frame| frame.event == "end").count(),
        1
    );

    let whole = site.get(&format!("/sessions/{id}")).await.json();
    assert_eq!(whole["session_id"], id);
    let summary = &whole["summary"];
    assert_eq!(
        (&summary["model"], &summary["working_dir"]),
        (&json!("large"), &json!("/w"))
    );
    assert_eq!(
        (&summary["turns"], &summary["success"]),
        (&json!(2), &json!(false))
    );
    let events = whole["events"].as_array().unwrap();
    let streamed: Vec<_> = frames.iter().filter(|frame| frame.id.is_some()).collect();
    assert_eq!(events.len(), streamed.len());
    for (event, frame) in events.iter().zip(streamed) {
        assert_eq!(*event, frame.data);
    }
    refused(
        &site.post(&format!("/sessions/{id}/turns"), "{}").await,
        400,
        "missing_prompt",
    );
}

#[tokio::test]
async fn cancelling_ends_the_turn_and_nothing_else() {
    let site = Site::start().await;
    for kind in ["session", "sessions"] {
        let id = site.create().await.id;
        let cancel = format!("/{kind}/{id}/cancel");
        assert_eq!(site.post(&cancel, "").await.status, 204, "nothing runs");
        let mut stream = site.stream(&format!("/sessions/{id}/events"), None).await;
        site.post(&format!("/session/{id}/message"), json!({ "text": "slow" }))
            .await;
        stream.until("text_delta").await;
        assert_eq!(site.post(&cancel, "").await.status, 204);
        stream.until("cancelled").await;
        assert_eq!(stream.until("end").await.data["success"], false);
        let frames = site.talk(&id, "ping").await;
        assert_eq!(
            frames.last().unwrap().data["success"],
            true,
            "later turns are not"
        );
    }
}

#[tokio::test]
async fn queued_prompts_of_clients_are_cancelled_with_the_servers_token_only() {
    let site = Site::start().await;
    let Created { id, token } = site.create().await;
    let session = site.server.open_session(&id.as_str().into()).unwrap();
    let host = crate::http::Host::start(site.server.clone(), &EndpointSettings::default()).await;
    let mut socket = crate::websocket::Socket::connect(&host).await;
    let params = json!({ "sessionId": id, "cwd": "/w", "mcpServers": [] });
    socket.call("session/resume", params).await;
    for (query, token, status, stop) in [
        ("", &token, 204, "end_turn"),
        ("?all=true", &token, 403, "end_turn"),
        ("?all=true", &site.master, 204, "cancelled"),
    ] {
        let running = session.prompt(vec!["slow".into()]).unwrap();
        let own = session.prompt(vec!["ping".into()]).unwrap();
        let prompt = json!([{ "type": "text", "text": "ping" }]);
        let params = json!({ "sessionId": id, "prompt": prompt });
        let sent = socket.send("session/prompt", params).await;
        let state = json!({ "sessionId": id });
        // Answered behind the prompt, which has arrived then.
        let (_, state) = socket.call("_acp-sdk/session/state", state).await;
        assert_eq!(state["result"]["queued"], 2, "{state}");
        let path = format!("/sessions/{id}/cancel{query}");
        let answer = site.request("POST", &path, Some(token), &[], "").await;
        assert_eq!(answer.status, status, "{query}: {answer:?}");
        if status == 403 {
            site.post(&format!("/session/{id}/cancel"), "").await;
        }
        let cancelled = StopReason::Cancelled;
        assert_eq!(running.stop_reason().await.unwrap(), cancelled);
        assert_eq!(own.stop_reason().await.unwrap(), cancelled);
        let answer = loop {
            let message = socket.receive().await.unwrap();
            if message["id"] == sent {
                break message;
            }
        };
        assert_eq!(answer["result"]["stopReason"], stop, "{query}: {answer}");
    }
}

#[tokio::test]
async fn the_server_describes_itself_and_its_agent() {
    let site = Site::start().await;
    let health = site.request("GET", "/health", None, &[], "").await;
    assert_eq!(
        (health.status, &health.json()["status"]),
        (200, &json!("ok"))
    );
    assert!(health.json()["started_at"].as_str().unwrap().ends_with('Z'));
    assert_eq!(site.get("/info").await.json()["model"], Value::Null);
    let empty = json!({ "active": { "provider": "acp-server", "model": null }, "available": [] });
    assert_eq!(site.get("/providers").await.json(), empty);
    let (one, two) = (site.create().await.id, site.create().await.id);
    let info = site.get("/info").await.json();
    assert_eq!(
        (&info["provider"], &info["model"]),
        (&json!("acp-server"), &json!("small"))
    );
    assert!(info["cwd"].as_str().unwrap().starts_with('/'));
    let tools = site.get("/tools").await.json();
    assert_eq!(tools["tools"], json!([]), "{tools}");
    assert_eq!(tools["untold"].as_array().unwrap().len(), 1, "{tools}");
    let providers = site.get("/providers").await.json();
    let names: Vec<_> = providers["available"].as_array().unwrap().iter().collect();
    assert_eq!(names.len(), 2);
    assert_eq!(
        names[1],
        &json!({ "name": "large", "title": "Large", "configured": true })
    );
    // Sessions that use different models.
    site.post("/sessions", json!({ "prompt": "ping", "model": "large" }))
        .await;
    let active = |answer: Answer| answer.json()["active"]["model"].clone();
    assert_eq!(active(site.get("/providers").await), Value::Null);
    for id in [one, two] {
        let path = format!("/providers?session_id={id}");
        assert_eq!(active(site.get(&path).await), "small");
    }
}
