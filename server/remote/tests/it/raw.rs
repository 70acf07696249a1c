//! A router behind a real socket, and HTTP as text, for requests that no client library would send.

use std::net::SocketAddr;
use std::time::Duration;

use acp_server::Access;
use acp_server_remote::{AccessControl, ListenSettings, listen, protect, ticket_route};
use acp_server_remote::{Hosts, Tokens};
use axum::routing::any;
use axum::{Extension, Router};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub(crate) use crate::answer::Answer;

/// Longer than anything should take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A listener with its task.
pub(crate) struct Listener {
    pub(crate) address: SocketAddr,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

impl Listener {
    pub(crate) async fn start(router: Router, settings: ListenSettings) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(listener, router, settings, stop.clone()));
        Self {
            address,
            stop,
            task,
        }
    }

    /// Starts a protected router with `/who`, which answers what the request may do.
    pub(crate) async fn protected(control: AccessControl, tokens: Tokens) -> Self {
        let router = who().merge(ticket_route(tokens));
        Self::start(protect(router, control), ListenSettings::default()).await
    }

    pub(crate) async fn open(hosts: Hosts) -> Self {
        Self::protected(AccessControl::new(hosts, Tokens::open()), Tokens::open()).await
    }

    pub(crate) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    /// Sends a request as it is, and returns the answer.
    pub(crate) async fn send(&self, request: &str) -> Answer {
        exchange(self.connect().await, request).await
    }

    /// Sends a GET with these header lines.
    pub(crate) async fn get(&self, target: &str, headers: &[&str]) -> Answer {
        self.request("GET", target, headers).await
    }

    pub(crate) async fn request(&self, method: &str, target: &str, headers: &[&str]) -> Answer {
        let port = self.address.port();
        let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
        if !headers.iter().any(|line| line.starts_with("Host:")) {
            request += &format!("Host: localhost:{port}\r\n");
        }
        for line in headers {
            request += line;
            request += "\r\n";
        }
        self.send(&(request + "\r\n")).await
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

pub(crate) fn who() -> Router {
    let answer = |Extension(access): Extension<Access>| async move { format!("{access:?}") };
    let health = || async { "healthy" };
    Router::new()
        .route("/who", any(answer))
        .route("/healthz", any(health))
}

/// Sends a request on a stream and reads to its end.
pub(crate) async fn exchange(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    request: &str,
) -> Answer {
    stream.write_all(request.as_bytes()).await.unwrap();
    Answer::parse(&to_end(stream).await)
}

/// Reads what comes until the peer closes or resets the connection.
pub(crate) async fn to_end(mut stream: impl AsyncRead + Unpin) -> String {
    let mut text = Vec::new();
    let read = stream.read_to_end(&mut text);
    // A reset after the answer is an end, too.
    let _ = tokio::time::timeout(PATIENCE, read)
        .await
        .expect("the connection should end");
    String::from_utf8(text).unwrap()
}
