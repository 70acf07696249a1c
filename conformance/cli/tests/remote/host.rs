//! A served reference agent.

use std::time::Duration;

use acp_client::Reconnect;
use acp_client::remote::RemoteAgent;
use acp_reference_agent::Reference;
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, ListenSettings, Tls, Tokens, listen, protect, router,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// A guard against a hanging test; nothing waits this long when all is well.
pub const GUARD: Duration = Duration::from_secs(60);

/// Fails a test that would hang.
pub async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(GUARD, future).await;
    result.expect("it takes too long")
}

/// The transports, by the scheme of their URL.
pub const SCHEMES: [&str; 2] = ["http", "ws"];

/// A server on a free port, until it is dropped.
pub struct Host {
    pub port: u16,
    stop: CancellationToken,
}

impl Host {
    pub async fn start() -> Self {
        Self::with(Tokens::open(), None).await
    }

    pub async fn with(tokens: Tokens, tls: Option<Tls>) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        let mut settings = EndpointSettings::default();
        settings.stop = stop.clone();
        // The suite waits for the first ping, and a machine that stands for two intervals loses its connections.
        settings.keep_alive = Duration::from_secs(3);
        let control = AccessControl::new(Hosts::loopback(), tokens);
        let router = protect(router(Reference::server().build(), &settings), control);
        let mut listening = ListenSettings::default();
        listening.tls = tls;
        tokio::spawn(listen(listener, router, listening, stop.clone()));
        Self { port, stop }
    }

    pub fn url(&self, scheme: &str) -> String {
        format!("{scheme}://localhost:{}/acp", self.port)
    }

    /// An agent whose lost streams are opened again at once.
    pub fn agent(&self, scheme: &str) -> RemoteAgent {
        let soon = Duration::from_millis(5);
        let reconnect = Reconnect::default().with_waits(soon, soon);
        let agent = RemoteAgent::new(self.url(scheme)).unwrap();
        agent.reconnect(reconnect)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}
