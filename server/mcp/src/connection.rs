//! One connection to a server: its process or URL, the handshake, the list of its tools, and its end.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use acp_client::AgentProcess;
use acp_sdk::v1::McpServer;
use acp_server::internal::session::WeakSession;
use rmcp::model::{
    ClientCapabilities, ClientConfig, ClientRequest, Implementation, ListToolsRequest,
    PaginatedRequestParams, ServerResult, SubscriptionFilter, SubscriptionsListenRequest,
    SubscriptionsListenRequestParams,
};
use rmcp::service::{ClientInitializeError, Peer, RunningService, ServiceError};
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::{RoleClient, ServiceExt as _};
#[cfg(feature = "unstable")]
use rmcp::{
    model::ProtocolVersion,
    service::{ClientLifecycleMode, ClientServiceExt as _},
};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::http::{self, FaultKind};
#[cfg(feature = "unstable")]
use crate::provided::Provided;
use crate::wire::{Lines, Watched, Wire};
use crate::{McpTool, Options, stdio};

/// Time for a server over stdio to read a message.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// Time from the end of a server's output until it counts as still running.
const EXIT_AFTER_EOF: Duration = Duration::from_secs(1);

/// The session information for servers.
pub(crate) struct Origin {
    pub(crate) session_id: String,
    pub(crate) cwd: String,
    /// The session, whose client may provide servers.
    #[cfg_attr(not(feature = "unstable"), allow(dead_code, reason = "a proposal"))]
    pub(crate) session: Option<WeakSession>,
}

/// Why a connection could not be opened. The reasons here and below follow the server's name.
#[derive(Debug)]
pub(crate) struct OpenError {
    pub(crate) reason: String,
    /// Whether another attempt is futile.
    pub(crate) is_final: bool,
}

impl OpenError {
    pub(crate) fn is_final(reason: impl Into<String>) -> Self {
        let reason = reason.into();
        Self {
            reason,
            is_final: true,
        }
    }
}

/// A connection, which [`close`](Self::close) ends.
pub(crate) struct Connection<'a> {
    options: &'a Options,
    wire: Arc<Wire>,
    /// Whether the server begins with `server/discover`, as of MCP 2026-07-28.
    discovers: bool,
    service: Option<RunningService<RoleClient, ClientConfig>>,
    process: Option<AgentProcess>,
}

impl<'a> Connection<'a> {
    pub(crate) fn new(options: &'a Options) -> Self {
        Self {
            options,
            wire: Arc::default(),
            discovers: false,
            service: None,
            process: None,
        }
    }

