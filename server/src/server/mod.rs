//! A server: the handler, the store, the sessions, and the clients attached to it.

mod adopting;
mod claiming;
mod closing;
mod fencing;
mod joining;
mod opening;
mod records;
mod repair;
mod retention;
mod sessions;
mod statistics;
mod stored;
mod suspending;
mod tasks;

pub(crate) use joining::{Joined, Joining, Unanswered};
pub(crate) use opening::OpeningClient;
pub(crate) use sessions::Sessions;
pub use statistics::Statistics;
pub use stored::StoredSessions;

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use acp_sdk::v1::SessionId;
use acp_sdk::{ConnectionBuilder, RunningConnection, Transport};
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::connection::{Answers, Client, ClientId, Restriction, Role};
use crate::handler::AnyHandler;
use crate::limits::{Limits, LocalTools, OnDisconnect, Policies};
use crate::log::Memory;
use crate::store::{MemoryStore, Store};
use crate::{
    Access, AgentInfo, DecidePermissions, Handler, HandlerResult, InitialSettings,
    ServerConnection, Session,
};

/// Sessions of a [`Handler`], and any number of clients that use them.
///
/// Clones are handles to the same server.
///
/// - **Turns belong to sessions**, not to connections. What happens when the client that prompted
///   disconnects is a [policy](Policies).
/// - **Prompts** of one session have their turns in the order of their arrival. Others wait, up to
///   a [limit](Limits).
/// - **`session/cancel`** is for all prompts of the session that have arrived, and never for a
///   later one. Each is answered with the stop reason `cancelled`, at once if it still waits.
/// - **Events** are numbered and kept by the [`Store`]. Each client receives them in order, without
///   gap or double, at its own pace; `_acp-sdk/session/resume` continues after a number.
/// - **Several clients** of one session receive the same events. Permissions and elicitations go
///   to the client that prompted; when it is gone, to the others.
/// - **Before `initialize`** every request is refused with `-32600`. After `logout` a client
///   cannot open sessions until it has authenticated; other clients are not affected.
///
/// ```no_run
/// # use acp_sdk::v1::StopReason;
/// # use acp_server::{Handler, HandlerResult, Server, Turn};
/// # struct MyAgent;
/// # impl Handler for MyAgent {
/// #     type State = ();
/// #     async fn prompt(&self, _: &mut (), _: Turn) -> HandlerResult<StopReason> { Ok(StopReason::EndTurn) }
/// # }
/// # async fn example(listener: tokio::net::UnixListener) -> std::io::Result<()> {
/// let server = Server::new(MyAgent);
/// loop {
///     let (stream, _) = listener.accept().await?;
///     let mut connection = server.attach(tokio::io::split(stream));
///     tokio::spawn(async move { connection.closed().await });
/// }
/// # }
/// ```
#[derive(Clone)]
pub struct Server(Arc<Guard>);

/// Ends the sessions with the last handle and the last connection.
struct Guard(Arc<ServerCore>);

impl Drop for Guard {
    fn drop(&mut self) {
        self.0.closed.cancel();
        let sessions = Clear(self.0.clone());
        // Without a runtime no handler can be closed, and no lease be given back.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { sessions.0.shut_down().await });
        }
    }
}

/// Drops the sessions in the end, even if the runtime drops the task: they refer to the core, and
/// it refers to them.
struct Clear(Arc<ServerCore>);

impl Drop for Clear {
    fn drop(&mut self) {
        self.0.sessions.clear();
    }
}

