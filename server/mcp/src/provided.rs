//! Servers that a client of the session provides over its connection: each message of MCP is a message of ACP.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::ready;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use acp_sdk::v1::{MessageMcpNotification, MessageMcpRequest};
use acp_server::internal::connection::{ProvidedServer, Subscribed};
use rmcp::RoleClient;
use rmcp::model::{ClientNotification, ErrorCode, ErrorData, JsonRpcMessage, RequestId};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connection::{OpenError, Origin};
use crate::wire::{Wire, lock};

/// Maximum number of messages of a server that wait to be handled.
const MAX_WAITING: usize = 64;

/// The reason of a connection's end, after the server's name.
const GONE: &str = "is provided by a client that is not connected";

/// The number of the last request. It is in the id of the next one, which is unique on every connection.
static LAST_REQUEST: AtomicU64 = AtomicU64::new(0);

/// The connection to such a server.
pub(crate) struct Provided {
    server: ProvidedServer,
    wire: Arc<Wire>,
    /// Ends with the connection of the client.
    notifications: mpsc::Receiver<MessageMcpNotification>,
    responses: mpsc::Receiver<RxJsonRpcMessage<RoleClient>>,
    responder: mpsc::Sender<RxJsonRpcMessage<RoleClient>>,
    /// Requests without a response.
    requests: Arc<Mutex<HashMap<RequestId, CancellationToken>>>,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
    _subscribed: Subscribed,
}

impl Provided {
    /// Connects to the server that a client of the session provides under a name.
    pub(crate) fn new(name: &str, origin: &Origin, wire: &Arc<Wire>) -> Result<Self, OpenError> {
        let Some(session) = &origin.session else {
            return Err(OpenError::is_final(
                "is provided by a client, and there is no session with clients",
            ));
        };
        let session = session.upgrade();
        let server = session.and_then(|session| session.provided_server(name));
        let (sender, notifications) = mpsc::channel(MAX_WAITING);
        let subscribed = server.as_ref().and_then(|server| server.subscribe(sender));
        let (Some(server), Some(subscribed)) = (server, subscribed) else {
            return Err(OpenError {
                reason: GONE.to_owned(),
                // It may come back, and open the session again.
                is_final: false,
            });
        };
        let (responder, responses) = mpsc::channel(MAX_WAITING);
        let stop = CancellationToken::new();
        Ok(Self {
            server,
            wire: wire.clone(),
            notifications,
            responses,
            responder,
            requests: Arc::default(),
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            _subscribed: subscribed,
        })
    }

    /// Sends a request in a task, which ends with the connection.
    fn request(&self, id: RequestId, mut message: Value) {
        let number = LAST_REQUEST.fetch_add(1, Ordering::Relaxed) + 1;
        let params = json!({
            "serverId": self.server.id(),
            "requestId": format!("mcp-{number}"),
            "method": message["method"].take(),
            "params": message["params"].take(),
        });
        let cancel = self.stop.child_token();
        lock(&self.requests).insert(id.clone(), cancel.clone());
        let (server, responder) = (self.server.clone(), self.responder.clone());
        let (wire, requests) = (self.wire.clone(), self.requests.clone());
        tokio::spawn(async move {
            let answering = async {
                match respond(&server, &id, params).await {
                    // Fails when the connection is closed.
                    Some(response) => drop(responder.send(response).await),
                    None => wire.fail(GONE),
                }
            };
            // Dropped, the call is cancelled.
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = answering => {}
            }
            lock(&requests).remove(&id);
        });
    }
}

/// Sends a request and returns the response; `None` if the client has disconnected.
async fn respond(
    server: &ProvidedServer,
    id: &RequestId,
    params: Value,
) -> Option<RxJsonRpcMessage<RoleClient>> {
    let failed = |code, message: String| {
        let error = ErrorData::new(ErrorCode(code), message, None);
        Some(JsonRpcMessage::error(error, Some(id.clone())))
    };
    let internal = |error: String| failed(ErrorCode::INTERNAL_ERROR.0, error);
    let request: MessageMcpRequest = match serde_json::from_value(params) {
        Ok(request) => request,
        Err(error) => {
            return internal(format!("the request has no form in `mcp/message`: {error}"));
        }
    };
    let response = match server.call(&request).await {
        Ok(response) => response,
        Err(acp_sdk::Error::Response { error, .. }) => {
            return failed(i32::from(error.code), error.message.clone());
        }
        Err(acp_sdk::Error::Closed(_)) => return None,
        Err(error) => return internal(error.to_string()),
    };
    let message = serde_json::to_value(response).and_then(|mut message| {
        message["jsonrpc"] = "2.0".into();
        message["id"] = serde_json::to_value(id)?;
        serde_json::from_value(message)
    });
    match message {
        Ok(message) => Some(message),
        Err(error) => internal(format!("the response is invalid: {error}")),
    }
}

impl Transport<RoleClient> for Provided {
    type Error = Infallible;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        match &message {
            JsonRpcMessage::Request(request) => {
                let id = request.id.clone();
                // Messages always have a form as JSON.
                let message = serde_json::to_value(&message).unwrap_or_default();
                self.request(id, message);
            }
            JsonRpcMessage::Notification(notification) => {
                if let ClientNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                    && let Some(cancel) = lock(&self.requests).remove(id)
                {
                    cancel.cancel();
                }
            }
            // A server has no message to ask something.
            JsonRpcMessage::Response(_) | JsonRpcMessage::Error(_) => {}
        }
        ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        loop {
            // A response follows the notifications before it, which its connection delivers first.
            let notification = tokio::select! {
                biased;
                notification = self.notifications.recv() => notification,
                response = self.responses.recv() => return response,
            };
            let Some(notification) = notification else {
                self.wire.fail(GONE);
                return None;
            };
            let message = json!({
                "jsonrpc": "2.0",
                "method": notification.method,
                "params": notification.params,
            });
            match serde_json::from_value(message) {
                Ok(message) => return Some(message),
                Err(error) => tracing::debug!(%error, "invalid notification of an MCP server"),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.stop.cancel();
        Ok(())
    }
}
