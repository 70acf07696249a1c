//! An MCP server that a client or a proxy gives every session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use acp_client::Permissions;
use acp_sdk::json::UnknownVariant;
use acp_sdk::v1::McpServer;
use acp_sdk::{HandlerError, HandlerResult, Json, Transport};
use rmcp::RoleServer;
use rmcp::service::Service;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};

use super::function::{Function, Functions, ToolCall, ToolError, ToolOutput};
use super::operation::{self, ToolSession};
use super::permit::Permit;
use super::tool_list::ToolList;
use super::wire::{Inner, MESSAGE, ToolCallOf, random};
use super::{BridgeCommand, bridge, capability, sessions};
use crate::message::{raw, value};
use crate::proxies::add_servers;
use crate::shared::lock;
use crate::{Proxy, RawNext, Side};

/// The maximum number of sessions of a connection that have the tools.
const MOST_SESSIONS: usize = 10_000;

/// An MCP server in this process, which every session of a connection has.
///
/// Its tools are functions, or it is any server of the crate `rmcp` ([`of_service`](Self::of_service)).
///
/// ```
/// use acp_proxy::{McpTools, ToolCall};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Lines {
///     text: String,
/// }
///
/// let tools = McpTools::new("editor").tool(
///     "count_lines",
///     "Counts the lines of a text.",
///     |input: Lines, _: ToolCall| async move { Ok(input.text.lines().count().to_string()) },
/// );
/// # let _ = tools.proxy();
/// ```
#[derive(Clone, Debug)]
#[must_use]
pub struct McpTools<S = Functions> {
    name: Arc<str>,
    service: S,
    permit: Option<Permit>,
    /// The id of the declaration that a session needs, unless every session has the server.
    declared: Option<Arc<str>>,
}

impl McpTools {
    /// Creates a server without tools. Agents show its name.
    pub fn new(name: impl Into<String>) -> Self {
        let name: Arc<str> = name.into().into();
        Self {
            service: Functions::new(name.clone()),
            name,
            permit: None,
            declared: None,
        }
    }

    /// Adds a tool. The model chooses it by its name and description; the schema of its input is that of `T`.
    ///
    /// An error is for the model, which sees that the call has failed. Of two tools with the same name the
    /// second is never called. The function is dropped when the agent cancels the call.
    pub fn tool<T, F, Fut, O>(mut self, name: &str, description: &str, function: F) -> Self
    where
        T: DeserializeOwned + JsonSchema,
        F: Fn(T, ToolCall) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, ToolError>> + Send + 'static,
        O: Into<ToolOutput>,
    {
        self.service.add(Function::new(name, description, function));
        self
    }

    /// Lets the tools change while sessions use them, and returns what changes them. Agents that follow changes
    /// then list the tools again (`notifications/tools/list_changed`). Clones of the server have the same tools.
    ///
    /// ```
    /// use acp_proxy::{McpTools, ToolCall};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Nothing {}
    ///
    /// let (tools, list) = McpTools::new("editor").changeable();
    /// # let _ = tools.proxy();
    /// // The user has opened a file.
    /// list.set("selection", "Returns the selected text.", |_: Nothing, _: ToolCall| async {
    ///     Ok("let x = 1;")
    /// });
    /// // The user has closed it.
    /// list.remove("selection");
    /// ```
    pub fn changeable(mut self) -> (Self, ToolList) {
        let list = self.service.changeable();
        (self, list)
    }
}

impl<S: Service<RoleServer>> McpTools<S> {
    /// Creates a server of any service of the crate `rmcp`. Requests of a server, such as sampling, are not
    /// supported inside of the connection.
    pub fn of_service(name: impl Into<String>, service: S) -> Self {
        Self {
            name: name.into().into(),
            service,
            permit: None,
            declared: None,
        }
    }

