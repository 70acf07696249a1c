//! Sending transcripts to other servers, which the program does: this crate has no HTTP client.

use std::fmt::Debug;

use axum::http::StatusCode;
use futures_util::future::BoxFuture;
use url::Url;

/// What sends transcripts to other servers.
pub trait SendTranscript: Debug + Send + Sync {
    /// Posts a transcript, without following redirects, whose targets nobody has permitted.
    ///
    /// # Errors
    ///
    /// Why it failed, for the caller of the REST interface: no address of the other server, which may
    /// have secrets.
    fn send(&self, transcript: Transcript) -> BoxFuture<'_, Result<Reply, String>>;
}

/// A transcript on its way to another server.
#[derive(Debug)]
#[non_exhaustive]
pub struct Transcript {
    /// Where it goes. Its origin is one of [`share_origins`](crate::EndpointSettings::share_origins).
    pub url: Url,
    /// Its media type.
    pub content_type: &'static str,
    /// The transcript.
    pub text: String,
}

/// What the other server has answered.
#[derive(Debug)]
pub struct Reply {
    /// The status, a success.
    pub status: StatusCode,
    /// The body, perhaps not all of it.
    pub body: String,
}

impl Transcript {
    /// Creates a transcript that is to be sent.
    pub fn new(url: Url, content_type: &'static str, text: String) -> Self {
        Self {
            url,
            content_type,
            text,
        }
    }
}
