//! The route that says that the server runs.

use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;

/// The paths of health checks, which need no token.
pub(super) const HEALTH: [&str; 2] = ["/healthz", "/health"];

pub(super) fn route() -> Router {
    Router::new().route("/healthz", get(health))
}

/// Says that the server runs.
#[utoipa::path(get, path = "/healthz", operation_id = "healthz", tag = "server", security(()),
    responses((status = 200, description = "It runs", body = Object, example = json!({ "status": "ok" }))))]
pub(super) async fn health() -> impl IntoResponse {
    let no_store = [(header::CACHE_CONTROL, "no-store")];
    (no_store, Json(json!({ "status": "ok" })))
}
