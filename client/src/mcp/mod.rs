//! Agents as tools of hosts of the Model Context Protocol (MCP).
//!
//! A [`McpServer`] offers a tool for each of its agents, whose call is a [call](crate::ExternalAgent::call) of an
//! [`ExternalAgent`]. The agent's activity is reported by progress notifications if the host
//! requests them. A cancelled request cancels the agent's turn. `docs/mcp.md` describes the setup
//! of hosts.
//!
//! Spec: <https://modelcontextprotocol.io/specification/2025-06-18/server/tools>

mod input;
mod progress;
mod result;
mod server;

use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;

use self::input::Input;
use crate::external::ExternalAgent;

/// Offers each [`ExternalAgent`] as a tool. Clones share the agents.
///
/// It is a `ServerHandler` of the crate `rmcp`, so it can be served over every transport of that crate,
/// such as its `StreamableHttpService`.
///
/// ```no_run
/// use acp_client::{AgentCommand, Client, ExternalAgent, McpServer, Policy};
///
/// # async fn example() -> Result<(), acp_client::McpError> {
/// let agent = ExternalAgent::start_with(|| {
///     Client::builder()
///         .permissions(Policy::ApproveReads)
///         .spawn(AgentCommand::new("opencode").arg("acp"))
/// });
/// McpServer::new([agent]).serve_stdio().await
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct McpServer {
    agents: Arc<[ExternalAgent]>,
    /// Cancels the calls when their connection has ended.
    ended: CancellationToken,
    /// A reference whose clones are counted to limit the number of servers.
    _counted: Option<Arc<()>>,
}

/// The error of serving an MCP host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum McpError {
    /// The host did not initialize the connection as MCP requires.
    #[error("the MCP host did not initialize the connection: {0}")]
    Initialize(String),
    /// The task that serves the connection has failed.
    #[error("the connection to the MCP host failed: {0}")]
    Failed(String),
}

impl McpServer {
    /// Creates a server that offers these agents. Their names should differ: of two with the same name,
    /// the second is never called.
    pub fn new(agents: impl IntoIterator<Item = ExternalAgent>) -> Self {
        Self {
            agents: agents.into_iter().collect(),
            ended: CancellationToken::new(),
            _counted: None,
        }
    }

    /// Holds a reference, so that the servers in use can be counted.
    #[doc(hidden)]
    pub fn counted(mut self, reference: Arc<()>) -> Self {
        self._counted = Some(reference);
        self
    }

    /// Serves the host on standard input and output until it closes the input. Nothing else may use
    /// these streams.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`serve`](Self::serve).
    pub async fn serve_stdio(self) -> Result<(), McpError> {
        let (input, output) = rmcp::transport::stdio();
        self.serve(input, output).await
    }

    /// Serves a host on a pair of streams until it closes the input.
    ///
    /// Calls in progress are cancelled then; the agent keeps running. The maximum length of a line
    /// is 16 MiB.
    ///
    /// # Errors
    ///
    /// [`McpError::Initialize`] if the host does not begin with the handshake, [`McpError::Failed`]
    /// if the connection fails.
    pub async fn serve(
        mut self,
        input: impl AsyncRead + Send + Unpin + 'static,
        output: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(), McpError> {
        use rmcp::service::ServerInitializeError;
        use rmcp::{ServiceExt, transport::async_rw::AsyncRwTransport};
        self.ended = self.ended.child_token();
        // The guard also cancels the calls when this future is dropped.
        let ended = self.ended.clone().drop_guard();
        let input = Input::new(input, self.ended.clone());
        let transport = AsyncRwTransport::new_server(input, output);
        let running = match ServiceExt::serve(self.clone(), transport).await {
            Ok(running) => running,
            // A host that disconnects before the handshake is not an error.
            Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
            Err(error) => return Err(McpError::Initialize(error.to_string())),
        };
        let quit = running.waiting().await;
        drop(ended);
        quit.map(drop)
            .map_err(|error| McpError::Failed(error.to_string()))
    }
}
