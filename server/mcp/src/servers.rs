//! The servers of a session.

use std::fmt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{McpCapabilities, McpServer};
use acp_server::{AgentInfo, Session};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, ServerResult,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, ServiceError};
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::connection::{Live, Origin};
use crate::http::{self, FaultKind};
use crate::supervisor::{Entry, ServerState, ServerStatus, supervise};
use crate::wire::{OnProgress, Progress};
use crate::{CallError, CallOutput, McpTool, Options};

/// Time to find out why a server has ended.
const EXPLANATION: Duration = Duration::from_secs(5);

/// Advertises that the agent connects to MCP servers over stdio and streamable HTTP and, with the feature `unstable`,
/// to those that its clients provide over their connections. Clients offer servers with other transports to other
/// agents only.
///
/// ```
/// use acp_server::AgentInfo;
///
/// let info = acp_server_mcp::advertise(AgentInfo::new("my-agent", "1.0.0"));
/// assert!(info.mcp.http && info.mcp_stdio && !info.mcp.sse);
/// ```
#[must_use]
pub fn advertise(info: AgentInfo) -> AgentInfo {
    let capabilities = McpCapabilities::new().with_http(true);
    #[cfg(feature = "unstable")]
    let capabilities = capabilities.with_acp(true);
    info.mcp(capabilities).mcp_stdio()
}

/// The MCP servers of a session, connected and supervised. Clones are handles to the same servers;
/// the default has none.
///
/// [`close`](Self::close) ends them and waits for it. Dropping the last handle ends them in the background.
#[derive(Clone, Default)]
pub struct Servers(Option<Arc<Shared>>);

struct Shared {
    entries: Vec<Arc<Entry>>,
    options: Arc<Options>,
    changes: watch::Receiver<u64>,
    tasks: TaskTracker,
    stop: CancellationToken,
    _stop_on_drop: DropGuard,
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.states()).finish()
    }
}

impl Servers {
    /// Connects to the servers that the client has named for the session, all at once.
    ///
    /// Returns when each is ready or has failed, and after [`Options::open_timeout`] at the latest. A server that
    /// fails is a [state](Self::states) and harms no other. Requires a tokio runtime with I/O and time
    /// enabled.
    pub async fn connect(session: &Session, options: &Options) -> Self {
        let origin = Origin {
            session_id: session.id().to_string(),
            cwd: session.cwd().to_owned(),
            session: Some(session.downgrade()),
        };
        Self::connect_from(session.mcp_servers(), origin, options).await
    }

    /// Connects to these servers, as [`connect`](Self::connect), for agents that have servers of their own. Their
    /// processes run in the directory `cwd`.
    pub async fn connect_to(
        servers: Vec<McpServer>,
        session_id: &str,
        cwd: &Path,
        options: &Options,
    ) -> Self {
        let origin = Origin {
            session_id: session_id.to_owned(),
            cwd: cwd.to_string_lossy().into_owned(),
            session: None,
        };
        Self::connect_from(servers, origin, options).await
    }

    async fn connect_from(servers: Vec<McpServer>, origin: Origin, options: &Options) -> Self {
        if servers.is_empty() {
            return Self::default();
        }
        let origin = Arc::new(origin);
        let options = Arc::new(options.clone());
        let (changed, changes) = watch::channel(0);
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let mut entries: Vec<Arc<Entry>> = Vec::new();
        for server in servers {
            let name = name(&server);
            let is_second = entries.iter().any(|entry| entry.name == name);
            let entry = Arc::new(Entry::new(&name, changed.clone()));
            entries.push(entry.clone());
            if is_second {
                entry.fail("has the name of another server of the session".to_owned());
                continue;
            }
            let (origin, options, stop) = (origin.clone(), options.clone(), stop.clone());
            tasks.spawn(async move { supervise(&entry, &server, &origin, &options, &stop).await });
        }
        tasks.close();
        let this = Self(Some(Arc::new(Shared {
            entries,
            changes,
            tasks,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            options: options.clone(),
        })));
        let connecting = |status: &ServerStatus| status.state == ServerState::Connecting;
        let connected = this.wait(|| !this.states().iter().any(connecting));
        // Those that are late go on.
        let _ = timeout(options.open_timeout, connected).await;
        this
    }

