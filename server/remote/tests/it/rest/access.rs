//! What each kind of token opens.

use super::*;

const UNAUTHORIZED: &str = r#"{"error":"unauthorized","message":"the token is missing or not valid; send Authorization: Bearer TOKEN"}"#;

/// Every route, with SESSION in place of the session: whether a session's own token opens it, and
/// whether a read-only one does.
const ROUTES: [(&str, &str, bool, bool); 24] = [
    ("POST", "/session", false, false),
    ("GET", "/session", false, true),
    ("GET", "/session/SESSION", true, true),
    ("POST", "/session/SESSION/message", true, false),
    ("GET", "/session/SESSION/events", true, true),
    ("POST", "/session/SESSION/cancel", true, false),
    ("POST", "/tool/approve", false, false),
    ("POST", "/sessions", false, false),
    ("GET", "/sessions", false, true),
    ("GET", "/sessions/SESSION", true, true),
    ("POST", "/sessions/SESSION/turns", true, false),
    ("POST", "/sessions/SESSION/cancel", true, false),
    ("GET", "/sessions/SESSION/events", true, true),
    ("GET", "/sessions/SESSION/transcript", true, true),
    ("POST", "/sessions/SESSION/share", true, false),
    ("GET", "/commands", false, true),
    ("POST", "/commands/x/invoke", false, false),
    ("GET", "/runs", false, true),
    ("GET", "/runs/cost", false, true),
    ("GET", "/info", false, true),
    ("GET", "/providers", false, true),
    ("GET", "/tools", false, true),
    ("DELETE", "/sessions/SESSION", true, false),
    ("DELETE", "/session/SESSION", true, false),
];

const BODY: &str = r#"{"sink":"stdout"}"#;

/// Sends a request, and reads no more than the head if it opens a stream.
async fn status(site: &Site, method: &str, path: &str, token: &str) -> (u16, String) {
    if path.ends_with("/events") {
        let stream = site.stream_as(path, token, None).await;
        return (stream.status, String::new());
    }
    let answer = site.request(method, path, Some(token), &[], BODY).await;
    (answer.status, answer.body)
}

#[tokio::test]
async fn a_token_opens_what_it_is_for_and_nothing_else() {
    let site = Site::start().await;
    let other = site.create().await;
    for (method, path, own, reading) in ROUTES {
        let created = site.create().await;
        let path = path.replace("SESSION", &created.id);
        for (who, token, is_permitted) in [
            ("another session", &other.token, false),
            ("a reader", &site.reader, reading),
            ("the session", &created.token, own),
            ("the master", &site.master, true),
        ] {
            let (status, body) = status(&site, method, &path, token).await;
            // The token of another session is none for this one.
            let is_foreign = who == "another session" && path.contains(&created.id);
            assert_eq!(status == 401, is_foreign, "{method} {path} by {who}");
            assert_eq!(
                status != 403 && status != 401,
                is_permitted,
                "{method} {path} by {who}: {body}"
            );
            if status == 403 && !body.is_empty() {
                assert!(body.starts_with(r#"{"error":"forbidden""#), "{body}");
            }
        }
        for token in [None, Some("0000000000000000")] {
            let answer = site.request(method, &path, token, &[], BODY).await;
            assert_eq!((answer.status, answer.body.as_str()), (401, UNAUTHORIZED));
        }
    }
}

#[tokio::test]
async fn a_session_of_somebody_else_is_as_closed_as_one_that_does_not_exist() {
    let site = Site::start().await;
    let (mine, other) = (site.create().await, site.create().await);
    for id in [other.id.as_str(), "none"] {
        let path = format!("/session/{id}");
        let answer = site.request("GET", &path, Some(&mine.token), &[], "").await;
        refused(&answer, 401, "unauthorized");
    }
}

#[tokio::test]
async fn rotation_ends_the_old_token_and_its_streams_at_once() {
    let mut settings = EndpointSettings::default();
    // Signs of life would wake up a stream that has not noticed it.
    settings.keep_alive = std::time::Duration::from_secs(3600);
    let site = Site::with(Server::new(Reference), &settings).await;
    let created = site.create().await;
    let path = format!("/session/{}", created.id);
    let rotate = format!("{path}/rotate-token");
    for token in [&created.token, &site.reader] {
        let answer = site.request("POST", &rotate, Some(token), &[], "").await;
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (403, r#"{"error":"admin_only"}"#)
        );
    }
    let mut streams = Vec::new();
    for kind in ["session", "sessions"] {
        let events = format!("/{kind}/{}/events", created.id);
        streams.push(site.stream_as(&events, &created.token, None).await);
    }
    let mut masters = site.stream(&format!("{path}/events"), None).await;
    let answer = site.post(&rotate, "").await;
    assert_eq!(
        (answer.status, answer.header("cache-control")),
        (200, Some("no-store"))
    );
    let fresh = answer.json()["session_token"].as_str().unwrap().to_owned();
    assert_ne!(fresh, created.token);
    for mut stream in streams {
        assert_eq!(stream.next().await, None);
    }
    let old = site
        .request("GET", &path, Some(&created.token), &[], "")
        .await;
    assert_eq!((old.status, old.body.as_str()), (401, UNAUTHORIZED));
    assert_eq!(
        site.request("GET", &path, Some(&fresh), &[], "")
            .await
            .status,
        200
    );
    // Streams with another token go on.
    let body = r#"{"text":"ping"}"#;
    let message = format!("{path}/message");
    assert_eq!(
        site.request("POST", &message, Some(&fresh), &[], body)
            .await
            .status,
        202
    );
    masters.until("result").await;

    assert_eq!(
        site.request("DELETE", &path, Some(&fresh), &[], "")
            .await
            .status,
        204
    );
    assert_eq!(
        site.request("GET", &path, Some(&fresh), &[], "")
            .await
            .status,
        401
    );
    assert!(site.tokens.access(&fresh).is_none());
}

#[tokio::test]
async fn a_body_that_finds_no_room_is_refused_for_now() {
    let mut settings = EndpointSettings::default();
    settings.bodies = acp_server_remote::BodyBudget::new(8);
    let site = Site::with(Server::new(Reference), &settings).await;
    let answer = site
        .post("/session", json!({ "working_dir": "/work" }))
        .await;
    assert_eq!(
        (answer.status, answer.header("retry-after")),
        (503, Some("5"))
    );
    assert_eq!(answer.json()["error"], "too_many_bytes");
}
