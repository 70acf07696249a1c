//! MCP with a program of the agent.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use acp_sdk::service::{
    Cancellation, HandlerFuture, IncomingNotification, IncomingRequest, Service,
};
use acp_sdk::{ConnectionBuilder, HandlerError, HandlerResult, Json, RpcError};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::bindings::{Binding, Bindings};
use super::lifecycle::Lifecycle;
use super::recipient::{LISTEN, Recipient};
use crate::Endpoint;
use crate::mcp::wire::{Inner, MESSAGE, Outcome, random};

/// Requests of one program that are answered at the same time.
const MOST_REQUESTS: usize = 64;

/// Notifications of one request that the program has not read.
const MOST_NOTIFICATIONS: usize = 64;

/// How MCP cancels requests.
static CANCELLATION: Cancellation = Cancellation {
    method: "notifications/cancelled",
    request_id: "requestId",
    of_sessions: &[],
};

/// Serves a program until it disconnects.
pub(super) async fn serve(stream: TcpStream, binding: &Binding, bindings: &Arc<Bindings>) {
    let prefix = match random() {
        Ok(prefix) => prefix,
        Err(error) => return tracing::warn!(%error, "cannot serve an MCP client"),
    };
    let server = Arc::new(Server {
        id: binding.server.clone(),
        client: binding.client.clone(),
        bindings: bindings.clone(),
        prefix,
        last: AtomicU64::new(0),
        lifecycle: Lifecycle::default(),
        ended: CancellationToken::new(),
    });
    let _ended = server.ended.clone().drop_guard();
    let connection = ConnectionBuilder::new()
        .max_requests(MOST_REQUESTS)
        .open(Programs(server), stream.into_split());
    let ended = connection.await;
    if let Err(error) = ended {
        tracing::debug!(%error, "an MCP client of the agent has disconnected");
    }
}

/// A server inside of the connection, as a program sees it.
pub(super) struct Server {
    id: String,
    client: Endpoint,
    bindings: Arc<Bindings>,
    /// The start of the ids of requests.
    prefix: String,
    last: AtomicU64,
    pub(super) lifecycle: Lifecycle,
    /// Cancelled when the program has disconnected.
    pub(super) ended: CancellationToken,
}

struct Programs(Arc<Server>);

impl Service for Programs {
    fn request(&self, request: IncomingRequest<'_>) -> HandlerFuture {
        let server = self.0.clone();
        request.answer_ext(move |context, method, params| async move {
            match method.as_str() {
                "initialize" => {
                    let params = params.as_ref().and_then(Json::to_value);
                    server.initialize(params).await
                }
                "ping" => Ok(serde_json::json!({}).into()),
                _ => {
                    let params = match params {
                        // As it came, if nothing is to be added.
                        Some(params) if !server.lifecycle.is_begun() => Some(params),
                        params => {
                            let params = params.as_ref().and_then(Json::to_value);
                            server.lifecycle.complete(params).map(Json::from)
                        }
                    };
                    let recipient = match method.as_str() {
                        LISTEN => Recipient::Subscriber(&context),
                        _ => Recipient::Caller(&context),
                    };
                    server.call(recipient, &method, params).await
                }
            }
        })
    }

    fn notification(&self, notification: IncomingNotification<'_>) -> HandlerFuture {
        // A server inside of the connection knows neither sessions nor their start.
        let server = self.0.clone();
        notification.handle_ext(|context, method, _| async move {
            if method == "notifications/initialized" {
                server.follow_changes(context.peer().clone());
            }
            Ok(())
        })
    }

    fn cancellation(&self) -> &'static Cancellation {
        &CANCELLATION
    }
}

impl Server {
    /// Answers `initialize` with what the server says to `server/discover`.
    async fn initialize(&self, params: Option<Value>) -> HandlerResult<Json> {
        let version = self.lifecycle.begin(params);
        let params = self.lifecycle.complete(None).map(Json::from);
        let discovered = self
            .call(Recipient::Nobody, "server/discover", params)
            .await;
        self.lifecycle.answer(version, discovered)
    }

    /// Sends a request to who has declared the server. What the server notifies goes to `recipient`.
    pub(super) async fn call(
        &self,
        recipient: Recipient<'_>,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        let inner = Inner {
            server_id: self.id.clone(),
            request_id: format!("{}-{number}", self.prefix),
            method: method.to_owned(),
            params: params.map(|params| params.as_raw().to_owned()),
        };
        let (sender, mut notifications) = mpsc::channel(MOST_NOTIFICATIONS);
        let _active = self.bindings.activate(&inner.request_id, sender);
        let params = inner.write()?;
        let mut calling = std::pin::pin!(self.client.call_raw(MESSAGE, Some(&params)));
        let answer = loop {
            tokio::select! {
                biased;
                Some(inner) = notifications.recv() => recipient.notify(inner).await,
                answer = &mut calling => break answer?,
                () = recipient.cancelled() => return Err(HandlerError::cancelled()),
            }
        };
        // Those that came before the answer.
        while let Ok(inner) = notifications.try_recv() {
            recipient.notify(inner).await;
        }
        let outcome: Outcome = serde_json::from_str(answer.get()).map_err(|error| {
            HandlerError::internal(format!(
                "the MCP server's answer to {method} is invalid: {error}"
            ))
        })?;
        match outcome {
            Outcome {
                result: Some(result),
                ..
            } => Ok(recipient.receives(result)),
            Outcome {
                error: Some(error), ..
            } => {
                let error: RpcError = serde_json::from_str(error.get()).map_err(|error| {
                    HandlerError::internal(format!("the MCP server's error is invalid: {error}"))
                })?;
                Err(HandlerError::response(error))
            }
            Outcome { .. } => Err(HandlerError::internal(format!(
                "the MCP server's answer to {method} has neither result nor error"
            ))),
        }
    }
}
