//! Who may ask: hosts, origins, tokens, tickets and request rates, in front of a router.
//!
//! [`protect`] checks each request in this order, before it is routed and before an upgrade:
//!
//! 1. Host: one that is allowed, else 400 (missing, doubled, malformed) or 403.
//! 2. Origin: absent, this server's own, or listed ([`Hosts`]), else 403. A preflight request of a
//!    listed origin is answered here.
//! 3. Token: `Authorization: Bearer TOKEN`, or `?ticket=TICKET` without that header, else 401.
//!    [`HEALTH`] and [`PAGE`] need none; nor do calls below [`HOOKS`], which show a secret of their own.
//! 4. Rate: requests of a token; requests without a valid token by address, else 429. The rate
//!    applies to what needs no token, too.
//!
//! The request then has an extension [`Access`]. Tokens and tickets appear in no log and no error;
//! the ticket is removed from the URI.

mod cors;
mod credentials;
mod host;
mod hosts;
mod identity;
mod named;
mod rate;
mod seal;
mod shares;
mod tickets;
mod token;
mod token_file;
mod tokens;

pub use host::{Host, HostError, Origin};
pub use hosts::Hosts;
pub use tickets::ticket_route;
pub use token::{Token, TokenError};
pub use token_file::{NamedToken, TokenFile, TokenFileError};
pub use tokens::{IssueError, Tokens};

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};

use super::failure::Failure;
use super::secured::Secured;
use super::{HEALTH, HOOKS, PAGE};
use acp_server::Access;
pub(super) use credentials::bearer;
use hosts::Sender;
pub(super) use identity::{Identity, Owner};
use rate::Rate;
pub(super) use seal::{Purpose, Seal};
pub(super) use shares::{Holder, Share, Shares};

/// Who may ask; the settings of [`protect`].
#[derive(Clone, Debug)]
pub struct AccessControl {
    hosts: Hosts,
    tokens: Tokens,
    rate: Option<u32>,
}

impl AccessControl {
    /// Creates the settings, without a limit of requests a second.
    #[must_use]
    pub fn new(hosts: Hosts, tokens: Tokens) -> Self {
        let rate = None;
        Self {
            hosts,
            tokens,
            rate,
        }
    }

    pub(super) fn tokens(&self) -> &Tokens {
        &self.tokens
    }

    /// Permits a number of requests a second to each token, and to each address without one. Twice
    /// as many may come at once.
    #[must_use]
    pub fn requests_per_second(mut self, requests: u32) -> Self {
        self.rate = Some(requests);
        self
    }
}

/// Protects a router: checks host, origin, token and rate of each request, whatever its path.
///
/// ```no_run
/// use acp_server_remote::{AccessControl, Hosts, EndpointSettings, Token, Tokens, protect, router};
///
/// # fn example(server: acp_server::Server, token: Token) -> axum::Router {
/// let hosts = Hosts::loopback().allow("agents.example".parse().unwrap());
/// let control = AccessControl::new(hosts, Tokens::new(&token));
/// protect(router(server, &EndpointSettings::default()), control)
/// # }
/// ```
///
/// Programs with a listener of their own should serve the router with
/// `into_make_service_with_connect_info::<SocketAddr>()`; without it, all addresses count as one.
pub fn protect(router: Router, control: AccessControl) -> Router {
    let gate = Gate {
        hosts: control.hosts,
        tokens: control.tokens,
        rate: control.rate.map(Rate::new),
    };
    router.layer(middleware::from_fn_with_state(Arc::new(gate), check))
}

/// Answers 403 `{"error":"forbidden"}` to requests that do not have [`Access::Full`], for routes that
/// do not check [`Access`] themselves.
///
/// Requests that no [`protect`] has seen pass.
pub fn require_full(router: Router) -> Router {
    router.layer(middleware::from_fn(only_full))
}

async fn only_full(request: Request, next: Next) -> Response {
    match request.extensions().get::<Access>() {
        None | Some(Access::Full) => next.run(request).await,
        Some(_) => Failure::forbidden().into_response(),
    }
}

struct Gate {
    hosts: Hosts,
    tokens: Tokens,
    rate: Option<Rate>,
}

async fn check(State(gate): State<Arc<Gate>>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let tls = parts.extensions.get::<Secured>().is_some();
    let sender = match gate.hosts.check(&parts, tls) {
        Ok(sender) => sender,
        Err(refusal) => return refused(refusal.into()),
    };
    let origin = parts.headers.get(axum::http::header::ORIGIN).cloned();
    let mut response = if sender == Sender::ListedOrigin && cors::is_preflight(&parts) {
        cors::preflight()
    } else {
        let request = Request::from_parts(parts, body);
        match gate.admit(request) {
            Ok(request) => next.run(request).await,
            Err(refusal) => refused(refusal),
        }
    };
    if gate.hosts.has_origins() {
        let listed = origin.filter(|_| sender == Sender::ListedOrigin);
        cors::mark(response.headers_mut(), listed);
    }
    response
}

/// Logs a refusal. The path is the client's choice, and may have a ticket.
fn refused(refusal: Failure) -> Response {
    tracing::debug!(
        status = refusal.status().as_u16(),
        "refused a request of the network"
    );
    refusal.into_response()
}

impl Gate {
    /// Counts a request for the rate.
    fn count(&self, holder: Holder) -> Result<(), Failure> {
        match &self.rate {
            Some(rate) => rate.take(holder).map_err(|wait| {
                // Whole seconds, and never zero.
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                Failure::new(StatusCode::TOO_MANY_REQUESTS, "too_many_requests")
                    .retry_after(seconds.max(1))
            }),
            None => Ok(()),
        }
    }

    /// Checks token and rate, and adds what the token permits.
    fn admit(&self, mut request: Request) -> Result<Request, Failure> {
        let path = request.uri().path();
        let is_public = match *request.method() {
            Method::GET | Method::HEAD => HEALTH.contains(&path) || path == PAGE,
            Method::POST => path.starts_with(HOOKS),
            _ => false,
        };
        let address = || {
            let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
            Holder::Address(peer.map(|peer| peer.0.ip()))
        };
        if is_public {
            self.count(address())?;
            return Ok(request);
        }
        let address = address();
        let ticket = credentials::take_ticket(request.uri_mut());
        let identity = if self.tokens.is_open() {
            Some(self.tokens.anybody())
        } else {
            match (credentials::bearer(request.headers()), ticket) {
                (Ok(Some(token)), _) => self.tokens.identify(token),
                (Ok(None), Some(ticket)) => self.tokens.redeem(&ticket),
                _ => None,
            }
        };
        // Where no token is needed, all are counted by address.
        let holder = identity
            .as_ref()
            .filter(|identity| identity.token.is_some());
        self.count(holder.map_or(address, Identity::holder))?;
        let identity = identity.ok_or_else(Failure::unauthorized)?;
        request.extensions_mut().insert(identity.access.clone());
        request.extensions_mut().insert(identity);
        Ok(request)
    }
}
