//! The REST interface, over real sockets.

mod access;
mod agents;
mod approve;
mod commands;
mod events;
mod openapi;
mod openoxide;
mod refusals;
mod routes;
mod runs;
mod steer;
mod transcript;
mod undo;
mod wait;

use acp_reference_agent::Reference;
use acp_server::{Limits, Server};
use acp_server_remote::{
    AccessControl, Agents, EndpointSettings, Hosts, ListenSettings, Token, Tokens, protect, rest,
    router,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::http::chunk;
use crate::raw::{Answer, Listener, PATIENCE, exchange};

/// A protected REST interface.
struct Site {
    listener: Listener,
    server: Server,
    tokens: Tokens,
    master: String,
    reader: String,
}

/// A session with its token.
struct Created {
    id: String,
    token: String,
}

impl Site {
    async fn start() -> Self {
        Self::with(Server::new(Reference), &EndpointSettings::default()).await
    }

    async fn with(server: Server, settings: &EndpointSettings) -> Self {
        Self::of(server.clone(), server.into(), settings).await
    }

    /// Starts the interface of several agents, of which `server` is one.
    async fn of(server: Server, agents: Agents, settings: &EndpointSettings) -> Self {
        let (master, reader) = (Token::random().unwrap(), Token::random().unwrap());
        let tokens = Tokens::new(&master).with_read_only(&reader);
        let routes = router(agents.clone(), settings)
            .merge(rest(agents.clone(), settings, tokens.clone()))
            .merge(settings.metrics.route(agents));
        let routes = protect(
            routes,
            AccessControl::new(Hosts::loopback(), tokens.clone()),
        );
        Self {
            listener: Listener::start(routes, ListenSettings::default()).await,
            server,
            tokens,
            master: master.secret().to_owned(),
            reader: reader.secret().to_owned(),
        }
    }

    /// Sends a request with this token, these header lines and this body.
    async fn request(
        &self,
        method: &str,
        path: &str,
        token: Option<&str>,
        headers: &[&str],
        body: &str,
    ) -> Answer {
        let head = self.head(method, path, token, headers);
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let mut answer = exchange(self.listener.connect().await, &request).await;
        if answer.header("transfer-encoding") == Some("chunked") {
            answer.body = dechunk(&answer.body);
        }
        answer
    }

    fn head(&self, method: &str, path: &str, token: Option<&str>, headers: &[&str]) -> String {
        let mut head =
            format!("{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n");
        if let Some(token) = token {
            head += &format!("Authorization: Bearer {token}\r\n");
        }
        for line in headers {
            head += &format!("{line}\r\n");
        }
        head
    }

    async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, Some(&self.master), &[], "").await
    }

    async fn delete(&self, path: &str) -> Answer {
        self.request("DELETE", path, Some(&self.master), &[], "")
            .await
    }

    async fn post(&self, path: &str, body: impl ToString) -> Answer {
        let body = body.to_string();
        self.request("POST", path, Some(&self.master), &[], &body)
            .await
    }

    async fn create(&self) -> Created {
        let answer = self.post("/session", json!({ "working_dir": "/w" })).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        let body = answer.json();
        Created {
            id: body["session_id"].as_str().unwrap().to_owned(),
            token: body["session_token"].as_str().unwrap().to_owned(),
        }
    }

    /// Sends a message and waits for the end of its turn. Returns the frames of all turns.
    async fn talk(&self, id: &str, text: &str) -> Vec<Frame> {
        let body = json!({ "text": text });
        let answer = self.post(&format!("/session/{id}/message"), body).await;
        assert_eq!(answer.status, 202, "{answer:?}");
        self.frames(id).await
    }

    /// Returns the frames up to the end of the turns.
    async fn frames(&self, id: &str) -> Vec<Frame> {
        self.stream(&format!("/sessions/{id}/events"), None)
            .await
            .rest()
            .await
    }

    async fn stream(&self, path: &str, cursor: Option<&str>) -> Stream {
        self.stream_as(path, &self.master, cursor).await
    }

    async fn stream_as(&self, path: &str, token: &str, cursor: Option<&str>) -> Stream {
        let cursor = cursor.map(|cursor| format!("Last-Event-ID: {cursor}"));
        let lines: Vec<_> = cursor.iter().map(String::as_str).collect();
        let request = self.head("GET", path, Some(token), &lines) + "\r\n";
        Stream::open(self.listener.connect().await, &request).await
    }
}

/// A stream of events.
struct Stream {
    status: u16,
    /// In lower case.
    head: String,
    reader: BufReader<TcpStream>,
    text: String,
}

#[derive(Clone, Debug, PartialEq)]
struct Frame {
    id: Option<u64>,
    event: String,
    data: Value,
}

impl Stream {
    async fn open(mut socket: TcpStream, request: &str) -> Self {
        socket.write_all(request.as_bytes()).await.unwrap();
        let mut reader = BufReader::new(socket);
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = timeout(PATIENCE, reader.read_line(&mut head)).await;
            assert_ne!(read.unwrap().unwrap(), 0, "{head}");
        }
        Self {
            status: head.split(' ').nth(1).unwrap().parse().unwrap(),
            head: head.to_ascii_lowercase(),
            reader,
            text: String::new(),
        }
    }

    /// Reads the next piece between empty lines, comments and all; `None` at the end.
    async fn piece(&mut self) -> Option<String> {
        loop {
            if let Some((piece, rest)) = self.text.split_once("\n\n") {
                let piece = piece.to_owned();
                self.text = rest.to_owned();
                return Some(piece);
            }
            let chunk = timeout(PATIENCE, chunk(&mut self.reader))
                .await
                .expect("an event or the end");
            self.text += &chunk?;
        }
    }

    /// Reads the next event; `None` at the end.
    async fn next(&mut self) -> Option<Frame> {
        loop {
            let piece = self.piece().await?;
            let field = |name: &str| {
                let mut lines = piece.lines().filter_map(|line| line.strip_prefix(name));
                lines.next()
            };
            if let (Some(event), Some(data)) = (field("event: "), field("data: ")) {
                return Some(Frame {
                    id: field("id: ").map(|id| id.parse().unwrap()),
                    event: event.to_owned(),
                    data: serde_json::from_str(data).unwrap(),
                });
            }
        }
    }

    /// Reads up to an event of this name.
    async fn until(&mut self, event: &str) -> Frame {
        loop {
            let frame = self.next().await.unwrap_or_else(|| panic!("no {event}"));
            if frame.event == event {
                return frame;
            }
        }
    }

    /// Reads to the end.
    async fn rest(mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        while let Some(frame) = self.next().await {
            frames.push(frame);
        }
        frames
    }
}

fn ids(frames: &[Frame]) -> Vec<u64> {
    frames.iter().filter_map(|frame| frame.id).collect()
}

fn names(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(|frame| frame.event.as_str()).collect()
}

fn dechunk(body: &str) -> String {
    let (mut rest, mut whole) = (body.as_bytes(), Vec::new());
    while let Some(at) = rest.windows(2).position(|pair| pair == b"\r\n") {
        let length = std::str::from_utf8(&rest[..at]).unwrap();
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.extend_from_slice(&rest[at + 2..at + 2 + length]);
        rest = &rest[at + 2 + length + 2..];
        if length == 0 {
            break;
        }
    }
    String::from_utf8(whole).unwrap()
}

/// Checks a refusal's status and name, and that it says nothing else than it should.
#[track_caller]
fn refused(answer: &Answer, status: u16, error: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    assert_eq!(answer.json()["error"], error, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(
        answer.header("retry-after").is_some(),
        status == 503,
        "{answer:?}"
    );
}
