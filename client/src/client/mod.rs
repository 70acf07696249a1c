//! The connection to one agent, and requests outside of turns.

mod builder;
mod calls;
mod handler;
mod negotiation;
mod past;
mod request;
mod session;
mod stray_output;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use acp_sdk::v1::{
    AgentHandle, AuthMethodId, AuthenticateRequest, InitializeResponse, LoadSessionRequest,
    LoadSessionResponse, LogoutRequest, NewSessionRequest, NewSessionResponse, ProtocolVersion,
    ResumeSessionRequest, ResumeSessionResponse, SessionId, methods,
};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

pub use self::builder::ClientBuilder;
use self::calls::utf8_directory;
pub use self::past::SessionList;
use self::request::{Request, Response};
pub use self::session::Session;
use self::stray_output::StrayOutput;
use crate::error::{Error, Result};
use crate::hooks::{AnyTerminals, Place};
use crate::process::{AgentProcess, CurrentProcess, Exit};
use crate::reconnect::{Bridge, ConnectionState};
use crate::session::{Inbox, OpenedState, Sessions};

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
    terminals: Option<Arc<dyn AnyTerminals>>,
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
    /// It is 2 if [`ClientBuilder::offer_v2`] was called and the agent supports version 2, else 1.
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
    #[cfg(feature = "v2")]
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

    /// Sends `session/new` for a directory and returns the session.
    ///
    /// # Errors
    ///
    /// [`Error::Directory`] if the directory does not exist. Fails when the agent rejects the request,
    /// does not answer in time, or has disconnected.
    pub async fn new_session(&self, cwd: impl AsRef<Path>) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.new_session_with(NewSessionRequest::new(cwd, Vec::new()))
            .await
    }

    /// Sends `session/new` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`new_session`](Self::new_session).
    pub async fn new_session_with(&self, request: NewSessionRequest) -> Result<Session> {
        let place = Place::open(&request.cwd, &request.additional_directories);
        let _creating = self.inner.sessions.creating(&place);
        let (sessions, place_of_new) = (self.inner.sessions.clone(), place.clone());
        let opened = move |response: Option<Response<NewSessionResponse>>| {
            // In the order of messages, so that a later update is not overwritten.
            if let Some(Response { result, commands }) = response {
                let inbox = sessions.inbox(&result.session_id);
                inbox.set_place(place_of_new);
                let state = (result.modes, result.config_options);
                inbox.change_settings(|settings| settings.opened(state, commands));
            }
        };
        let call = self
            .inner
            .send_then::<methods::NewSession>(&request, opened);
        let id = call.await?.session_id;
        let inbox = self.claim(&id, place)?;
        Ok(Session::new(self.inner.clone(), id, inbox))
    }

    /// Sends `session/load`, in version 2 `session/resume` with replay, and returns the session.
    ///
    /// Its [events](Session::events) begin with the replayed history, which ends with
    /// [`Event::HistoryEnd`](crate::Event::HistoryEnd).
    ///
    /// The latest 8 MiB of the history are kept for the first reader.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability, and under the conditions of
    /// [`new_session`](Self::new_session).
    pub async fn load_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.load_session_with(LoadSessionRequest::new(id, cwd, Vec::new()))
            .await
    }

    /// Sends `session/load` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`load_session`](Self::load_session).
    pub async fn load_session_with(&self, request: LoadSessionRequest) -> Result<Session> {
        if !self.agent_info().agent_capabilities.load_session {
            return Err(Error::unsupported("session/load", "loadSession"));
        }
        let place = Place::open(&request.cwd, &request.additional_directories);
        let inbox = self.claim(&request.session_id, place)?;
        inbox.begin_history();
        let state = |response: LoadSessionResponse| (response.modes, response.config_options);
        let id = request.session_id.clone();
        self.open_again::<methods::LoadSession>(id, inbox, &request, state)
            .await
    }

    /// Sends `session/resume` and returns the session, without its history.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent lacks the capability, and under the conditions of
    /// [`new_session`](Self::new_session).
    pub async fn resume_session(
        &self,
        id: impl Into<SessionId>,
        cwd: impl AsRef<Path>,
    ) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.resume_session_with(ResumeSessionRequest::new(id, cwd))
            .await
    }

    /// Sends `session/resume` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// Fails under the conditions of [`resume_session`](Self::resume_session).
    pub async fn resume_session_with(&self, request: ResumeSessionRequest) -> Result<Session> {
        let capabilities = &self.agent_info().agent_capabilities.session_capabilities;
        if capabilities.resume.is_none() {
            return Err(Error::unsupported(
                "session/resume",
                "sessionCapabilities.resume",
            ));
        }
        let place = Place::open(&request.cwd, &request.additional_directories);
        let inbox = self.claim(&request.session_id, place)?;
        let state = |response: ResumeSessionResponse| (response.modes, response.config_options);
        let id = request.session_id.clone();
        self.open_again::<methods::ResumeSession>(id, inbox, &request, state)
            .await
    }

    /// Closes the connection and returns the exit status of an agent that this client started.
    ///
    /// The agent's process is terminated after the timeouts of
    /// [`AgentCommand::shutdown_grace`](crate::AgentCommand::shutdown_grace). Pending calls fail.
    pub async fn shutdown(&self) -> Option<Exit> {
        self.inner.agent.peer().finish();
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

    /// Opens an existing session. Registers it before the call, because updates may precede the response.
    async fn open_again<M: Request>(
        &self,
        id: SessionId,
        inbox: Arc<Inbox>,
        request: &M::Params,
        state: fn(M::Result) -> OpenedState,
    ) -> Result<Session> {
        let session = Session::new(self.inner.clone(), id, inbox.clone());
        let opened = move |response: Option<Response<M::Result>>| {
            if let Some(Response { result, commands }) = response {
                inbox.change_settings(|settings| settings.opened(state(result), commands));
            }
            inbox.end_history();
        };
        self.inner.send_then::<M>(request, opened).await?;
        Ok(session)
    }

    /// Registers a session and its directories.
    fn claim(&self, id: &SessionId, place: Arc<Place>) -> Result<Arc<Inbox>> {
        let claimed = self.inner.sessions.claim(id);
        let inbox = claimed.ok_or_else(|| Error::SessionOpen {
            session: id.clone(),
        })?;
        inbox.set_place(place);
        Ok(inbox)
    }
}