    fn entries(&self) -> &[Arc<Entry>] {
        self.0.as_deref().map_or(&[], |shared| &shared.entries)
    }

    /// Waits until something is true of the servers.
    async fn wait(&self, mut is_true: impl FnMut() -> bool) {
        if let Some(shared) = &self.0 {
            let mut changes = shared.changes.clone();
            // Fails when all tasks have ended, which nothing follows.
            let _ = changes.wait_for(|_| is_true()).await;
        }
    }

    /// Returns the tools of all servers, in the order in which the client named them. Those of a server that is
    /// started again are included.
    #[must_use]
    pub fn tools(&self) -> Vec<McpTool> {
        let entries = self.entries().iter();
        entries
            .flat_map(|entry| entry.current().tools.clone())
            .collect()
    }

    /// Returns the servers with their states.
    #[must_use]
    pub fn states(&self) -> Vec<ServerStatus> {
        let status = |entry: &Arc<Entry>| ServerStatus {
            name: entry.name.clone(),
            state: entry.current().state.clone(),
        };
        self.entries().iter().map(status).collect()
    }

    /// Waits until tools or states differ from what they were at the last call of this function with the same
    /// `seen`, which begins at 0. Never completes without servers.
    pub async fn changed(&self, seen: &mut u64) {
        let Some(shared) = &self.0 else {
            return std::future::pending().await;
        };
        let mut changes = shared.changes.clone();
        match changes.wait_for(|count| count != seen).await {
            Ok(count) => *seen = *count,
            Err(_) => std::future::pending().await,
        }
    }

    /// Calls a tool by its [name](McpTool::name), until `cancel` completes: then the server is notified, and
    /// the call fails at once. So it does if this future is dropped.
    ///
    /// ```no_run
    /// # async fn example(servers: acp_server_mcp::Servers, turn: acp_server::Turn) -> Result<(), acp_server_mcp::CallError> {
    /// let arguments = serde_json::Map::from_iter([("path".to_owned(), "a.md".into())]);
    /// let output = servers.call("files__read_text", arguments, turn.cancelled()).await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// [`CallError`], which names server, tool and reason.
    pub async fn call(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        cancel: impl Future<Output = ()> + Send,
    ) -> Result<CallOutput, CallError> {
        self.call_with_progress(name, arguments, cancel, |_| {})
            .await
    }

