//! An MCP server over HTTP, which keeps the requests that it was sent.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use acp_sdk::ErrorCode;
use serde_json::{Value, json};

use super::unavailable;
use crate::harness::Outcome;

/// How long a connection may be silent.
const TIMEOUT: Duration = Duration::from_secs(5);

/// The largest head and body, in bytes.
const MAX_HEAD: u64 = 64 << 10;
const MAX_BODY: usize = 1 << 20;

/// Connections at once, and requests that are kept.
const CONNECTIONS: usize = 16;
const REQUESTS: usize = 1000;

/// The path of its address.
const PATH: &str = "/mcp";

/// The header that requests must have, and its value.
const HEADER: (&str, &str) = ("X-ACP-Conformance", "as it was given");

/// An MCP server over HTTP. It stops with this value.
#[derive(Debug)]
pub(crate) struct HttpServer {
    address: SocketAddr,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    has_ended: AtomicBool,
    open: AtomicUsize,
    received: Mutex<Vec<Received>>,
}

/// A request to its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Received {
    /// The method of the message; that of HTTP, if there is none.
    pub(crate) method: String,
    /// Whether it has the header that was given.
    pub(crate) has_header: bool,
}

impl HttpServer {
    /// Listens on a port of this machine.
    ///
    /// # Errors
    /// Inconclusive when that is impossible.
    pub(crate) fn new() -> Outcome<Self> {
        unavailable(Self::listen())
    }

    fn listen() -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared::default());
        let serving = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("mcp-http".to_owned())
            .spawn(move || accept(&listener, &serving))?;
        Ok(Self { address, shared })
    }

    /// Returns the server as an element of `mcpServers`.
    pub(crate) fn value(&self) -> Value {
        let (name, value) = HEADER;
        json!({
            "type": "http",
            "name": "over-http",
            "url": format!("http://{}{PATH}", self.address),
            "headers": [{"name": name, "value": value}],
        })
    }

    /// Returns the requests so far.
    pub(crate) fn received(&self) -> Vec<Received> {
        let received = self.shared.received.lock();
        received.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        self.shared.has_ended.store(true, Ordering::Release);
        // Wakes the thread that accepts connections.
        let _ = TcpStream::connect_timeout(&self.address, TIMEOUT);
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.has_ended.load(Ordering::Acquire) {
            return;
        }
        let Ok(stream) = stream else { continue };
        if shared.open.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS {
            shared.open.fetch_sub(1, Ordering::AcqRel);
            continue;
        }
        let serving = Arc::clone(shared);
        let thread = std::thread::Builder::new().spawn(move || {
            // A client that breaks the connection off is no concern of the suite.
            let _ = serve(stream, &serving);
            serving.open.fetch_sub(1, Ordering::AcqRel);
        });
        if thread.is_err() {
            shared.open.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

/// Answers one request; the connection ends with it.
fn serve(mut stream: TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    let mut input = BufReader::new(stream.try_clone()?);
    let (mut verb, mut is_ours, mut length, mut has_header) = (None, false, 0, false);
    let mut head = (&mut input).take(MAX_HEAD);
    loop {
        let mut line = String::new();
        if head.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end();
        if verb.is_none() {
            let mut words = line.split(' ');
            verb = words.next().map(str::to_owned);
            // A client may look elsewhere for what the server knows of logins.
            is_ours = words.next() == Some(PATH);
        } else if line.is_empty() {
            break;
        } else if let Some((name, value)) = line.split_once(':') {
            let (name, value) = (name.trim(), value.trim());
            if name.eq_ignore_ascii_case("content-length") {
                length = value.parse().unwrap_or_default();
            }
            has_header |= name.eq_ignore_ascii_case(HEADER.0) && value == HEADER.1;
        }
    }
    let mut body = vec![0; MAX_BODY.min(length)];
    input.read_exact(&mut body)?;
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str);
    if let Some(method) = method.or(verb.as_deref()).filter(|_| is_ours) {
        let received = shared.received.lock();
        let mut received = received.unwrap_or_else(PoisonError::into_inner);
        if received.len() < REQUESTS {
            received.push(Received {
                method: method.to_owned(),
                has_header,
            });
        }
    }
    let (status, answer) = match (verb.as_deref(), method) {
        _ if !is_ours => ("404 Not Found", None),
        (Some("POST"), Some(method)) => answered(&message, method),
        (Some("POST"), None) => ("202 Accepted", None),
        (Some("DELETE"), _) => ("200 OK", None),
        _ => ("405 Method Not Allowed", None),
    };
    let body = answer.map(|answer| answer.to_string()).unwrap_or_default();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
         Connection: close\r\n\r\n{body}",
        body.len()
    )
}

fn answered(message: &Value, method: &str) -> (&'static str, Option<Value>) {
    let Some(id) = message.get("id") else {
        return ("202 Accepted", None);
    };
    let result = match method {
        "initialize" => json!({
            "protocolVersion": message.pointer("/params/protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "acp-conformance", "version": "1"},
        }),
        "tools/list" => json!({"tools": []}),
        "ping" => json!({}),
        _ => {
            let error = json!({"code": ErrorCode::METHOD_NOT_FOUND, "message": "no such method"});
            return (
                "200 OK",
                Some(json!({"jsonrpc": "2.0", "id": id, "error": error})),
            );
        }
    };
    (
        "200 OK",
        Some(json!({"jsonrpc": "2.0", "id": id, "result": result})),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_answered_and_kept() {
        let server = HttpServer::new().unwrap();
        let send = |line: &str, headers: &str, body: &str| {
            let mut stream = TcpStream::connect(server.address).unwrap();
            write!(
                stream,
                "{line} HTTP/1.1\r\nHost: x\r\n{headers}Content-Length: {}\r\n\r\n{body}",
                body.len()
            )
            .unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            answer
        };
        let post =
            |headers: &str, message: &Value| send("POST /mcp", headers, &message.to_string());
        let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {}});
        let answer = post("x-acp-conformance: as it was given\r\n", &initialize);
        assert!(answer.contains(r#""serverInfo""#), "{answer}");
        let answer = post("", &json!({"jsonrpc": "2.0", "method": "notifications/x"}));
        assert!(answer.starts_with("HTTP/1.1 202"), "{answer}");
        let answer = send("GET /mcp", "", "");
        assert!(answer.starts_with("HTTP/1.1 405"), "{answer}");
        let answer = send("GET /.well-known/oauth-protected-resource", "", "");
        assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
        let received = |method: &str, has_header| Received {
            method: method.to_owned(),
            has_header,
        };
        assert_eq!(
            server.received(),
            [
                received("initialize", true),
                received("notifications/x", false),
                received("GET", false),
            ]
        );
    }
}
