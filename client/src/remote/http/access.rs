//! HTTP requests to the server, with their common headers and error handling.

use std::error::Error as _;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{AUTHORIZATION, HeaderMap, RETRY_AFTER};
use reqwest::{Client, Method, RequestBuilder, Response, StatusCode, Url};
use tokio::time::timeout;

use crate::remote::agent::{Limits, is_loopback};
use crate::remote::{RemoteAgent, RemoteError, tls};
use acp_sdk::text::one_line;

/// Limits of a rejection's body: bytes read, and characters shown in the error.
const REFUSAL_BYTES: usize = 64 << 10;
const REFUSAL_SHOWN: usize = 200;

/// Idle time after which a pooled connection is closed. Servers close theirs after 30 s or more; a
/// request on a connection that the server is closing is lost.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// Interval of pings on an HTTP/2 connection.
const HTTP2_PING: Duration = Duration::from_secs(20);

/// Sends requests to one agent, and keeps its cookies.
#[derive(Debug, Clone)]
pub(in crate::remote) struct Access {
    client: Client,
    url: Url,
    shown_url: Arc<str>,
    pub(in crate::remote) limits: Limits,
}

/// The reason why a request has no usable response.
#[derive(Debug)]
pub(in crate::remote) enum Failure {
    /// The request did not reach the server.
    NotSent(String),
    /// No response was received; the server may have executed the request.
    NoResponse(String),
    /// The response has no success status.
    Status {
        status: StatusCode,
        body: Bytes,
        retry_after: Duration,
    },
}

impl Failure {
    /// Returns whether the server may be down, or a proxy cannot reach it.
    pub(in crate::remote) fn is_unreachable(&self) -> bool {
        match self {
            Self::NotSent(_) | Self::NoResponse(_) => true,
            Self::Status { status, .. } => matches!(
                *status,
                StatusCode::BAD_GATEWAY
                    | StatusCode::SERVICE_UNAVAILABLE
                    | StatusCode::GATEWAY_TIMEOUT
            ),
        }
    }
}

impl Access {
    pub(in crate::remote) fn new(agent: &RemoteAgent) -> Result<Self, RemoteError> {
        agent.check_encryption()?;
        let protocols: &[&str] = match agent.is_websocket {
            true => &["http/1.1"],
            false => &["h2", "http/1.1"],
        };
        let mut headers = agent.headers.clone();
        if let Some(token) = &agent.token {
            headers.insert(AUTHORIZATION, token.authorization());
        }
        let mut client = Client::builder()
            .tls_backend_preconfigured(tls::config(&agent.trust, protocols)?)
            .user_agent(concat!("acp-client/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .cookie_provider(Arc::new(reqwest::cookie::Jar::default()))
            // A redirect would turn a POST into a GET, or send the token elsewhere.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(agent.limits.connect)
            .tcp_keepalive(Duration::from_secs(30))
            .pool_idle_timeout(POOL_IDLE)
            .http2_keep_alive_interval(HTTP2_PING)
            .http2_keep_alive_timeout(agent.limits.idle.min(HTTP2_PING));
        if agent.is_websocket {
            client = client.http1_only();
        }
        if is_loopback(&agent.url) {
            client = client.no_proxy();
        }
        let client = client.build().map_err(|error| RemoteError::Option {
            what: "the options of the connection".to_owned(),
            reason: reason(error),
        })?;
        Ok(Self {
            client,
            url: agent.url.clone(),
            shown_url: agent.url().into(),
            limits: agent.limits,
        })
    }

    pub(in crate::remote) fn url(&self) -> String {
        self.shown_url.as_ref().to_owned()
    }

    pub(in crate::remote) fn request(&self, method: Method, headers: HeaderMap) -> RequestBuilder {
        self.client
            .request(method, self.url.clone())
            .headers(headers)
    }

    /// Sends a request and waits for the headers of its response.
    pub(in crate::remote) async fn send(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, Failure> {
        let sent = timeout(self.limits.response, request.send()).await;
        let response = match sent {
            Ok(Ok(response)) => response,
            Ok(Err(error)) if error.is_connect() || error.is_builder() => {
                return Err(Failure::NotSent(reason(error)));
            }
            Ok(Err(error)) => return Err(Failure::NoResponse(reason(error))),
            Err(_) => {
                let limit = self.limits.response.as_secs_f32();
                return Err(Failure::NoResponse(format!("no response within {limit} s")));
            }
        };
        let status = response.status();
        if status.is_success() || status == StatusCode::SWITCHING_PROTOCOLS {
            return Ok(response);
        }
        let after = response.headers().get(RETRY_AFTER);
        let after = after.and_then(|after| after.to_str().ok()?.parse().ok());
        let body = timeout(self.limits.response, read(response, REFUSAL_BYTES)).await;
        Err(Failure::Status {
            status,
            // Without a readable body, the status is reported alone.
            body: body.ok().and_then(Result::ok).unwrap_or_default(),
            retry_after: Duration::from_secs(after.unwrap_or(0)),
        })
    }

    /// Reads the body of a response.
    pub(in crate::remote) async fn body(&self, response: Response) -> Result<Bytes, Failure> {
        let read = read(response, self.limits.message_bytes);
        match timeout(self.limits.response, read).await {
            Ok(body) => body.map_err(Failure::NoResponse),
            Err(_) => Err(Failure::NoResponse("the body does not end".to_owned())),
        }
    }

    /// Converts a failure to an error; `what` describes the request.
    pub(in crate::remote) fn error(&self, failure: &Failure, what: &str) -> RemoteError {
        let url = self.url();
        match failure {
            Failure::NotSent(reason) => RemoteError::Connect {
                url,
                reason: reason.clone(),
            },
            Failure::NoResponse(reason) => RemoteError::Lost {
                url,
                reason: reason.clone(),
            },
            Failure::Status { status, body, .. } => RemoteError::Refused {
                url,
                request: what.to_owned(),
                status: status.as_u16(),
                message: one_line(&String::from_utf8_lossy(body), REFUSAL_SHOWN),
            },
        }
    }
}

/// Reads a body of at most `limit` bytes.
async fn read(mut response: Response, limit: usize) -> Result<Bytes, String> {
    let mut body = BytesMut::new();
    while let Some(piece) = response.chunk().await.map_err(reason)? {
        if body.len() + piece.len() > limit {
            return Err(format!("the response is longer than {limit} bytes"));
        }
        body.extend_from_slice(&piece);
    }
    Ok(body.freeze())
}

/// Returns an error with its sources, without the URL, whose query may contain a secret.
pub(in crate::remote) fn reason(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.ends_with(&cause_text) {
            // Writing to a string cannot fail.
            let _ = write!(text, ": {cause_text}");
        }
        source = cause.source();
    }
    text
}