    /// Gives the server only to the sessions that name it among their MCP servers, and returns what names it: add it
    /// to [`NewSessionRequest::mcp_servers`](acp_sdk::v1::NewSessionRequest::mcp_servers), and to those of the
    /// requests that load, resume or fork a session.
    ///
    /// ```no_run
    /// # async fn example(tools: acp_proxy::McpTools) -> acp_client::Result<()> {
    /// use acp_client::{AgentCommand, Client};
    /// use acp_proxy::BridgeCommand;
    /// use acp_sdk::v1::NewSessionRequest;
    ///
    /// let (tools, server) = tools.for_single_sessions();
    /// let client = Client::builder()
    ///     .through(|agent| tools.in_front_of(agent, BridgeCommand::acp()))
    ///     .spawn(AgentCommand::new("opencode").arg("acp"))
    ///     .await?;
    /// let with = client.new_session_with(NewSessionRequest::new("/project", vec![server])).await?;
    /// let without = client.new_session("/project").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn for_single_sessions(mut self) -> (Self, McpServer) {
        static LAST: AtomicU64 = AtomicU64::new(0);
        // It stays in this process: agents have another id for each session.
        let id = format!("declared-{}", LAST.fetch_add(1, Ordering::Relaxed) + 1);
        let member = |name: &str, value: &str| (name.to_owned(), Json::from(json!(value)));
        let members = [
            member("type", "acp"),
            member("name", &self.name),
            member("serverId", &id),
        ];
        let server = UnknownVariant::new("acp", members.into_iter().collect());
        self.declared = Some(id.into());
        (self, McpServer::Unknown(server))
    }

    /// Sets who decides about each call, such as [`Rules`](acp_client::Rules) (default: every call is allowed). A
    /// call that is rejected fails, with the reason for the model.
    pub fn permissions(mut self, permissions: impl Permissions) -> Self {
        self.permit = Some(Permit::new(permissions));
        self
    }

    /// Returns a proxy, for one connection, that gives every session this server, or those that
    /// [name it](Self::for_single_sessions). Agents that take no servers
    /// inside of the connection need a [`bridge()`](crate::bridge) behind it; otherwise their sessions are
    /// left as they are.
    pub fn proxy(self) -> Proxy {
        let provider = Arc::new(Provider {
            name: self.name.clone(),
            service: Arc::new(self.service),
            permit: self.permit,
            declared: self.declared,
            is_taken: AtomicBool::new(false),
            sessions: Mutex::default(),
        });
        let mut proxy = Proxy::new(format!("tools of {}", self.name));
        let of_initialize = provider.clone();
        proxy = proxy.on_raw_request(Some("initialize"), move |next, params| {
            let provider = of_initialize.clone();
            async move {
                let response = next.call(params).await?;
                let is_taken = capability::is_announced(&value(Some(&response)));
                provider.is_taken.store(is_taken, Ordering::Relaxed);
                Ok(response)
            }
        });
        for method in sessions::OPENING {
            let provider = provider.clone();
            proxy = proxy.on_raw_request(Some(method), move |next, params| {
                provider.clone().open(next, params)
            });
        }
        let of_end = provider.clone();
        let proxy = sessions::on_end(proxy, move |session| {
            of_end
                .sessions()
                .retain(|_, other| other.id() != Some(session));
        });
        proxy.on_raw_request(Some(MESSAGE), move |next, params| {
            provider.clone().message(next, params)
        })
    }

    /// Puts the server between a client and an agent: returns the client's end of a connection with `agent`.
    /// Agents that only know programs have it through `command`.
    ///
    /// ```no_run
    /// # async fn example(tools: acp_proxy::McpTools) -> acp_client::Result<()> {
    /// use acp_client::{AgentCommand, Client};
    /// use acp_proxy::BridgeCommand;
    ///
    /// let client = Client::builder()
    ///     .through(|agent| tools.in_front_of(agent, BridgeCommand::acp()))
    ///     .spawn(AgentCommand::new("opencode").arg("acp"))
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn in_front_of(self, agent: impl Into<Transport>, command: BridgeCommand) -> Transport {
        let bridged = bridge(command).in_front_of(agent);
        self.proxy().in_front_of(bridged)
    }
}

