//! A server of HTTP/1.1 whose every response is written by the test.

use std::time::Duration;

use acp_client::Reconnect;
use acp_client::remote::{RawReceiver, RawSender, Received, RemoteAgent, connect_raw};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// A timeout against hanging tests; passing tests never reach it.
const GUARD: Duration = Duration::from_secs(30);

/// Fails a test that would hang.
pub async fn within<T>(future: impl IntoFuture<Output = T>) -> T {
    let result = tokio::time::timeout(GUARD, future).await;
    result.expect("it takes too long")
}

pub struct Server {
    pub port: u16,
    requests: mpsc::Receiver<Request>,
    /// Requests that were received while others were expected.
    early: Vec<Request>,
    /// The result of `initialize`.
    pub initialized: Value,
}

/// A request that waits for its response.
pub struct Request {
    /// Method and target.
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: String,
    socket: TcpStream,
}

impl Server {
    pub async fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = mpsc::channel(100);
        tokio::spawn(async move {
            loop {
                let (socket, _) = listener.accept().await.unwrap();
                let sender = sender.clone();
                tokio::spawn(async move {
                    if let Some(request) = read(socket).await {
                        let _ = sender.send(request).await;
                    }
                });
            }
        });
        Self {
            port,
            requests,
            early: Vec::new(),
            initialized: json!({"protocolVersion": 1}),
        }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/acp", self.port)
    }

    /// An agent whose streams are opened again at once.
    pub fn agent(&self) -> RemoteAgent {
        let (soon, limit) = (Duration::from_millis(1), Duration::from_secs(20));
        let reconnect = Reconnect::default()
            .with_waits(soon, soon)
            .with_limit(limit);
        let agent = RemoteAgent::new(self.url()).unwrap();
        agent.reconnect(reconnect)
    }

    /// Returns the next request with this prefix; others are queued.
    pub async fn next(&mut self, what: &str) -> Request {
        let matches = |request: &Request| request.describe().starts_with(what);
        if let Some(index) = self.early.iter().position(matches) {
            return self.early.remove(index);
        }
        loop {
            let request = within(self.requests.recv()).await.unwrap();
            if matches(&request) {
                return request;
            }
            self.early.push(request);
        }
    }

    /// Returns a request that was received and not expected, if there is one.
    pub fn received(&mut self) -> Option<Request> {
        self.early.pop().or_else(|| self.requests.try_recv().ok())
    }

    /// Returns whether all received requests were expected. Waits 100 ms for further ones.
    pub async fn is_idle(&mut self) -> bool {
        // The absence of a request is no event that could be awaited.
        tokio::time::sleep(Duration::from_millis(100)).await;
        self.early.is_empty() && self.requests.is_empty()
    }

    /// Answers `initialize`, and returns the stream of the connection.
    pub async fn connect(&mut self, agent: RemoteAgent) -> (RawSender, RawReceiver, Stream) {
        let (sender, mut receiver) = connect_raw(&agent).await.unwrap();
        send(&sender, &initialize()).await;
        let request = self.next("POST initialize").await;
        let answer = result(0, self.initialized.clone());
        let headers = "Acp-Connection-Id: c1\r\nSet-Cookie: node=7; Path=/\r\n";
        request
            .respond("200 OK", headers, &answer.to_string())
            .await;
        assert_eq!(message(&mut receiver).await, answer);
        let stream = self.next("GET connection").await.stream().await;
        (sender, receiver, stream)
    }
}

pub fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}})
}

pub fn request(id: u64, method: &str, session: Option<&str>) -> Value {
    let params = session.map_or_else(|| json!({}), |session| json!({ "sessionId": session }));
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub fn result(id: u64, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub fn update(session: &str, text: &str) -> Value {
    let params = json!({"sessionId": session, "update": text});
    json!({"jsonrpc": "2.0", "method": "session/update", "params": params})
}

pub async fn send(sender: &RawSender, message: &Value) {
    within(sender.send(Bytes::from(message.to_string())))
        .await
        .unwrap();
}

/// The next message of the agent.
pub async fn message(receiver: &mut RawReceiver) -> Value {
    match within(receiver.receive()).await.unwrap() {
        Some(Received::Message(message)) => serde_json::from_slice(&message).unwrap(),
        other => panic!("expected a message, got {other:?}"),
    }
}

async fn read(socket: TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(socket);
    let mut line = String::new();
    reader.read_line(&mut line).await.ok()?;
    let mut headers = Vec::new();
    loop {
        let mut header = String::new();
        reader.read_line(&mut header).await.ok()?;
        let Some((name, value)) = header.trim_end().split_once(": ") else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.map_or(0, |(_, length)| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).await.ok()?;
    (!line.is_empty()).then(|| Request {
        line: line.trim_end().trim_end_matches(" HTTP/1.1").to_owned(),
        headers,
        body: String::from_utf8(body).unwrap(),
        socket: reader.into_inner(),
    })
}

impl Request {
    /// Returns the method and subject: `POST session/new`, `GET connection`, `GET s1`.
    pub fn describe(&self) -> String {
        let verb = self.line.split(' ').next().unwrap_or_default();
        let about = match verb {
            "POST" => match self.json()["method"].as_str() {
                Some(method) => method.to_owned(),
                None => "answer".to_owned(),
            },
            _ => self
                .header("acp-session-id")
                .unwrap_or("connection")
                .to_owned(),
        };
        format!("{verb} {about}")
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_default()
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        found.next().map(|(_, value)| value.as_str())
    }

    /// Answers, and closes the connection.
    pub async fn respond(mut self, status: &str, headers: &str, body: &str) {
        let kind = match body.starts_with('{') {
            true => "application/json",
            false => "text/plain",
        };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
            body.len()
        );
        // The client may have closed the connection.
        let _ = self.socket.write_all(response.as_bytes()).await;
    }

    /// Answers with bytes and these headers alone, and closes the connection.
    pub async fn respond_bytes(mut self, headers: &str, body: &[u8]) {
        let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{headers}\r\n");
        // The client may have closed the connection.
        let _ = self.socket.write_all(head.as_bytes()).await;
        let _ = self.socket.write_all(body).await;
    }

    pub async fn accept(self) {
        self.respond("202 Accepted", "", "").await;
    }

    /// Answers with a stream of events, which ends with the connection.
    pub async fn stream(mut self) -> Stream {
        let head =
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
        self.socket.write_all(head.as_bytes()).await.unwrap();
        Stream(self.socket)
    }

    /// Ends the connection without a response.
    pub fn cut(self) {
        drop(self);
    }
}

pub struct Stream(TcpStream);

impl Stream {
    pub async fn write(&mut self, text: impl AsRef<[u8]>) {
        self.0.write_all(text.as_ref()).await.unwrap();
        self.0.flush().await.unwrap();
    }

    /// Waits until the client has closed it.
    pub async fn closed(&mut self) {
        let mut rest = Vec::new();
        // The client sends nothing here.
        self.0.read_to_end(&mut rest).await.unwrap();
    }

    pub async fn event(&mut self, message: &Value) {
        self.write(format!("data: {message}\n\n")).await;
    }

    pub async fn event_with(&mut self, id: &str, message: &Value) {
        self.write(format!("id: {id}\ndata: {message}\n\n")).await;
    }
}