    pub(crate) fn options(&self) -> &'a Options {
        self.options
    }

    /// Connects to the server and initializes it. [`close`](Self::close) ends what was started even if this
    /// future is dropped.
    pub(crate) async fn open(
        &mut self,
        server: &McpServer,
        origin: &Origin,
    ) -> Result<(), OpenError> {
        let (options, wire) = (self.options, self.wire.clone());
        let config = config(origin, options);
        let opened = match server {
            McpServer::Stdio(server) => {
                let process = self.process.insert(stdio::start(server, origin, options)?);
                let Some((output, input)) = process.take_streams() else {
                    return Err(OpenError::is_final("has no standard streams"));
                };
                let output = Lines::new(output, wire.clone(), options.max_message_bytes);
                let transport = AsyncRwTransport::new_client(output, input);
                // `Lines` has the limit.
                let transport = transport.with_max_line_length(usize::MAX);
                let transport = Watched::new(transport, wire, Some(WRITE_TIMEOUT));
                timeout(options.start_timeout, config.serve(transport)).await
            }
            McpServer::Http(server) => {
                let transport = Watched::new(http::transport(server, options)?, wire, None);
                timeout(options.start_timeout, config.serve(transport)).await
            }
            #[cfg(feature = "unstable")]
            McpServer::Acp(server) => {
                self.discovers = true;
                let provided = Provided::new(&server.name, origin, &wire)?;
                let transport = Watched::new(provided, wire, None);
                let lifecycle = ClientLifecycleMode::Auto {
                    preferred_versions: vec![ProtocolVersion::V_2026_07_28],
                    legacy_version: None,
                };
                let opening = config.serve_with_lifecycle(transport, lifecycle);
                timeout(options.start_timeout, opening).await
            }
            McpServer::Sse(_) => {
                return Err(OpenError::is_final(
                    "uses the transport `sse`, which is not supported. Configure it as `http`",
                ));
            }
            _ => {
                return Err(OpenError::is_final(
                    "uses an unknown transport; `stdio` and `http` are supported",
                ));
            }
        };
        match opened {
            Ok(Ok(service)) => {
                self.service = Some(service);
                Ok(())
            }
            Ok(Err(error)) => Err(match self.reason().await {
                Some(reason) => OpenError::is_final(reason),
                None => initialize_error(&error),
            }),
            Err(_) => {
                let after = options.start_timeout;
                let reason = format!("did not answer `initialize` within {after:?}");
                let is_final = self.process.is_some();
                let reason = self.with_stderr(reason).await;
                Err(OpenError { reason, is_final })
            }
        }
    }

    /// Returns the caller and the state of an open connection.
    pub(crate) fn live(&self) -> Option<Live> {
        let peer = self.service.as_ref()?.peer().clone();
        let wire = self.wire.clone();
        let discovers = self.discovers;
        Some(Live {
            peer,
            wire,
            discovers,
        })
    }

    /// Waits for the end of the connection and returns the reason.
    pub(crate) async fn ended(&self) -> String {
        self.wire.ended.cancelled().await;
        let reason = self.reason().await;
        reason.unwrap_or_else(|| "closed the connection".to_owned())
    }

    /// Returns why a connection has ended; `None` if only the server knows.
    async fn reason(&self) -> Option<String> {
        if let Some(fault) = self.wire.fault() {
            return Some(self.with_stderr(fault).await);
        }
        let process = self.process.as_ref()?;
        let reason = match timeout(EXIT_AFTER_EOF, process.exited()).await {
            Ok(exit) => format!("{exit}"),
            Err(_) => "closed its output and is still running".to_owned(),
        };
        Some(self.with_stderr(reason).await)
    }

    async fn with_stderr(&self, reason: String) -> String {
        match &self.process {
            Some(process) => {
                let lines = process.stderr_tail().await;
                stdio::with_stderr(reason, &lines, self.options.max_stderr_bytes)
            }
            None => reason,
        }
    }

    /// Closes the connection, then ends the process in steps.
    pub(crate) async fn close(mut self) {
        let (eof, _) = self.options.shutdown_grace;
        let closed = match self.service.take() {
            Some(mut service) => timeout(eof, service.close()).await.is_ok(),
            None => true,
        };
        // One that does not read keeps its input from being closed. The same time limits the end of an
        // HTTP session.
        match self.process.take() {
            Some(mut process) if closed => drop(process.shutdown().await),
            Some(process) => drop(process.terminate().await),
            None => {}
        }
    }
}

/// An open connection, for calls.
#[derive(Clone)]
pub(crate) struct Live {
    pub(crate) peer: Peer<RoleClient>,
    pub(crate) wire: Arc<Wire>,
    discovers: bool,
}

impl Live {
    /// Returns whether the server reports changes of its tools only to those who subscribe.
    fn needs_subscription(&self) -> bool {
        let info = self.peer.peer_info().filter(|_| self.discovers);
        info.is_some_and(|info| {
            let tools = info.capabilities.tools.as_ref();
            let can_change = tools.and_then(|tools| tools.list_changed) == Some(true);
            // It may have answered only `initialize`.
            can_change && !info.protocol_version.has_initialize()
        })
    }

