//! The OpenAPI document, made from the routes.

use std::sync::Arc;

use crate::{health, metrics};
use axum::Router;
use axum::http::header;
use axum::response::IntoResponse;
use axum::routing::get;
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::response::ResponseBuilder;
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{ContentBuilder, InfoBuilder, OpenApi, OpenApiBuilder, Ref};

/// The path of the document.
pub(super) const PATH: &str = "/openapi.json";

const SCHEME: &str = "token";

/// Routes of the server that [`rest`](super::super::rest()) does not mount.
#[derive(utoipa::OpenApi)]
#[openapi(paths(health::health, health::ready, metrics::metrics))]
struct Others;

/// Returns what the document says besides the routes.
pub(super) fn base() -> OpenApi {
    let info = InfoBuilder::new()
        .title("acp-server")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some(
            "Sessions of an agent over HTTP: the routes of Otter's code (`/session…`) and of \
             Otter's document (`/sessions…`), over the same operations.",
        ));
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    let components = utoipa::openapi::ComponentsBuilder::new().security_scheme(SCHEME, bearer);
    let others = <Others as utoipa::OpenApi>::openapi();
    OpenApiBuilder::new()
        .info(info.build())
        .paths(others.paths)
        .components(Some(components.build()))
        .security(Some([SecurityRequirement::new(
            SCHEME,
            Vec::<String>::new(),
        )]))
        .build()
}

/// Returns the route of the finished document.
pub(super) fn route(mut document: OpenApi) -> Router {
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            add_refusals(operation);
        }
    }
    let text: Arc<str> = match document.to_json() {
        Ok(text) => text.into(),
        // It is made of texts; the tests read it.
        Err(_) => "{}".into(),
    };
    let answer = move || {
        let text = text.clone();
        async move {
            let headers = [(header::CONTENT_TYPE, "application/json")];
            (headers, text.to_string()).into_response()
        }
    };
    Router::new().route(PATH, get(answer))
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    let all = [&mut item.get, &mut item.post, &mut item.delete];
    all.into_iter().filter_map(Option::as_mut)
}

/// Adds the answers that each route may give: those of access control, limits and failures.
fn add_refusals(operation: &mut Operation) {
    let responses = &mut operation.responses.responses;
    let is_open = operation.security.is_some();
    let refusals = [
        (
            "401",
            "`unauthorized`: the token is missing or not valid",
            !is_open,
        ),
        (
            "403",
            "`forbidden`: the token, the host or the origin does not permit this",
            !is_open,
        ),
        (
            "429",
            "`too_many_requests`: `Retry-After` says when to come back",
            !is_open,
        ),
        ("default", "Any other refusal", true),
    ];
    for (status, description, is_possible) in refusals {
        if is_possible && !responses.contains_key(status) {
            let error = ContentBuilder::new().schema(Some(Ref::from_schema_name("Error")));
            let response = ResponseBuilder::new()
                .description(description)
                .content("application/json", error.build());
            responses.insert(status.to_owned(), response.build().into());
        }
    }
}