    /// Calls a tool as [`call`](Self::call), with a callback for its progress, which must not block.
    ///
    /// # Errors
    ///
    /// As [`call`](Self::call).
    pub async fn call_with_progress(
        &self,
        name: &str,
        arguments: Map<String, Value>,
        cancel: impl Future<Output = ()> + Send,
        on_progress: impl Fn(Progress) + Send + Sync + 'static,
    ) -> Result<CallOutput, CallError> {
        let unknown = || CallError::UnknownTool {
            name: name.to_owned(),
        };
        let shared = self.0.as_deref().ok_or_else(unknown)?;
        let called = shared.entries.iter().find_map(|entry| {
            let current = entry.current();
            let tool = current.tools.iter().find(|tool| tool.name == name)?;
            let live = current.live.clone();
            let down = || reason_of(&current.state);
            Some((entry, tool.tool.clone(), live.ok_or_else(down)))
        });
        let (entry, tool, live) = called.ok_or_else(unknown)?;
        let server = entry.name.clone();
        let live = match live {
            Ok(live) => live,
            Err(reason) => {
                return Err(CallError::Unavailable {
                    server,
                    tool,
                    reason,
                });
            }
        };
        let params = CallToolRequestParams::new(tool.clone()).with_arguments(arguments);
        let mut request = CallToolRequest::new(params);
        request.extensions.insert(OnProgress(Arc::new(on_progress)));
        let request = ClientRequest::CallToolRequest(request);
        let mut cancel = pin!(cancel);
        let after = shared.options.call_timeout;
        let mut expired = pin!(sleep(after));
        let mut sent = pin!(InFlight::send(&live, request));
        // Sending waits while the server is slow to read.
        let response = tokio::select! {
            biased;
            () = &mut cancel => return Err(CallError::Cancelled { server, tool }),
            response = &mut sent => response,
            () = live.wire.ended.cancelled() => Err(ServiceError::TransportClosed),
            () = &mut expired => return Err(CallError::TimedOut { server, tool, after }),
        };
        let fault = match &response {
            Err(ServiceError::TransportSend(error)) => Some(http::fault(error)),
            _ => None,
        };
        if let Some(fault) = &fault
            && fault.kind == FaultKind::Unreachable
        {
            live.wire.fail(&*fault.reason);
        }
        match response {
            Ok(ServerResult::CallToolResult(result)) => {
                Ok(CallOutput::new(result, shared.options.max_result_bytes))
            }
            Ok(ServerResult::EmptyResult(_)) => Ok(CallOutput::new(
                CallToolResult::default(),
                shared.options.max_result_bytes,
            )),
            Ok(_) => Err(CallError::Failed {
                server,
                tool,
                reason: "the response is no result of a tool".to_owned(),
            }),
            Err(ServiceError::McpError(error)) => Err(CallError::Failed {
                server,
                tool,
                reason: format!("{} ({})", error.message, error.code.0),
            }),
            Err(error) if live.wire.ended.is_cancelled() => {
                let is_other = || {
                    let current = entry.current();
                    let same = current.live.as_ref();
                    !same.is_some_and(|other| Arc::ptr_eq(&other.wire, &live.wire))
                };
                let _ = timeout(EXPLANATION, self.wait(is_other)).await;
                let reason = match &entry.current().state {
                    ServerState::Restarting { reason, .. } | ServerState::Failed { reason } => {
                        reason.clone()
                    }
                    ServerState::Closed => "the session is closed".to_owned(),
                    _ => error.to_string(),
                };
                Err(CallError::Ended {
                    server,
                    tool,
                    reason,
                })
            }
            Err(error) => Err(CallError::Failed {
                server,
                tool,
                reason: fault.map_or_else(|| error.to_string(), |fault| fault.reason),
            }),
        }
    }

    /// Ends all servers and waits for it: standard input is closed, `SIGTERM` and `SIGKILL` follow after
    /// [`Options::shutdown_grace`]. Calls in progress fail.
    pub async fn close(&self) {
        if let Some(shared) = &self.0 {
            shared.stop.cancel();
            shared.tasks.wait().await;
        }
    }
}

/// A request whose server is notified when nobody waits for the response any more.
struct InFlight(Option<RequestHandle<RoleClient>>);

impl InFlight {
    async fn send(live: &Live, request: ClientRequest) -> Result<ServerResult, ServiceError> {
        let options = PeerRequestOptions::no_options();
        let handle = live.peer.send_cancellable_request(request, options).await?;
        let mut this = Self(Some(handle));
        let Some(handle) = &mut this.0 else {
            return Err(ServiceError::TransportClosed);
        };
        let response = (&mut handle.rx).await;
        this.0 = None;
        response.unwrap_or(Err(ServiceError::TransportClosed))
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.0.take(), tokio::runtime::Handle::try_current())
        {
            // Ends with the connection at the latest.
            runtime.spawn(handle.cancel(Some("cancelled by the user".to_owned())));
        }
    }
}

/// Returns why a server that is not ready cannot be called. It follows the server's name.
fn reason_of(state: &ServerState) -> String {
    match state {
        ServerState::Connecting | ServerState::Ready { .. } => "is not connected yet".to_owned(),
        ServerState::Restarting {
            attempt, reason, ..
        } => format!("{reason}; it is started again (attempt {attempt})"),
        ServerState::Failed { reason } => reason.clone(),
        ServerState::Closed => "has ended with its session".to_owned(),
    }
}

fn name(server: &McpServer) -> String {
    match server {
        McpServer::Stdio(server) => server.name.clone(),
        McpServer::Http(server) => server.name.clone(),
        McpServer::Sse(server) => server.name.clone(),
        #[cfg(feature = "unstable")]
        McpServer::Acp(server) => server.name.clone(),
        McpServer::Unknown(server) => {
            let name = server.get("name").and_then(|name| name.parse().ok());
            name.unwrap_or_default()
        }
        _ => String::new(),
    }
}
