//! A client of HTTP/1.1 that does as little by itself as possible.

use std::net::SocketAddr;

use acp_server::Server;
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, Token, Tokens, protect, rest, router,
};
use axum::Router;
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufRead, AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader,
};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};

/// A served agent, until the test ends.
#[derive(Clone)]
pub struct Host {
    pub address: SocketAddr,
    pub server: Server,
    /// The token of each request.
    pub token: Option<Token>,
    /// What is asked for.
    pub path: &'static str,
}

impl Host {
    pub async fn start(server: Server, settings: &EndpointSettings) -> Self {
        let router = all(&server, settings);
        Self::of(server, router).await
    }

    /// Serves with these tokens.
    pub async fn protected(server: Server, tokens: Tokens) -> Self {
        let router = all(&server, &EndpointSettings::default());
        Self::protecting(server, router, tokens).await
    }

    /// The same with the REST interface.
    pub async fn with_rest(server: Server, tokens: Tokens) -> Self {
        let settings = EndpointSettings::default();
        let rest = rest(server.clone(), &settings, tokens.clone());
        let router = all(&server, &settings).merge(rest);
        Self::protecting(server, router, tokens).await
    }

    /// Serves these routes with these tokens.
    pub async fn protecting(server: Server, router: Router, tokens: Tokens) -> Self {
        let control = AccessControl::new(Hosts::loopback(), tokens);
        Self::of(server, protect(router, control)).await
    }

    async fn of(server: Server, router: Router) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self {
            address,
            server,
            token: None,
            path: "/acp",
        }
    }

    /// Returns the same as somebody else uses it.
    pub fn with_token(&self, token: &Token) -> Self {
        Self {
            token: Some(token.clone()),
            ..self.clone()
        }
    }

    /// Returns the same for another path.
    pub fn at(&self, path: &'static str) -> Self {
        Self {
            path,
            ..self.clone()
        }
    }

    /// Sends a request with a JSON body.
    pub async fn post(&self, headers: &[(&str, &str)], body: &str) -> Response {
        let mut all = vec![("content-type", "application/json")];
        all.extend_from_slice(headers);
        self.request("POST", &all, body).await.finish().await
    }

    pub async fn request(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Open {
        let path = self.path;
        let mut request = format!("{method} {path} HTTP/1.1\r\nhost: {}\r\n", self.address);
        if let Some(token) = &self.token {
            request.push_str(&format!("authorization: Bearer {}\r\n", token.secret()));
        }
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.raw(&request).await
    }

    /// Sends these bytes and reads the head of the response, which may come before they are sent: a
    /// server need not read a body that it refuses.
    pub async fn raw(&self, request: &str) -> Open {
        let socket = TcpStream::connect(self.address).await.unwrap();
        let (reader, mut writer) = socket.into_split();
        let mut reader = BufReader::new(reader);
        let mut sent = std::pin::pin!(writer.write_all(request.as_bytes()));
        tokio::select! {
            biased;
            // Answered or closed.
            read = reader.fill_buf() => drop(read.unwrap()),
            _ = &mut sent => {}
        }
        let mut line = String::new();
        reader.read_line(&mut line).await.unwrap();
        let status = line.split(' ').nth(1).unwrap_or_default().parse();
        let mut headers = Vec::new();
        loop {
            line.clear();
            reader.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                break;
            };
            headers.push((name.to_ascii_lowercase(), value.to_owned()));
        }
        Open {
            status: status.unwrap_or_else(|_| panic!("no status in {line:?}")),
            headers,
            reader,
            _writer: writer,
            text: String::new(),
        }
    }
}

fn all(server: &Server, settings: &EndpointSettings) -> Router {
    let router = router(server.clone(), settings);
    #[cfg(feature = "rpc")]
    let router = router.merge(acp_server_remote::rpc(server.clone(), settings));
    router
}

/// A response whose body has not been read.
pub struct Open {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    reader: BufReader<OwnedReadHalf>,
    /// Open, or the client would seem to have gone.
    _writer: OwnedWriteHalf,
    /// Decoded, and not used yet.
    text: String,
}

/// A whole response.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: String,
    pub data: Value,
}

impl Open {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub async fn finish(mut self) -> Response {
        let length = self
            .header("content-length")
            .map(|length| length.parse().unwrap());
        let mut body = vec![0; length.unwrap_or(0)];
        self.reader.read_exact(&mut body).await.unwrap();
        Response {
            status: self.status,
            headers: self.headers,
            body: String::from_utf8(body).unwrap(),
        }
    }

