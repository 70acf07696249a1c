//! A component of a chain: its two sides on one connection, by `proxy/initialize` and `proxy/successor`.
//!
//! ```text
//!        near (towards the client)  <── as it is ──────> ┐
//!                                                        ├ joined
//!        far (towards the agent)    <── wrapped in ────> ┘
//!                                       proxy/successor
//! ```
//!
//! The conductor has the process of the component as `joined`; a component has the conductor there, and its
//! own two sides as `near` and `far`. What happens to the messages is the same, except for `initialize`.
//!
//! Spec: <https://agentclientprotocol.com/rfds/proxy-chains>

use std::collections::HashMap;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use acp_client::internal::{Envelope, Kind};
use acp_sdk::{ErrorCode, MessageTransport, RpcError};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::message::{self, replace};

/// What carries the messages of the far side.
const SUCCESSOR: &str = "proxy/successor";

/// What begins a component's connection.
const PROXY_INITIALIZE: &str = "proxy/initialize";

/// The maximum number of requests of the far side that are not answered.
const MOST_REQUESTS: usize = 10_000;

/// How long the rest may take to be read.
const CLOSE_LIMIT: Duration = Duration::from_secs(5);

/// Messages that are passed on before other tasks have their turn.
const BATCH: usize = 64;

/// Where a message comes from or goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Place {
    Near,
    Far,
    Joined,
}

impl Place {
    const ALL: [Self; 3] = [Self::Near, Self::Far, Self::Joined];
}

/// Who `joined` leads to.
#[derive(Debug)]
pub(crate) enum Joined {
    /// The component with this name.
    Component { name: String, limit: Duration },
    /// The conductor.
    Conductor,
}

/// Why a link has ended.
#[derive(Debug)]
pub(crate) enum LinkEnd {
    /// A place sends nothing more, or takes nothing.
    Ended(Place),
    /// The component does not take part.
    Unusable(String),
}

pub(crate) struct Link {
    joined: Joined,
    ends: [Pin<Box<dyn MessageTransport>>; 3],
    /// What was read, and waits for room where it goes.
    waiting: [Option<(Place, Bytes)>; 3],
    has_unflushed: [bool; 3],
    is_ended: [bool; 3],
    /// The ids of requests of the far side, as JSON, by those on `joined`.
    renamed: HashMap<Box<str>, Box<str>>,
    last_id: u64,
    prefix: String,
    /// Requests from `joined` that are not answered, and where they went.
    asked: HashMap<Box<str>, Place>,
    /// The id of the component's `proxy/initialize`, and when it must be answered.
    initialize: Option<(Box<str>, Instant)>,
    /// Cancelled when the near side sends nothing more.
    near_ended: CancellationToken,
}

impl Link {
    pub(crate) fn new(joined: Joined, ends: [Pin<Box<dyn MessageTransport>>; 3]) -> Self {
        let mut nonce = [0; 8];
        // Without randomness the ids are still unlikely to be a peer's.
        let _ = getrandom::fill(&mut nonce);
        Self {
            joined,
            ends,
            waiting: Default::default(),
            has_unflushed: [false; 3],
            is_ended: [false; 3],
            renamed: HashMap::new(),
            last_id: 0,
            prefix: format!("\"successor-{:016x}-", u64::from_le_bytes(nonce)),
            asked: HashMap::new(),
            initialize: None,
            near_ended: CancellationToken::new(),
        }
    }

    /// Returns what tells that the near side sends nothing more.
    pub(crate) fn near_ended(&self) -> CancellationToken {
        self.near_ended.clone()
    }

