//! The connection to one agent, and requests outside of turns.

mod builder;
mod calls;
mod handler;
mod negotiation;
mod open;
mod past;
mod request;
mod session;
mod stray_output;

use std::sync::Arc;
use std::time::Duration;

use acp_sdk::Json;
use acp_sdk::v1::{
    AgentHandle, AuthMethodId, AuthenticateRequest, InitializeResponse, LogoutRequest,
    ProtocolVersion, methods,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::builder::ClientBuilder;
pub use self::past::SessionList;
pub use self::request::{Request, Response};
pub use self::session::{Child, Session};
use self::stray_output::StrayOutput;
use crate::error::{Error, Result};
use crate::exit::Exit;
use crate::hooks::AnyTerminals;
use crate::login::{LoginCommand, login_command};
use crate::process::{AgentProcess, CurrentProcess};
use crate::reconnect::{Bridge, ConnectionState};
use crate::session::Sessions;

/// A client of one agent.
///
/// Clones and sessions share the connection. Dropping the last of them closes the connection and kills
/// an agent that was started for it; [`shutdown`](Self::shutdown) is graceful.
///
/// ```no_run
/// use acp_client::{AgentCommand, Client, Policy, Workspace};
///
/// # async fn example() -> acp_client::Result<()> {
/// let client = Client::builder()
///     .workspace(Workspace::new())
///     .permissions(Policy::ApproveReads)
///     .spawn(AgentCommand::new("opencode").arg("acp"))
///     .await?;
/// let session = client.new_session("/home/me/project").await?;
/// let outcome = session.prompt("What is this project about?").await?.outcome().await?;
/// println!("{outcome}");
/// client.shutdown().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    agent: AgentHandle,
    agent_info: InitializeResponse,
    sessions: Arc<Sessions>,
    terminals: Option<Arc<AnyTerminals>>,
    /// Whether sessions are put in a mode in which the agent asks.
    asks_first: bool,
    /// The agent is a process in a sandbox.
    is_confined: bool,
    /// Whether prompts have idempotency keys, if the agent honors them.
    sends_keys: bool,
    wire: Wire,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner")
            .field("sessions", &self.sessions)
            .field("wire", &self.wire)
            .finish_non_exhaustive()
    }
}

/// The connection and the state that explains its errors.
#[derive(Debug)]
struct Wire {
    driver: JoinHandle<()>,
    /// Cancelled when all messages of the agent were handled and the connection has ended.
    ended: CancellationToken,
    endpoint: Endpoint,
    state: watch::Sender<ConnectionState>,
    stray_output: Arc<StrayOutput>,
    limits: Limits,
}

/// The kind of agent and its handle.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per connection")]
enum Endpoint {
    /// A process that this client started.
    Process(Arc<AgentProcess>),
    /// A remote agent, or a process that is restarted.
    Bridge {
        bridge: Bridge,
        /// `None` for a remote agent.
        process: Option<CurrentProcess>,
    },
    /// An agent behind a transport of the application.
    Transport,
}

impl Wire {
    /// Returns the agent's process, if this client started it.
    fn process(&self) -> Option<Arc<AgentProcess>> {
        match &self.endpoint {
            Endpoint::Process(process) => Some(process.clone()),
            Endpoint::Bridge { process, .. } => process.as_ref()?.borrow().clone(),
            Endpoint::Transport => None,
        }
    }
}

