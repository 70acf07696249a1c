//! Sending a transcript to another server, one that the program has listed.

use std::sync::Arc;
use std::time::Duration;

use axum::http::StatusCode;
use reqwest::{Client, Url, redirect};
use rustls::ClientConfig;

use super::failure::Failure;
use super::transcript::Format;
use crate::remote::Origin;

/// How long the other server may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The most bytes of an answer that are returned.
const REPLY_BYTES: usize = 64 << 10;

/// What the other server has answered.
pub(super) struct Reply {
    pub(super) status: StatusCode,
    pub(super) body: String,
}

/// Returns the address, if its origin is listed.
///
/// # Errors
///
/// 400 for a text that is no address, 403 for one that is not listed.
pub(super) fn address(text: Option<&str>, listed: &[Origin]) -> Result<Url, Failure> {
    let invalid =
        || Failure::bad_request("invalid_url").message("expected `url` with http or https");
    let url: Url = text
        .and_then(|text| text.parse().ok())
        .ok_or_else(invalid)?;
    let has_user = !url.username().is_empty() || url.password().is_some();
    let origin = url.origin().ascii_serialization().parse::<Origin>();
    let (Ok(origin), false, "http" | "https") = (origin, has_user, url.scheme()) else {
        return Err(invalid());
    };
    if listed.contains(&origin) {
        return Ok(url);
    }
    let failure = Failure::new(StatusCode::FORBIDDEN, "url_not_allowed");
    Err(failure.message("the origin of `url` is not listed. `--share-origin ORIGIN` lists it"))
}

/// Posts a transcript.
///
/// # Errors
///
/// 502, when the other server cannot be reached or does not answer with success.
pub(super) async fn post(url: Url, format: Format, text: String) -> Result<Reply, Failure> {
    let sent = async {
        let request = client()?.post(url).body(text);
        let request = request.header("content-type", format.content_type());
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
    };
    let sent = tokio::time::timeout(PATIENCE, sent).await;
    let sent = sent.unwrap_or_else(|_| Err(format!("it did not answer within {PATIENCE:?}")));
    sent.map_err(|detail| Failure::bad_gateway("upstream_failed", detail))
}

fn client() -> Result<Client, String> {
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
fn reason(error: &reqwest::Error) -> String {
    let mut text = match (error.is_connect(), error.is_timeout()) {
        (true, _) => "no connection".to_owned(),
        (_, true) => "timed out".to_owned(),
        _ => "the exchange failed".to_owned(),
    };
    let mut source = std::error::Error::source(error);
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_allowed_by_its_origin() {
        let listed = ["https://collector.example".parse().unwrap()];
        let address = |text: &str| address(Some(text), &listed).is_ok();
        assert!(address("https://collector.example/api/shares?key=1"));
        assert!(address("https://COLLECTOR.example:443/"));
        for text in [
            "http://collector.example/",
            "https://collector.example:8443/",
            "https://collector.example.evil.example/",
            "https://user@collector.example/",
            "https://collector.example@evil.example/",
            "file:///etc/passwd",
            "collector.example",
            "",
        ] {
            assert!(!address(text), "{text}");
        }
    }
}
