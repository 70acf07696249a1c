//! Servers behind URLs.

use std::sync::{Arc, Mutex};

use acp_sdk::v1::{HttpHeader, McpServer, McpServerHttp};
use acp_server_mcp::{CallError, ServerState, Servers};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::task::AbortOnDropHandle;

use crate::support::{call, connect, options, ready, state, text};

/// A server of one tool, `repeat`, that requires a header. Dropping it ends it.
struct Server {
    url: String,
    requests: Arc<Mutex<Vec<String>>>,
    _task: AbortOnDropHandle<()>,
}

impl Server {
    async fn start() -> Self {
        Self::on(TcpListener::bind("127.0.0.1:0").await.unwrap())
    }

    fn on(listener: TcpListener) -> Self {
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let requests = Arc::<Mutex<Vec<String>>>::default();
        let seen = requests.clone();
        let serve = async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                // One request a connection.
                tokio::spawn(answer(stream, seen.clone()));
            }
        };
        Self {
            url,
            requests,
            _task: AbortOnDropHandle::new(tokio::spawn(serve)),
        }
    }

    fn named(&self, headers: &[(&str, &str)]) -> McpServer {
        let headers = headers
            .iter()
            .map(|(name, value)| HttpHeader::new(*name, *value));
        McpServerHttp::new("a", &*self.url, headers.collect()).into()
    }

    async fn connect(&self, headers: &[(&str, &str)]) -> Servers {
        connect(vec![self.named(headers)], &options()).await
    }
}

async fn answer(stream: TcpStream, seen: Arc<Mutex<Vec<String>>>) -> Option<()> {
    let mut stream = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    while stream.read_line(&mut head).await.ok()? > 2 {}
    for line in head.to_ascii_lowercase().lines() {
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = head.split(' ').next()?;
    let path = head.split(' ').nth(1)?;
    let what = message["method"].as_str().unwrap_or(method);
    seen.lock().unwrap().push(what.to_owned());
    let result = match what {
        _ if path == "/moved" => return send(stream, "307 x\r\nLocation: /mcp", "").await,
        _ if path.starts_with("/away/") => {
            let address = path.trim_start_matches("/away/");
            let away = format!("307 x\r\nLocation: http://{address}/mcp");
            return send(stream, &away, "").await;
        }
        _ if !head.contains("secret") => return send(stream, "403 Forbidden", "").await,
        "initialize" => json!({"protocolVersion": message["params"]["protocolVersion"],
            "capabilities": {"tools": {}}, "serverInfo": {"name": "scripted", "version": "1"}}),
        "tools/list" => json!({"tools": [{"name": "repeat", "inputSchema": {"type": "object"}}]}),
        "tools/call" => {
            let number = message["params"]["arguments"]["number"].as_u64()?;
            let text = "x".repeat(usize::try_from(number).ok()?);
            json!({"content": [{"type": "text", "text": text}]})
        }
        "DELETE" => return send(stream, "200 OK", "").await,
        "GET" => return send(stream, "405 Method Not Allowed", "").await,
        _ => return send(stream, "202 Accepted", "").await,
    };
    let body = json!({"jsonrpc": "2.0", "id": message["id"], "result": result}).to_string();
    let head = "200 OK\r\nContent-Type: application/json\r\nMcp-Session-Id: one";
    send(stream, head, &body).await
}

async fn send(mut stream: BufReader<TcpStream>, head: &str, body: &str) -> Option<()> {
    let length = body.len();
    let head = format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body.as_bytes()).await.ok()?;
    stream.shutdown().await.ok()
}

#[tokio::test]
async fn a_server_is_called_with_the_headers_of_the_client_and_its_session_ends() {
    let server = Server::start().await;
    let servers = server.connect(&[("X-Key", "secret")]).await;
    assert_eq!(text(&servers, "repeat", 3).await, "xxx");
    servers.close().await;
    let requests = server.requests.lock().unwrap().clone();
    assert_eq!(requests[0], "initialize");
    assert!(requests.contains(&"tools/call".to_owned()));
    assert_eq!(requests.last().map(String::as_str), Some("DELETE"));
}

#[tokio::test]
async fn a_server_that_refuses_the_client_fails() {
    let server = Server::start().await;
    let cases = [
        (vec![], "sent an unexpected response: HTTP 403 Forbidden"),
        (vec![("X Key", "secret")], "has an invalid header `X Key`"),
        (vec![("X-Key", "sec\nret")], "has an invalid header `X-Key`"),
    ];
    for (headers, expected) in cases {
        let servers = server.connect(&headers).await;
        let ServerState::Failed { reason } = servers.states()[0].state.clone() else {
            panic!("{servers:?}");
        };
        assert_eq!(reason, expected);
        servers.close().await;
    }
}

#[tokio::test]
async fn a_redirect_is_followed_on_the_same_origin_only() {
    let mut server = Server::start().await;
    let url = server.url.clone();
    server.url = url.replace("/mcp", "/moved");
    let servers = server.connect(&[("X-Key", "secret")]).await;
    assert_eq!(text(&servers, "repeat", 3).await, "xxx");
    servers.close().await;
    let other = Server::start().await;
    let address = other.url["http://".len()..].trim_end_matches("/mcp");
    server.url = url.replace("/mcp", &format!("/away/{address}"));
    let servers = server.connect(&[("X-Key", "secret")]).await;
    let state = &servers.states()[0].state;
    assert!(!matches!(state, ServerState::Ready { .. }), "{state:?}");
    assert!(other.requests.lock().unwrap().is_empty());
    servers.close().await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_is_tried_again() {
    let server = Server::start().await;
    let servers = server.connect(&[("X-Key", "secret")]).await;
    let address = server.url["http://".len()..]
        .trim_end_matches("/mcp")
        .to_owned();
    drop(server);
    // The listener is closed when the task has ended.
    while TcpStream::connect(&*address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let error = call(&servers, "repeat", "").await.unwrap_err();
    let CallError::Ended { reason, .. } = &error else {
        panic!("{error:?}");
    };
    assert!(reason.starts_with("cannot be reached: "), "{reason}");
    state(&servers, |state| {
        matches!(state, ServerState::Restarting { attempt: 3.., .. })
    })
    .await;
    let _server = Server::on(TcpListener::bind(&*address).await.unwrap());
    ready(&servers).await;
    assert_eq!(text(&servers, "repeat", 2).await, "xx");
    servers.close().await;
}

#[tokio::test]
async fn a_response_above_the_limit_fails_the_call_only() {
    let server = Server::start().await;
    let mut options = options();
    options.max_message_bytes = 10_000;
    let servers = connect(vec![server.named(&[("X-Key", "secret")])], &options).await;
    let call = servers.call(
        "a__repeat",
        crate::support::arguments("", 20_000),
        std::future::pending(),
    );
    let error = call.await.unwrap_err();
    assert!(matches!(error, CallError::Failed { .. }), "{error:?}");
    assert!(error.to_string().contains("10000 bytes"), "{error}");
    assert_eq!(text(&servers, "repeat", 2).await, "xx");
    servers.close().await;
}
