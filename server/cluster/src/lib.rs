//! Several nodes with one store: any node takes any connection.
//!
//! Each node is a process with an [`acp_server::Server`] over a store that all nodes share, such as that of
//! `acp-server-postgres`. A session is open in one node, which has its lease. A client that is connected to
//! another node notices nothing: that node passes the session's messages on, and follows the session
//! where it goes. When a node dies, the first node that is asked for one of its sessions opens it, once
//! the dead node's leases have ended.
//!
//! [`Cluster`] is what `serve` of `acp-server-remote` asks where a session is. The guide is
//! `docs/cluster.md`.

mod connector;
mod forward;
mod ids;
mod place;
mod relay;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use acp_client::internal::http_client;
use acp_client::remote::{RemoteError, Token};
use acp_sdk::v1::SessionId;
use acp_sdk::{MessageTransport, Transport};
use acp_server::Server;
use acp_server_remote::Metrics;
use acp_server_remote::internal::{Joined, NodeCaller, Nodes, Unreachable};
use axum::extract::Request;
use axum::response::Response;
use futures_util::future::BoxFuture;

/// Time between signs of life on a connection that is silent, so that one to a machine that is gone ends.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Idle time after which a connection to a node is closed. Nodes close theirs after 30 s; a request on one that
/// is closing would be lost.
const POOL_IDLE: Duration = Duration::from_secs(15);

/// Time limit for a node to accept a request.
const CONNECT_LIMIT: Duration = Duration::from_secs(5);

/// What a node knows of the others: their secret, and how long a session may be without a node.
#[derive(Debug)]
pub struct Cluster(Arc<Settings>);

/// Settings of a [`Cluster`].
#[derive(Debug)]
pub(crate) struct Settings {
    /// What all nodes show, for each of the two clients.
    secret: Token,
    node_secret: acp_server_remote::Token,
    /// How long a session is looked for.
    takeover_limit: Duration,
    /// How often the store is asked whether a node that has not answered still has a session.
    owner_interval: Duration,
    http: reqwest::Client,
    /// Counts what is passed on.
    metrics: Metrics,
}

impl Cluster {
    /// Creates the settings of a node. All nodes have the same `secret`. `takeover` is the time after which
    /// the store gives the sessions of a dead node to another one. What is passed on counts in `metrics`.
    ///
    /// # Errors
    ///
    /// When the secret cannot be sent in a header, or the system's certificates cannot be read.
    pub fn new(
        secret: acp_server_remote::Token,
        takeover: Duration,
        metrics: Metrics,
    ) -> Result<Self, RemoteError> {
        Ok(Self(Arc::new(Settings {
            secret: Token::new(secret.secret())?,
            node_secret: secret,
            takeover_limit: takeover.saturating_add(Duration::from_secs(15)),
            owner_interval: takeover / 3,
            http: http_client(|http| {
                http.connect_timeout(CONNECT_LIMIT)
                    .tcp_keepalive(KEEP_ALIVE)
                    .pool_idle_timeout(POOL_IDLE)
            })?,
            metrics,
        })))
    }
}

impl Nodes for Cluster {
    fn join(&self, client: Pin<Box<dyn MessageTransport>>, to: Joined) -> Transport {
        relay::start(self.0.clone(), client, to)
    }

    fn forward(
        &self,
        server: Server,
        session: SessionId,
        request: Request,
        caller: NodeCaller,
    ) -> BoxFuture<'_, Result<Response, Request>> {
        Box::pin(
            async move { forward::forward(&self.0, &server, &session, request, &caller).await },
        )
    }

    fn pass_on(
        &self,
        address: String,
        request: Request,
        caller: NodeCaller,
    ) -> BoxFuture<'_, Result<Response, Unreachable>> {
        Box::pin(async move { forward::to_connection(&self.0, &address, request, &caller).await })
    }
}
