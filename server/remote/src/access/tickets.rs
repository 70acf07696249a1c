//! The route that issues tickets to browsers.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Extension, Json, Router};
use serde_json::json;

use super::identity::Identity;
use super::tokens::{IssueError, Tokens};
use crate::failure::Failure;

/// Returns the route `POST /ticket`, for a router that is [protected](super::protect) with the same
/// tokens.
///
/// It answers 201 `{"ticket":TICKET,"expires_in":60}`. The ticket has the rights of the token that
/// the request came with, for one request with `?ticket=TICKET`.
pub fn ticket_route(tokens: Tokens) -> Router {
    let issue = move |identity: Extension<Identity>| async move { answer(&tokens, identity.0) };
    Router::new().route("/ticket", post(issue))
}

fn answer(tokens: &Tokens, identity: Identity) -> Response {
    let no_store = (header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    match tokens.ticket_of(identity) {
        Ok(ticket) => {
            let expires_in = Tokens::TICKET_LIFETIME.as_secs();
            let body = json!({ "ticket": ticket.secret(), "expires_in": expires_in });
            (StatusCode::CREATED, [no_store], Json(body)).into_response()
        }
        Err(error) => {
            let kind = match error {
                IssueError::Full { .. } => "too_many_tickets",
                IssueError::Random(_) | IssueError::File(_) => "no_random_numbers",
            };
            let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, kind);
            let failure = failure.message(error.to_string()).retry_after(10);
            ([no_store], failure).into_response()
        }
    }
}
