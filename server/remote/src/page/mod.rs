//! The web page: sessions and their conversation in a browser.
//!
//! One document without further files. It is a client of `/acp` like any other, with a ticket for its
//! token, and inserts the text of agents as text, never as HTML. The scripts share one scope; each may
//! use those before it in [`SCRIPT`], and in functions all of them.

use std::sync::LazyLock;

use axum::Router;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse};
use axum::routing::get;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest as _, Sha256};

/// The path of the page, which needs no token: it asks the user for one.
pub(super) const PAGE: &str = "/";

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("text.js"),
    include_str!("diff.js"),
    include_str!("inline.js"),
    include_str!("markdown.js"),
    include_str!("content.js"),
    include_str!("frames.js"),
    include_str!("conversation.js"),
    include_str!("link.js"),
    include_str!("questions.js"),
    include_str!("prompts.js"),
    include_str!("history.js"),
    include_str!("agents.js"),
    include_str!("sessions.js"),
    include_str!("settings.js"),
    include_str!("main.js"),
    "})();\n"
);

struct Page {
    document: String,
    policy: HeaderValue,
}

static ASSEMBLED: LazyLock<Page> = LazyLock::new(|| Page {
    document: DOCUMENT
        .replace("{style}", STYLE)
        .replace("{script}", SCRIPT),
    policy: policy(),
});

/// Returns a web page at `/` that shows sessions, and prompts. It uses `/acp` and `/ticket` of the same
/// server ([`router`](super::router), [`ticket_route`](super::ticket_route)). Where `/rpc` and
/// [`rest`](super::rest()) are mounted too, it shows ends of turns, decisions, cost and several agents.
pub fn page() -> Router {
    Router::new().route(PAGE, get(document))
}

async fn document() -> impl IntoResponse {
    let page = &*ASSEMBLED;
    let fixed = [
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    let policy = [(header::CONTENT_SECURITY_POLICY, page.policy.clone())];
    (fixed, policy, Html(page.document.as_str()))
}

/// Permits this style, this script, and connections to this server; nothing else.
fn policy() -> HeaderValue {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text));
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT),
    );
    HeaderValue::try_from(policy).unwrap_or(HeaderValue::from_static("default-src 'none'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_one_file() {
        let Page { document, policy } = &*ASSEMBLED;
        assert!(document.contains(STYLE) && document.contains(SCRIPT));
        for other in ["src=\"", "url(", "@import", "innerHTML", "eval("] {
            assert!(!document.contains(other), "{other}");
        }
        // What would end the elements early.
        assert_eq!(document.matches("</script").count(), 1);
        assert_eq!(document.matches("</style").count(), 1);
        assert!(policy.to_str().unwrap().contains("connect-src 'self'"));
    }
}
