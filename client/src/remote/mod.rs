//! Agents behind HTTP, server-sent events and WebSocket (feature `remote`).
//!
//! [`Client::connect`](crate::Client::connect) accepts a URL; a [`RemoteAgent`] has more options,
//! such as a [`Token`]. Handlers, sessions and turns are the same as for an agent process.
//!
//! ```no_run
//! use acp_client::remote::{RemoteAgent, Token};
//! use acp_client::{Client, Policy};
//!
//! # async fn example() -> acp_client::Result<()> {
//! let agent = RemoteAgent::new("wss://agents.example.org/acp")?.token(Token::from_env("ACP_TOKEN")?);
//! let client = Client::builder()
//!     .permissions(Policy::ApproveReads)
//!     .connect_remote(agent)
//!     .await?;
//! let session = client.new_session("/home/me/project").await?;
//! let outcome = session.prompt("What is this project about?").await?.outcome().await?;
//! println!("{outcome}");
//! # Ok(())
//! # }
//! ```
//!
//! [`connect_raw`] exchanges raw messages, and [`RemoteAgent::raw_socket`] bytes, for tests of servers.
//!
//! # Lost connections
//!
//! The client opens a lost connection again ([`Reconnect`](crate::Reconnect)). If the agent numbers
//! its events, as `acp-server` does, this is transparent: sessions continue after the last event,
//! and a prompt is answered although it was sent on another connection. A prompt is never sent
//! twice. Other requests in flight fail with
//! [`Error::ConnectionLost`](crate::Error::ConnectionLost). If the agent does not number its events,
//! sessions are loaded again and [`Event::Gap`](crate::Event::Gap) is returned.
//!
//! # Differences between servers
//!
//! The proposal for the transport is not precise in all parts. This client accepts: streams that
//! end (they are reopened, with `Last-Event-ID` if there was an id); the response to `session/load`
//! on either stream; a session stream that is rejected until the session is loaded, or always;
//! messages in the response to a POST; all forms of the event stream format.

mod agent;
mod connector;
mod error;
mod http;
mod link;
mod persistent;
mod socket;
mod sse;
mod tls;
mod token;
mod websocket;

pub use self::agent::RemoteAgent;
pub(crate) use self::connector::RemoteConnector;
pub use self::connector::connect_raw;
pub use self::error::RemoteError;
pub use self::link::{RawReceiver, RawSender, Received, Refused};
pub use self::persistent::PersistentConnection;
pub use self::socket::RawSocket;
pub use self::token::Token;

/// Returns an HTTP client for downloads, which trusts the system's certificate authorities and
/// follows no redirect from HTTPS to HTTP.
pub fn download_client() -> Result<reqwest::Client, RemoteError> {
    let redirects = reqwest::redirect::Policy::custom(|redirect| {
        let was_encrypted = redirect
            .previous()
            .last()
            .is_some_and(|from| from.scheme() == "https");
        if was_encrypted && redirect.url().scheme() != "https" {
            return redirect.error("the server redirects to an unencrypted URL");
        }
        if redirect.previous().len() > 10 {
            return redirect.error("the server redirects too often");
        }
        redirect.follow()
    });
    http_client(|client| client.redirect(redirects))
}

/// Returns an HTTP client with these settings, which trusts the system's certificate authorities.
pub fn http_client(
    set: impl FnOnce(reqwest::ClientBuilder) -> reqwest::ClientBuilder,
) -> Result<reqwest::Client, RemoteError> {
    let tls = tls::config(&tls::Trust::System, &["h2", "http/1.1"])?;
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls);
    set(client).build().map_err(|error| RemoteError::Option {
        what: "HTTP".to_owned(),
        reason: error.to_string(),
    })
}
