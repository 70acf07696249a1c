//! What is behind the URL, and how checks reach it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{HeaderMap, HeaderValue};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::http::{Events, Request, Response, initialize, within};
use crate::harness::{Cx, Env, Outcome, Stop, inconclusive, skip};
use crate::target::within::runtime;
use crate::transport::{Endpoint, Socket};

/// How long one check may take in all, besides a turn and the answers it waits for.
const CHECK: Duration = Duration::from_secs(60);

/// The most connections whose end is left to the end of the check.
const TIDIED: usize = 64;

/// The server behind the URL.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) env: Arc<Env>,
    endpoint: Endpoint,
    /// The headers that name the connections of this check.
    opened: Mutex<Vec<HeaderMap>>,
}

/// Runs a check of the HTTP transport.
pub(crate) fn over_http(cx: &mut Cx, check: impl AsyncFnOnce(&Server) -> Outcome) -> Outcome {
    run(cx, async |server| {
        if server.is_websocket() {
            let response = server.send(&server.initialize()).await?;
            if !response.status.is_success() {
                return skip(format!(
                    "the server answers POST at this URL with {}: it has WebSocket alone",
                    response.status.as_u16()
                ));
            }
        }
        check(server).await
    })
}

/// Runs a check of the WebSocket transport.
pub(crate) fn over_websocket(cx: &mut Cx, check: impl AsyncFnOnce(&Server) -> Outcome) -> Outcome {
    run(cx, async |server| {
        if !server.is_websocket() {
            let (response, _) = server.upgrade(&server.upgrade_request()).await?;
            if response.status.as_u16() != 101 {
                return skip(format!(
                    "the server answers an upgrade at this URL with {}: it has no WebSocket",
                    response.status.as_u16()
                ));
            }
        }
        check(server).await
    })
}

fn run(cx: &mut Cx, check: impl AsyncFnOnce(&Server) -> Outcome) -> Outcome {
    let server = Server::of(cx.env())?;
    let runtime = runtime().map_err(|error| Stop::failed(error.to_string()))?;
    let limit = CHECK + server.env.turn_timeout + server.env.timeout;
    runtime.block_on(async {
        let outcome = within(limit, "the end of the check", check(&server)).await;
        server.tidy().await;
        outcome?
    })
}

impl Server {
    fn of(env: &Arc<Env>) -> Outcome<Self> {
        let Some(endpoint) = env.target.remote() else {
            return skip("the agent is not behind a URL");
        };
        Ok(Self {
            env: env.clone(),
            endpoint: endpoint.clone(),
            opened: Mutex::default(),
        })
    }

    fn is_websocket(&self) -> bool {
        self.endpoint.is_websocket()
    }

    /// The path and query of the URL.
    pub(crate) fn target(&self) -> &str {
        self.endpoint.path()
    }

    /// Whether requests carry a token.
    pub(crate) fn has_token(&self) -> bool {
        self.base().contains_key("authorization")
    }

    /// The headers of every request.
    pub(crate) fn base(&self) -> HeaderMap {
        self.endpoint.headers()
    }

    /// A POST of a message.
    pub(crate) fn post(&self, message: &Value) -> Request {
        Request::new(Method::POST, self.base(), message.to_string())
            .with("content-type", "application/json")
            .with("accept", "application/json")
    }

    /// A POST of `initialize`.
    pub(crate) fn initialize(&self) -> Request {
        self.post(&initialize())
    }

    /// A GET of a stream of events.
    pub(crate) fn get(&self) -> Request {
        Request::new(Method::GET, self.base(), Bytes::new()).with("accept", "text/event-stream")
    }

    /// A request with this method, without a body.
    pub(crate) fn request(&self, method: Method) -> Request {
        Request::new(method, self.base(), Bytes::new())
    }

    /// A GET that asks for a WebSocket.
    pub(crate) fn upgrade_request(&self) -> Request {
        Request::new(Method::GET, self.endpoint.upgrade_headers(), Bytes::new())
    }

