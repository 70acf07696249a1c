//! REST and server-sent events, for scripts, dashboards and other languages.
//!
//! [`routes`] declares all routes. The others have the handlers.

mod agent;
mod answer;
mod approve;
mod body;
mod choices;
mod commands;
mod cost;
mod deliver;
mod events;
mod failure;
mod histories;
mod long_reads;
mod openapi;
mod openoxide;
mod query;
mod records;
mod route;
mod routes;
mod rows;
mod runs;
mod sessions;
mod share;
mod share_file;
mod short;
mod state;
mod steer;
mod stream;
mod summary;
mod times;
mod transcript;
mod turns;
mod undo;
mod usage;
mod wanted;

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;

use self::failure::Failure;
pub use self::route::Right;
use self::route::Route;
use self::state::Rest;
use super::{Agents, EndpointSettings, Tokens};

/// Returns the REST interface of a server, without access control.
///
/// The tokens are those that the router is [protected](super::protect) with: `POST /session` issues
/// one for its session. What the token of a request permits is checked here. `/openapi.json`
/// describes the routes; unknown ones are answered with 404 in JSON.
///
/// ```no_run
/// use acp_server_remote::{AccessControl, Hosts, EndpointSettings, Token, Tokens, protect, rest, router};
///
/// # fn example(server: acp_server::Server, token: Token) -> axum::Router {
/// let (settings, tokens) = (EndpointSettings::default(), Tokens::new(&token));
/// let routes = router(server.clone(), &settings).merge(rest(server, &settings, tokens.clone()));
/// protect(routes, AccessControl::new(Hosts::loopback(), tokens))
/// # }
/// ```
pub fn rest(agents: impl Into<Agents>, settings: &EndpointSettings, tokens: Tokens) -> Router {
    let state = Rest::new(agents.into(), settings.clone(), tokens);
    let dialects = settings.openoxide.then(openoxide::route);
    let mut document = openapi::base();
    let mount = |router, route: Route| route.mount(&state, router, &mut document);
    let router = routes::all().into_iter().chain(dialects);
    let router = router.fold(Router::new(), mount);
    router
        .with_state(state)
        .merge(openapi::route(document))
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown_route)
}

/// Returns method, path and right of each route.
pub fn rest_routes() -> Vec<(&'static str, &'static str, Right)> {
    let routes = routes::all().into_iter();
    let rows = routes.map(|route| (route.method(), route.path, route.right));
    rows.collect()
}

async fn unknown_route(request: Request) -> Failure {
    Failure::not_found("not_found").path(request.uri().path())
}

async fn wrong_method(request: Request) -> Failure {
    let message = format!(
        "the path does not take {}; see /openapi.json",
        request.method()
    );
    Failure::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed").message(message)
}
