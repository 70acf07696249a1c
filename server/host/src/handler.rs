//! The agent as a handler.

use std::collections::HashMap;
use std::ffi::OsString;
use std::ops::Deref;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use acp_sdk::extensions::methods::{RedoSession, UndoSession};
use acp_sdk::extensions::{TurnRestoration, UndoSessionRequest};
use acp_sdk::runtime::Method as _;
use acp_sdk::v1::{
    AuthenticateRequest, CloseSessionRequest, LogoutRequest, SessionId, StopReason, methods,
};
use acp_sdk::{Context, HandlerError, HandlerResult, Json};
use acp_server::internal::log_repeated;
use acp_server::internal::raw_object::{RawObject, json_text};
use acp_server::store::SessionRecord;
use acp_server::{
    AgentInfo, Handler, Login, Opening, OpeningKind, Session, Settings, SettingsChange, Turn,
    UndoDirection, UndoRequest,
};
use tokio::time::timeout;

use super::announced::announced;
use super::builder::{HostedAgentBuilder, Spec};
use super::forking::delete;
use super::offered::Offered;
use super::opening::AgentSettings;
use super::process::{Key, Process};
use super::processes::Processes;
use super::reopening::change_of;
use super::session::{AgentSession, HostedSession, Kept, UsedSession};
use super::uses::InUse;
use super::{AgentProcesses, HostedError, caretaker};

/// Time for an agent to close a session.
const CLOSING: Duration = Duration::from_secs(2);

/// A stdio agent behind a [`Server`](acp_server::Server): what passes through, and what does not, is in
/// `docs/hosting.md`.
///
/// Clones are handles to the same agent. Processes are killed when the last handle and the server are
/// dropped; [`shutdown`](Self::shutdown) ends them in order.
#[derive(Clone, Debug)]
pub struct HostedAgent(Arc<HostedAgentInner>);

#[derive(Debug)]
struct HostedAgentInner {
    processes: Arc<Processes>,
    info: AgentInfo,
    /// Whether the agent can delete sessions.
    deletes: bool,
    /// Where to authenticate, when nothing else runs.
    first: Key,
    sessions: Mutex<HashMap<SessionId, Weak<HostedSession>>>,
    /// Whether the first process belongs to a session, if each has its own.
    first_taken: AtomicBool,
    next_key: AtomicU64,
}

/// The agent's session behind one of ours.
#[derive(Debug, Default)]
pub struct HostedState(Option<Arc<HostedSession>>);

/// A process that is not ended for being idle.
struct UsedProcess {
    process: Arc<Process>,
    _used: InUse,
}

impl UsedProcess {
    /// Begins a use; `None` if the process can be given no work.
    fn begin(process: Arc<Process>) -> Option<Self> {
        let used = process.begin_use()?;
        Some(Self {
            process,
            _used: used,
        })
    }
}

impl Deref for UsedProcess {
    type Target = Process;

    fn deref(&self) -> &Process {
        &self.process
    }
}

impl HostedAgentBuilder {
    /// Starts the command once and initializes it: what it announces is what clients are announced.
    /// The process serves the first sessions.
    ///
    /// # Errors
    ///
    /// When the command cannot be started, the server cannot be reached, the agent does not answer in
    /// time, or it uses another version of the protocol. [`HostedError::NotForUrl`] when an agent at a URL
    /// was given what only a command has.
    pub async fn start(self) -> Result<HostedAgent, HostedError> {
        HostedAgent::start(self.spec().await?).await
    }
}

impl HostedAgent {
    /// Creates the command of an agent, such as `opencode`. A name without a slash is searched in
    /// `PATH`.
    pub fn builder(program: impl Into<OsString>) -> HostedAgentBuilder {
        HostedAgentBuilder::new(program.into())
    }

    /// Takes an agent behind a URL, which another server has: over HTTP or WebSocket, with sessions of
    /// this server. A lost connection is opened again, as [`RemoteAgent`](acp_client::remote::RemoteAgent)
    /// says; a turn goes on meanwhile if the other server numbers its events.
    #[cfg(feature = "remote")]
    pub fn at(agent: acp_client::remote::RemoteAgent) -> HostedAgentBuilder {
        HostedAgentBuilder::at(agent)
    }

    async fn start(spec: Spec) -> Result<Self, HostedError> {
        let first = match spec.processes() {
            AgentProcesses::Shared => Key::Shared(spec.first_offered()),
            AgentProcesses::PerSession => Key::Session(0, spec.first_offered()),
        };
        let processes = Arc::new(Processes::new(spec));
        let process = processes.get(first).await?.process;
        let info = announced(&process, &processes.spec);
        let capabilities = &process.info.agent_capabilities.session_capabilities;
        let deletes = capabilities.delete.is_some();
        caretaker::start(&processes);
        Ok(Self(Arc::new(HostedAgentInner {
            processes,
            info,
            deletes,
            first,
            sessions: Mutex::default(),
            first_taken: AtomicBool::new(false),
            next_key: AtomicU64::new(1),
        })))
    }

