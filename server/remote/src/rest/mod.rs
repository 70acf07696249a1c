//! REST and server-sent events, for scripts, dashboards and other languages.
//!
//! Two sets of routes over the same operations, both in one OpenAPI document: those of Otter's code
//! (`/session…`) and those that Otter's document adds (`/sessions…`).

mod access;
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
mod query;
mod rows;
mod runs;
mod sessions;
mod share;
mod share_file;
mod short;
mod state;
mod stream;
mod summary;
mod transcript;
mod turns;
mod usage;
mod wanted;

use acp_server::Server;
use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use self::failure::Failure;
use self::state::Rest;
use super::{EndpointSettings, Tokens};

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
pub fn rest(server: Server, settings: &EndpointSettings, tokens: Tokens) -> Router {
    let state = Rest::new(server, settings.clone(), tokens);
    let sessions = OpenApiRouter::new()
        .routes(routes!(short::create_session, short::list_session_ids))
        .routes(routes!(short::get_session, short::delete_session))
        .routes(routes!(turns::send_message))
        .routes(routes!(turns::cancel_session))
        .routes(routes!(events::session_events))
        .routes(routes!(short::rotate_token))
        .routes(routes!(approve::approve_tool))
        .routes(routes!(sessions::create_run, sessions::list_sessions))
        .routes(routes!(
            sessions::get_whole_session,
            sessions::delete_whole_session
        ))
        .routes(routes!(turns::create_turn))
        .routes(routes!(turns::cancel_turn))
        .routes(routes!(turns::close_session))
        .routes(routes!(events::turn_events))
        .routes(routes!(transcript::transcript))
        .routes(routes!(share::share))
        .routes(routes!(commands::list_commands))
        .routes(routes!(commands::invoke_command))
        .routes(routes!(runs::list_runs))
        .routes(routes!(cost::cost_of_runs))
        .routes(routes!(agent::list_providers))
        .route_layer(from_fn_with_state(state.clone(), access::check_login));
    let (router, document) = OpenApiRouter::with_openapi(openapi::base())
        .merge(sessions)
        .routes(routes!(agent::health))
        .routes(routes!(agent::server_info))
        .routes(routes!(agent::list_tools))
        .split_for_parts();
    router
        .with_state(state)
        .merge(openapi::route(document))
        .method_not_allowed_fallback(wrong_method)
        .fallback(unknown_route)
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