/// The server of one connection.
#[derive(Debug)]
struct Provider<S> {
    name: Arc<str>,
    service: Arc<S>,
    permit: Option<Permit>,
    declared: Option<Arc<str>>,
    /// Whether the agent takes it.
    is_taken: AtomicBool,
    /// The sessions that have it, by the id of their declaration.
    sessions: Mutex<HashMap<String, ToolSession>>,
}

impl<S: Service<RoleServer>> Provider<S> {
    /// Declares the server for a session that is opened.
    async fn open(
        self: Arc<Self>,
        next: RawNext,
        params: Option<Box<RawValue>>,
    ) -> HandlerResult<Box<RawValue>> {
        let is_taken = self.is_taken.load(Ordering::Relaxed);
        if self.declared.is_none() && !is_taken {
            return next.call(params).await;
        }
        let mut request = value(params.as_deref());
        let mut params = params;
        if let Some(declared) = &self.declared {
            if !has_removed(&mut request, declared) {
                return next.call(params).await;
            }
            params = Some(raw(&request)?);
        }
        if !is_taken {
            return next.call(params).await;
        }
        let id = random()?;
        let server = json!({"type": "acp", "name": &*self.name, "serverId": id});
        if !add_servers(&mut request, &[server], next.version()) {
            // For the agent to refuse.
            return next.call(params).await;
        }
        let session = ToolSession::default();
        if !self.has_added(&id, &session) {
            tracing::warn!(server = %self.name, "a session has no tools: {MOST_SESSIONS} have them");
            return next.call(params).await;
        }
        let named = sessions::named(params.as_deref());
        let opened = next.call(Some(raw(&request)?)).await;
        match &opened {
            Ok(response) => {
                if let Some(id) = sessions::opened(named, response) {
                    session.set(id);
                }
            }
            Err(_) => drop(self.sessions().remove(&id)),
        }
        opened
    }

    fn has_added(&self, id: &str, session: &ToolSession) -> bool {
        let mut sessions = self.sessions();
        let has_room = sessions.len() < MOST_SESSIONS;
        if has_room {
            sessions.insert(id.to_owned(), session.clone());
        }
        has_room
    }

    /// Runs a request to this server; passes others on.
    async fn message(
        self: Arc<Self>,
        next: RawNext,
        params: Option<Box<RawValue>>,
    ) -> HandlerResult<Box<RawValue>> {
        let inner = Inner::read(params.as_deref())?;
        let session = self.sessions().get(&inner.server_id).cloned();
        let Some(session) = session.filter(|_| next.from() == Side::Agent) else {
            return next.call(params).await;
        };
        // A tool may take long, and others are called meanwhile.
        next.release();
        let agent = next.agent();
        let notify = |inner: Inner| {
            let agent = agent.clone();
            async move { agent.notify_raw(MESSAGE, Some(&inner.write()?)).await }
        };
        let running = async {
            if let (Some(permit), Some(call)) = (&self.permit, ToolCallOf::of(&inner))
                && let Some(refused) = permit.refuses(&self.name, &session, call).await
            {
                return refused;
            }
            operation::run(self.service.clone(), inner, session, notify).await
        };
        tokio::select! {
            biased;
            () = next.cancelled() => Err(HandlerError::cancelled()),
            // Either the agent is gone, or whoever the tool works for.
            () = next.side_ended() => Err(HandlerError::internal(format!(
                "the MCP server `{}` is provided by a client that is not connected", self.name
            ))),
            outcome = running => Ok(to_raw_value(&outcome?)?),
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, ToolSession>> {
        lock(&self.sessions)
    }
}

/// Removes a declaration from a request that opens a session. Returns whether it was there.
fn has_removed(request: &mut Value, id: &str) -> bool {
    let servers = request.get_mut("mcpServers").and_then(Value::as_array_mut);
    let Some(servers) = servers else {
        return false;
    };
    let before = servers.len();
    servers.retain(|server| server["type"] != "acp" || server["serverId"] != id);
    servers.len() < before
}
