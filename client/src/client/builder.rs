//! Configures and opens a connection.

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::limits::MAX_MESSAGE_BYTES;
use acp_sdk::service::Layer;
use acp_sdk::v1::{
    BooleanConfigOptionCapabilities, ClientCapabilities, ClientSessionCapabilities,
    CompactionCapabilities, Implementation, InitializeRequest, NoticeCapabilities, ProtocolVersion,
    SessionConfigOptionsCapabilities,
};
use acp_sdk::{ConnectionBuilder, Observer, Transcript, Transport};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::handler::{Handler, Hooks};
use super::negotiation::Opening;
use super::stray_output::{ForwardingObserver, StrayOutput};
use super::{Client, Endpoint, Inner, Limits, Wire};
use crate::error::Result;
use crate::guard::Guard;
use crate::hooks::{AnyTerminals, ConnectionId, Elicitation, Extensions, Files, Terminals};
use crate::permission::Permissions;
use crate::process::{AgentCommand, CurrentProcess, ProcessConnector};
use crate::reconnect::{Bridge, ConnectionState, Connector};
use crate::session::Sessions;
use crate::workspace::Workspace;

/// Capacity of a session's queue of updates, in bytes; each counts about 3 KiB for its handler.
const QUEUED_BYTES: usize = 4 << 20;

/// Maximum number of concurrent requests of the agent; further ones are rejected.
const REQUESTS: usize = 256;

/// Time for reading updates that are unread when the agent disconnects. Handlers that wait for
/// something else are aborted when the agent disconnects.
const DRAIN: Duration = Duration::from_secs(3600);

