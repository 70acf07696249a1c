//! Transcripts and where they go.

use std::sync::Arc;

use acp_server_remote::{Reply, SendTranscript, Transcript};
use axum::http::StatusCode;
use futures_util::future::BoxFuture;

use super::*;

const MARKUP: &str = "<script>alert('x')</script><img src=x onerror=\"y\">&amp;";

#[tokio::test]
async fn a_transcript_is_a_page_markdown_or_json() {
    let site = Site::start().await;
    let id = site.create().await.id;
    site.talk(&id, "tool").await;
    let path = format!("/sessions/{id}/transcript");
    let page = site.get(&path).await;
    assert_eq!(
        page.header("content-type"),
        Some("text/html; charset=utf-8")
    );
    let policy = page.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none'") && policy.contains("sandbox"),
        "{policy}"
    );
    assert_eq!(page.header("x-content-type-options"), Some("nosniff"));
    assert!(page.body.starts_with("<!DOCTYPE html>") && page.body.ends_with("</html>\n"));
    assert!(page.body.contains("Tool call: Edit example.txt"));
    assert_eq!(
        site.get(&format!("{path}?format=html")).await.body,
        page.body
    );
    let markdown = site.get(&format!("{path}?format=md")).await;
    assert_eq!(
        markdown.header("content-type"),
        Some("text/markdown; charset=utf-8")
    );
    assert!(
        markdown.body.contains("\n\n## User, 20") && markdown.body.contains("Z\n\ntool"),
        "{}",
        markdown.body
    );
    let json = site.get(&format!("{path}?format=json")).await;
    assert_eq!(json.header("content-type"), Some("application/json"));
    assert_eq!(
        json.json(),
        site.get(&format!("/sessions/{id}")).await.json()
    );
    refused(
        &site.get(&format!("{path}?format=pdf")).await,
        400,
        "invalid_query",
    );
}

#[tokio::test]
async fn what_is_said_is_no_markup() {
    let site = Site::start().await;
    let id = site.create().await.id;
    // The agent echoes it, and then it is the title, too.
    site.talk(&id, MARKUP).await;
    site.talk(&id, &format!("title {MARKUP}")).await;
    let page = site.get(&format!("/sessions/{id}/transcript")).await.body;
    assert_eq!(
        page.matches("&lt;script&gt;alert(&#39;x&#39;)").count(),
        5,
        "{page}"
    );
    assert!(
        !page.contains("<script") && !page.contains("<img"),
        "{page}"
    );
    assert!(page.contains("&amp;amp;"));
}

#[tokio::test]
async fn a_long_transcript_is_whole() {
    let site = Site::start().await;
    let id = site.create().await.id;
    site.talk(&id, "stream 5000").await;
    let page = site.get(&format!("/sessions/{id}/transcript")).await.body;
    assert_eq!(page.matches("<span class=\"said\">").count(), 5001);
    assert_eq!(
        page.matches("<h2>").count(),
        2,
        "the chunks are one message"
    );
    let whole = site.get(&format!("/sessions/{id}")).await.json();
    assert_eq!(whole["events"].as_array().unwrap().len(), 5003);
}

#[tokio::test]
async fn a_transcript_is_shared_in_the_answer_or_as_a_file() {
    let folder = tempfile::TempDir::new().unwrap();
    let mut settings = EndpointSettings::default();
    settings.share_dir = Some(folder.path().to_owned());
    settings.message_bytes = 10_000;
    let site = Site::with(Server::new(Reference), &settings).await;
    let created = site.create().await;
    let id = &created.id;
    site.talk(id, "ping").await;
    let path = format!("/sessions/{id}/share");
    for format in ["html", "md", "json"] {
        let transcript = site
            .get(&format!("/sessions/{id}/transcript?format={format}"))
            .await;
        let body = json!({ "sink": "stdout", "format": format });
        let shared = site.post(&path, body).await;
        assert_eq!(shared.status, 200, "{shared:?}");
        assert_eq!(shared.json()["body"], transcript.body);
        let body = json!({ "sink": "file", "format": format });
        let shared = site.post(&path, &body).await;
        let file = shared.json()["path"].as_str().unwrap().to_owned();
        assert_eq!(std::fs::read_to_string(&file).unwrap(), transcript.body);
        assert!(std::path::Path::new(&file).starts_with(folder.path()));
        // What leaves the session needs more than the session's token.
        let answer = site
            .request("POST", &path, Some(&created.token), &[], &body.to_string())
            .await;
        refused(&answer, 403, "forbidden");
    }
    site.talk(id, "stream 300").await;
    refused(
        &site.post(&path, json!({ "sink": "stdout" })).await,
        413,
        "too_large",
    );
}