    /// Passes messages on until a place has ended. Returns also whether the near side has ended before.
    pub(crate) async fn run(&mut self) -> (LinkEnd, bool) {
        let end = loop {
            let deadline = self.initialize.as_ref().map(|(_, deadline)| *deadline);
            let overdue = async {
                match deadline {
                    Some(deadline) => sleep_until(deadline).await,
                    None => std::future::pending().await,
                }
            };
            let passed = tokio::select! {
                passed = poll_fn(|cx| self.poll_pass(cx)) => passed,
                () = overdue => break LinkEnd::Unusable(self.silent()),
            };
            match passed {
                // What the component still sends is passed on.
                Ok(Some(Place::Near)) => {
                    self.near_ended.cancel();
                    let joined = &mut self.ends[Place::Joined as usize];
                    // A component that is gone shows when it is read.
                    let _ = poll_fn(|cx| joined.as_mut().poll_close(cx)).await;
                }
                Ok(Some(place)) => break LinkEnd::Ended(place),
                Ok(None) => {}
                Err((place, _)) => break LinkEnd::Ended(place),
            }
        };
        (end, self.near_ended.is_cancelled())
    }

    /// Ends what is still there: whoever it is reads what was passed on, and the end.
    pub(crate) async fn close(mut self) {
        self.near_ended.cancel();
        let closing = async {
            for end in &mut self.ends {
                // What is gone cannot be closed.
                let _ = poll_fn(|cx| end.as_mut().poll_close(cx)).await;
            }
        };
        let _ = tokio::time::timeout(CLOSE_LIMIT, closing).await;
    }

    fn silent(&self) -> String {
        match &self.joined {
            Joined::Component { name, limit } => format!(
                "the proxy `{name}` has not answered {PROXY_INITIALIZE} for {} s",
                limit.as_secs_f32()
            ),
            Joined::Conductor => "the conductor is silent".to_owned(),
        }
    }

