//! One request to a server of MCP.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use acp_sdk::{HandlerError, HandlerResult};
use rmcp::RoleServer;
use rmcp::model::{
    ClientJsonRpcMessage, ClientNotification, ClientRequest, ErrorData, GetExtensions as _,
    ProtocolVersion, ServerConfig, ServerResult,
};
use rmcp::service::{NotificationContext, RequestContext, Service, serve_directly};
use rmcp::transport::OneshotTransport;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::wire::{Inner, Outcome};

/// The ACP session that has an MCP server. Handlers of the crate `rmcp` find it among the extensions of a
/// request's context.
#[derive(Clone, Debug, Default)]
pub struct ToolSession(Arc<OnceLock<String>>);

impl ToolSession {
    /// Returns the id; `None` while the agent is still creating the session.
    #[must_use]
    pub fn id(&self) -> Option<&str> {
        self.0.get().map(String::as_str)
    }

    pub(super) fn set(&self, id: String) {
        // It never changes.
        let _ = self.0.set(id);
    }
}

/// When a request began, among the extensions of its context: what it lists is at least of this moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Begun(pub(super) Instant);

/// Runs a request, and returns its outcome. Dropped, it drops the handler. `notify` sends what the server
/// notifies meanwhile.
pub(super) async fn run<S, N, F>(
    service: Arc<S>,
    inner: Inner,
    session: ToolSession,
    notify: N,
) -> HandlerResult<Outcome>
where
    S: Service<RoleServer>,
    N: Fn(Inner) -> F,
    F: Future<Output = HandlerResult<()>>,
{
    let request = json!({"jsonrpc": "2.0", "id": inner.request_id, "method": inner.method, "params": inner.params});
    let request = match serde_json::from_value(request) {
        Ok(ClientJsonRpcMessage::Request(mut request)) => {
            let extensions = request.request.extensions_mut();
            extensions.insert(session);
            extensions.insert(Begun(Instant::now()));
            ClientJsonRpcMessage::Request(request)
        }
        Ok(_) => return Err(HandlerError::invalid_params("/method", "it is no request")),
        Err(error) => return Err(HandlerError::invalid_params("/params", error)),
    };
    let dropped = CancellationToken::new();
    let _guard = dropped.clone().drop_guard();
    let (transport, mut messages) = OneshotTransport::<RoleServer>::new(request);
    let stoppable = Stoppable { service, dropped };
    let running = serve_directly::<RoleServer, _, _, _, _>(stoppable, transport, None);
    while let Some(message) = messages.recv().await {
        let mut message = serde_json::to_value(message)?;
        let method = message["method"].as_str().map(ToOwned::to_owned);
        let mut member = |name| message.as_object_mut().and_then(|all| all.remove(name));
        match (member("id").is_some_and(|id| !id.is_null()), method) {
            (false, Some(method)) => {
                let params = member("params").map(|params| to_raw_value(&params));
                notify(Inner {
                    server_id: inner.server_id.clone(),
                    request_id: inner.request_id.clone(),
                    method,
                    params: params.transpose()?,
                })
                .await?;
            }
            (true, Some(method)) => {
                return Err(HandlerError::internal(format!(
                    "the MCP server sends {method}, and requests of servers cannot be passed on"
                )));
            }
            (_, None) => {
                let raw =
                    |value: Value| -> HandlerResult<Box<RawValue>> { Ok(to_raw_value(&value)?) };
                drop(running);
                return Ok(Outcome {
                    result: member("result").map(raw).transpose()?,
                    error: member("error").map(raw).transpose()?,
                });
            }
        }
    }
    Err(HandlerError::internal("the MCP server has not answered"))
}

/// A service whose handlers are dropped with the request: `rmcp` runs them in tasks of their own.
struct Stoppable<S> {
    service: Arc<S>,
    dropped: CancellationToken,
}

impl<S: Service<RoleServer>> Service<RoleServer> for Stoppable<S> {
    async fn handle_request(
        &self,
        request: ClientRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<ServerResult, ErrorData> {
        tokio::select! {
            biased;
            () = self.dropped.cancelled() => Err(ErrorData::internal_error("cancelled", None)),
            handled = self.service.handle_request(request, context) => handled,
        }
    }

    async fn handle_notification(
        &self,
        notification: ClientNotification,
        context: NotificationContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        self.service
            .handle_notification(notification, context)
            .await
    }

    fn get_info(&self) -> ServerConfig {
        self.service.get_info()
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.service.supported_protocol_versions()
    }
}
