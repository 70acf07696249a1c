//! What a server knows of one client, and how it sends to it.

mod access;
mod answer;
pub mod check;
mod cursor;
mod delivery;
mod errors;
mod extension;
mod joining;
mod login;
#[cfg(feature = "unstable")]
mod mcp;
mod requests;
mod server_connection;
mod subscription;
mod v1;
mod v2;
mod wire;

pub use access::Access;
pub(crate) use access::Restriction;
pub(crate) use answer::Answers;
pub use answer::answer;
pub(crate) use cursor::Replay;
pub(crate) use delivery::Delivery;
pub(crate) use errors::store_failed;
pub use login::check_login;
#[cfg(feature = "unstable")]
pub use mcp::{ProvidedServer, Subscribed};
pub use requests::elicitation_needs;
pub(crate) use requests::send_state_of;
pub use server_connection::ServerConnection;
pub(crate) use subscription::Barrier;
pub use subscription::{Gate, Subscription};
pub(crate) use wire::Encoding;
pub use wire::RESTARTED;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use acp_sdk::facts::MethodTable;
use acp_sdk::v1::{ClientCapabilities, ErrorCode, Implementation, SessionId};
#[cfg(feature = "unstable")]
use acp_sdk::v1::{McpServerAcpId, MessageMcpNotification};
use acp_sdk::{HandlerError, HandlerResult, Peer};
#[cfg(feature = "unstable")]
use tokio::sync::mpsc::Sender;

use crate::limits::{LocalTools, OnDisconnect};
use crate::server::{OpeningClient, ServerCore};
use crate::session::Answerer;
use crate::{Capability, Session};

/// Names a client among those of one server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct ClientId(pub(crate) u64);

/// One connected client.
pub(crate) struct Client {
    id: ClientId,
    core: Arc<ServerCore>,
    /// Known from its first request on.
    peer: OnceLock<Peer>,
    pub(crate) on_disconnect: OnDisconnect,
    pub(crate) paced: bool,
    pub(crate) local_tools: LocalTools,
    role: Role,
    state: Mutex<ClientState>,
    authenticated: AtomicBool,
    /// Whether the client uses version 2. Set before it is initialized.
    is_v2: AtomicBool,
    pub(crate) delivery: Delivery,
}

/// What a client is to the server.
#[allow(missing_debug_implementations, reason = "for crates of this project")]
pub struct Role {
    /// What it may do.
    pub access: Access,
    /// Whether it is asked for permissions and the like.
    pub is_asked: bool,
    /// Whether it has logged in; `None`: it has if it needs no login.
    pub is_authenticated: Option<bool>,
    /// In whose name it answers questions; the server adds its name.
    pub answerer: Answerer,
    /// Decides when a session's events are sent; without one, at once.
    pub gate: Option<Arc<dyn Gate>>,
}

impl Role {
    /// Returns what a client with this access is over any transport.
    pub fn new(access: Access) -> Self {
        Self {
            is_asked: access.may_write(),
            is_authenticated: None,
            access,
            answerer: Answerer::local(),
            gate: None,
        }
    }
}

struct ClientState {
    /// Set by `initialize`.
    capabilities: Option<Arc<ClientCapabilities>>,
    info: Option<Implementation>,
    /// Its name and version, for the log.
    name: Option<Arc<str>>,
    /// Whether changes of the state of its sessions are notified.
    wants_state: bool,
    subscriptions: HashMap<SessionId, Arc<Subscription>>,
    /// Sessions that it is attached to although they have left memory.
    suspended: HashSet<SessionId>,
    /// Who receives the notifications of MCP servers that it provides.
    #[cfg(feature = "unstable")]
    provided: HashMap<McpServerAcpId, Sender<MessageMcpNotification>>,
    gone: bool,
}

impl Client {
    pub(crate) fn new(
        core: Arc<ServerCore>,
        on_disconnect: OnDisconnect,
        paced: bool,
        local_tools: LocalTools,
        role: Role,
    ) -> Arc<Self> {
        let id = core.next_client();
        let authenticated = role.is_authenticated;
        let authenticated = authenticated.unwrap_or(!core.info.requires_login(&role.access));
        Arc::new(Self {
            id,
            core,
            peer: OnceLock::new(),
            on_disconnect,
            paced,
            local_tools,
            role,
            state: Mutex::new(ClientState {
                capabilities: None,
                info: None,
                name: None,
                wants_state: false,
                subscriptions: HashMap::new(),
                suspended: HashSet::new(),
                #[cfg(feature = "unstable")]
                provided: HashMap::new(),
                gone: false,
            }),
            authenticated: AtomicBool::new(authenticated),
            is_v2: AtomicBool::new(false),
            delivery: Delivery::default(),
        })
    }

    pub(crate) fn id(&self) -> ClientId {
        self.id
    }

    pub(crate) fn core(&self) -> &Arc<ServerCore> {
        &self.core
    }

    pub(crate) fn peer(&self) -> Option<&Peer> {
        self.peer.get()
    }

    /// The client has sent `initialize`; if it does so again, the last one counts.
    pub(crate) fn initialize(
        self: &Arc<Self>,
        peer: &Peer,
        capabilities: ClientCapabilities,
        info: Option<Implementation>,
    ) {
        let first = self.peer.set(peer.clone()).is_ok();
        let name = info.as_ref().map(|info| info.name.as_str());
        tracing::debug!(client = self.id.0, name, "a client is initialized");
        {
            let mut state = self.state();
            state.wants_state = wire::wants_state(&capabilities);
            state.capabilities = Some(Arc::new(capabilities));
            state.name = info.as_ref().map(name_of);
            state.info = info;
        }
        if first {
            delivery::start(self.clone());
        }
    }

