//! Refusals that depend on other processes and on the state of the server.

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