/// Configures and opens a [`Client`]. Created by [`Client::builder`].
#[must_use]
pub struct ClientBuilder {
    name: Implementation,
    hooks: Hooks,
    observer: Option<Box<dyn Observer>>,
    transcript: Option<Transcript>,
    layers: Vec<Box<dyn Layer>>,
    through: Vec<Box<dyn FnOnce(Transport) -> Transport + Send>>,
    max_message_bytes: Option<usize>,
    limits: Limits,
    terminal_auth: bool,
    asks_first: bool,
    is_confined: bool,
    sends_keys: bool,
    offers_v2: bool,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("name", &self.name)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        Self {
            name: Implementation::new("acp-client", env!("CARGO_PKG_VERSION")),
            hooks: Hooks::default(),
            observer: None,
            transcript: None,
            layers: Vec::new(),
            through: Vec::new(),
            max_message_bytes: None,
            limits: Limits {
                answer: Duration::from_secs(60),
                cancel: Duration::from_secs(10),
                reader: Duration::from_secs(10),
                late: Duration::ZERO,
            },
            terminal_auth: false,
            asks_first: false,
            is_confined: false,
            sends_keys: true,
            offers_v2: false,
        }
    }

    /// Sets `clientInfo` of `initialize` (default `acp-client` and its version).
    pub fn name(mut self, name: Implementation) -> Self {
        self.name = name;
        self
    }

    /// Sends no idempotency keys with prompts (default: sends one if the agent honors keys).
    ///
    /// A prompt with a key is sent again when its answer is lost with the connection, and the agent runs it
    /// once. In version 2 every agent honors keys since the Preview of 2026-11-20; an earlier one ignores
    /// them, and would run the prompt again. Without a key, such a turn fails.
    pub fn without_idempotency_keys(mut self) -> Self {
        self.sends_keys = false;
        self
    }

    /// Offers version 2 of the protocol in addition to version 1 (default: version 1 only).
    ///
    /// The agent chooses; see [`Client::protocol_version`]. Version 2 is a draft, which may change with
    /// any release. It has no files and terminals of clients: agents use their own.
    pub fn offer_v2(mut self) -> Self {
        self.offers_v2 = true;
        self
    }

    /// Serves files and terminals by a workspace (default: neither), as far as the
    /// [permissions](Self::permissions) allow it.
    pub fn workspace(self, workspace: Workspace) -> Self {
        self.files(workspace.clone()).terminals(workspace)
    }

    /// Serves files (default: none), as far as the [permissions](Self::permissions) allow it.
    pub fn files(mut self, files: impl Files) -> Self {
        self.hooks.files = Some(Arc::new(files));
        self
    }

    /// Serves terminals (default: none), as far as the [permissions](Self::permissions) allow it.
    pub fn terminals(mut self, terminals: impl Terminals) -> Self {
        self.hooks.terminals = Some(Arc::new(terminals));
        self
    }

    /// Decides what the agent may do: answers its permission requests, and decides which files the
    /// client reads and writes for it and which commands it starts (default: rejects all).
    ///
    /// A tool call that changed something although nobody allowed it is decided too, afterwards:
    /// rejecting it cancels the turn, see [`Asker::Afterwards`](crate::Asker::Afterwards).
    pub fn permissions(mut self, permissions: impl Permissions) -> Self {
        self.hooks.guard = Guard::new(Arc::new(permissions));
        self
    }

    /// Puts each session that is opened in a mode in which the agent asks before its tool calls, if the
    /// agent has one by a known id (default: no).
    ///
    /// Opening a session then fails with [`Error::NeverAsks`](crate::Error::NeverAsks) where the agent
    /// is known not to ask and has no such mode, unless it is in a [sandbox](AgentCommand::sandbox). Whether an agent without modes asks is not known.
    pub fn ask_first(mut self) -> Self {
        self.asks_first = true;
        self
    }

    /// Answers elicitations (default: none, and the capability is not declared).
    pub fn elicitation(mut self, elicitation: impl Elicitation) -> Self {
        self.hooks.elicitation = Some(Arc::new(elicitation));
        self
    }

    /// Answers extension methods (default: -32601).
    pub fn extensions(mut self, extensions: impl Extensions) -> Self {
        self.hooks.extensions = Some(Arc::new(extensions));
        self
    }

    /// Declares that this client can run login commands in a terminal (default: no).
    ///
    /// Agents then offer authentication methods that require a terminal. [`Client::login_command`]
    /// returns their command; the application runs it.
    pub fn terminal_auth(mut self) -> Self {
        self.terminal_auth = true;
        self
    }

    /// Sets the callbacks for invalid input that was tolerated (default: no-op).
    pub fn observer(mut self, observer: impl Observer) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// Records the messages of both sides (default: no transcript), masked as the transcript says.
    pub fn transcript(mut self, transcript: Transcript) -> Self {
        self.transcript = Some(transcript);
        self
    }

    /// Sets the maximum size of a message, in bytes (default [`MAX_MESSAGE_BYTES`]).
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.max_message_bytes = Some(bytes);
        self
    }

    /// Sets the timeout of every request except prompts (default 60 s), and of permission requests
    /// that belong to no open session, see [`PermissionRequest`](crate::PermissionRequest).
    pub fn answer_within(mut self, limit: Duration) -> Self {
        self.limits.answer = limit;
        self
    }

    /// Sets the timeout for the end of a cancelled turn (default 10 s).
    pub fn cancel_within(mut self, limit: Duration) -> Self {
        self.limits.cancel = limit;
        self
    }

    /// Sets how long a reader of events may block the connection (default 10 s).
    ///
    /// A reader is a [`Turn`](crate::Turn) or [`Events`](crate::Events). One with 1 MiB unread blocks
    /// the connection. The limit counts while other sessions or requests need the connection; without
    /// them there is no limit. After it, events are dropped until the reader has read all it has,
    /// and then [`Event::Missed`](crate::Event::Missed) follows with their number.
    ///
    /// A permission request to a person ([`Permissions::in_order`](crate::Permissions::in_order))
    /// waits until all readers have received the earlier events. It is rejected with
    /// [`Reason::NotRead`](crate::Reason::NotRead) if one of them takes none for this time.
    pub fn reader_timeout(mut self, limit: Duration) -> Self {
        self.limits.reader = limit;
        self
    }

    /// Sets how long a turn goes on after the agent's response for updates that arrive late (default:
    /// not at all).
    ///
    /// For agents that answer `session/prompt` before their last updates, which the protocol does not
    /// allow: what arrives in this time is part of the turn and its [`Outcome`](crate::Outcome),
    /// without it of no turn. Every turn takes this time longer, which is why the default is 0; 100 ms
    /// suffice for most agents. A turn that is cancelled or dropped does not wait. Without effect in
    /// version 2, and with agents that name the prompt of each update, because they report the end of
    /// a turn exactly.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/prompt-turn>
    pub fn late_updates(mut self, limit: Duration) -> Self {
        self.limits.late = limit;
        self
    }

    /// Adds a layer around the client's service, such as that of an extension.
    ///
    /// The first layer is the outermost.
    pub fn layer(mut self, layer: impl Layer) -> Self {
        self.layers.push(Box::new(layer));
        self
    }

    /// Puts something between the client and the agent, such as a proxy of the crate `acp-proxy`: a function
    /// that gets the transport to the agent, and returns the one for the client.
    ///
    /// It is called once in a tokio runtime; connections that are opened again stay behind it. The first one
    /// is the nearest to the client.
    pub fn through(mut self, f: impl FnOnce(Transport) -> Transport + Send + 'static) -> Self {
        self.through.push(Box::new(f));
        self
    }

    /// Starts an agent and connects to it.
    ///
    /// # Errors
    ///
    /// [`Error::Spawn`](crate::Error::Spawn) if it cannot be started, and under the conditions of
    /// [`connect`](Self::connect).
    pub async fn spawn(mut self, agent: AgentCommand) -> Result<Client> {
        self.is_confined = agent.sandbox.is_some();
        if agent.restart.is_some() {
            let max_bytes = self.max_message_bytes.unwrap_or(MAX_MESSAGE_BYTES);
            let connector = ProcessConnector::new(agent, max_bytes, self.limits.answer);
            let process = Some(connector.current());
            return self.open_again(connector, process).await;
        }
        let (process, reader, writer) = agent.spawn_connected()?;
        let state = watch::Sender::new(ConnectionState::Open);
        let endpoint = Endpoint::Process(Arc::new(process));
        self.open((reader, writer).into(), endpoint, state).await
    }

    /// Connects to a remote agent: a URL, or a [`RemoteAgent`](crate::remote::RemoteAgent).
    ///
    /// # Errors
    ///
    /// [`Error::Remote`](crate::Error::Remote) if the URL or an option is invalid, the server
    /// cannot be reached, or it rejects the connection; and under the conditions of
    /// [`connect`](Self::connect).
    #[cfg(feature = "remote")]
    pub async fn connect_remote<A>(self, agent: A) -> Result<Client>
    where
        A: TryInto<crate::remote::RemoteAgent>,
        crate::remote::RemoteError: From<A::Error>,
    {
        let agent = agent.try_into().map_err(crate::remote::RemoteError::from)?;
        let agent = match self.max_message_bytes {
            Some(bytes) => agent.max_message_bytes(bytes),
            None => agent,
        };
        let connector = crate::remote::RemoteConnector::new(agent)?;
        self.open_again(connector, None).await
    }

    /// Connects to an agent through a transport, such as a pair `(reader, writer)` of streams.
    ///
    /// # Errors
    ///
    /// [`Error::Version`](crate::Error::Version) if the agent answers another protocol version.
    /// Fails when it rejects `initialize`, does not answer in time, or disconnects.
    pub async fn connect(self, transport: impl Into<Transport>) -> Result<Client> {
        let state = watch::Sender::new(ConnectionState::Open);
        let endpoint = Endpoint::Transport;
        self.open(transport.into(), endpoint, state).await
    }

    /// Opens a connection that reconnects after a loss.
    pub(crate) async fn open_again(
        self,
        connector: impl Connector,
        process: Option<CurrentProcess>,
    ) -> Result<Client> {
        let state = watch::Sender::new(ConnectionState::Open);
        let (bridge, transport) = Bridge::open(connector, state.clone()).await?;
        let endpoint = Endpoint::Bridge { bridge, process };
        self.open(transport.into(), endpoint, state).await
    }

    async fn open(
        self,
        transport: Transport,
        endpoint: Endpoint,
        state: watch::Sender<ConnectionState>,
    ) -> Result<Client> {
        let mut capabilities = capabilities(&self.hooks);
        if self.terminal_auth {
            let (auth, meta) = crate::login::declared();
            capabilities = capabilities.with_auth(auth).with_meta(meta);
        }
        let (terminals, asks_first) = (self.hooks.terminals.clone(), self.asks_first);
        let sessions = Arc::new(Sessions::new());
        let handler = Handler {
            sessions: sessions.clone(),
            hooks: self.hooks,
            reader_timeout: self.limits.reader,
            answer_limit: self.limits.answer,
        };
        let stray_output = Arc::new(StrayOutput::new(self.observer));
        let mut connection = ConnectionBuilder::new()
            .observer(ForwardingObserver(stray_output.clone()))
            .max_queued_bytes(QUEUED_BYTES)
            .max_requests(REQUESTS)
            .shutdown_timeout(DRAIN);
        if let Some(transcript) = self.transcript {
            connection = connection.transcript(transcript);
        }
        for layer in self.layers {
            connection = connection.layer(layer);
        }
        if let Some(bytes) = self.max_message_bytes {
            connection = connection.max_message_bytes(bytes);
        }
        if let Endpoint::Process(process) = &endpoint {
            connection = connection.explain_close(process.explain_close());
        }
        let between = self.through.into_iter().rev();
        let transport = between.fold(transport, |agent, between| between(agent));
        let (agent, driver) = Opening::new(connection, handler, transport, self.offers_v2);
        let ended = CancellationToken::new();
        let guard = ended.clone().drop_guard();
        let (readers, closed) = (sessions.clone(), state.clone());
        let end_terminals = EndTerminals(terminals.clone(), sessions.connection());
        let driver = tokio::spawn(async move {
            let _guards = (end_terminals, guard);
            if let Err(error) = driver.await {
                tracing::debug!(%error, "the connection to the agent failed");
            }
            readers.end();
            closed.send_replace(ConnectionState::Closed);
        });
        let wire = Wire {
            driver,
            ended,
            endpoint,
            state,
            stray_output,
            limits: self.limits,
        };
        let request = InitializeRequest::new(ProtocolVersion::V1)
            .with_client_capabilities(capabilities)
            .with_client_info(self.name);
        let (agent, agent_info) = agent.initialize(&wire, request).await?;
        let inner = Inner {
            agent,
            agent_info,
            sessions,
            terminals,
            asks_first,
            is_confined: self.is_confined,
            sends_keys: self.sends_keys,
            wire,
        };
        Ok(Client {
            inner: Arc::new(inner),
        })
    }
}

/// Ends the terminals of a connection when it is dropped, with the connection.
struct EndTerminals(Option<Arc<AnyTerminals>>, ConnectionId);

impl Drop for EndTerminals {
    fn drop(&mut self) {
        if let Some(terminals) = &self.0 {
            terminals.end_connection(self.1);
        }
    }
}

/// Returns the capabilities for the configured hooks.
fn capabilities(hooks: &Hooks) -> ClientCapabilities {
    let options = SessionConfigOptionsCapabilities::new()
        .with_boolean(BooleanConfigOptionCapabilities::new());
    let session = ClientSessionCapabilities::new()
        .with_config_options(options)
        .with_notices(NoticeCapabilities::new())
        .with_compaction(CompactionCapabilities::new());
    let terminals = hooks.terminals.as_ref();
    let mut capabilities = ClientCapabilities::new()
        .with_session(session)
        .with_terminal(terminals.is_some_and(|terminals| terminals.is_offered()));
    if let Some(files) = &hooks.files {
        capabilities.fs = files.capabilities();
    }
    capabilities.elicitation = hooks.elicitation.as_ref().map(|hook| hook.capabilities());
    capabilities
}
