//! Requests, and the responses to them.

use std::collections::VecDeque;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::harness::{Caps, Failure, Outcome, Stop, fail};
use crate::transport::{EventParser, Item};
use crate::wire::{Version, shorten};

/// The most bytes of a body that is read as a whole.
const BODY_BYTES: usize = acp_sdk::limits::MAX_MESSAGE_BYTES;

/// How much of a message stands in a report.
const SHOWN: usize = 600;

/// A request that is not sent yet.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(super) method: Method,
    pub(super) headers: HeaderMap,
    pub(super) body: Bytes,
}

impl Request {
    pub(super) fn new(method: Method, headers: HeaderMap, body: impl Into<Bytes>) -> Self {
        Self {
            method,
            headers,
            body: body.into(),
        }
    }

    /// The same request with this header, which replaces one of the same name.
    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    /// The same request without this header.
    pub(crate) fn without(mut self, name: &'static str) -> Self {
        self.headers.remove(name);
        self
    }

    /// The same request with this body.
    pub(crate) fn body(mut self, body: impl Into<Bytes>) -> Self {
        self.body = body.into();
        self
    }

    pub(super) fn build(&self, target: &str) -> Outcome<hyper::Request<Full<Bytes>>> {
        let mut request = hyper::Request::new(Full::new(self.body.clone()));
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = target
            .parse()
            .map_err(|_| Stop::failed("the path of the URL is not valid"))?;
        *request.headers_mut() = self.headers.clone();
        Ok(request)
    }

    /// The request for a report: without what may be a secret.
    pub(super) fn describe(&self) -> String {
        let mut text = self.method.to_string();
        let shown = [
            "host",
            "origin",
            "accept",
            "content-type",
            "acp-connection-id",
            "acp-session-id",
            "last-event-id",
            "upgrade",
        ];
        for name in shown {
            if let Some(value) = self.headers.get(name) {
                text += &format!("\n{name}: {}", String::from_utf8_lossy(value.as_bytes()));
            }
        }
        if !self.body.is_empty() {
            text += &format!("\n\n{}", String::from_utf8_lossy(&self.body));
        }
        shorten(&text, SHOWN)
    }
}

/// A response with its whole body.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The request for a report.
    pub(super) sent: String,
}

impl Response {
    pub(super) async fn read(
        response: hyper::Response<Incoming>,
        sent: String,
        limit: Duration,
    ) -> Outcome<Self> {
        let (head, mut incoming) = response.into_parts();
        let mut whole = Self {
            status: head.status,
            headers: head.headers,
            body: Bytes::new(),
            sent,
        };
        let reading = async {
            let mut body = BytesMut::new();
            while let Some(frame) = incoming.frame().await {
                let frame = frame.map_err(|error| error.to_string())?;
                body.extend_from_slice(&frame.into_data().unwrap_or_default());
                if body.len() > BODY_BYTES {
                    return Err(format!("it is longer than {BODY_BYTES} bytes"));
                }
            }
            Ok(body.freeze())
        };
        match timeout(limit, reading).await {
            Ok(Ok(body)) => whole.body = body,
            Ok(Err(reason)) => {
                return Err(whole.wrong(format!("expected a whole body, got an error: {reason}")));
            }
            Err(_) => return Err(whole.wrong("expected the end of the body, got none in time")),
        }
        Ok(whole)
    }

    /// The failure that this response is.
    pub(crate) fn wrong(&self, reason: impl Into<String>) -> Stop {
        let mut came = format!("{}", self.status);
        for name in [
            "content-type",
            "acp-connection-id",
            "sec-websocket-protocol",
            "sec-websocket-extensions",
        ] {
            if let Some(value) = self.headers.get(name) {
                came += &format!("\n{name}: {}", String::from_utf8_lossy(value.as_bytes()));
            }
        }
        if !self.body.is_empty() {
            came += &format!("\n\n{}", String::from_utf8_lossy(&self.body));
        }
        Stop::Fail(Box::new(Failure {
            reason: reason.into(),
            sent: Some(self.sent.clone()),
            came: Some(shorten(&came, SHOWN)),
        }))
    }

    /// The response has one of these statuses.
    ///
    /// # Errors
    /// When it has another.
    pub(crate) fn has_status(&self, expected: &[u16]) -> Outcome {
        if expected.contains(&self.status.as_u16()) {
            return Ok(());
        }
        let all: Vec<_> = expected.iter().map(u16::to_string).collect();
        Err(self.wrong(format!(
            "expected status {}, got {}",
            all.join(" or "),
            self.status.as_u16()
        )))
    }

    /// The request was accepted, with whatever status of success.
    ///
    /// # Errors
    /// When it was not.
    pub(crate) fn is_success(&self) -> Outcome {
        match self.status.is_success() {
            true => Ok(()),
            false => Err(self.wrong(format!(
                "expected it to be accepted, got {}",
                self.status.as_u16()
            ))),
        }
    }

