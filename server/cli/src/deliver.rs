//! Sending transcripts to other servers.

use std::sync::Arc;
use std::time::Duration;

use acp_server_remote::{Reply, SendTranscript, Transcript};
use futures_util::future::BoxFuture;
use reqwest::{Client, redirect};
use rustls::ClientConfig;

/// How long the other server may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of an answer that are returned.
const REPLY_BYTES: usize = 64 << 10;

/// Posts transcripts with the certificates that the system trusts.
#[derive(Debug)]
pub(crate) struct Post;

impl SendTranscript for Post {
    fn send(&self, transcript: Transcript) -> BoxFuture<'_, Result<Reply, String>> {
        Box::pin(async {
            let sent = tokio::time::timeout(PATIENCE, post(transcript)).await;
            sent.unwrap_or_else(|_| Err(format!("it did not answer within {PATIENCE:?}")))
        })
    }
}

async fn post(transcript: Transcript) -> Result<Reply, String> {
    let request = client()?.post(transcript.url).body(transcript.text);
    let request = request.header("content-type", transcript.content_type);
    let mut response = request.send().await.map_err(|error| reason(&error))?;
    let status = response.status();
    let mut body = Vec::new();
    while body.len() < REPLY_BYTES
        && let Some(piece) = response.chunk().await.map_err(|error| reason(&error))?
    {
        body.extend_from_slice(&piece);
    }
    body.truncate(REPLY_BYTES);
    if !status.is_success() {
        return Err(format!("it answered {status}"));
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    Ok(Reply { status, body })
}

/// Returns a client that follows no redirects.
///
/// # Errors
///
/// When the system's certificates cannot be used.
pub(crate) fn client() -> Result<Client, String> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let verifier = rustls_platform_verifier::Verifier::new(provider.clone());
    let verifier = verifier.map_err(|error| error.to_string())?;
    let tls = ClientConfig::builder_with_provider(provider);
    let tls = tls.with_safe_default_protocol_versions();
    let tls = tls.map_err(|error| error.to_string())?.dangerous();
    let tls = tls.with_custom_certificate_verifier(Arc::new(verifier));
    let client = Client::builder()
        .tls_backend_preconfigured(tls.with_no_client_auth())
        // Elsewhere is not listed.
        .redirect(redirect::Policy::none());
    client.build().map_err(|error| error.to_string())
}

/// The error with its causes, without the address, which may have secrets.
pub(crate) fn reason(error: &reqwest::Error) -> String {
    let text = match (error.is_connect(), error.is_timeout()) {
        (true, _) => "no connection".to_owned(),
        (_, true) => "timed out".to_owned(),
        _ => "the exchange failed".to_owned(),
    };
    acp_sdk::text::with_causes(text, error)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, StatusCode};
    use axum::response::Redirect;
    use axum::routing::post;

    use super::*;

    #[tokio::test]
    async fn the_answer_is_returned_and_redirects_are_not_followed() {
        let echo = async |headers: HeaderMap, body: String| {
            format!("{} {body}", headers["content-type"].to_str().unwrap())
        };
        let collector = axum::Router::new()
            .route("/shares", post(echo))
            .route("/broken", post(async || StatusCode::INTERNAL_SERVER_ERROR))
            .route("/moved", post(async || Redirect::temporary("/shares")));
        let socket = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", socket.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(socket, collector).await.unwrap() });
        // Nobody listens there any more.
        let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let gone = format!("http://{}", closed.local_addr().unwrap());
        drop(closed);

        let send = async |url: String| {
            let url = url.parse().unwrap();
            Post.send(Transcript::new(url, "text/html", "text".to_owned()))
                .await
        };
        let reply = send(format!("{url}/shares")).await.unwrap();
        assert_eq!(
            (reply.status, &*reply.body),
            (StatusCode::OK, "text/html text")
        );
        let broken = send(format!("{url}/broken")).await.unwrap_err();
        assert!(broken.contains("500"), "{broken}");
        let moved = send(format!("{url}/moved")).await.unwrap_err();
        assert!(moved.contains("307"), "{moved}");
        let lost = send(gone.clone()).await.unwrap_err();
        assert!(
            lost.starts_with("no connection") && !lost.contains(&gone),
            "{lost}"
        );
    }
}