    /// Returns name and version, as the agent announces them.
    #[must_use]
    pub fn name(&self) -> String {
        let implementation = &self.0.info.implementation;
        format!("{} {}", implementation.name, implementation.version)
    }

    /// Ends the processes: closes their input, waits, sends SIGTERM, waits, sends SIGKILL. Call it
    /// after [`Server::shutdown`](acp_server::Server::shutdown).
    pub async fn shutdown(&self) {
        self.0.processes.shut_down().await;
    }

    /// Returns the process for a session that is opened by a client with these capabilities.
    fn key(&self, offered: Offered) -> Key {
        match self.0.processes.spec.processes() {
            AgentProcesses::Shared => Key::Shared(offered),
            // The process that was started first is one for such a session.
            AgentProcesses::PerSession
                if offered == self.0.first.offered()
                    && !self.0.first_taken.swap(true, Ordering::Relaxed) =>
            {
                self.0.first
            }
            AgentProcesses::PerSession => {
                let number = self.0.next_key.fetch_add(1, Ordering::Relaxed);
                Key::Session(number, offered)
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<SessionId, Weak<HostedSession>>> {
        let sessions = self.0.sessions.lock();
        sessions.unwrap_or_else(PoisonError::into_inner)
    }

    fn hosted(&self, id: &SessionId) -> HandlerResult<Arc<HostedSession>> {
        let found = self.sessions().get(id).and_then(Weak::upgrade);
        found.ok_or_else(|| HandlerError::resource_not_found(format!("session {id}")))
    }

    /// Returns a process for what belongs to no session.
    async fn any_process(&self) -> HandlerResult<UsedProcess> {
        let usable = self.0.processes.usable().into_iter();
        if let Some(used) = usable.filter_map(UsedProcess::begin).next() {
            return Ok(used);
        }
        let granted = self.0.processes.get(self.0.first).await?;
        Ok(UsedProcess {
            process: granted.process,
            _used: granted.used,
        })
    }

    /// Returns all processes that can be used, at least one.
    async fn all_processes(&self) -> HandlerResult<Vec<UsedProcess>> {
        let usable = self.0.processes.usable().into_iter();
        let used: Vec<_> = usable.filter_map(UsedProcess::begin).collect();
        match used.is_empty() {
            true => Ok(vec![self.any_process().await?]),
            false => Ok(used),
        }
    }

    /// Returns the process and the params of a client's message outside of the protocol.
    async fn target(&self, params: Option<Json>) -> HandlerResult<(UsedProcess, Option<Json>)> {
        let object = params
            .as_ref()
            .and_then(|params| RawObject::parse(params.get()));
        let id = object.as_ref().and_then(|object| object.text("sessionId"));
        match (object, id) {
            (Some(mut object), Some(id)) => {
                let hosted = self.hosted(&SessionId::from(id))?;
                let link = hosted.ensure(&self.0.processes).await?;
                object.set("sessionId", json_text(link.id.as_str()));
                let UsedSession { session, used } = link;
                let process = session.process;
                Ok((
                    UsedProcess {
                        process,
                        _used: used,
                    },
                    Some(object.to_json()),
                ))
            }
            _ => Ok((self.any_process().await?, params)),
        }
    }
}

impl Handler for HostedAgent {
    type State = HostedState;

    fn info(&self) -> AgentInfo {
        self.0.info.clone()
    }

    async fn open(&self, state: &mut Self::State, opening: &Opening) -> HandlerResult<Settings> {
        let session = &opening.session;
        let key = self.key(Offered::of(&opening.capabilities));
        let hosted = HostedSession::new(session, key, &self.0.processes.spec);
        let granted = self.0.processes.get(key).await;
        let granted = granted.map_err(HostedError::answer)?;
        let process = granted.process.clone();
        let (meta, changed) = (opening.meta.clone(), &opening.changed_options);
        let opened = match &opening.kind {
            OpeningKind::New => {
                let put = |session: &Session, settings: AgentSettings| {
                    session.install_settings(settings.mirrored(changed.clone()));
                };
                let created = hosted.create(&process, meta, put).await;
                created.map(|link| (link, session.settings()))
            }
            OpeningKind::Loaded => hosted.open_again(&process, changed, meta).await,
            OpeningKind::Forked { is_complete, .. } => {
                hosted.fork(&process, *is_complete, changed, meta).await
            }
        };
        match opened {
            Ok((link, settings)) => {
                *hosted.link.lock().await = Some(link);
                let weak = Arc::downgrade(&hosted);
                self.sessions().insert(session.id().clone(), weak);
                state.0 = Some(hosted);
                Ok(settings)
            }
            Err(error) => {
                self.0.processes.end(key).await;
                Err(error)
            }
        }
    }

    async fn prompt(&self, state: &mut Self::State, turn: Turn) -> HandlerResult<StopReason> {
        match &state.0 {
            Some(hosted) => hosted.prompt(&self.0.processes, &turn).await,
            // `open` has set it.
            None => Err(HandlerError::internal("the session has no agent")),
        }
    }

    async fn close(&self, state: Self::State, session: &Session) {
        self.sessions().remove(session.id());
        let Some(hosted) = state.0 else { return };
        hosted.closed.cancel();
        hosted.release_terminals();
        let link = hosted.link.lock().await.take();
        if let Some(AgentSession { process, id }) = link
            && let Some(_used) = process.begin_use()
        {
            let capabilities = &process.info.agent_capabilities.session_capabilities;
            if capabilities.close.is_some() {
                let request = CloseSessionRequest::new(id);
                // What it holds is released at the latest with its process.
                let _ = timeout(CLOSING, process.call::<methods::CloseSession>(&request)).await;
            }
        }
        self.0.processes.end(hosted.key).await;
    }

    /// Deletes the agent's session, if the agent can.
    async fn deleted(&self, session: &SessionRecord) {
        let data = session.data.as_ref();
        let kept = data.and_then(|data| Kept::read(data, &session.id));
        let Some(kept) = kept.filter(|_| self.0.deletes) else {
            return;
        };
        match self.any_process().await {
            Ok(process) => delete(&process, kept.agent_session).await,
            Err(error) => log_repeated!(
                warn, session = %session.id, error = %error.as_response().message,
                "the agent did not delete its session"
            ),
        }
    }

    /// An agent that can neither load nor resume the session would forget the conversation.
    fn may_unload(&self, session: &Session) -> bool {
        let Ok(hosted) = self.hosted(session.id()) else {
            return true;
        };
        // Who holds the link uses the session.
        let Ok(link) = hosted.link.try_lock() else {
            return false;
        };
        let process = link.as_ref().map(|link| &link.process);
        process.is_none_or(|process| process.can_reopen() || !process.is_usable())
    }

    async fn settings_change(
        &self,
        session: &Session,
        change: &SettingsChange,
    ) -> HandlerResult<()> {
        let hosted = self.hosted(session.id())?;
        let link = hosted.ensure(&self.0.processes).await?;
        let has_options = session.settings().mode_is_option();
        hosted
            .set(&link, &change_of(change.clone(), has_options))
            .await
    }

    async fn undo(
        &self,
        session: &Session,
        request: UndoRequest,
    ) -> HandlerResult<TurnRestoration> {
        let hosted = self.hosted(session.id())?;
        let link = hosted.ensure(&self.0.processes).await?;
        let method = match request.direction {
            UndoDirection::Undo => UndoSession::NAME,
            UndoDirection::Redo => RedoSession::NAME,
        };
        // Both have the same parameters and the same answer.
        let params = UndoSessionRequest::new(link.id.clone()).with_force(request.force);
        let params = Json::new(&params).map_err(HandlerError::internal)?;
        let restored = link.process.call_ext(method, Some(&params)).await?;
        restored.parse().map_err(|error| {
            HandlerError::internal(format!(
                "the agent's answer to {method} is invalid: {error}"
            ))
        })
    }

    async fn authenticate(&self, login: &Login) -> HandlerResult<()> {
        let spec = &self.0.processes.spec;
        let limit = spec.limits().login_timeout;
        let _one = spec.logins.one.lock().await;
        let (_current, relaying) = spec.logins.begin(login);
        let method = login.method();
        let authenticated = async {
            for process in self.all_processes().await? {
                let request = AuthenticateRequest::new(method.clone());
                let call = process.call_within::<methods::Authenticate>(limit, &request);
                call.await?;
            }
            Ok::<_, HandlerError>(())
        };
        tokio::select! {
            biased;
            authenticated = authenticated => authenticated?,
            () = relaying => {}
        }
        self.0.processes.set_authenticated(Some(method.clone()));
        Ok(())
    }

    async fn logout(&self) -> HandlerResult<()> {
        self.0.processes.set_authenticated(None);
        for process in self.all_processes().await? {
            let request = LogoutRequest::new();
            process.call::<methods::Logout>(&request).await?;
        }
        Ok(())
    }

    async fn ext_request(
        &self,
        ctx: &Context,
        method: &str,
        params: Option<Json>,
    ) -> HandlerResult<Json> {
        let answered = async {
            let (process, params) = self.target(params).await?;
            process.call_ext(method, params.as_ref()).await
        };
        tokio::select! {
            biased;
            answered = answered => answered,
            () = ctx.cancelled() => Err(HandlerError::cancelled()),
        }
    }

    async fn ext_notification(&self, _: &Context, method: &str, params: Option<Json>) {
        // A notification has no answer that could say that it was not passed on.
        if let Ok((process, params)) = self.target(params).await {
            let _ = process
                .agent
                .peer()
                .notify_ext(method, params.as_ref())
                .await;
        }
    }
}
