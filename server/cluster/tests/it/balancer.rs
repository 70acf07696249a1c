//! A load balancer that gives each request to another node.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use acp_server_remote::{ListenSettings, listen};
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::shared::Node;

/// Ends with the test.
pub(crate) struct Balancer {
    /// Where clients reach it: `HOST:PORT`.
    pub(crate) address: String,
    serving: JoinHandle<()>,
    requests: Arc<Nodes>,
}

struct Nodes {
    http: reqwest::Client,
    addresses: Vec<String>,
    next: AtomicUsize,
}

impl Balancer {
    pub(crate) async fn start(nodes: &[&Node]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let requests = Arc::new(Nodes {
            http: acp_client::internal::http_client(|client| client).unwrap(),
            addresses: nodes.iter().map(|node| node.address().to_owned()).collect(),
            next: AtomicUsize::default(),
        });
        let router = Router::new().fallback(pass).with_state(requests.clone());
        let stop = CancellationToken::new();
        let serving = tokio::spawn(listen(listener, router, ListenSettings::default(), stop));
        Self {
            address,
            serving,
            requests,
        }
    }

    /// Returns how many requests it was sent.
    pub(crate) fn requests(&self) -> usize {
        self.requests.next.load(Ordering::Relaxed)
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Passes a request on to the next node that takes it.
async fn pass(State(nodes): State<Arc<Nodes>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let first = nodes.next.fetch_add(1, Ordering::Relaxed);
    let mut headers = parts.headers;
    headers.remove("host");
    for next in first..first + nodes.addresses.len() {
        let address = &nodes.addresses[next % nodes.addresses.len()];
        let request = nodes.http.request(
            parts.method.clone(),
            format!("http://{address}{}", parts.uri),
        );
        let request = request.headers(headers.clone()).body(body.clone());
        // A node that is gone takes no connection.
        if let Ok(answer) = request.send().await {
            let (status, headers) = (answer.status(), answer.headers().clone());
            let mut response = Response::new(Body::from_stream(answer.bytes_stream()));
            *response.status_mut() = status;
            *response.headers_mut() = headers;
            response.headers_mut().remove("transfer-encoding");
            return response;
        }
    }
    StatusCode::BAD_GATEWAY.into_response()
}
