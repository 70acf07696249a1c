//! Refusals that depend on other processes and on the state of the server.

use acp_sdk::v1::StopReason;
use acp_server::store::SqliteStore;

use super::*;
use crate::websocket::Socket;

#[tokio::test]
async fn a_session_that_another_process_has_open_is_refused_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("sessions.db");
    // Two instances of the store are told apart, even in one process.
    let server = || {
        let store = SqliteStore::open(&path).unwrap();
        Server::builder(Reference).store(store).build()
    };
    let elsewhere = server();
    let id = elsewhere.create_session("/w").await.unwrap().id().clone();
    let site = Site::with(server(), &EndpointSettings::default()).await;
    let place = format!("session {id} is open in process {}", std::process::id());
    for (method, path, body) in [
        (
            "POST",
            format!("/session/{id}/message"),
            json!({ "text": "ping" }),
        ),
        (
            "POST",
            format!("/sessions/{id}/turns"),
            json!({ "prompt": "ping" }),
        ),
        ("GET", format!("/session/{id}/events"), json!({})),
        ("GET", format!("/providers?session_id={id}"), json!({})),
        ("DELETE", format!("/sessions/{id}"), json!({})),
    ] {
        let master = Some(site.master.as_str());
        let body = body.to_string();
        let answer = site.request(method, &path, master, &[], &body);
        let answer = answer.await;
        refused(&answer, 409, "session_in_use");
        let message = answer.json()["message"].to_string();
        assert!(message.contains(&place), "{path}: {message}");
    }
    // What needs no open session is answered.
    assert_eq!(site.get(&format!("/sessions/{id}")).await.status, 200);

    let host = crate::http::Host::start(site.server.clone(), &EndpointSettings::default()).await;
    let mut socket = Socket::connect(&host).await;
    let params = json!({ "sessionId": id, "cwd": "/w", "mcpServers": [] });
    let (_, answer) = socket.call("session/load", params).await;
    let message = answer["error"]["message"].as_str().unwrap();
    assert!(message.starts_with(&place), "{message}");
}

#[tokio::test]
async fn a_full_server_answers_503_and_closing_a_session_makes_room() {
    let mut limits = Limits::default();
    limits.sessions = 1;
    let server = Server::builder(Reference).limits(limits).build();
    let site = Site::with(server, &EndpointSettings::default()).await;
    let id = site.create().await.id;
    let path = format!("/session/{id}/message");
    site.post(&path, json!({ "text": "slow" })).await;
    let new = json!({ "prompt": "ping", "cwd": "/w" });
    refused(&site.post("/sessions", &new).await, 503, "server_full");
    refused(&site.post("/session", json!({})).await, 503, "server_full");
    // A close ends the turn, as session/close does for a client.
    let close = format!("/sessions/{id}/close");
    for _ in 0..2 {
        assert_eq!(site.post(&close, "").await.status, 204);
        let state = site.get(&format!("/session/{id}")).await.json();
        assert_eq!(state["state"], "stored");
    }
    assert_eq!(site.post("/sessions", &new).await.status, 201);
    // It is opened again when it is used.
    let frames = site.talk(&id, "ping").await;
    assert!(names(&frames).contains(&"cancelled"), "{frames:?}");
    refused(
        &site.post("/sessions/none/close", "").await,
        404,
        "session_not_found",
    );
}

#[tokio::test]
async fn a_close_leaves_a_session_to_its_clients() {
    let site = Site::start().await;
    let Created { id, token } = site.create().await;
    let host = crate::http::Host::start(site.server.clone(), &EndpointSettings::default()).await;
    let mut socket = Socket::connect(&host).await;
    let params = json!({ "sessionId": id, "cwd": "/w", "mcpServers": [] });
    socket.call("session/load", params).await;
    let session = site.server.open_session(&id.as_str().into()).unwrap();
    let own = session.prompt(vec!["slow".into()]).unwrap();
    let close = format!("/sessions/{id}/close");
    let answer = site.request("POST", &close, Some(&token), &[], "").await;
    assert_eq!(answer.status, 204, "{answer:?}");
    assert_eq!(own.stop_reason().await.unwrap(), StopReason::Cancelled);
    let prompt = json!([{ "type": "text", "text": "ping" }]);
    let params = json!({ "sessionId": id, "prompt": prompt });
    let (_, answer) = socket.call("session/prompt", params).await;
    assert_eq!(answer["result"]["stopReason"], "end_turn", "{answer}");
    let answer = site
        .request("POST", &close, Some(&site.reader), &[], "")
        .await;
    refused(&answer, 403, "forbidden");
}

#[tokio::test]
async fn a_token_reads_half_as_many_sessions_at_a_time_as_the_limit() {
    let mut settings = EndpointSettings::default();
    settings.long_reads = 4;
    let site = Site::with(Server::new(Reference), &settings).await;
    let id = site.create().await.id;
    // More than sockets hold.
    let session = site.server.open_session(&id.as_str().into()).unwrap();
    let turn = session.prompt(vec!["stream 60000".into()]).unwrap();
    assert_eq!(turn.stop_reason().await.unwrap(), StopReason::EndTurn);
    let path = format!("/sessions/{id}");
    let mut open = Vec::new();
    for path in [path.clone(), format!("{path}/transcript")] {
        let stream = site.stream_as(&path, &site.reader, None).await;
        assert_eq!(stream.status, 200);
        open.push(stream);
    }
    let third = site
        .request("GET", &path, Some(&site.reader), &[], "")
        .await;
    refused(&third, 503, "too_many_reads");
    // The state of a session is no long read.
    let state = format!("/session/{id}");
    let state = site.request("GET", &state, Some(&site.reader), &[], "");
    assert_eq!(state.await.status, 200);
    let whole = site.get(&path).await;
    assert_eq!(whole.status, 200);
    assert_eq!(whole.json()["events"].as_array().unwrap().len(), 60_003);
}