    /// Returns the name and the version that it gave.
    pub(crate) fn name(&self) -> Option<Arc<str>> {
        self.state().name.clone()
    }

    /// Returns the capabilities.
    ///
    /// The protocol requires `initialize` first, and does not say what happens without it.
    ///
    /// # Errors
    ///
    /// Invalid request before `initialize`.
    pub(crate) fn initialized(&self) -> HandlerResult<Arc<ClientCapabilities>> {
        self.state().capabilities.clone().ok_or_else(|| {
            let reason = "the connection is not initialized; call initialize first";
            HandlerError::new(ErrorCode::INVALID_REQUEST, reason)
        })
    }

    pub(crate) fn set_authenticated(&self, authenticated: bool) {
        self.authenticated.store(authenticated, Ordering::Release);
    }

    pub(crate) fn offers(&self, capability: Capability) -> bool {
        let state = self.state();
        let capabilities = state.capabilities.as_deref();
        self.role.is_asked
            && capabilities.is_some_and(|capabilities| capability.is_in(capabilities))
    }

    pub(crate) fn access(&self) -> &Access {
        &self.role.access
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.role.is_asked
    }

    /// Returns in whose name it answers questions.
    pub(crate) fn answerer(&self) -> Answerer {
        Answerer {
            client: self.name(),
            ..self.role.answerer.clone()
        }
    }

    pub(crate) fn gate(&self) -> Option<&Arc<dyn Gate>> {
        self.role.gate.as_ref()
    }

    /// Returns how a session's events are encoded for this client.
    pub(crate) fn encoding(&self) -> Encoding {
        match self.is_v2() {
            true => Encoding::V2,
            false => Encoding::V1,
        }
    }

    /// Returns whether the client is initialized, in version 1.
    pub(crate) fn speaks_v1(&self) -> bool {
        !self.is_v2() && self.state().capabilities.is_some()
    }

    /// Returns the facts of an agent's methods in the version of the connection; before the version
    /// is settled, those of version 1, whose `initialize` is that of every version.
    fn methods(&self) -> &'static MethodTable {
        match self.is_v2() {
            true => &acp_sdk::v2::AGENT_METHODS,
            false => &acp_sdk::v1::AGENT_METHODS,
        }
    }

    pub(crate) fn is_v2(&self) -> bool {
        self.is_v2.load(Ordering::Acquire)
    }

    pub(crate) fn info(&self) -> Option<Implementation> {
        self.state().info.clone()
    }

    pub(crate) fn wants_state(&self) -> bool {
        self.state().wants_state
    }

    /// Returns the subscription to a session that the client is attached to.
    pub(crate) fn subscription(&self, session: &SessionId) -> Option<Arc<Subscription>> {
        self.state().subscriptions.get(session).cloned()
    }

    /// Enters a subscription; `false` if the client has gone meanwhile.
    pub(crate) fn enter(&self, subscription: &Arc<Subscription>) -> bool {
        let mut state = self.state();
        let id = subscription.session().id().clone();
        if !state.gone {
            state.suspended.remove(&id);
            state.subscriptions.insert(id, subscription.clone());
        }
        !state.gone
    }

    /// The client stays attached to a session that leaves memory; `false` if it has gone meanwhile.
    pub(crate) fn suspend(&self, session: &Session) -> bool {
        let mut state = self.state();
        let subscription = state.subscriptions.remove(session.id());
        if !state.gone {
            state.suspended.insert(session.id().clone());
        }
        let stays = !state.gone;
        drop(state);
        if let Some(subscription) = subscription {
            subscription.end();
        }
        stays
    }

    /// Returns whether the client is attached to a session that has left memory.
    pub(crate) fn is_suspended(&self, session: &SessionId) -> bool {
        self.state().suspended.contains(session)
    }

    /// The client is attached no more to a session that has left memory.
    pub(crate) fn forget_suspended(&self, session: &SessionId) {
        self.state().suspended.remove(session);
    }

    /// Returns what a handler learns of the client.
    pub(crate) fn opening(&self) -> OpeningClient {
        OpeningClient {
            capabilities: self.initialized().unwrap_or_default(),
            info: self.info(),
            meta: None,
        }
    }

    /// Ends the client's part in a session. Nothing of the session is sent afterwards.
    pub(crate) async fn leave(&self, session: &Session) {
        let subscription = self.state().subscriptions.remove(session.id());
        if let Some(subscription) = &subscription {
            subscription.end();
        }
        self.remove_from(session);
        if let Some(subscription) = subscription {
            subscription.settled().await;
        }
    }

    /// Takes the client from those that are attached to a session.
    pub(crate) fn remove_from(&self, session: &Session) {
        let mut state = session.state();
        state.clients.retain(|old| old.client.id() != self.id);
    }

    /// The connection has ended.
    pub(crate) fn gone(self: &Arc<Self>) {
        let (subscriptions, suspended) = {
            let mut state = self.state();
            state.gone = true;
            #[cfg(feature = "unstable")]
            state.provided.clear();
            let suspended = std::mem::take(&mut state.suspended);
            (std::mem::take(&mut state.subscriptions), suspended)
        };
        for id in suspended {
            self.core.sessions.forget_client(&id, self.id);
        }
        self.delivery.close();
        tracing::debug!(client = self.id.0, "a client has gone");
        for subscription in subscriptions.into_values() {
            subscription.end();
            self.core.disconnected(self, subscription.session());
        }
    }

    fn state(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.id.0).finish()
    }
}

/// Returns name and version, short enough for every turn's first event.
fn name_of(info: &Implementation) -> Arc<str> {
    const MOST_CHARS: usize = 100;
    let name = format!("{} {}", info.name, info.version);
    name.trim_end()
        .chars()
        .take(MOST_CHARS)
        .collect::<String>()
        .into()
}