/// What sessions, connections and the server have in common.
pub(crate) struct ServerCore {
    pub(crate) handler: Box<dyn AnyHandler>,
    pub(crate) info: AgentInfo,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) limits: Limits,
    /// What all logs keep in memory.
    pub(crate) log_memory: Arc<Memory>,
    pub(crate) policies: Policies,
    /// What decides permission requests before anybody is asked.
    pub(crate) permissions: Option<Box<dyn DecidePermissions>>,
    /// What new sessions begin with.
    pub(crate) initial_settings: InitialSettings,
    /// Whether slow clients are sent joined text chunks.
    pub(crate) coalesces_chunks: bool,
    /// Whether a request that opens a session must have the session's working directory.
    requires_same_cwd: bool,
    /// Whether clients may choose version 2 of the protocol.
    pub(crate) offers_v2: bool,
    /// Whether `session/fork`, which is a proposal, is among the capabilities.
    #[cfg(feature = "unstable")]
    pub(crate) announces_fork: bool,
    pub(crate) sessions: Sessions,
    /// What the next `session/new` opens, if it is no new session.
    pub(crate) next_session: Mutex<Option<NextSession>>,
    clients: AtomicU64,
    /// When the server was built: ISO 8601 in UTC.
    started_at: String,
    /// Counts uses of sessions.
    pub(crate) uses: AtomicU64,
    /// Cancelled when the server shuts down: what waits for a client, for a time or for a handler
    /// that opens a session stops waiting.
    pub(crate) closed: CancellationToken,
    /// What is finished once it has begun, whoever waits for it.
    tasks: TaskTracker,
    /// Whether the task of retention was started.
    retention_started: AtomicBool,
    /// Whether the task that waits for the loss of the leases was started.
    leases_watched: AtomicBool,
    /// Whether the task that opens sessions of killed servers was started.
    adoption_started: AtomicBool,
    /// How often the leases of all open sessions were lost.
    leases_lost: watch::Sender<u64>,
    /// Whether prompts are refused because the server is about to end.
    pub(crate) draining: AtomicBool,
    /// Held by handlers that open a session.
    opens: Semaphore,
    /// Held by calls that use a file of this machine.
    pub(crate) local_files: Arc<Semaphore>,
    pub(crate) counters: statistics::Counters,
    /// Notified of deleted sessions.
    observers: Mutex<Vec<Weak<dyn DeletionObserver>>>,
}

/// Keeps something for sessions that must go with them.
pub trait DeletionObserver: Send + Sync {
    /// Called after each deletion, whichever way it was requested.
    fn session_deleted(&self, id: &SessionId);
}

impl ServerCore {
    fn notify_deleted(&self, id: &SessionId) {
        if let Some(suspended) = self.sessions.take_suspended(id) {
            suspended.end(id);
        }
        // Not under the lock: an observer may do anything.
        let observers = self
            .observers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        for observer in observers.iter().filter_map(Weak::upgrade) {
            observer.session_deleted(id);
        }
    }

    pub(crate) fn next_client(&self) -> ClientId {
        ClientId(self.clients.fetch_add(1, Ordering::Relaxed) + 1)
    }
}

/// Settings of a [`Server`].
#[must_use]
pub struct ServerBuilder {
    handler: Box<dyn AnyHandler>,
    info: AgentInfo,
    store: Arc<dyn Store>,
    limits: Limits,
    policies: Policies,
    permissions: Option<Box<dyn DecidePermissions>>,
    initial_settings: InitialSettings,
    next_session: Option<NextSession>,
    coalesces_chunks: bool,
    requires_same_cwd: bool,
    offers_v2: bool,
    #[cfg(feature = "unstable")]
    announces_fork: bool,
}

/// What the first `session/new` opens: for clients that start the agent anew for each of the
/// user's commands and know no session ids.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NextSession {
    /// A new session of this name.
    Named(String),
    /// The session of this name, whose conversation is replayed after the answer.
    Resume(String),
    /// The session of the working directory with the latest activity; a new one if there is none.
    ResumeRecent,
}

