//! The route that says that the server runs.

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

/// The path of the health check, which needs no token.
pub(super) const HEALTH: &str = "/healthz";

pub(super) fn route() -> Router {
    Router::new().route(HEALTH, get(health))
}

async fn health() -> impl IntoResponse {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (no_store, Json(json!({ "status": "ok" })))
}
