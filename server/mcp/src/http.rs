//! Servers behind URLs, over streamable HTTP.

use std::collections::HashMap;

use ::http::{HeaderName, HeaderValue};
use acp_client::internal::http_client;
use acp_sdk::v1::McpServerHttp;
use reqwest::redirect::Policy;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{DynamicTransportError, StreamableHttpClientTransport};

use crate::Options;
use crate::connection::OpenError;
use crate::wire::SendError;

/// Maximum number of redirects of a request.
const MAX_REDIRECTS: usize = 10;

/// Returns the transport of a server. Requests have the headers that the client set; a redirect is
/// followed on the same origin only, because they may be secret.
pub(crate) fn transport(
    server: &McpServerHttp,
    options: &Options,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, OpenError> {
    let mut headers = HashMap::new();
    for header in &server.headers {
        let name = HeaderName::from_bytes(header.name.as_bytes());
        let value = HeaderValue::from_str(&header.value);
        let (Ok(name), Ok(mut value)) = (name, value) else {
            let name = &header.name;
            return Err(OpenError::is_final(format!(
                "has an invalid header `{}`",
                name.escape_debug()
            )));
        };
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    let redirects = Policy::custom(|redirect| {
        let first = redirect.previous().first();
        let is_same = first.is_some_and(|first| first.origin() == redirect.url().origin());
        let keeps_body = matches!(redirect.status().as_u16(), 307 | 308);
        match is_same && keeps_body && redirect.previous().len() <= MAX_REDIRECTS {
            true => redirect.follow(),
            false => redirect.stop(),
        }
    });
    let client = http_client(|client| {
        client
            .connect_timeout(options.start_timeout)
            // A connection whose last response was not read to its end delays the next request.
            .pool_max_idle_per_host(0)
            .redirect(redirects)
    });
    let client = client.map_err(|error| OpenError::is_final(error.to_string()))?;
    let config = StreamableHttpClientTransportConfig::with_uri(server.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(options.max_message_bytes)
        .max_json_response_size(options.max_message_bytes);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Why a message could not be sent.
#[derive(Debug)]
pub(crate) struct Fault {
    /// Follows the server's name.
    pub(crate) reason: String,
    pub(crate) kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// There is no connection to the server.
    Unreachable,
    /// The server does not accept this client.
    Refused,
    /// Other messages may be accepted.
    Other,
}

/// Returns why a message could not be sent. A reason never has the URL, which may have a secret.
pub(crate) fn fault(error: &DynamicTransportError) -> Fault {
    type Sent = SendError<StreamableHttpError<reqwest::Error>>;
    use FaultKind::{Other, Refused, Unreachable};
    let Some(SendError::Transport(sent)) = error.error.downcast_ref::<Sent>() else {
        let reason = format!("cannot be sent a message: {}", error.error);
        return Fault {
            reason,
            kind: Other,
        };
    };
    let (reason, kind) = match sent {
        StreamableHttpError::Client(error) => {
            let kind = match error.is_connect() {
                true => Unreachable,
                false => Other,
            };
            let reason = "cannot be reached".to_owned();
            (acp_sdk::text::with_causes(reason, &error), kind)
        }
        StreamableHttpError::AuthRequired(_) | StreamableHttpError::InsufficientScope(_) => {
            let reason = "requires authorization, by a header that the client sets";
            (reason.to_owned(), Refused)
        }
        // The text begins with the status.
        StreamableHttpError::UnexpectedServerResponse(text) => {
            let is_refused = text.starts_with("HTTP 4") && !text.starts_with("HTTP 429");
            let kind = if is_refused { Refused } else { Other };
            let text = text.trim_end_matches([':', ' ']);
            (format!("sent an unexpected response: {text}"), kind)
        }
        other => (format!("cannot be used: {other}"), Other),
    };
    Fault { reason, kind }
}