/// The timeouts of the agent and of this client's readers.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// For responses to all requests except prompts.
    answer: Duration,
    /// For the end of a cancelled turn.
    cancel: Duration,
    /// For a reader that blocks other sessions.
    reader: Duration,
    /// For updates after the response to a prompt.
    late: Duration,
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Client {
    /// Returns a builder with default settings.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Connects to the agent at a URL with default settings.
    ///
    /// See [`ClientBuilder::connect_remote`] for other settings.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`ClientBuilder::connect_remote`].
    #[cfg(feature = "remote")]
    pub async fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::builder().connect_remote(url.as_ref()).await
    }

    /// Returns the negotiated protocol version.
    ///
    /// It is 2 if `ClientBuilder::offer_v2` was called and the agent supports version 2, else 1.
    #[must_use]
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.inner.agent_info.protocol_version
    }

    /// Returns the agent's response to `initialize`.
    ///
    /// A response of version 2 is converted; methods that version 2 requires are capabilities here.
    #[must_use]
    pub fn agent_info(&self) -> &InitializeResponse {
        &self.inner.agent_info
    }

    /// Returns the typed caller of version 1, for requests without a method here.
    ///
    /// With an agent of version 2, use `agent_v2`, or only the [`peer`](AgentHandle::peer) of this one.
    #[must_use]
    pub fn agent(&self) -> &AgentHandle {
        &self.inner.agent
    }

    /// Returns the typed caller of version 2, if that version was negotiated.
    #[must_use]
    pub fn agent_v2(&self) -> Option<acp_sdk::v2::AgentHandle> {
        let peer = self.inner.agent.peer();
        let is_v2 = self.inner.is_v2();
        is_v2.then(|| acp_sdk::v2::AgentHandle::new(peer.clone()))
    }

    /// Returns the agent's process, if this client started it.
    ///
    /// After a [restart](crate::AgentCommand::restart), this is the latest process.
    #[must_use]
    pub fn process(&self) -> Option<Arc<AgentProcess>> {
        self.inner.wire.process()
    }

    /// Returns a watch on the state of the connection.
    ///
    /// ```no_run
    /// use acp_client::{Client, ConnectionState};
    ///
    /// # fn example(client: &Client) {
    /// let mut state = client.connection_state();
    /// tokio::spawn(async move {
    ///     while state.changed().await.is_ok() {
    ///         match &*state.borrow_and_update() {
    ///             ConnectionState::Lost { reason } => eprintln!("connecting again: {reason}"),
    ///             other => eprintln!("{other:?}"),
    ///         }
    ///     }
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn connection_state(&self) -> watch::Receiver<ConnectionState> {
        self.inner.wire.state.subscribe()
    }

    /// Returns whether the connection has ended for good.
    pub(crate) fn has_ended(&self) -> bool {
        let exited = match &self.inner.wire.endpoint {
            // A descendant of the agent may keep its output open.
            Endpoint::Process(process) => process.exit().is_some(),
            _ => false,
        };
        let peer = self.inner.agent.peer();
        exited || peer.is_closing() || peer.is_closed()
    }

    /// Sends `authenticate`, in version 2 `auth/login`, with one of the agent's authentication
    /// methods.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/authentication>
    ///
    /// # Errors
    ///
    /// Fails when the agent rejects the request, does not answer in time, or has disconnected.
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        let request = AuthenticateRequest::new(method);
        let answer = self.inner.send::<methods::Authenticate>(&request).await;
        answer.map(drop)
    }

    /// Returns the command of an authentication method that requires a terminal.
    ///
    /// Agents offer such methods to clients that declare
    /// [`terminal_auth`](crate::ClientBuilder::terminal_auth). `None` if the agent does not offer
    /// this method with a command; use [`authenticate`](Self::authenticate) for other methods. Also
    /// `None` if this client has not started the agent, because the command is then unknown.
    #[must_use]
    pub fn login_command(&self, method: &str) -> Option<LoginCommand> {
        let process = self.process()?;
        let agent = process.command_line();
        let mut methods = self.agent_info().auth_methods.iter();
        methods.find_map(|offered| {
            login_command(offered, agent).filter(|login| login.method.as_str() == method)
        })
    }

    /// Sends `logout`, in version 2 `auth/logout`.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability. Fails when it rejects the request, does
    /// not answer in time, or has disconnected.
    pub async fn logout(&self) -> Result<()> {
        if self.agent_info().agent_capabilities.auth.logout.is_none() {
            return Err(Error::unsupported("logout", "auth.logout"));
        }
        let request = LogoutRequest::new();
        self.inner.send::<methods::Logout>(&request).await.map(drop)
    }

    /// Sends a request of a method that the protocol does not define, and returns its result.
    ///
    /// Spec: <https://agentclientprotocol.com/protocol/v1/extensibility>
    ///
    /// # Errors
    ///
    /// Fails when the agent rejects the request, does not answer in time, or has disconnected.
    pub async fn extension_request(&self, method: &str, params: Option<&Json>) -> Result<Json> {
        let call = self.inner.agent.peer().call_ext(method, params);
        self.inner.answer(method, call).await
    }

    /// Sends a notification of a method that the protocol does not define.
    ///
    /// # Errors
    ///
    /// Fails when the agent has disconnected, or does not read for the time of a response.
    pub async fn extension_notification(&self, method: &str, params: Option<&Json>) -> Result<()> {
        let sending = self.inner.agent.peer().notify_ext(method, params);
        self.inner.answer(method, sending).await
    }

    /// Closes the connection and returns the exit status of an agent that this client started.
    ///
    /// The agent's process is terminated after the timeouts of
    /// [`AgentCommand::shutdown_grace`](crate::AgentCommand::shutdown_grace). Pending calls fail.
    pub async fn shutdown(&self) -> Option<Exit> {
        self.inner.agent.peer().close_output();
        match &self.inner.wire.endpoint {
            Endpoint::Process(process) => Some(process.await_end().await),
            Endpoint::Bridge { bridge, process } => {
                bridge.close();
                let current = || process.as_ref()?.borrow().clone();
                if let Some(process) = current() {
                    process.await_end().await;
                }
                bridge.closed().await;
                // The process may have been restarted just before.
                Some(current()?.await_end().await)
            }
            Endpoint::Transport => None,
        }
    }
}
