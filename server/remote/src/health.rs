//! The routes that say that the server runs.

use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use utoipa::ToSchema;

use super::agents::Agents;

/// The paths of health checks, which need no token.
pub(super) const HEALTH: [&str; 2] = ["/healthz", "/health"];

/// A server that runs.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Health {
    /// `ok`.
    status: String,
    /// Of the agent, or of the default one.
    version: String,
    /// The number of agents.
    agents: usize,
    /// ISO 8601 in UTC.
    started_at: String,
}

impl Health {
    pub(super) fn of(agents: &Agents) -> Self {
        let server = agents.default_agent().server();
        Self {
            status: "ok".to_owned(),
            agents: agents.iter().len(),
            version: server.info().implementation.version.clone(),
            started_at: server.started_at().to_owned(),
        }
    }
}

pub(super) fn route(agents: Agents) -> Router {
    Router::new()
        .route("/healthz", get(health))
        .with_state(agents)
}

/// Says that the server runs.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", security(()), responses(
    (status = 200, description = "It runs", body = Health),
))]
pub(super) async fn health(State(agents): State<Agents>) -> impl IntoResponse {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (no_store, Json(Health::of(&agents)))
}