    /// Reads the next event; `None` at the end of the stream.
    pub async fn event(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let event = event.to_owned();
                self.text = rest.to_owned();
                let member = |name: &str| {
                    let lines = event.lines();
                    let mut values = lines.filter_map(|line| line.strip_prefix(name));
                    values.next().map(str::to_owned)
                };
                match (member("id: "), member("data: ")) {
                    (Some(id), Some(data)) => {
                        let data = serde_json::from_str(&data).unwrap();
                        return Some(Event { id, data });
                    }
                    // A comment, or the time of a retry.
                    _ => continue,
                }
            }
            let chunk = chunk(&mut self.reader).await?;
            self.text.push_str(&chunk);
        }
    }
}

/// Reads a chunk of a body; `None` at its end.
pub async fn chunk(reader: &mut (impl AsyncBufRead + Unpin)) -> Option<String> {
    let mut line = String::new();
    reader.read_line(&mut line).await.ok()?;
    let length = usize::from_str_radix(line.trim_end(), 16).ok()?;
    let mut chunk = vec![0; length + 2];
    reader.read_exact(&mut chunk).await.ok()?;
    chunk.truncate(length);
    (length > 0).then(|| String::from_utf8(chunk).unwrap())
}

impl Response {
    pub fn header(&self, name: &str) -> Option<&str> {
        find(&self.headers, name)
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{self:?}"))
    }
}

fn find<'a>(headers: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let mut found = headers.iter().filter(|(key, _)| key == name);
    found.next().map(|(_, value)| value.as_str())
}

/// A connected client.
pub struct Client<'a> {
    pub host: &'a Host,
    pub id: String,
    next: std::cell::Cell<u64>,
}

impl<'a> Client<'a> {
    pub async fn connect(host: &'a Host) -> Self {
        let hello = json!({ "protocolVersion": 1, "clientCapabilities": {} });
        Self::connect_with(host, hello).await
    }

    /// Connects with these params of `initialize`, whose version the agent has.
    pub async fn connect_with(host: &'a Host, hello: Value) -> Self {
        let version = hello["protocolVersion"].clone();
        let body = request(0, "initialize", hello);
        let response = host.post(&[], &body).await;
        assert_eq!(response.status, 200, "{response:?}");
        assert_eq!(response.json()["result"]["protocolVersion"], version);
        let id = response.header("acp-connection-id").unwrap().to_owned();
        Self {
            host,
            id,
            next: 1.into(),
        }
    }

    /// Sends a request; its answer comes on a stream, with the id that is returned.
    pub async fn send(&self, method: &str, params: Value) -> u64 {
        let id = self.next.get();
        self.next.set(id + 1);
        let session = params["sessionId"].as_str().map(str::to_owned);
        self.send_raw(&request(id, method, params), session.as_deref())
            .await;
        id
    }

    pub async fn send_raw(&self, body: &str, session: Option<&str>) {
        let mut headers = vec![("acp-connection-id", self.id.as_str())];
        headers.extend(session.map(|session| ("acp-session-id", session)));
        let response = self.host.post(&headers, body).await;
        assert_eq!(
            (response.status, response.body.as_str()),
            (202, ""),
            "{body}"
        );
    }

    /// Opens the connection stream, or that of a session.
    pub async fn stream(&self, session: Option<&str>, cursor: Option<&str>) -> Open {
        let mut headers = vec![
            ("accept", "text/event-stream"),
            ("acp-connection-id", self.id.as_str()),
        ];
        headers.extend(session.map(|session| ("acp-session-id", session)));
        headers.extend(cursor.map(|cursor| ("last-event-id", cursor)));
        let open = self.host.request("GET", &headers, "").await;
        assert_eq!(open.status, 200);
        open
    }

    /// Opens a session, whose id comes on the connection stream.
    pub async fn new_session(&self, stream: &mut Open) -> String {
        let id = self
            .send("session/new", json!({ "cwd": "/", "mcpServers": [] }))
            .await;
        let answer = stream.event().await.unwrap().data;
        assert_eq!(answer["id"], id);
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    pub async fn prompt(&self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.send("session/prompt", params).await
    }
}

pub fn request(id: u64, method: &str, params: Value) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string()
}

/// Returns the text of an update's chunk.
pub fn said(event: &Event) -> &str {
    let update = &event.data["params"]["update"];
    update["content"]["text"].as_str().unwrap_or_default()
}