    /// The request was refused as the client's violation.
    ///
    /// # Errors
    /// When the status is none of 4xx, nor 501.
    pub(crate) fn is_refusal(&self) -> Outcome {
        if self.status.is_client_error() || self.status == StatusCode::NOT_IMPLEMENTED {
            return Ok(());
        }
        Err(self.wrong(format!(
            "expected a refusal (4xx or 501), got {}",
            self.status.as_u16()
        )))
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// The type of the body without its parameters, in lower case.
    pub(crate) fn content_type(&self) -> String {
        let value = self.header("content-type").unwrap_or_default();
        let media = value.split(';').next().unwrap_or_default();
        media.trim().to_ascii_lowercase()
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// When it is none.
    pub(crate) fn json(&self) -> Outcome<Value> {
        let value = serde_json::from_slice(&self.body);
        value.map_err(|error| self.wrong(format!("expected JSON, got another body: {error}")))
    }

    /// The cookies that are set, as the client sends them back.
    pub(super) fn cookies(&self) -> Option<String> {
        let set = self.headers.get_all("set-cookie").iter();
        let pairs = set.filter_map(|value| value.to_str().ok()?.split(';').next());
        let pairs: Vec<_> = pairs.map(str::trim).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }
}

/// A stream of events.
#[derive(Debug)]
pub(crate) struct Events {
    body: Incoming,
    parser: EventParser,
    items: VecDeque<Item>,
}

impl Events {
    pub(super) fn new(body: Incoming) -> Self {
        Self {
            body,
            parser: EventParser::default(),
            items: VecDeque::new(),
        }
    }

    /// The next item; `None` at the end.
    ///
    /// # Errors
    /// When the stream is broken.
    pub(crate) async fn next(&mut self) -> Result<Option<Item>, String> {
        loop {
            if let Some(item) = self.items.pop_front() {
                return Ok(Some(item));
            }
            match self.body.frame().await {
                None => return Ok(None),
                Some(Ok(frame)) => {
                    let bytes = frame.into_data().unwrap_or_default();
                    self.parser.push(&bytes, &mut self.items)?;
                }
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }
}

/// The value of a header that names something: visible characters.
pub(super) fn named<'a>(response: &'a Response, name: &str) -> Outcome<&'a str> {
    match response.header(name) {
        Some(value) if !value.is_empty() => Ok(value),
        Some(_) => Err(response.wrong(format!("expected a value of the header {name}, got none"))),
        None if response.headers.contains_key(name) => Err(response.wrong(format!(
            "expected plain text in the header {name}, got other bytes"
        ))),
        None => Err(response.wrong(format!("expected the header {name}, got none"))),
    }
}

/// Fails a wait that took too long.
pub(super) async fn within<T>(
    limit: Duration,
    what: &str,
    future: impl Future<Output = T>,
) -> Outcome<T> {
    match timeout(limit, future).await {
        Ok(value) => Ok(value),
        Err(_) => fail(format!(
            "expected {what}, got none within {} s",
            limit.as_secs_f32()
        )),
    }
}

/// What has come on a stream.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// The number of the stream, in the order in which they were opened.
    pub(crate) stream: usize,
    pub(crate) what: What,
}

/// What comes on a stream.
#[derive(Clone, Debug)]
pub(crate) enum What {
    /// A message, and the id of its event.
    Message {
        /// The id of the event.
        id: Option<String>,
        /// The message.
        value: Value,
    },
    /// Data that is no JSON object.
    Junk(String),
    /// A comment.
    Comment,
    /// The end, and why.
    End(String),
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    /// Its place in the log.
    pub(crate) at: usize,
    /// The number of its stream.
    pub(crate) stream: usize,
    /// The whole message.
    pub(crate) value: Value,
}

/// Passes on what comes on a stream.
pub(super) async fn read(mut events: Events, stream: usize, arrived: mpsc::Sender<Arrival>) {
    loop {
        let what = match events.next().await {
            Ok(Some(Item::Event { id, data })) => match serde_json::from_str::<Value>(&data) {
                Ok(value) if value.is_object() => What::Message { id, value },
                _ => What::Junk(data),
            },
            Ok(Some(Item::Comment)) => What::Comment,
            Ok(None) => What::End("complete".to_owned()),
            Err(reason) => What::End(reason),
        };
        let is_end = matches!(what, What::End(_));
        if arrived.send(Arrival { stream, what }).await.is_err() || is_end {
            return;
        }
    }
}

/// The message `initialize` of a client that can do everything.
pub(crate) fn initialize() -> Value {
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": Caps::Full.initialize(Version::V1)})
}

/// The session of a message, if it names one.
pub(super) fn session_of(message: &Value) -> Option<&str> {
    message["params"]["sessionId"].as_str()
}

/// Fails with what there was instead of an answer.
pub(crate) fn unanswered<T>(method: &str, limit: Duration) -> Outcome<T> {
    fail(format!(
        "expected an answer to {method}, got none within {} s",
        limit.as_secs_f32()
    ))
}