    /// A connection of bytes.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub(crate) async fn socket(&self) -> Outcome<Box<dyn Socket>> {
        let socket = self.endpoint.connect(&["http/1.1"]).await;
        socket.map_err(|error| Stop::failed(error.to_string()))
    }

    /// Sends an upgrade. Yields the response and, at 101, the socket.
    ///
    /// # Errors
    /// When there is no response.
    pub(super) async fn upgrade(
        &self,
        request: &Request,
    ) -> Outcome<(Response, Option<TokioIo<Upgraded>>)> {
        let mut response = self.begin(request).await?;
        let switched = response.status().as_u16() == 101;
        let socket = match switched {
            true => {
                let upgrade = hyper::upgrade::on(&mut response);
                let socket = within(self.env.timeout, "the upgrade", upgrade).await?;
                Some(socket.map_err(|error| {
                    Stop::failed(format!("expected an upgrade, got an error: {error}"))
                })?)
            }
            false => None,
        };
        let limit = self.env.timeout;
        let response = Response::read(response, request.describe(), limit).await?;
        Ok((response, socket.map(TokioIo::new)))
    }

    /// A connection of HTTP/2, over TLS or without.
    ///
    /// # Errors
    /// When the server cannot be reached, or does not speak it.
    pub(crate) async fn http2(&self) -> Outcome<Http2<'_>> {
        let socket = self.endpoint.connect(&["h2"]).await;
        let socket = socket.map_err(|error| Stop::failed(error.to_string()))?;
        let executor = hyper_util::rt::TokioExecutor::new();
        let handshake = hyper::client::conn::http2::handshake(executor, TokioIo::new(socket));
        let handshake = within(self.env.timeout, "the settings of HTTP/2", handshake).await?;
        let (sender, connection) = handshake
            .map_err(|error| Stop::failed(format!("expected HTTP/2, got an error: {error}")))?;
        tokio::spawn(connection);
        Ok(Http2 {
            server: self,
            sender,
        })
    }

    /// Writes bytes of a request, and reads what comes until the first line of a response is
    /// complete. `None`: the server ended the connection without one. Pieces are written until then,
    /// or until there are no more.
    ///
    /// # Errors
    /// When neither comes in time.
    pub(crate) async fn raw(
        &self,
        pieces: impl IntoIterator<Item = Bytes>,
        what: &str,
    ) -> Outcome<Option<u16>> {
        let (mut reader, mut writer) = tokio::io::split(self.socket().await?);
        let writing = async {
            for piece in pieces {
                // The server has answered, or it does not want any more.
                if writer.write_all(&piece).await.is_err() {
                    break;
                }
            }
            // It stays open, for the response.
            std::future::pending::<()>().await;
        };
        let reading = async {
            let mut line = Vec::new();
            while !line.contains(&b'\n') && line.len() < LINE {
                match reader.read_buf(&mut line).await {
                    Ok(1..) => {}
                    Ok(0) | Err(_) => break,
                }
            }
            let line = String::from_utf8_lossy(&line).into_owned();
            line.split(' ')
                .nth(1)
                .and_then(|status| status.parse().ok())
        };
        let status = async {
            tokio::select! {
                status = reading => status,
                () = writing => None,
            }
        };
        within(self.env.turn_timeout, what, status).await
    }

    /// The bytes of a request's head, without its last empty line.
    pub(crate) fn head(&self, request: &Request) -> Vec<u8> {
        let mut head = format!("{} {} HTTP/1.1\r\n", request.method, self.target()).into_bytes();
        for (name, value) in &request.headers {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
        head
    }

    /// A new client is served.
    ///
    /// # Errors
    /// When it is not.
    pub(crate) async fn still_serves(&self) -> Outcome {
        let response = self.send(&self.initialize()).await?;
        match response.status.is_success() {
            true => Ok(()),
            false => Err(response.wrong(format!(
                "a new client is not served afterwards: initialize is answered {}",
                response.status.as_u16()
            ))),
        }
    }

    /// Sends a request on a socket of its own, and waits for the head of the response.
    ///
    /// # Errors
    /// When there is none.
    pub(super) async fn begin(
        &self,
        request: &Request,
    ) -> Outcome<hyper::Response<hyper::body::Incoming>> {
        let socket = TokioIo::new(self.socket().await?);
        let none = |error: hyper::Error| {
            let reason = format!("expected a response, got none: {error}");
            Stop::Fail(Box::new(crate::harness::Failure {
                reason,
                sent: Some(request.describe()),
                came: None,
            }))
        };
        let (mut sender, connection) = hyper::client::conn::http1::handshake(socket)
            .await
            .map_err(none)?;
        tokio::spawn(connection.with_upgrades());
        let what = format!("the response to {}", request.method);
        let response = sender.send_request(request.build(self.target())?);
        let response = within(self.env.turn_timeout, &what, response).await?;
        response.map_err(none)
    }

    /// Sends a request, and reads the response.
    ///
    /// # Errors
    /// When there is none, or its body does not end.
    pub(crate) async fn send(&self, request: &Request) -> Outcome<Response> {
        let (response, _) = self.open(request).await?;
        if let Some(id) = response.headers.get("acp-connection-id") {
            self.note(id, response.cookies());
        }
        Ok(response)
    }

    /// Sends a request for a stream of events.
    ///
    /// # Errors
    /// When there is no response.
    pub(super) async fn open(&self, request: &Request) -> Outcome<(Response, Option<Events>)> {
        let response = self.begin(request).await?;
        self.response(request, response).await
    }

    /// Reads a response, or the head of a stream.
    async fn response(
        &self,
        request: &Request,
        response: hyper::Response<hyper::body::Incoming>,
    ) -> Outcome<(Response, Option<Events>)> {
        if !is_events(&response) {
            let limit = self.env.timeout;
            let response = Response::read(response, request.describe(), limit).await?;
            return Ok((response, None));
        }
        let (head, body) = response.into_parts();
        let response = Response {
            status: head.status,
            headers: head.headers,
            body: Bytes::new(),
            sent: request.describe(),
        };
        Ok((response, Some(Events::new(body))))
    }

    /// The check needs a session.
    ///
    /// # Errors
    /// Blocked when none can be opened.
    pub(crate) fn needs_session(&self) -> Outcome {
        match &self.env.conditions.no_session {
            Some(reason) => Err(Stop::Blocked(reason.clone())),
            None => Ok(()),
        }
    }

    /// The method of the profile that logs in, unless it is known to fail.
    pub(super) fn auth_method(&self) -> Option<&str> {
        let method = self.env.profile.auth_method.as_deref();
        method.filter(|_| self.env.conditions.no_session.is_none())
    }

    /// The text of the first of these words that the profile has.
    ///
    /// # Errors
    /// Blocked when no turn is possible, inconclusive when it has none of them.
    pub(crate) fn prompt(&self, words: &[&str]) -> Outcome<String> {
        if let Some(reason) = &self.env.conditions.no_turn {
            return Err(Stop::Blocked(reason.clone()));
        }
        let texts = words.iter();
        let mut texts = texts.filter_map(|word| self.env.profile.prompt(word, &self.env.folder));
        match texts.next() {
            Some(text) => Ok(text),
            None => inconclusive(format!(
                "the profile has no prompt `{}`",
                words.join("` or `")
            )),
        }
    }

    /// Remembers a connection, to end it with the check.
    fn note(&self, id: &HeaderValue, cookies: Option<String>) {
        let mut headers = HeaderMap::new();
        headers.insert("acp-connection-id", id.clone());
        if let Some(cookies) = cookies.and_then(|text| HeaderValue::from_str(&text).ok()) {
            headers.insert("cookie", cookies);
        }
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() < TIDIED {
            opened.push(headers);
        }
    }

    /// Ends the connections of the check.
    async fn tidy(&self) {
        let opened = {
            let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::take(&mut *opened)
        };
        for headers in opened {
            let mut request = self.request(Method::DELETE);
            request.headers.extend(headers);
            // One that has ended already is not found.
            let _ = tokio::time::timeout(self.env.timeout, self.begin(&request)).await;
        }
    }
}

/// The longest first line of a response, in bytes.
const LINE: usize = 64 << 10;

/// A connection of HTTP/2.
#[derive(Debug)]
pub(crate) struct Http2<'a> {
    server: &'a Server,
    sender: hyper::client::conn::http2::SendRequest<http_body_util::Full<Bytes>>,
}

impl Http2<'_> {
    /// Sends a request, and waits for the head of the response.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) async fn send(&mut self, request: &Request) -> Outcome<(Response, Option<Events>)> {
        let server = self.server;
        // The authority is part of the target there.
        let request = request.clone().without("host");
        let sent = self
            .sender
            .send_request(request.build(&server.endpoint.http_url())?);
        let what = format!("the response to {} over HTTP/2", request.method);
        let response = within(server.env.turn_timeout, &what, sent).await?;
        let response = response.map_err(|error| {
            Stop::failed(format!(
                "expected a response over HTTP/2, got none: {error}"
            ))
        })?;
        server.response(&request, response).await
    }
}

fn is_events(response: &hyper::Response<hyper::body::Incoming>) -> bool {
    let kind = response.headers().get("content-type");
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    response.status().is_success() && kind.to_ascii_lowercase().starts_with("text/event-stream")
}