    /// Keeps a subscription to changes of the tools, where the server needs one.
    pub(crate) async fn subscription(&self, server: &str) -> Infallible {
        if self.needs_subscription() {
            let filter = SubscriptionFilter::builder().tools_list_changed();
            let params = SubscriptionsListenRequestParams::new(filter.build());
            let request = SubscriptionsListenRequest::new(params);
            let request = ClientRequest::SubscriptionsListenRequest(request);
            // Not by `listen`: notifications do not reach `rmcp`.
            let ended = self.peer.send_request(request).await;
            tracing::debug!(server, ?ended, "MCP server reports no more changes");
        }
        std::future::pending().await
    }

    /// Lists the tools of the server, up to the limit.
    pub(crate) async fn tools(
        &self,
        server: &str,
        options: &Options,
    ) -> Result<Vec<McpTool>, String> {
        let listed = self.list(server, options.max_tools);
        match timeout(options.list_timeout, listed).await {
            Ok(Ok(tools)) => Ok(tools),
            Ok(Err(error)) => Err(format!("failed to list its tools: {error}")),
            Err(_) => {
                let after = options.list_timeout;
                Err(format!("did not list its tools within {after:?}"))
            }
        }
    }

    async fn list(&self, server: &str, max_tools: usize) -> Result<Vec<McpTool>, ServiceError> {
        let info = self.peer.peer_info();
        if info.is_some_and(|info| info.capabilities.tools.is_none()) {
            return Ok(Vec::new());
        }
        let mut tools: Vec<McpTool> = Vec::new();
        let mut params = PaginatedRequestParams::default();
        loop {
            let request = ListToolsRequest {
                method: Default::default(),
                params: Some(params.clone()),
                extensions: Default::default(),
            };
            // Not by `list_tools`, which may answer from its cache.
            let request = ClientRequest::ListToolsRequest(request);
            let ServerResult::ListToolsResult(page) = self.peer.send_request(request).await? else {
                return Err(ServiceError::UnexpectedResponse);
            };
            for tool in page.tools {
                let tool = McpTool::new(server, tool);
                if tools.len() == max_tools {
                    tracing::info!(
                        server,
                        max_tools,
                        "an MCP server has more tools than are used"
                    );
                    return Ok(tools);
                }
                // A second tool of a name could never be called.
                if !tools.iter().any(|other| other.name == tool.name) {
                    tools.push(tool);
                }
            }
            params.cursor = page.next_cursor;
            if params.cursor.is_none() {
                return Ok(tools);
            }
        }
    }
}

/// Returns the parameters of `initialize`, which describe the agent and the session.
fn config(origin: &Origin, options: &Options) -> ClientConfig {
    let project = std::path::Path::new(&origin.cwd).file_name();
    let project = project.map(|name| name.to_string_lossy().into_owned());
    let members = [
        ("role", options.role.clone()),
        ("spec", options.spec.clone()),
        ("project", project),
        ("session_id", Some(origin.session_id.clone())),
    ];
    let members = members
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), Value::String(value?))));
    let session: Map<String, Value> = members.collect();
    let mut capabilities = ClientCapabilities::default();
    capabilities.experimental = Some([("session".to_owned(), session)].into());
    let (name, version) = options.client.clone();
    ClientConfig::new(capabilities, Implementation::new(name, version))
}

/// Returns why a connection could not be initialized.
fn initialize_error(error: &ClientInitializeError) -> OpenError {
    match error {
        ClientInitializeError::TransportError { error, .. } => {
            let fault = http::fault(error);
            OpenError {
                reason: fault.reason,
                is_final: fault.kind == FaultKind::Refused,
            }
        }
        ClientInitializeError::ConnectionClosed(_) => OpenError {
            reason: "closed the connection before it was initialized".to_owned(),
            is_final: false,
        },
        other => OpenError::is_final(format!("failed to initialize: {other}")),
    }
}
