//! The server of the reference agent, with a fault in front of it.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use acp_reference_agent::Reference;
use acp_server_remote::{
    AccessControl, EndpointSettings, Hosts, ListenSettings, Tokens, listen, protect, router,
};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt as _;

use super::frame::Frame;
use super::websocket;

/// The token of every server here.
pub const TOKEN: &str = "the-right-token-of-this-server";

/// What a server does wrong.
#[derive(Clone, Copy)]
pub struct Fault {
    /// Changes a request before the server has it.
    pub request: fn(&mut Asked),
    /// Changes a response that is no stream, or the head of a stream.
    pub response: fn(&Asked, &mut Answer),
    /// Changes an event. Yields what is written, and where.
    pub event: fn(&Event<'_>) -> Vec<Out>,
    /// Streams stay open when the server ends them.
    pub keeps_streams: bool,
    /// Changes a frame of a WebSocket of the client.
    pub to_server: fn(Frame) -> Vec<Act>,
    /// Changes a frame of a WebSocket of the server.
    pub to_client: fn(Frame) -> Vec<Act>,
    /// What the listener accepts.
    pub header_bytes: usize,
    /// Reads bodies and frames of any size.
    pub reads_all: bool,
}

/// What is done with a frame.
pub enum Act {
    Pass(Frame),
    /// To where it came from.
    Back(Frame),
    End,
}

impl Fault {
    /// A sound server.
    pub const NONE: Self = Self {
        request: |_| {},
        response: |_, _| {},
        event: |event| vec![Out::Here(event.text.to_owned())],
        keeps_streams: false,
        to_server: |frame| vec![Act::Pass(frame)],
        to_client: |frame| vec![Act::Pass(frame)],
        header_bytes: 64 << 10,
        reads_all: false,
    };

    pub const fn to_server(to_server: fn(Frame) -> Vec<Act>) -> Self {
        Self {
            to_server,
            ..Self::NONE
        }
    }

    pub const fn to_client(to_client: fn(Frame) -> Vec<Act>) -> Self {
        Self {
            to_client,
            ..Self::NONE
        }
    }

    pub const fn request(request: fn(&mut Asked)) -> Self {
        Self {
            request,
            ..Self::NONE
        }
    }

    pub const fn response(response: fn(&Asked, &mut Answer)) -> Self {
        Self {
            response,
            ..Self::NONE
        }
    }

    pub const fn event(event: fn(&Event<'_>) -> Vec<Out>) -> Self {
        Self {
            event,
            ..Self::NONE
        }
    }
}

/// A request.
pub struct Asked {
    pub method: Method,
    pub version: Version,
    pub headers: HeaderMap,
    pub body: Bytes,
    /// The body, if it is JSON.
    pub message: Value,
    pub shared: Arc<Shared>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    pub fn set(&mut self, name: &'static str, value: &str) {
        let value = HeaderValue::from_str(value).unwrap();
        self.headers.insert(HeaderName::from_static(name), value);
    }

    pub fn connection(&self) -> Option<&str> {
        self.header("acp-connection-id")
    }

    pub fn session(&self) -> Option<&str> {
        self.header("acp-session-id")
    }

    pub fn is(&self, method: &str) -> bool {
        self.method.as_str() == method
    }

    pub fn calls(&self, method: &str) -> bool {
        self.message["method"] == method
    }

    pub fn is_upgrade(&self) -> bool {
        self.headers.contains_key("upgrade")
    }
}

/// A response that is no stream, or the head of a stream.
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    /// What replaces the body.
    pub body: Option<String>,
}

impl Answer {
    /// Replaces a status by another.
    pub fn turn(&mut self, from: u16, to: u16) {
        if self.status == from {
            self.status = to;
        }
    }
}

/// An event or comment of a stream.
pub struct Event<'a> {
    /// It as it was written.
    pub text: &'a str,
    /// The message, if there is one.
    pub value: Value,
    /// How many messages came before on this stream.
    pub count: usize,
    /// The request for the stream.
    pub asked: &'a Asked,
    /// What was held back on this stream.
    pub held: &'a Mutex<Vec<String>>,
}

