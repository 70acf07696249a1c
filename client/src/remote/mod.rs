//! Agents behind HTTP, server-sent events and WebSocket (feature `remote`).
//!
//! [`Client::connect`](crate::Client::connect) takes a URL; a [`RemoteAgent`] says more, such as a
//! [`Token`]. Handlers, sessions and turns are the same as those of an agent that is a process.
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
//! [`connect_raw`] moves raw messages, and [`RemoteAgent::raw_socket`] bytes, for tests of servers.
//!
//! # When the connection is lost
//!
//! It is opened again ([`Reconnect`](crate::Reconnect)), and the client notices nothing but the time that it takes, if
//! the agent numbers its events as `acp-server` does: sessions continue after the last event, and a
//! prompt is answered although it was sent on another connection. It is never sent twice. Other
//! requests in flight fail with [`Error::ConnectionLost`](crate::Error::ConnectionLost). Where an
//! agent cannot continue, sessions are loaded, which [`Event::Gap`](crate::Event::Gap) says.
//!
//! # What a server may do
//!
//! The proposal for the transport leaves room, and servers use it. This client accepts streams that
//! end (they are opened again, with `Last-Event-ID` if there was an id), the answer to
//! `session/load` on either stream, a session stream that is refused until the session is loaded or
//! for ever, messages in the response to a POST, and any form of the event stream format.

mod agent;
mod connector;
mod error;
mod http;
mod link;
mod socket;
mod sse;
mod tls;
mod token;
mod websocket;

pub use self::agent::RemoteAgent;
pub(crate) use self::connector::RemoteConnector;
pub use self::error::RemoteError;
pub use self::link::{RawReceiver, RawSender, Received, Refused, connect_raw};
pub use self::socket::RawSocket;
pub use self::token::Token;

/// Returns an HTTP client for downloads, which trusts the servers that the system trusts, and is not led from
/// an encrypted connection to another one.
#[cfg(feature = "cli")]
pub(crate) fn download_client() -> Result<reqwest::Client, RemoteError> {
    let tls = tls::config(&tls::Trust::System, &["h2", "http/1.1"])?;
    let redirects = reqwest::redirect::Policy::custom(|redirect| {
        let was_encrypted = redirect
            .previous()
            .last()
            .is_some_and(|from| from.scheme() == "https");
        if was_encrypted && redirect.url().scheme() != "https" {
            return redirect.error("the server redirects to a URL that is not encrypted");
        }
        if redirect.previous().len() > 10 {
            return redirect.error("the server redirects too often");
        }
        redirect.follow()
    });
    let client = reqwest::Client::builder().tls_backend_preconfigured(tls);
    let client = client.redirect(redirects);
    client.build().map_err(|error| RemoteError::Option {
        what: "HTTP".to_owned(),
        reason: error.to_string(),
    })
}
