//! All endpoints on one listener, from the first connection to the end.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use futures_util::future::{BoxFuture, join_all};
use tokio::net::TcpListener;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::access::Seal;
use super::nodes::{ConnectionIds, protect_nodes};
use super::{
    AccessControl, Agents, AnsweredRequest, EndpointSettings, ListenSettings, Token, Tokens,
    log_requests, page, protect, rest, router, ticket_route,
};

/// Time for streams to end after the sessions.
const LAST_EVENTS: Duration = Duration::from_secs(1);

/// The endpoint of a node for the other nodes: the same routes, behind the secret of all nodes. It must not
/// be reachable from outside.
#[derive(Debug)]
pub struct NodeEndpoint {
    /// Its URL for other nodes, `http://HOST:PORT`.
    pub address: String,
    /// Where other nodes reach this one.
    pub listener: TcpListener,
    /// What all nodes show.
    pub secret: Token,
}

/// Settings of [`serve`].
#[non_exhaustive]
pub struct ServeSettings {
    /// Who may ask.
    pub access: AccessControl,
    /// Limits of the endpoints. Their `stop` is cancelled when the sessions have ended.
    pub endpoints: EndpointSettings,
    /// Webhooks: the routes of [`hooks`](super::hooks()) (none).
    pub hooks: Router,
    /// TLS, limits and timeouts of the listener.
    pub listen: ListenSettings,
    /// Where other nodes pass requests on to this one (nowhere).
    pub nodes: Option<NodeEndpoint>,
    /// Called with each request that was answered (nothing). Must not block.
    pub on_request: Option<Arc<dyn Fn(AnsweredRequest) + Send + Sync>>,
    /// Ends the server when it is cancelled (never).
    pub stop: CancellationToken,
    /// How long running turns may go on after `stop` (0 s). Then they are cancelled.
    pub drain: Duration,
    /// How long sessions, and `after_sessions`, may take to end after that (10 s).
    pub shutdown_timeout: Duration,
    /// What else ends after the sessions, such as the processes of a hosted agent (nothing).
    pub after_sessions: Option<BoxFuture<'static, ()>>,
}

impl ServeSettings {
    /// Creates settings with everything else at its default.
    #[must_use]
    pub fn new(access: AccessControl) -> Self {
        Self {
            access,
            endpoints: EndpointSettings::default(),
            hooks: Router::new(),
            nodes: None,
            listen: ListenSettings::default(),
            on_request: None,
            stop: CancellationToken::new(),
            drain: Duration::ZERO,
            shutdown_timeout: Duration::from_secs(10),
            after_sessions: None,
        }
    }
}

impl fmt::Debug for ServeSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeSettings")
            .field("access", &self.access)
            .field("listen", &self.listen)
            .finish_non_exhaustive()
    }
}

/// Serves all endpoints of a server, or of several agents, on a listener: `/acp`, REST, the page, tickets, metrics and,
/// with the feature `rpc`, `/rpc`. Each request passes the access control, and is counted.
///
/// Completes after [`stop`](ServeSettings::stop): nothing more is accepted, running turns may go on
/// for [`drain`](ServeSettings::drain), the server [shuts down](acp_server::Server::shutdown), and clients are
/// sent how it ended. When the future is dropped, all connections are, too.
///
/// ```no_run
/// use acp_server_remote::{AccessControl, Hosts, ServeSettings, Token, Tokens, serve};
/// use acp_reference_agent::Reference;
/// use acp_server::Server;
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let token: Token = std::env::var("TOKEN")?.parse()?;
///     let access = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
///     let listener = tokio::net::TcpListener::bind("127.0.0.1:5173").await?;
///     serve(Server::new(Reference), listener, ServeSettings::new(access)).await;
///     Ok(())
/// }
/// ```
pub async fn serve(agents: impl Into<Agents>, listener: TcpListener, mut settings: ServeSettings) {
    let agents = agents.into();
    let tokens = settings.access.tokens().clone();
    if let Some(NodeEndpoint {
        address, secret, ..
    }) = &settings.nodes
    {
        let seal = Arc::new(Seal::new(secret));
        tokens.share_with_nodes(seal.clone());
        let ids = ConnectionIds::new(seal, address.clone());
        settings.endpoints.connection_ids = Some(Arc::new(ids));
    }
    let for_nodes = routes_for_nodes(&agents, &settings.endpoints, tokens.clone());
    let router = routes(&agents, for_nodes.clone(), &settings);
    let ServeSettings {
        endpoints,
        nodes,
        mut listen,
        stop,
        drain,
        shutdown_timeout,
        after_sessions,
        ..
    } = settings;
    listen.reserve_for = Some(tokens.clone());
    listen.shutdown_timeout = drain.saturating_add(shutdown_timeout);
    let on_warning = listen.on_warning.clone();
    let ended = endpoints.stop;
    let ending = async {
        stop.cancelled().await;
        let draining = join_all(agents.iter().map(|agent| agent.server().drain()));
        if timeout(drain, draining).await.is_err() && !drain.is_zero() {
            on_warning("turns still run, and are cancelled");
        }
        let sessions = async {
            join_all(agents.iter().map(|agent| agent.server().shutdown())).await;
            if let Some(end) = after_sessions {
                end.await;
            }
        };
        if timeout(shutdown_timeout, sessions).await.is_err() {
            on_warning("not all turns ended in time");
        }
        ended.cancel();
    };
    // What the end of the sessions has sent is written by then. What stays open is cut.
    let too_late = async {
        ended.cancelled().await;
        sleep(LAST_EVENTS).await;
    };
    let listening_to_nodes = async {
        if let Some(NodeEndpoint {
            listener, secret, ..
        }) = nodes
        {
            let settings = ListenSettings {
                shutdown_timeout: listen.shutdown_timeout,
                on_warning: listen.on_warning.clone(),
                ..ListenSettings::default()
            };
            let router = protect_nodes(for_nodes, secret, tokens.clone());
            super::listen(listener, router, settings, ended.clone()).await;
        }
    };
    // Connections are accepted to the end: a request is answered 503 with `Retry-After`, and turns that run are watched and
    // answered.
    let all = async {
        let clients = super::listen(listener, router, listen.clone(), ended.clone());
        tokio::join!(clients, listening_to_nodes);
    };
    let listening = async {
        tokio::select! {
            () = all => {}
            () = too_late => {}
            () = tokens.watch() => {}
        }
    };
    tokio::join!(listening, ending);
}

/// Returns what other nodes use of the endpoints, too, without access control.
fn routes_for_nodes(agents: &Agents, endpoints: &EndpointSettings, tokens: Tokens) -> Router {
    let routes = router(agents.clone(), endpoints).merge(rest(agents.clone(), endpoints, tokens));
    #[cfg(feature = "rpc")]
    let routes = routes.merge(super::rpc(agents.clone(), endpoints));
    routes
}

/// Returns all endpoints behind the access control.
fn routes(agents: &Agents, of_nodes: Router, settings: &ServeSettings) -> Router {
    let ServeSettings {
        access,
        endpoints,
        hooks,
        on_request,
        ..
    } = settings;
    let routes = of_nodes
        .merge(ticket_route(access.tokens().clone()))
        .merge(page())
        .merge(hooks.clone())
        .merge(endpoints.metrics.route(agents.clone()));
    // Around access control, so that what it refuses is counted and logged.
    let routes = endpoints.metrics.count(protect(routes, access.clone()));
    match on_request.clone() {
        Some(sink) => log_requests(routes, move |request| sink(request)),
        None => routes,
    }
}
