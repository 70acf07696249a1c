//! The routes that say that the server runs, and that it can be used.

use std::time::Duration;

use acp_server::Server;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde::Serialize;
use tokio::time::timeout;
use utoipa::ToSchema;

use super::agents::Agents;
use super::failure::{ErrorBody, Failure};

/// The paths of health checks, which need no token.
pub(super) const HEALTH: [&str; 3] = ["/healthz", "/health", "/readyz"];

/// Time limit for a store to answer.
const STORE_LIMIT: Duration = Duration::from_secs(3);

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
        .route("/readyz", get(ready))
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

/// Says whether new work should come here: the stores answer, and the server is not about to end.
#[utoipa::path(get, path = "/readyz", operation_id = "readyz", tag = "server", security(()), responses(
    (status = 200, description = "It can be used", body = Health),
    (status = 503, description = "It is about to end, or a store does not answer; `message` says which", body = ErrorBody),
))]
pub(super) async fn ready(State(agents): State<Agents>) -> Response {
    for agent in agents.iter() {
        if let Err(reason) = is_ready(agent.server()).await {
            let failure = Failure::new(StatusCode::SERVICE_UNAVAILABLE, "not_ready");
            return failure.message(reason).into_response();
        }
    }
    health(State(agents)).await.into_response()
}

/// # Errors
///
/// Why the server cannot be used.
async fn is_ready(server: &Server) -> Result<(), String> {
    if server.is_ending() {
        return Err("the server is about to end".to_owned());
    }
    // No session has this id.
    let nobody = "readyz".into();
    match timeout(STORE_LIMIT, server.store().find(&nobody)).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(error)) => Err(format!("the store fails: {error}")),
        Err(_) => Err(format!(
            "the store has not answered for {} s",
            STORE_LIMIT.as_secs()
        )),
    }
}