    /// Passes messages on; ready when a place has ended, and now and then.
    fn poll_pass(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Place>, (Place, io::Error)>> {
        let had_deadline = self.initialize.is_some();
        for _ in 0..BATCH {
            let mut has_passed = false;
            for from in Place::ALL {
                has_passed |= self.pass_one(from, cx)?;
                let is_over = self.is_ended[from as usize] && self.waiting[from as usize].is_none();
                if is_over && (from != Place::Near || !self.near_ended.is_cancelled()) {
                    return Poll::Ready(Ok(Some(from)));
                }
            }
            if self.initialize.is_some() != had_deadline {
                return Poll::Ready(Ok(None));
            }
            if !has_passed {
                for place in Place::ALL {
                    let end = &mut self.ends[place as usize];
                    if self.has_unflushed[place as usize]
                        && let Poll::Ready(flushed) = end.as_mut().poll_flush(cx)
                    {
                        self.has_unflushed[place as usize] = false;
                        flushed.map_err(|error| (place, error))?;
                    }
                }
                return Poll::Pending;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn pass_one(&mut self, from: Place, cx: &mut Context<'_>) -> Result<bool, (Place, io::Error)> {
        if self.waiting[from as usize].is_none() && !self.is_ended[from as usize] {
            let received = self.ends[from as usize].as_mut().poll_receive(cx);
            match received.map_err(|error| (from, error))? {
                Poll::Ready(Some(message)) => {
                    self.waiting[from as usize] = self.translate(from, message);
                    if self.waiting[from as usize].is_none() {
                        return Ok(true);
                    }
                }
                Poll::Ready(None) => self.is_ended[from as usize] = true,
                Poll::Pending => {}
            }
        }
        let Some((to, message)) = self.waiting[from as usize].take() else {
            return Ok(false);
        };
        let end = &mut self.ends[to as usize];
        if end
            .as_mut()
            .poll_ready(cx)
            .map_err(|error| (to, error))?
            .is_pending()
        {
            self.waiting[from as usize] = Some((to, message));
            return Ok(false);
        }
        end.as_mut()
            .start_send(message)
            .map_err(|error| (to, error))?;
        self.has_unflushed[to as usize] = true;
        Ok(true)
    }

    /// Returns a message as it goes on, and where; `None` if it is dropped.
    fn translate(&mut self, from: Place, message: Bytes) -> Option<(Place, Bytes)> {
        let envelope = Envelope::read(&message);
        match from {
            Place::Joined => self.take_joined(&message, &envelope),
            _ if envelope.method.is_none() => self.answer(from, &message, &envelope),
            Place::Near => Some((Place::Joined, self.take_near(&message, &envelope))),
            Place::Far => self.take_far(&message, &envelope),
        }
    }

    /// Returns the answer of a side, or what is no message.
    fn answer(
        &mut self,
        from: Place,
        message: &Bytes,
        envelope: &Envelope<'_>,
    ) -> Option<(Place, Bytes)> {
        match (envelope.id(), from, &self.joined) {
            (Some(id), ..) if self.asked.get(id) == Some(&from) => {
                self.asked.remove(id);
            }
            // For whoever gets it on `joined`, it would be an answer of the other side.
            (Some(id), ..) => {
                tracing::warn!(id, "dropped an answer to no request");
                return None;
            }
            // An error of the agent about what it could not read is for the client.
            (None, Place::Far, Joined::Component { .. }) => {
                return Some((Place::Near, message.clone()));
            }
            (None, ..) => {}
        }
        Some((Place::Joined, message.clone()))
    }

    fn take_near(&mut self, message: &Bytes, envelope: &Envelope<'_>) -> Bytes {
        if let (Joined::Component { limit, .. }, Some("initialize"), Some(id)) =
            (&self.joined, envelope.method.as_deref(), envelope.id())
        {
            self.initialize = Some((id.into(), Instant::now() + *limit));
            return message::call(Some(id), PROXY_INITIALIZE, envelope.params);
        }
        message.clone()
    }

    fn take_far(&mut self, message: &Bytes, envelope: &Envelope<'_>) -> Option<(Place, Bytes)> {
        let method = envelope.method.as_deref().unwrap_or_default();
        if let Some(cancelled) = envelope.cancelled_request() {
            let mut renamed = self.renamed.iter();
            let (own, _) = renamed.find(|(_, original)| &***original == cancelled)?;
            return Some((Place::Joined, message::cancellation(own)));
        }
        let Some(id) = envelope.id() else {
            let null = message::id(message, envelope);
            return Some((Place::Joined, wrapped(null, method, envelope.params)));
        };
        if self.renamed.len() >= MOST_REQUESTS {
            let error = too_many(method);
            return Some((Place::Far, message::answer(id, Err(&error))));
        }
        self.last_id += 1;
        let own = format!("{}{}\"", self.prefix, self.last_id);
        let wrapped = wrapped(Some(&own), method, envelope.params);
        self.renamed.insert(own.into(), id.into());
        Some((Place::Joined, wrapped))
    }

    fn take_joined(&mut self, message: &Bytes, envelope: &Envelope<'_>) -> Option<(Place, Bytes)> {
        let id = envelope.id();
        match (envelope.kind(), envelope.method.as_deref()) {
            (Kind::Answer, _) => {
                let id = id.unwrap_or_default();
                if let Some(original) = self.renamed.remove(id) {
                    return Some((Place::Far, replace(message, id, &original)));
                }
                if id.starts_with(&self.prefix) {
                    tracing::warn!(id, "dropped an answer to a request that is answered");
                    return None;
                }
                Some((Place::Near, self.initialized(message, envelope, id)))
            }
            (Kind::Request | Kind::Notification, Some(SUCCESSOR)) => self.unwrap(message, envelope),
            (Kind::Request, Some("initialize")) if matches!(self.joined, Joined::Conductor) => {
                let error = RpcError::new(
                    ErrorCode::INVALID_REQUEST,
                    "this is a proxy and no agent: start it by a conductor, such as \
                     `acp conduct PROXY -- AGENT`, which begins with `proxy/initialize`",
                );
                let answer = message::answer(id.unwrap_or("null"), Err(&error));
                Some((Place::Joined, answer))
            }
            (Kind::Request, Some(method)) => {
                let id = id.unwrap_or_default();
                if !self.ask(id, Place::Near) {
                    let error = too_many(method);
                    return Some((Place::Joined, message::answer(id, Err(&error))));
                }
                let message = match method {
                    PROXY_INITIALIZE => message::call(Some(id), "initialize", envelope.params),
                    _ => message.clone(),
                };
                Some((Place::Near, message))
            }
            (Kind::Notification, _) => {
                let asked = envelope
                    .cancelled_request()
                    .and_then(|id| self.asked.get(id));
                Some((*asked.unwrap_or(&Place::Near), message.clone()))
            }
            _ => Some((Place::Near, message.clone())),
        }
    }

    /// Remembers a request from `joined`; `false` if there are too many.
    fn ask(&mut self, id: &str, to: Place) -> bool {
        let has_room = self.asked.len() < MOST_REQUESTS;
        if has_room {
            self.asked.insert(id.into(), to);
        }
        has_room
    }

    /// Returns the answer to `proxy/initialize`, and others as they are.
    fn initialized(&mut self, message: &Bytes, envelope: &Envelope<'_>, id: &str) -> Bytes {
        let is_first = self
            .initialize
            .as_ref()
            .is_some_and(|(first, _)| **first == *id);
        if !is_first {
            return message.clone();
        }
        self.initialize = None;
        let error = envelope
            .error
            .and_then(|error| serde_json::from_str::<RpcError>(error.get()).ok());
        match (&self.joined, error) {
            (Joined::Component { name, .. }, Some(error))
                if error.code == ErrorCode::METHOD_NOT_FOUND =>
            {
                let text = format!(
                    "`{name}` is no proxy: it does not know {PROXY_INITIALIZE} ({})",
                    error.message
                );
                message::answer(id, Err(&RpcError::new(ErrorCode::INTERNAL_ERROR, text)))
            }
            _ => message.clone(),
        }
    }

    fn unwrap(&mut self, message: &Bytes, envelope: &Envelope<'_>) -> Option<(Place, Bytes)> {
        #[derive(Deserialize)]
        struct Inner<'a> {
            method: String,
            #[serde(borrow, default)]
            params: Option<&'a RawValue>,
        }
        let params = envelope.params.map_or("null", RawValue::get);
        let inner: serde_json::Result<Inner<'_>> = serde_json::from_str(params);
        let error = match (inner, envelope.id()) {
            (Ok(inner), None) => {
                let null = message::id(message, envelope);
                return Some((Place::Far, message::call(null, &inner.method, inner.params)));
            }
            (Ok(inner), Some(id)) => match self.ask(id, Place::Far) {
                true => {
                    let call = message::call(Some(id), &inner.method, inner.params);
                    return Some((Place::Far, call));
                }
                false => too_many(&inner.method),
            },
            (Err(error), _) => {
                let text = format!("invalid params of {SUCCESSOR}: {error}");
                RpcError::new(ErrorCode::INVALID_PARAMS, text)
            }
        };
        match envelope.id() {
            Some(id) => Some((Place::Joined, message::answer(id, Err(&error)))),
            None => {
                tracing::warn!(%error, "dropped a notification");
                None
            }
        }
    }
}

fn too_many(method: &str) -> RpcError {
    RpcError::new(
        ErrorCode::INTERNAL_ERROR,
        format!("`{method}` is refused: {MOST_REQUESTS} requests wait for an answer"),
    )
}

/// Returns a message of the far side as one on `joined`.
fn wrapped(id: Option<&str>, method: &str, params: Option<&RawValue>) -> Bytes {
    let inner = serde_json::Value::from(method);
    let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
    let id = id.map_or_else(String::new, |id| format!(r#""id":{id},"#));
    format!(
        r#"{{"jsonrpc":"2.0",{id}"method":"{SUCCESSOR}","params":{{"method":{inner}{params}}}}}"#
    )
    .into()
}
