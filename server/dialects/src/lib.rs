//! Protocols of other agent systems over the sessions of [`acp_server`]: a client of such a protocol
//! drives any agent that is written with it.
//!
//! A [`Dialect`] is a protocol of another system. [`serve_stdio`] serves a client of one on standard
//! input and output:
//!
//! ```no_run
//! # use acp_server::{Handler, Server};
//! # async fn example(agent: impl Handler) -> acp_sdk::Result<()> {
//! let connection = acp_sdk::ConnectionBuilder::new();
//! acp_server_dialects::serve_stdio(acp_server_dialects::Dialect::OtterAcp, &Server::new(agent), ".", connection).await
//! # }
//! ```
//!
//! Types, traits and typed callers of each dialect are those of `acp-dialects`.
//! `docs/dialects.md` has the design, and what each system's text says line by line.

/// Makes a bridge the agent of its dialect, whose generated items are in scope.
macro_rules! agent {
    ($bridge:ident) => {
        impl ::acp_sdk::IntoAgent<Self> for $bridge {
            type Client = ClientHandle;

            fn into_dispatch(self) -> impl ::acp_sdk::service::Service {
                AgentService::new(self)
            }

            fn into_service(
                self,
            ) -> (
                impl ::acp_sdk::service::Service,
                impl FnOnce(::acp_sdk::Peer) -> ClientHandle,
            ) {
                (AgentService::new(self), ClientHandle::new)
            }
        }

        impl ::std::fmt::Debug for $bridge {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.debug_struct(stringify!($bridge)).finish_non_exhaustive()
            }
        }
    };
}

mod call;
pub mod chimera;
mod detect;
mod feed;
mod feeds;
mod fold;
mod message;
pub mod openoxide;
pub mod otter_acp;
pub mod otter_http_acp;
mod permission;

use std::path::PathBuf;

use acp_sdk::{ConnectionBuilder, Framing};
use acp_server::Server;

/// A protocol of another system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dialect {
    /// Chimera's ACP client.
    Chimera,
    /// OpenOxide's ACP server.
    OpenOxide,
    /// Otter's ACP server.
    OtterAcp,
    /// The JSON-RPC methods of Otter's HTTP server.
    OtterHttpAcp,
}

impl Dialect {
    /// Returns the dialect of a client by its first message; `None` for ACP, and if no protocol has the
    /// message.
    ///
    /// `Content-Length` headers are those of [`OpenOxide`](Self::OpenOxide), whatever the message is.
    /// An `initialize` whose `protocolVersion` is a number is that of ACP. Otter's clients that send one
    /// cannot be distinguished from clients of ACP. `initialize` never selects [`OtterHttpAcp`](Self::OtterHttpAcp), whose
    /// own is the same as Otter's or ACP's.
    #[must_use]
    pub fn detect(framing: Framing, text: &[u8]) -> Option<Self> {
        detect::detect(framing, text)
    }
}

/// Reads the first message on standard input, which the next connection on it receives as well, and
/// [detects](Dialect::detect) the dialect.
///
/// # Errors
///
/// As [`acp_sdk::peek_stdio`].
pub async fn detect_stdio() -> acp_sdk::Result<Option<Dialect>> {
    let first = acp_sdk::peek_stdio().await?;
    Ok(first.and_then(|first| Dialect::detect(first.framing, &first.text)))
}

/// Serves one client of a dialect on standard input and output until it closes its side, then
/// [shuts the server down](Server::shutdown). `cwd` is the working directory of sessions whose client names
/// none, and from which relative ones start.
///
/// # Errors
///
/// As [`acp_sdk::serve_stdio`].
pub async fn serve_stdio(
    dialect: Dialect,
    server: &Server,
    cwd: impl Into<PathBuf>,
    connection: ConnectionBuilder,
) -> acp_sdk::Result<()> {
    let (client, cwd) = (server.clone(), cwd.into());
    let served = match dialect {
        Dialect::Chimera => {
            let agent = chimera::Chimera::new(client).with_cwd(cwd);
            connection.serve_stdio::<chimera::Chimera, _>(agent).await
        }
        Dialect::OpenOxide => {
            let agent = openoxide::OpenOxide::new(client).with_cwd(cwd);
            openoxide::OpenOxide::connection(connection)
                .serve_stdio::<openoxide::OpenOxide, _>(agent)
                .await
        }
        Dialect::OtterAcp => {
            let agent = otter_acp::OtterAcp::new(client).with_cwd(cwd);
            connection
                .serve_stdio::<otter_acp::OtterAcp, _>(agent)
                .await
        }
        Dialect::OtterHttpAcp => {
            let agent = otter_http_acp::OtterHttpAcp::new(client).with_cwd(cwd);
            connection
                .serve_stdio::<otter_http_acp::OtterHttpAcp, _>(agent)
                .await
        }
    };
    server.shutdown().await;
    served
}