impl Event<'_> {
    pub fn is_answer(&self) -> bool {
        self.value.get("result").is_some() || self.value.get("error").is_some()
    }

    /// The method that it is an answer to.
    pub fn answers(&self) -> Option<String> {
        let asked = self.asked.shared.asked.lock().unwrap();
        let key = (
            self.asked.connection()?.to_owned(),
            self.value["id"].to_string(),
        );
        asked.get(&key).filter(|_| self.is_answer()).cloned()
    }

    /// What a sound server does.
    pub fn pass(&self) -> Vec<Out> {
        vec![Out::Here(self.text.to_owned())]
    }
}

/// What is done with an event.
pub enum Out {
    Here(String),
    /// On all streams of this connection with this session; here if there is none.
    To(Option<String>, String),
    /// On all other streams of sessions of this connection.
    ToOthers(String),
    /// The same; here if there is none.
    Instead(String),
    End,
}

/// The streams of a connection, by connection.
type Streams = HashMap<String, Vec<(Option<String>, mpsc::Sender<String>)>>;

/// What all requests share.
#[derive(Default)]
pub struct Shared {
    pub streams: Mutex<Streams>,
    /// The methods of requests, by connection and id.
    asked: Mutex<HashMap<(String, String), String>>,
    /// Sessions that were opened, or asked for, by a connection.
    pub known: Mutex<HashSet<(String, String)>>,
    /// Connections that a fault has ended.
    pub dead: Mutex<HashSet<String>>,
    pub open: Mutex<HashSet<String>>,
}

pub struct MutantServer {
    pub url: String,
    stop: CancellationToken,
}

impl Drop for MutantServer {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl MutantServer {
    pub async fn start(fault: Fault) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let stop = CancellationToken::new();
        let server = Reference::server().build();
        let sound = |keep_alive| {
            let mut settings = EndpointSettings::default();
            settings.stop = stop.clone();
            settings.keep_alive = keep_alive;
            let tokens = Tokens::new(&TOKEN.parse().unwrap());
            let control = AccessControl::new(Hosts::loopback(), tokens);
            protect(router(server.clone(), &settings), control)
        };
        // The first comment of a stream is waited for. A WebSocket instead ends where pings are not
        // answered in time, and checks on a busy machine read nothing for a while.
        let sockets = sound(Duration::from_secs(60));
        let sound = sound(Duration::from_millis(200));
        let shared = Arc::new(Shared::default());
        // WebSockets pass through a socket of their own.
        let behind = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let socket = behind.local_addr().unwrap();
        let settings = ListenSettings::default();
        tokio::spawn(listen(behind, sockets, settings, stop.clone()));
        let broken = Router::new().fallback(move |request: Request| {
            let (sound, shared) = (sound.clone(), shared.clone());
            async move {
                match request.headers().contains_key("upgrade") {
                    true => websocket::serve(socket, shared, fault, request).await,
                    false => serve(sound, shared, fault, request).await,
                }
            }
        });
        let mut settings = ListenSettings::default();
        settings.header_bytes = fault.header_bytes;
        tokio::spawn(listen(listener, broken, settings, stop.clone()));
        let url = format!("http://127.0.0.1:{port}/acp");
        Self { url, stop }
    }
}

async fn serve(sound: Router, shared: Arc<Shared>, fault: Fault, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let limit = if fault.reads_all {
        usize::MAX
    } else {
        acp_sdk::limits::MAX_MESSAGE_BYTES
    };
    let Ok(body) = to_bytes(body, limit).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let mut asked = Asked {
        method: parts.method.clone(),
        version: parts.version,
        headers: parts.headers.clone(),
        message: serde_json::from_slice(&body).unwrap_or_default(),
        body,
        shared,
    };
    note(&asked);
    (fault.request)(&mut asked);
    parts.headers = asked.headers.clone();
    parts.headers.remove("content-length");
    let request = Request::from_parts(parts, Body::from(asked.body.clone()));
    let response = sound
        .oneshot(request)
        .await
        .unwrap_or_else(|never: Infallible| match never {});
    let (mut head, body) = response.into_parts();
    let mut answer = Answer {
        status: head.status.as_u16(),
        headers: head.headers,
        body: None,
    };
    if asked.calls("initialize")
        && let Some(id) = answer.headers.get("acp-connection-id")
    {
        let id = id.to_str().unwrap().to_owned();
        asked.shared.open.lock().unwrap().insert(id);
    }
    (fault.response)(&asked, &mut answer);
    head.status = StatusCode::from_u16(answer.status).unwrap();
    head.headers = answer.headers;
    let kind = head.headers.get("content-type");
    let is_stream = kind.is_some_and(|kind| kind.as_bytes() == b"text/event-stream");
    let body = match answer.body {
        Some(text) => {
            head.headers.remove("content-length");
            Body::from(text)
        }
        None if is_stream && head.status.is_success() => stream(asked, fault, body),
        // A stream has no end.
        None if is_stream => Body::empty(),
        None => body,
    };
    Response::from_parts(head, body)
}

