//! Numbers for a monitoring system, and the log of requests.

use std::sync::{Arc, Mutex};

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, ListenSettings, Token, Tokens, log_requests, protect,
    rest, router,
};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream};

use crate::raw::{Answer, Listener, PATIENCE};

struct Counted {
    listener: Listener,
    server: Server,
    tokens: Tokens,
    master: String,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Counted {
    async fn start() -> Self {
        let (server, settings) = (Server::new(Reference), EndpointSettings::default());
        let master = Token::random().unwrap();
        let tokens = Tokens::new(&master);
        let routes = router(server.clone(), &settings)
            .merge(rest(server.clone(), &settings, tokens.clone()))
            .merge(settings.metrics.route(server.clone()));
        #[cfg(feature = "rpc")]
        let routes = routes.merge(acp_server_remote::rpc(server.clone(), &settings));
        let control = AccessControl::new(Hosts::loopback(), tokens.clone());
        let routes = settings.metrics.count(protect(routes, control));
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let log = lines.clone();
        let routes = log_requests(routes, move |request| {
            let text = request.to_string();
            // Without the time.
            let line: Vec<_> = text.split(' ').take(3).collect();
            log.lock().unwrap().push(line.join(" "));
        });
        Self {
            listener: Listener::start(routes, ListenSettings::default()).await,
            server,
            tokens,
            master: master.secret().to_owned(),
            lines,
        }
    }

    async fn request(&self, method: &str, target: &str, token: &str) -> Answer {
        let bearer = format!("Authorization: Bearer {token}");
        self.listener.request(method, target, &[&bearer]).await
    }

    async fn scrape(&self) -> Vec<String> {
        let answer = self.request("GET", "/metrics", &self.master).await;
        assert_eq!(answer.status, 200);
        let content_type = answer.header("content-type").unwrap();
        assert!(content_type.starts_with("application/openmetrics-text"));
        answer.body.lines().map(str::to_owned).collect()
    }

    async fn websocket(&self, path: &str) -> WebSocketStream<MaybeTlsStream<TcpStream>> {
        let address = self.listener.address;
        let url = format!("ws://{address}{path}");
        let mut request = url.into_client_request().unwrap();
        let bearer = format!("Bearer {}", self.master).parse().unwrap();
        request.headers_mut().insert("authorization", bearer);
        let connected = timeout(PATIENCE, tokio_tungstenite::connect_async(request)).await;
        connected.unwrap().unwrap().0
    }

    /// Waits until a scrape has this line: some numbers change after an answer.
    async fn until(&self, line: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let lines = self.scrape().await;
            if lines.iter().any(|found| found == line) {
                return;
            }
            assert!(Instant::now() < deadline, "no {line:?} in {lines:#?}");
        }
    }
}

#[tokio::test]
async fn requests_are_counted_by_route_and_status_and_nothing_a_client_chooses_is_a_label() {
    let site = Counted::start().await;
    for (method, target, token) in [
        ("GET", "/session/secret-id", site.master.as_str()),
        ("GET", "/session/another-id", &site.master),
        ("GET", "/secret-path?secret-query", &site.master),
        ("GET", "/runs?since=7d", "wrong-secret-token"),
        ("BREW", "/runs", &site.master),
        ("POST", "/acp", &site.master),
    ] {
        site.request(method, target, token).await;
    }
    let lines = site.scrape().await;
    for line in [
        r#"acp_server_requests_total{method="GET",route="/session/{id}",status="4xx"} 2"#,
        r#"acp_server_requests_total{method="GET",route="other",status="4xx"} 1"#,
        r#"acp_server_requests_total{method="GET",route="/runs",status="4xx"} 1"#,
        r#"acp_server_requests_total{method="other",route="/runs",status="4xx"} 1"#,
        r#"acp_server_requests_total{method="POST",route="/acp",status="4xx"} 1"#,
    ] {
        assert!(
            lines.iter().any(|found| found == line),
            "{line} in {lines:#?}"
        );
    }
    let text = lines.join("\n");
    for secret in ["secret", "another-id", &site.master, "BREW"] {
        assert!(!text.contains(secret), "{secret}");
    }
    assert!(text.ends_with("# EOF"));
    let log = site.lines.lock().unwrap().clone();
    let expected = [
        "GET /session/secret-id 404",
        "GET /session/another-id 404",
        "GET /secret-path 404",
        "GET /runs 401",
        "BREW /runs 405",
        "POST /acp 415",
        "GET /metrics 200",
    ];
    assert_eq!(log, expected);
}