impl ServerBuilder {
    /// Sets where sessions are kept (default: a [`MemoryStore`]).
    pub fn store(mut self, store: impl Store) -> Self {
        self.store = Arc::new(store);
        self
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Sets whether adjacent text chunks of one message are joined when a client is slower than
    /// the agent (default: no). The text stays the same; such a client receives fewer, longer
    /// chunks, of at most 16 KiB. Applies to clients of version 1, but not over HTTP.
    pub fn coalesce_chunks(mut self, join: bool) -> Self {
        self.coalesces_chunks = join;
        self
    }

    /// Sets whether `session/load` and `session/resume` are refused with -32602 if their `cwd` is not
    /// the session's (default: no). Otherwise the session keeps its working directory, and the
    /// response names it in `_meta["acp-sdk"].cwd`.
    pub fn require_same_cwd(mut self, require: bool) -> Self {
        self.requires_same_cwd = require;
        self
    }

    /// Sets whether clients that ask for version 2 of the protocol, which is a preview, are served it
    /// (default: yes). Otherwise they are answered version 1.
    pub fn offer_v2(mut self, offer: bool) -> Self {
        self.offers_v2 = offer;
        self
    }

    /// Sets whether `session/fork` is among the capabilities (default: no). It is a proposal for the
    /// protocol, and is answered either way.
    #[cfg(feature = "unstable")]
    pub fn announce_fork(mut self, announce: bool) -> Self {
        self.announces_fork = announce;
        self
    }

    /// Sets the policies of new sessions.
    pub fn policies(mut self, policies: Policies) -> Self {
        self.policies = policies;
        self
    }

    /// Sets what decides permission requests before any client is asked (nothing: clients are).
    pub fn permissions(mut self, permissions: impl DecidePermissions) -> Self {
        self.permissions = Some(Box::new(permissions));
        self
    }

    /// Sets the model, the options and the mode that new sessions begin with (those of the agent).
    /// Creating a session fails if the agent does not offer them.
    pub fn initial_settings(mut self, settings: InitialSettings) -> Self {
        self.initial_settings = settings;
        self
    }

    /// Sets what the first `session/new` opens (default: a new session without a name).
    pub fn next_session(mut self, next: NextSession) -> Self {
        self.next_session = Some(next);
        self
    }

    /// Creates the server.
    #[must_use]
    pub fn build(self) -> Server {
        let opens = Semaphore::new(self.limits.concurrent_opens.max(1));
        let files = self.limits.local.concurrent_files.max(1);
        let core = ServerCore {
            handler: self.handler,
            info: self.info,
            store: self.store,
            log_memory: Memory::new(self.limits.log_bytes),
            limits: self.limits,
            policies: self.policies,
            permissions: self.permissions,
            initial_settings: self.initial_settings,
            sessions: Sessions::default(),
            next_session: Mutex::new(self.next_session),
            coalesces_chunks: self.coalesces_chunks,
            requires_same_cwd: self.requires_same_cwd,
            offers_v2: self.offers_v2,
            #[cfg(feature = "unstable")]
            announces_fork: self.announces_fork,
            clients: AtomicU64::new(0),
            started_at: crate::clock::now(),
            uses: AtomicU64::new(0),
            closed: CancellationToken::new(),
            tasks: TaskTracker::new(),
            retention_started: AtomicBool::new(false),
            leases_watched: AtomicBool::new(false),
            adoption_started: AtomicBool::new(false),
            leases_lost: watch::Sender::default(),
            draining: AtomicBool::new(false),
            opens,
            local_files: Arc::new(Semaphore::new(files)),
            counters: statistics::Counters::default(),
            observers: Mutex::default(),
        };
        let core = Arc::new(core);
        core.start_tasks();
        Server(Arc::new(Guard(core)))
    }
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder").finish_non_exhaustive()
    }
}

/// How a client is connected, which decides the policies that are not set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Link {
    /// A pipe to the program that started this one: its end is the end of the user's work.
    Stdio,
    /// A connection that may be lost and come back.
    Remote,
}

impl Server {
    /// Creates a server that keeps its sessions in memory.
    pub fn new(handler: impl Handler) -> Self {
        Self::builder(handler).build()
    }

    /// Creates the settings of a server.
    pub fn builder<H: Handler>(handler: H) -> ServerBuilder {
        ServerBuilder {
            info: handler.info(),
            handler: Box::new(handler),
            store: Arc::new(MemoryStore::new()),
            limits: Limits::default(),
            policies: Policies::default(),
            permissions: None,
            initial_settings: InitialSettings::default(),
            next_session: None,
            coalesces_chunks: false,
            requires_same_cwd: false,
            offers_v2: true,
            #[cfg(feature = "unstable")]
            announces_fork: false,
        }
    }

    /// Returns the agent for one connection, to be served over a transport of any kind. It serves
    /// version 1; its [`every_version`](ServerConnection::every_version) serves version 2 too.
    #[must_use]
    pub fn connection(&self, link: Link) -> ServerConnection {
        self.connection_as(link, Role::new(Access::Full))
    }

    fn connection_as(&self, link: Link, role: Role) -> ServerConnection {
        let (on_disconnect, paced, local_tools) = match link {
            Link::Stdio => {
                let after = Duration::ZERO;
                (OnDisconnect::Cancel { after }, true, LocalTools::Fallback)
            }
            Link::Remote => (OnDisconnect::Continue, false, LocalTools::Off),
        };
        let core = self.core().clone();
        core.start_tasks();
        let client = Client::new(core, on_disconnect, paced, local_tools, role);
        ServerConnection::new(client, self.clone())
    }

