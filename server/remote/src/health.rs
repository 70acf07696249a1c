//! The routes that say that the server runs.

use acp_server::Server;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use utoipa::ToSchema;

/// The paths of health checks, which need no token.
pub(super) const HEALTH: [&str; 2] = ["/healthz", "/health"];

/// A server that runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: String,
    /// Of the agent.
    version: String,
    /// ISO 8601 in UTC.
    started_at: String,
}

impl Health {
    pub(super) fn of(server: &Server) -> Self {
        Self {
            status: "ok".to_owned(),
            version: server.info().implementation.version.clone(),
            started_at: server.started_at().to_owned(),
        }
    }
}

pub(super) fn route(server: Server) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .with_state(server)
}

/// Says that the server runs.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", security(()), responses(
    (status = 200, description = "It runs", body = Health),
))]
pub(super) async fn health(State(server): State<Server>) -> impl IntoResponse {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (no_store, Json(Health::of(&server)))
}