/// A user who can write in the folder puts a link where the transcript goes.
#[cfg(unix)]
#[tokio::test]
async fn a_transcript_in_a_file_is_private_and_follows_no_link() {
    use std::os::unix::fs::PermissionsExt as _;

    let outside = tempfile::tempdir().unwrap();
    let victim = outside.path().join("victim");
    std::fs::write(&victim, "untouched").unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut settings = EndpointSettings::default();
    settings.share_dir = Some(folder.path().to_owned());
    let site = Site::with(Server::new(Reference), &settings).await;
    let id = site.create().await.id;
    let path = format!("/sessions/{id}/share");
    let body = json!({ "sink": "file", "format": "md" });
    let first = site.post(&path, &body).await.json()["path"].clone();
    let file = std::path::PathBuf::from(first.as_str().unwrap());
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&victim, &file).unwrap();
    // Twice: a transcript replaces the earlier one.
    for _ in 0..2 {
        assert_eq!(site.post(&path, &body).await.status, 200);
        let metadata = std::fs::symlink_metadata(&file).unwrap();
        assert!(metadata.is_file(), "the link is still there");
        assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
    }
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "untouched");
    // What cannot be replaced is an error, and leaves nothing behind.
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    refused(&site.post(&path, &body).await, 500, "share_failed");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Answers with what it is sent, or fails.
#[derive(Debug)]
struct Echo;

impl SendTranscript for Echo {
    fn send(&self, transcript: Transcript) -> BoxFuture<'_, Result<Reply, String>> {
        let Transcript {
            url,
            content_type,
            text,
            ..
        } = transcript;
        let reply = match url.path() {
            "/shares" => Ok(Reply {
                status: StatusCode::ACCEPTED,
                body: format!("{content_type} {text}"),
            }),
            path => Err(format!("{path} is broken")),
        };
        Box::pin(async { reply })
    }
}

#[tokio::test]
async fn a_transcript_is_sent_to_a_listed_server_and_to_no_other() {
    let url = "http://collector.example:8080";
    let mut settings = EndpointSettings::default();
    settings.share_origins = vec![url.parse().unwrap()];
    let unable = Site::with(Server::new(Reference), &settings).await;
    settings.share_by = Some(Arc::new(Echo));
    let site = Site::with(Server::new(Reference), &settings).await;
    let created = site.create().await;
    site.talk(&created.id, "ping").await;
    let path = format!("/sessions/{}/share", created.id);
    let share = async |url: &str| {
        let body = json!({ "sink": "http", "format": "md", "url": url });
        site.post(&path, body).await
    };
    let shared = share(&format!("{url}/shares")).await;
    assert_eq!(shared.status, 200, "{shared:?}");
    let shared = shared.json();
    assert_eq!(
        (&shared["sink"], &shared["status"]),
        (&json!("http"), &json!(202))
    );
    let transcript = format!("/sessions/{}/transcript?format=md", created.id);
    let transcript = site.get(&transcript).await.body;
    let expected = format!("text/markdown; charset=utf-8 {transcript}");
    assert_eq!(shared["reply"], expected);
    let failed = share(&format!("{url}/broken")).await;
    refused(&failed, 502, "upstream_failed");
    assert!(failed.body.contains("/broken is broken"), "{failed:?}");
    for (address, status, error) in [
        ("http://192.0.2.1/", 403, "url_not_allowed"),
        ("nowhere", 400, "invalid_url"),
    ] {
        refused(&share(address).await, status, error);
    }
    let body = json!({ "sink": "http", "url": format!("{url}/shares") }).to_string();
    let answer = site
        .request("POST", &path, Some(&created.token), &[], &body)
        .await;
    refused(&answer, 403, "forbidden");

    // A program that sends nothing.
    let created = unable.create().await;
    let path = format!("/sessions/{}/share", created.id);
    let answer = unable.post(&path, body).await;
    refused(&answer, 403, "sink_disabled");
}

#[tokio::test]
async fn events_that_were_removed_are_named() {
    let mut limits = Limits::default();
    limits.log.max_events = Some(10);
    let server = Server::builder(Reference).limits(limits).build();
    let site = Site::with(server, &EndpointSettings::default()).await;
    let id = site.create().await.id;
    site.talk(&id, "stream 3").await;
    let path = format!("/sessions/{id}");
    let whole = site.get(&path).await.json();
    assert_eq!(
        (
            &whole["summary"]["oldest_event"],
            &whole["summary"]["truncated"]
        ),
        (&json!(1), &json!(false))
    );
    let transcript = site.get(&format!("{path}/transcript")).await.body;
    assert!(!transcript.contains("were removed"), "{transcript}");

    site.talk(&id, "stream 30").await;
    let whole = site.get(&path).await.json();
    let last = whole["summary"]["event_count"].as_u64().unwrap();
    assert_eq!(whole["summary"]["oldest_event"], last - 9);
    assert_eq!(whole["summary"]["truncated"], true);
    assert_eq!(whole["events"].as_array().unwrap().len(), 10);
    let listed = site.get("/sessions").await.json();
    assert_eq!(listed["sessions"][0]["truncated"], true);
    let short = site.get(&format!("/session/{id}")).await.json();
    assert_eq!(short["oldest_event"], last - 9);
    let note = format!("The events up to number {} were removed.", last - 10);
    for format in ["html", "md"] {
        let path = format!("{path}/transcript?format={format}");
        let transcript = site.get(&path).await.body;
        assert_eq!(transcript.matches(&note).count(), 1, "{transcript}");
    }
}