    /// Attaches a client that may come back, and serves it as a task.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn attach(&self, transport: impl Into<Transport>) -> RunningConnection {
        self.attach_with(ConnectionBuilder::new(), transport)
    }

    /// The same with settings and layers of the connection.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn attach_with(
        &self,
        connection: ConnectionBuilder,
        transport: impl Into<Transport>,
    ) -> RunningConnection {
        self.attach_as(connection, transport, Access::Full)
    }

    /// The same for a client that may not do everything. What it may not do is answered with
    /// -32600.
    ///
    /// # Panics
    ///
    /// Outside of a tokio runtime.
    pub fn attach_as(
        &self,
        connection: ConnectionBuilder,
        transport: impl Into<Transport>,
        access: Access,
    ) -> RunningConnection {
        self.attach_role(connection, transport, Role::new(access))
    }

    /// Attaches a client over a transport.
    pub fn attach_role(
        &self,
        connection: ConnectionBuilder,
        transport: impl Into<Transport>,
        role: Role,
    ) -> RunningConnection {
        let is_restricted = role.access != Access::Full;
        let agent = self.connection_as(Link::Remote, role);
        let connection = match is_restricted {
            true => connection.layer(Restriction::of(&agent)),
            false => connection,
        };
        let connection = connection.layer(Answers::of(&agent));
        let connection = connection.agent(agent.every_version(), transport);
        connection.untyped().start()
    }

    /// Serves one client on standard input and output until it closes its side, then
    /// [shuts down](Self::shutdown).
    ///
    /// # Errors
    ///
    /// As [`acp_sdk::serve_stdio`].
    pub async fn serve_stdio(&self) -> acp_sdk::Result<()> {
        self.serve_stdio_with(ConnectionBuilder::new()).await
    }

    /// The same with settings and layers of the connection.
    ///
    /// # Errors
    ///
    /// As [`acp_sdk::serve_stdio`].
    pub async fn serve_stdio_with(&self, connection: ConnectionBuilder) -> acp_sdk::Result<()> {
        let agent = self.connection(Link::Stdio);
        let connection = connection.layer(Answers::of(&agent));
        let served = connection.serve_stdio(agent.every_version()).await;
        self.shutdown().await;
        served
    }

    /// Creates a session without a client.
    ///
    /// # Errors
    ///
    /// The handler's, or that of the store.
    pub async fn create_session(&self, cwd: impl Into<String>) -> HandlerResult<Session> {
        let created = self.core().create(None, cwd.into()).await;
        created.map(|(session, _)| session)
    }

    /// Returns the session of this name, and opens it if it is not in memory. If there is none, it is created in
    /// this directory.
    ///
    /// # Errors
    ///
    /// As [`create_session`](Self::create_session); invalid params, if another one has just been given the name.
    pub async fn named_session(
        &self,
        name: &str,
        cwd: impl Into<String>,
    ) -> HandlerResult<Session> {
        self.core().named(name, cwd.into()).await
    }

    /// As [`create_session`](Self::create_session) with this id; a session that has it already is
    /// opened instead. Returns whether it is new.
    ///
    /// # Errors
    ///
    /// As [`create_session`](Self::create_session).
    #[doc(hidden)]
    pub async fn create_session_once(
        &self,
        id: SessionId,
        cwd: impl Into<String>,
    ) -> HandlerResult<(Session, bool)> {
        self.core().create(Some(id), cwd.into()).await
    }

    /// Copies a session with all of its events, without a client. What a running turn does later is
    /// not in the copy.
    ///
    /// # Errors
    ///
    /// Resource not found; the handler's error, or that of the store.
    pub async fn fork_session(&self, source: &SessionId) -> HandlerResult<Session> {
        self.core().fork_detached(source.clone(), None).await
    }

    /// As [`fork_session`](Self::fork_session) with the events up to this number; a number beyond the last
    /// one means all.
    ///
    /// # Errors
    ///
    /// As [`fork_session`](Self::fork_session).
    pub async fn fork_session_at(&self, source: &SessionId, last: u64) -> HandlerResult<Session> {
        self.core().fork_detached(source.clone(), Some(last)).await
    }

    /// Returns a session, and opens it if it is not in memory.
    ///
    /// # Errors
    ///
    /// Resource not found; the handler's error, or that of the store.
    pub async fn session(&self, id: &SessionId) -> HandlerResult<Session> {
        self.core().open(id).await
    }

    /// Returns a session for a client with this access: one that may only read opens none.
    ///
    /// # Errors
    ///
    /// As [`session`](Self::session); resource not found, when a reader's session is not open.
    #[doc(hidden)]
    pub async fn session_for(&self, access: &Access, id: &SessionId) -> HandlerResult<Session> {
        match access.may_write() {
            true => self.session(id).await,
            false => self.core().opened(id).await,
        }
    }

    /// Returns when the server was built: ISO 8601 in UTC.
    #[must_use]
    pub fn started_at(&self) -> &str {
        &self.core().started_at
    }

    /// Returns a session if it is in memory.
    #[must_use]
    pub fn open_session(&self, id: &SessionId) -> Option<Session> {
        self.core().sessions.find(id)
    }

    /// Returns the sessions in memory, in no order.
    #[must_use]
    pub fn open_sessions(&self) -> Vec<Session> {
        self.core().sessions.all()
    }

    /// Returns the sessions of the store, the latest activity first, whether or not they are open.
    #[must_use]
    pub fn stored_sessions(&self) -> StoredSessions {
        StoredSessions::new(self.core().store.clone())
    }

    /// Cancels the prompts that wait in a session since its process has ended; in one that is open, as
    /// [`Session::cancel_turn`](crate::Session::cancel_turn).
    ///
    /// # Errors
    ///
    /// The store's.
    #[doc(hidden)]
    pub async fn cancel_unopened(&self, id: &SessionId) -> HandlerResult<()> {
        self.core().cancel_unopened(id).await
    }

    /// Closes a session, as `session/close` does for a client: cancels the prompts that no client sent.
    /// Unless a client that may change the session is attached, its turn ends and it leaves memory.
    ///
    /// # Errors
    ///
    /// Resource not found, or the error of the store.
    pub async fn close_session(&self, id: &SessionId) -> HandlerResult<()> {
        self.core().close(id).await
    }

    /// Deletes a session with its events: cancels its turns and closes it, for all clients.
    /// Returns `false` if there is no such session.
    ///
    /// # Errors
    ///
    /// The error of the store, such as when another process has the session.
    pub async fn delete_session(&self, id: &SessionId) -> HandlerResult<bool> {
        self.core().delete(id).await
    }

    /// Returns what the agent advertises of itself.
    #[must_use]
    pub fn info(&self) -> &AgentInfo {
        &self.core().info
    }

    /// Returns numbers about this server since its start.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let core = self.core();
        core.counters.read(core.sessions.count() as u64)
    }

    /// Returns the store.
    #[must_use]
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.core().store
    }

    /// Closes all sessions: cancels their turns, commits what was appended, closes their handlers,
    /// and gives the leases back. Another server can load them again; this one opens no more.
    ///
    /// Sessions that are being opened fail to open. Once begun, the shutdown goes on if this future
    /// is dropped.
    ///
    /// When the last handle and the last connection are dropped, the same happens in the
    /// background. A program that ends should await it here. Dropped outside of a tokio runtime,
    /// handlers are not closed, and the leases are free when the store is dropped.
    pub async fn shutdown(&self) {
        self.core().shut_down().await;
    }

    /// Refuses prompts and new sessions from now on, and waits until all turns have ended, queued ones
    /// included. Idle sessions leave memory at once, so that another server of the store can open them.
    ///
    /// For a program that ends without cancelling what it does: [`shutdown`](Self::shutdown) follows.
    /// A turn may wait for a user who never answers, so the caller sets a limit.
    pub async fn drain(&self) {
        self.core().drain().await;
    }

    /// Returns whether prompts or sessions are refused because the server [drains](Self::drain) or
    /// [shuts down](Self::shutdown).
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.core().draining.load(Ordering::Acquire) || self.core().closed.is_cancelled()
    }

    /// Notifies an observer of deletions for as long as it exists.
    #[doc(hidden)]
    pub fn observe_deletions(&self, observer: Weak<dyn DeletionObserver>) {
        let mut observers = self
            .core()
            .observers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        observers.retain(|old| old.strong_count() > 0);
        observers.push(observer);
    }

    pub(crate) fn core(&self) -> &Arc<ServerCore> {
        &self.0.0
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("sessions", &self.core().sessions.count())
            .finish_non_exhaustive()
    }
}
