//! A line for each request, without secrets: never a query, a header or a body.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::middleware::{self, Next};
use axum::response::Response;

/// The most characters of a path in a line.
const LONGEST_PATH: usize = 512;

/// A request that has been answered. Its text is `METHOD PATH STATUS MILLISECONDS`.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AnsweredRequest {
    /// The method.
    pub method: Method,
    /// The path without the query, of visible ASCII characters; the rest of a long one is left out.
    pub path: String,
    /// The status of the answer.
    pub status: StatusCode,
    /// The time until the head of the answer; streams take longer.
    pub duration: Duration,
}

impl fmt::Display for AnsweredRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = self.duration.as_secs_f64() * 1e3;
        let status = self.status.as_u16();
        write!(
            f,
            "{} {} {status} {milliseconds:.1} ms",
            self.method, self.path
        )
    }
}

type Sink = Arc<dyn Fn(AnsweredRequest) + Send + Sync>;

/// Calls `sink` with each request that a router answers. It must not block.
pub fn log_requests(
    router: Router,
    sink: impl Fn(AnsweredRequest) + Send + Sync + 'static,
) -> Router {
    let sink: Sink = Arc::new(sink);
    router.layer(middleware::from_fn_with_state(sink, log))
}

async fn log(State(sink): State<Sink>, request: Request, next: Next) -> Response {
    let method = request.method().clone();
    let path = visible(request.uri().path());
    let start = Instant::now();
    let response = next.run(request).await;
    sink(AnsweredRequest {
        method,
        path,
        status: response.status(),
        duration: start.elapsed(),
    });
    response
}

/// What a terminal shows must not be for clients to choose.
fn visible(path: &str) -> String {
    let visible = |char: char| if char.is_ascii_graphic() { char } else { '?' };
    path.chars().take(LONGEST_PATH).map(visible).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_of_visible_characters() {
        assert_eq!(visible("/a%0Ab\u{1b}[2J\u{e4}\n"), "/a%0Ab?[2J??");
        assert_eq!(visible(&"/".repeat(9_999)).len(), LONGEST_PATH);
        let line = AnsweredRequest {
            method: Method::GET,
            path: "/session/s".to_owned(),
            status: StatusCode::NOT_FOUND,
            duration: Duration::from_micros(1_500),
        };
        assert_eq!(line.to_string(), "GET /session/s 404 1.5 ms");
    }
}
