//! The messages of a component's two sides on one connection.

use acp_client::internal::{Envelope, Kind};
use acp_sdk::{ErrorCode, RpcError};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::Instant;

use super::{Joined, Link, PROXY_INITIALIZE, Place};
use crate::message::{self, replace};

/// What carries the messages of the far side.
const SUCCESSOR: &str = "proxy/successor";

/// The maximum number of requests of the far side that are not answered.
const MOST_REQUESTS: usize = 10_000;

impl Link {
    /// Returns a message as it goes on, and where; `None` if it is dropped.
    pub(super) fn translate(&mut self, from: Place, message: Bytes) -> Option<(Place, Bytes)> {
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
            return Some((Place::Joined, message::cancel_request(own)));
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
    let method = serde_json::Value::from(method);
    let params = params.map_or_else(String::new, |params| format!(r#","params":{params}"#));
    let inner = format!(r#"{{"method":{method}{params}}}"#);
    acp_client::internal::message::call(id, SUCCESSOR, Some(&inner))
}
