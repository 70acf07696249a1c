//! `/acp` over WebSocket with clients that read slowly or not at all, in virtual time.

use std::time::Duration;

use acp_reference_agent::Reference;
use acp_server::Server;
use acp_server_remote::{EndpointSettings, router};
use axum::Router;
use futures_util::{SinkExt as _, StreamExt as _};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};
use tokio::io::DuplexStream;
use tokio::time::{Instant, sleep};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::Message;

use crate::http::request;

/// Bytes that lie between server and client, as in the buffers of two systems.
const IN_FLIGHT: usize = 256 << 10;

/// Opens a WebSocket over a pipe; `None` when there are too many.
async fn open(router: &Router) -> Option<WebSocketStream<DuplexStream>> {
    let (near, far) = tokio::io::duplex(IN_FLIGHT);
    let router = router.clone();
    tokio::spawn(async move {
        let http = Builder::new(TokioExecutor::new());
        let service = TowerToHyperService::new(router);
        let served = http.serve_connection_with_upgrades(TokioIo::new(far), service);
        let _ = served.await;
    });
    let opened = tokio_tungstenite::client_async("ws://localhost/acp", near).await;
    let (mut socket, _) = opened.ok()?;
    let params = json!({ "protocolVersion": 1, "clientCapabilities": {} });
    let initialize = request(0, "initialize", params);
    socket.send(Message::text(initialize)).await.unwrap();
    socket.next().await.unwrap().unwrap();
    Some(socket)
}

/// Returns the routes of a server for one client, and a session with `bytes` of output.
async fn session_of(bytes: usize) -> (Router, String) {
    let server = Server::new(Reference);
    let session = server.create_session("/").await.unwrap();
    // Each chunk has sixty bytes of text.
    let prompt = format!("stream {}", bytes / 60);
    let turn = session.prompt(vec![prompt.as_str().into()]).unwrap();
    turn.stop_reason().await.unwrap();
    let mut settings = EndpointSettings::default();
    settings.connections = 1;
    let id = session.id().to_string();
    (router(server, &settings), id)
}

fn load(session: &str) -> Message {
    let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    Message::text(request(1, "session/load", params))
}

#[tokio::test(start_paused = true)]
async fn a_backlog_may_take_longer_than_pings_if_the_client_reads_it() {
    for (bytes, bytes_per_second) in [(512 << 10, 4 << 10), (2 << 20, 40 << 10)] {
        let (router, session) = session_of(bytes).await;
        let mut socket = open(&router).await.unwrap();
        let begun = Instant::now();
        socket.send(load(&session)).await.unwrap();
        let (mut text, mut pings) = (0, 0);
        loop {
            let message = match socket.next().await {
                Some(Ok(message)) => message,
                end => panic!("cut after {:?} and {text} bytes: {end:?}", begun.elapsed()),
            };
            let bytes = message.len() as u32;
            sleep(Duration::from_secs(1) * bytes / bytes_per_second).await;
            match message {
                Message::Text(message) => {
                    text += message.len();
                    let message: Value = serde_json::from_str(&message).unwrap();
                    if message["id"] == 1 {
                        break;
                    }
                }
                Message::Ping(_) => pings += 1,
                other => panic!("{other:?}"),
            }
        }
        assert!(begun.elapsed() > Duration::from_secs(46), "{text}");
        assert!(pings > 0, "no ping within {:?}", begun.elapsed());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_nothing_of_its_backlog_is_cut() {
    let (router, session) = session_of(2 << 20).await;
    let mut socket = open(&router).await.unwrap();
    socket.send(load(&session)).await.unwrap();
    let begun = Instant::now();
    while open(&router).await.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(600));
        sleep(Duration::from_secs(5)).await;
    }
}
