//! The connection to one agent: opening it, and what is asked of it outside of turns.

mod builder;
mod calls;
mod handler;
mod negotiation;
mod noise;
mod past;
mod request;
mod session;

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
use self::noise::Noise;
pub use self::past::SessionList;
use self::request::{Request, Response};
pub use self::session::Session;
use crate::error::{Error, Result};
use crate::hooks::{AnyTerminals, Place};
use crate::process::{AgentProcess, CurrentProcess, Exit};
use crate::reconnect::{Bridge, ConnectionState};
use crate::session::{Inbox, OpenedState, Sessions};

/// A client of one agent.
///
/// Clones and sessions share the connection; it ends with the last of them, and an agent
/// that was started for it is killed then. [`shutdown`](Self::shutdown) is gentler.
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

/// What keeps the connection going, and what is known when it fails.
#[derive(Debug)]
struct Wire {
    driver: JoinHandle<()>,
    /// Everything that the agent wrote has been handled, and nothing more will come.
    ended: CancellationToken,
    endpoint: Endpoint,
    state: watch::Sender<ConnectionState>,
    noise: Arc<Noise>,
    limits: Limits,
}

/// What the agent is.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per connection")]
enum Endpoint {
    /// A process of this client.
    Process(Arc<AgentProcess>),
    /// Behind a URL, or a process that is started again.
    Bridge {
        bridge: Bridge,
        /// Absent for a URL.
        process: Option<CurrentProcess>,
    },
    /// At the other end of a transport of the application.
    Transport,
}

impl Wire {
    /// Returns the agent's process, if it was started for this client.
    fn process(&self) -> Option<Arc<AgentProcess>> {
        match &self.endpoint {
            Endpoint::Process(process) => Some(process.clone()),
            Endpoint::Bridge { process, .. } => process.as_ref()?.borrow().clone(),
            Endpoint::Transport => None,
        }
    }
}

/// How long an agent may take, and how long our own readers.
#[derive(Debug, Clone, Copy)]
struct Limits {
    /// To answer anything but a prompt.
    answer: Duration,
    /// To end a turn that was cancelled.
    cancel: Duration,
    /// A reader, to take an event while others wait.
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

    /// Connects to the agent at a URL with default settings:
    /// [`ClientBuilder::connect_remote`] has others.
    ///
    /// # Errors
    ///
    /// As [`ClientBuilder::connect_remote`].
    #[cfg(feature = "remote")]
    pub async fn connect(url: impl AsRef<str>) -> Result<Self> {
        Self::builder().connect_remote(url.as_ref()).await
    }

    /// Returns the protocol version of the connection: 1, or 2 where
    /// [`ClientBuilder::offer_v2`] has offered it and the agent has taken it.
    #[must_use]
    pub fn protocol_version(&self) -> ProtocolVersion {
        self.inner.agent_info.protocol_version
    }

    /// Returns the agent's response to `initialize`: name, capabilities, authentication methods. That
    /// of version 2 is converted: a method that every agent has is a capability here.
    #[must_use]
    pub fn agent_info(&self) -> &InitializeResponse {
        &self.inner.agent_info
    }

    /// Returns the typed caller of version 1, for requests without a method here. For an agent of
    /// version 2 only its [`peer`](AgentHandle::peer) is of use; see `agent_v2`.
    #[must_use]
    pub fn agent(&self) -> &AgentHandle {
        &self.inner.agent
    }

    /// Returns the typed caller of version 2, if the connection speaks it.
    #[cfg(feature = "v2")]
    #[must_use]
    pub fn agent_v2(&self) -> Option<acp_sdk::v2::AgentHandle> {
        let peer = self.inner.agent.peer();
        let is_v2 = self.inner.is_v2();
        is_v2.then(|| acp_sdk::v2::AgentHandle::new(peer.clone()))
    }

    /// Returns the agent's process, if this client started it: the latest, if it
    /// [is started again](crate::AgentCommand::restart).
    #[must_use]
    pub fn process(&self) -> Option<Arc<AgentProcess>> {
        self.inner.wire.process()
    }

    /// Returns the state of the connection, now and later.
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

    /// Returns whether no further call can succeed.
    pub(crate) fn has_ended(&self) -> bool {
        let exited = match &self.inner.wire.endpoint {
            // Something that the agent has started may hold its output open.
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
    /// When the agent refuses, does not answer in time, or is gone.
    pub async fn authenticate(&self, method: impl Into<AuthMethodId>) -> Result<()> {
        let request = AuthenticateRequest::new(method);
        let answer = self.inner.send::<methods::Authenticate>(&request).await;
        answer.map(drop)
    }

    /// Sends `logout`, in version 2 `auth/logout`.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent cannot; when it refuses, does not answer in time,
    /// or is gone.
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
    /// [`Error::Directory`] if there is no such directory; when the agent refuses, does not
    /// answer in time, or is gone.
    pub async fn new_session(&self, cwd: impl AsRef<Path>) -> Result<Session> {
        let cwd = utf8_directory(cwd.as_ref())?;
        self.new_session_with(NewSessionRequest::new(cwd, Vec::new()))
            .await
    }

    /// Sends `session/new` with all its parameters, such as MCP servers.
    ///
    /// # Errors
    ///
    /// As [`new_session`](Self::new_session).
    pub async fn new_session_with(&self, request: NewSessionRequest) -> Result<Session> {
        let place = Place::open(&request.cwd, &request.additional_directories);
        let _creating = self.inner.sessions.creating(&place);
        let (sessions, place_of_new) = (self.inner.sessions.clone(), place.clone());
        let opened = move |response: Option<Response<NewSessionResponse>>| {
            // At its place in the order, so that a later update is not undone.
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

    /// Sends `session/load`, in version 2 a `session/resume` that replays everything, and returns the
    /// session.
    ///
    /// Its [events](Session::events) begin with the replayed history, which ends with
    /// [`Event::HistoryEnd`](crate::Event::HistoryEnd).
    ///
    /// The latest 8 MiB of the history are kept for the first reader.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`] if the agent cannot, and as [`new_session`](Self::new_session).
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
    /// As [`load_session`](Self::load_session).
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
    /// [`Error::Unsupported`] if the agent cannot, and as [`new_session`](Self::new_session).
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
    /// As [`resume_session`](Self::resume_session).
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

    /// Ends the connection: the agent sees the end of its input, and if it was started for
    /// this client it is waited for and made to end. Calls that are pending fail.
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
                // It may have been started again just before.
                Some(current()?.await_end().await)
            }
            Endpoint::Transport => None,
        }
    }

    /// Opens an existing session. It is registered before the call: updates may precede the answer.
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

    /// Makes a session known, and where it works.
    fn claim(&self, id: &SessionId, place: Arc<Place>) -> Result<Arc<Inbox>> {
        let claimed = self.inner.sessions.claim(id);
        let inbox = claimed.ok_or_else(|| Error::SessionOpen {
            session: id.clone(),
        })?;
        inbox.set_place(place);
        Ok(inbox)
    }
}