/// Notes what faults have to know of a request.
fn note(asked: &Asked) {
    let Some(connection) = asked.connection().map(str::to_owned) else {
        return;
    };
    if let (Some(method), Some(id)) = (asked.message["method"].as_str(), asked.message.get("id")) {
        let key = (connection.clone(), id.to_string());
        asked
            .shared
            .asked
            .lock()
            .unwrap()
            .insert(key, method.to_owned());
    }
    if let Some(session) = asked.message["params"]["sessionId"].as_str() {
        let key = (connection, session.to_owned());
        asked.shared.known.lock().unwrap().insert(key);
    }
}

/// The body of a stream, event by event.
fn stream(asked: Asked, fault: Fault, body: Body) -> Body {
    let (sender, mut receiver) = mpsc::channel::<String>(1024);
    let connection = asked.connection().unwrap_or_default().to_owned();
    let session = asked.session().map(str::to_owned);
    let mut streams = asked.shared.streams.lock().unwrap();
    let of_connection = streams.entry(connection).or_default();
    of_connection.push((session, sender.clone()));
    drop(streams);
    tokio::spawn(async move {
        let reading = pump(&asked, fault, body, &sender);
        tokio::select! {
            () = reading => {}
            () = sender.closed() => {}
        }
        if fault.keeps_streams {
            sender.closed().await;
        }
        let mut streams = asked.shared.streams.lock().unwrap();
        for of_connection in streams.values_mut() {
            of_connection.retain(|(_, other)| !other.same_channel(&sender));
        }
    });
    let pieces = futures_util::stream::poll_fn(move |cx| receiver.poll_recv(cx));
    Body::from_stream(pieces.map(Ok::<_, Infallible>))
}

async fn pump(asked: &Asked, fault: Fault, body: Body, here: &mpsc::Sender<String>) {
    let mut body = body.into_data_stream();
    let (mut text, mut count) = (String::new(), 0);
    let held = Mutex::default();
    while let Some(Ok(bytes)) = body.next().await {
        // The server writes whole events.
        text.push_str(std::str::from_utf8(&bytes).unwrap());
        while let Some(end) = text.find("\n\n") {
            let rest = text.split_off(end + 2);
            let event = std::mem::replace(&mut text, rest);
            let mut data = event.lines().filter_map(|line| line.strip_prefix("data:"));
            let value = data.next().and_then(|data| serde_json::from_str(data).ok());
            let value: Value = value.unwrap_or_default();
            if let Some(session) = value["result"]["sessionId"].as_str() {
                let key = (asked.connection().unwrap().to_owned(), session.to_owned());
                asked.shared.known.lock().unwrap().insert(key);
            }
            let event = Event {
                text: &event,
                count,
                asked,
                held: &held,
                value,
            };
            count += usize::from(!event.value.is_null());
            for out in (fault.event)(&event) {
                let is_moved = matches!(out, Out::To(..) | Out::Instead(_));
                let (targets, text) = match out {
                    Out::Here(text) => (vec![here.clone()], text),
                    Out::To(session, text) => (others(asked, |other| *other == session), text),
                    Out::ToOthers(text) | Out::Instead(text) => {
                        let own = asked.session().map(str::to_owned);
                        let is_other = |other: &Option<String>| other.is_some() && *other != own;
                        (others(asked, is_other), text)
                    }
                    Out::End => return,
                };
                let nowhere = (is_moved && targets.is_empty()).then(|| here.clone());
                for target in targets.into_iter().chain(nowhere) {
                    // Its reader may be gone.
                    let _ = target.send(text.clone()).await;
                }
            }
        }
    }
}

/// Streams of the same connection.
fn others(asked: &Asked, fits: impl Fn(&Option<String>) -> bool) -> Vec<mpsc::Sender<String>> {
    let streams = asked.shared.streams.lock().unwrap();
    let of_connection = streams.get(asked.connection().unwrap_or_default());
    let of_connection = of_connection.into_iter().flatten();
    let fitting = of_connection.filter(|(session, _)| fits(session));
    fitting.map(|(_, sender)| sender.clone()).collect()
}