#[tokio::test]
async fn sessions_turns_streams_and_connections_are_counted() {
    let site = Counted::start().await;
    let session = site.server.create_session("/w").await.unwrap();
    for (said, reason) in [
        ("ping", "end_turn"),
        ("refuse", "refusal"),
        ("fail", "failed"),
    ] {
        drop(
            session
                .prompt(vec![said.into()])
                .unwrap()
                .stop_reason()
                .await,
        );
        site.until(&format!(
            "acp_server_turns_ended_total{{reason=\"{reason}\"}} 1"
        ))
        .await;
    }
    let slow = session.prompt(vec!["slow".into()]).unwrap();
    site.until("acp_server_turns_running 1").await;
    slow.cancel();
    site.until("acp_server_turns_ended_total{reason=\"cancelled\"} 1")
        .await;
    site.until("acp_server_turns_running 0").await;
    site.until("acp_server_turns_started_total 4").await;
    site.until("acp_server_sessions 1").await;

    let socket = site.websocket("/acp").await;
    site.until("acp_server_connections 1").await;
    drop(socket);
    site.until("acp_server_connections 0").await;

    let mut stream = site.listener.connect().await;
    let request = format!(
        "GET /session/{}/events HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\r\n",
        session.id(),
        site.master
    );
    tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes())
        .await
        .unwrap();
    site.until("acp_server_streams 1").await;
    drop(stream);
    site.until("acp_server_streams 0").await;
}

#[cfg(feature = "rpc")]
#[tokio::test]
async fn websockets_of_the_facade_are_counted() {
    let site = Counted::start().await;
    site.until("acp_server_rpc_connections 0").await;
    let socket = site.websocket("/rpc").await;
    site.until("acp_server_rpc_connections 1").await;
    drop(socket);
    site.until("acp_server_rpc_connections 0").await;
}

#[tokio::test]
async fn bytes_of_bodies_are_counted() {
    let site = Counted::start().await;
    let body = r#"{"working_dir":"/w"}"#;
    let request = format!(
        "POST /session HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Length: {}\r\n\r\n{body}",
        site.master,
        body.len()
    );
    let answer = site.listener.send(&request).await;
    assert_eq!(answer.status, 201);
    site.until(&format!("acp_server_received_bytes_total {}", body.len()))
        .await;
    let lines = site.scrape().await;
    let sent = lines
        .iter()
        .find_map(|line| line.strip_prefix("acp_server_sent_bytes_total "));
    assert!(sent.unwrap().parse::<usize>().unwrap() > answer.body.len());
}

#[tokio::test]
async fn a_session_token_does_not_open_the_numbers() {
    let site = Counted::start().await;
    let token = site.tokens.issue(&"s".into()).unwrap();
    assert_eq!(
        site.request("GET", "/metrics", token.secret()).await.status,
        403
    );
    assert_eq!(site.listener.get("/metrics", &[]).await.status, 401);
}

#[tokio::test]
async fn the_size_of_the_store_is_measured() {
    let site = Counted::start().await;
    let session = site.server.create_session("/w").await.unwrap();
    let prompt = session.prompt(vec!["stream 100".into()]).unwrap();
    prompt.stop_reason().await.unwrap();
    let usage = site.server.store().usage().await.unwrap();
    assert!(usage.used_bytes > 1_000 && usage.events > 100, "{usage:?}");
    site.until("acp_server_store_sessions 1").await;
    site.until(&format!("acp_server_store_events {}", usage.events))
        .await;
    site.until(&format!("acp_server_store_used_bytes {}", usage.used_bytes))
        .await;
    site.until("acp_server_store_disk_bytes 0").await;
}
