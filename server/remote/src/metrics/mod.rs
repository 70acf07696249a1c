//! Numbers for a monitoring system: connections, streams, requests, bytes, sessions, turns.
//!
//! No label has an id, a token or anything else that a client chooses.

mod counted;
mod server;
mod store;

use std::fmt;
use std::sync::Arc;

use acp_server::Access;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use self::counted::Counted;
use self::server::ServerNumbers;
use self::store::StoreNumbers;
use super::agents::{Agents, ServedAgent};
use super::caller::Caller;
use super::failure::Failure;

/// The content type of what [`encode`] writes.
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Declares what is counted here: one line has the name of a metric, its type and its help.
macro_rules! metrics {
    ($(#[$doc:meta])+ $($name:ident: $kind:ty = $help:literal,)+) => {
        $(#[$doc])+
        #[derive(Clone, Debug, Default)]
        pub struct Metrics {
            $(pub(crate) $name: $kind,)+
        }

        impl Metrics {
            fn register(&self, registry: &mut Registry) {
                $(registry.register(stringify!($name), $help, self.$name.clone());)+
            }
        }
    };
}

metrics! {
    /// Numbers of the remote endpoints. Clones are handles to the same numbers.
    ///
    /// ```no_run
    /// use acp_server_remote::{AccessControl, Hosts, EndpointSettings, Token, Tokens, protect, router};
    ///
    /// # fn example(server: acp_server::Server, token: Token) -> axum::Router {
    /// let settings = EndpointSettings::default();
    /// let routes = router(server.clone(), &settings).merge(settings.metrics.route(server));
    /// let control = AccessControl::new(Hosts::loopback(), Tokens::new(&token));
    /// // Around access control, so that refusals count.
    /// settings.metrics.count(protect(routes, control))
    /// # }
    /// ```
    connections: Gauge = "Open connections at /acp",
    rpc_connections: Gauge = "Open WebSockets at /rpc",
    streams: Gauge = "Open streams of server-sent events",
    requests: Family<RequestLabels, Counter> = "HTTP requests that were answered",
    received_bytes: Counter = "Bytes of the bodies of requests",
    sent_bytes: Counter = "Bytes of the bodies of responses",
    node_requests: Counter = "Requests for sessions of other nodes that were passed on",
    node_failures: Counter = "Requests and connections to other nodes that failed",
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RequestLabels {
    method: &'static str,
    /// As it was mounted, such as `/session/{id}`.
    route: String,
    /// Such as `2xx`.
    status: &'static str,
}

/// What the route needs.
pub(super) struct Numbers {
    registry: Registry,
    agents: Agents,
    usage: StoreNumbers,
}

/// Something open, which counts until it is dropped.
#[derive(Debug)]
pub(crate) struct Open(Gauge);

impl Open {
    pub(crate) fn new(gauge: &Gauge) -> Self {
        gauge.inc();
        Self(gauge.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.dec();
    }
}

impl Metrics {
    /// Returns the route `GET /metrics`, in the format of OpenMetrics, which Prometheus reads.
    ///
    /// Tokens of sessions do not open it, read-only ones do. If there are several agents, their numbers
    /// have the label `agent`.
    pub fn route(&self, agents: impl Into<Agents>) -> Router {
        let agents = agents.into();
        let usage = StoreNumbers::default();
        let mut registry = Registry::with_prefix("acp_server");
        self.register(&mut registry);
        registry.register_collector(Box::new(ServerNumbers(agents.clone())));
        registry.register_collector(Box::new(usage.clone()));
        let numbers = Numbers {
            registry,
            agents,
            usage,
        };
        Router::new()
            .route("/metrics", get(metrics))
            .with_state(Arc::new(numbers))
    }

    /// Counts a request that was passed on to another node.
    #[doc(hidden)]
    pub fn node_request(&self) {
        self.node_requests.inc();
    }

    /// Counts a request or connection to another node that failed.
    #[doc(hidden)]
    pub fn node_failure(&self) {
        self.node_failures.inc();
    }

    /// Counts the requests of a router by route and status, and the bytes of their bodies.
    pub fn count(&self, router: Router) -> Router {
        router.layer(middleware::from_fn_with_state(self.clone(), count))
    }
}

/// Returns numbers for a monitoring system.
#[utoipa::path(get, path = "/metrics", tag = "server",
    responses((status = 200, description = "OpenMetrics, as Prometheus reads them",
        content_type = "application/openmetrics-text", body = String))
)]
pub(super) async fn metrics(State(numbers): State<Arc<Numbers>>, caller: Caller) -> Response {
    if let Access::Session(_) = caller.access {
        return Failure::forbidden().into_response();
    }
    // What is written must be known before.
    numbers.usage.read(&numbers.agents).await;
    let mut text = String::new();
    match encode(&mut text, &numbers.registry) {
        Ok(()) => {
            let content_type = HeaderValue::from_static(OPEN_METRICS);
            ([(header::CONTENT_TYPE, content_type)], text).into_response()
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn count(State(metrics): State<Metrics>, request: Request, next: Next) -> Response {
    let method = method(request.method());
    let route = request.extensions().get::<MatchedPath>();
    let route = route.map_or_else(|| "other".to_owned(), |path| path.as_str().to_owned());
    let received = metrics.received_bytes.clone();
    let request = request.map(|body| Body::new(Counted::new(body, received)));
    let response = next.run(request).await;
    let labels = RequestLabels {
        method,
        route,
        status: class(response.status()),
    };
    metrics.requests.get_or_create(&labels).inc();
    response.map(|body| Body::new(Counted::new(body, metrics.sent_bytes.clone())))
}

/// The method as a label: a client may send any word.
fn method(method: &Method) -> &'static str {
    let known = [
        "GET", "POST", "DELETE", "HEAD", "OPTIONS", "CONNECT", "PUT", "PATCH",
    ];
    let found = known.into_iter().find(|known| method == known);
    found.unwrap_or("other")
}

/// A label and its value.
type Label = (&'static str, String);

/// Writes the numbers of a name that were read for this answer, each with its labels.
fn write<M: EncodeMetric>(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    rows: Vec<(Vec<Label>, M)>,
) -> Result<(), fmt::Error> {
    let Some((_, first)) = rows.first() else {
        return Ok(());
    };
    let mut family = encoder.encode_descriptor(name, help, None, first.metric_type())?;
    if let [(labels, metric)] = &*rows
        && labels.is_empty()
    {
        return metric.encode(family);
    }
    for (labels, metric) in &rows {
        metric.encode(family.encode_family(labels)?)?;
    }
    Ok(())
}

/// Returns the label of an agent, if there are several.
fn label(agents: &Agents, agent: &ServedAgent) -> Vec<Label> {
    match agents.are_several() {
        true => vec![("agent", agent.name().to_owned())],
        false => Vec::new(),
    }
}

fn class(status: StatusCode) -> &'static str {
    match status.as_u16() / 100 {
        1 => "1xx",
        2 => "2xx",
        3 => "3xx",
        4 => "4xx",
        _ => "5xx",
    }
}
