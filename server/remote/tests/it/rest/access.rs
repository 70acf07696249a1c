//! What each kind of token opens.

use acp_server_remote::internal::{Right, rest_routes};

use super::*;

const UNAUTHORIZED: &str = r#"{"error":"unauthorized","message":"the token is missing or not valid; send Authorization: Bearer TOKEN"}"#;

/// Who may use a route besides the server's token: read-only tokens, and the token of its session.
fn opens(right: Right) -> (bool, bool) {
    match right {
        Right::Everybody => (true, true),
        Right::Read => (true, false),
        Right::ReadSession => (true, true),
        Right::WriteSession => (false, true),
        Right::Full | Right::Admin => (false, false),
    }
}

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
    for (method, path, right) in rest_routes() {
        let (reading, own) = opens(right);
        assert!(method == "GET" || !reading, "{method} {path} for readers");
        let is_open = right == Right::Everybody;
        let created = site.create().await;
        let path = path.replace("{id}", &created.id).replace("{name}", "x");
        for (who, token, is_permitted) in [
            ("another session", &other.token, is_open),
            ("a reader", &site.reader, reading),
            ("the session", &created.token, own),
            ("the master", &site.master, true),
        ] {
            let (status, body) = status(&site, method, &path, token).await;
            // The token of another session is none for this one.
            let is_of_session = matches!(right, Right::ReadSession | Right::WriteSession);
            let is_foreign = who == "another session" && is_of_session;
            assert_eq!(status == 401, is_foreign, "{method} {path} by {who}");
            assert_eq!(
                status != 403 && status != 401,
                is_permitted,
                "{method} {path} by {who}: {body}"
            );
            if status == 403 && !body.is_empty() {
                let error = match right {
                    Right::Admin => r#"{"error":"admin_only"}"#,
                    _ => r#"{"error":"forbidden""#,
                };
                assert!(body.starts_with(error), "{body}");
            }
        }
        for token in [None, Some("0000000000000000")] {
            let answer = site.request(method, &path, token, &[], BODY).await;
            match is_open {
                true => assert_eq!(answer.status, 200),
                false => assert_eq!((answer.status, answer.body.as_str()), (401, UNAUTHORIZED)),
            }
        }
    }
}

/// The rows of the table begin with methods and paths, then the tokens.
#[test]
fn the_table_of_the_guide_has_the_routes_and_their_tokens() {
    let guide = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/rest.md");
    let guide = std::fs::read_to_string(guide).unwrap();
    let table = guide.split_once("| route | token |").unwrap().1;
    let mut documented = Vec::new();
    for row in table.lines().skip(2).take_while(|row| row.starts_with('|')) {
        let mut cells = row.split('|').skip(1).map(str::trim);
        let (address, token) = (cells.next().unwrap(), cells.next().unwrap());
        let (methods, _) = address.split_once('`').unwrap();
        for path in address.split('`').filter(|word| word.starts_with('/')) {
            let path = path.replace("ID", "{id}").replace("NAME", "{name}");
            for method in methods.split(',') {
                let method = method.trim().to_owned();
                documented.push((method, path.clone(), token.to_owned()));
            }
        }
    }
    let declared = rest_routes().into_iter().map(|(method, path, right)| {
        let token = match right {
            Right::Everybody => "none",
            Right::Read => "read",
            Right::ReadSession => "read, session",
            Right::WriteSession => "session",
            Right::Full | Right::Admin => "server",
        };
        (method.to_owned(), path.to_owned(), token.to_owned())
    });
    let mut declared: Vec<_> = declared.collect();
    declared.sort();
    // A path may be named twice in a row, as the subject of a remark.
    documented.sort();
    documented.dedup();
    assert_eq!(documented, declared);
}

/// A body that cannot be read is no reason to say more than that the token does not permit it.
#[tokio::test]
async fn a_token_is_refused_before_the_body_is_read() {
    let site = Site::start().await;
    let reader = Some(site.reader.as_str());
    let answer = site
        .request("POST", "/session", reader, &[], "no json")
        .await;
    refused(&answer, 403, "forbidden");
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
